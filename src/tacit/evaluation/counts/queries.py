"""What is asked of devices about personalization, as histograms.

Each strategy's change of each metric is asked once per slice ("tokens", "baseline", "joint": both at once), because the
sum over slices is the plain histogram and needs no further question. The first metric is the one whose baseline is
asked; every further one is as many histograms again, and their noise is paid by all. Design clients are also asked what
each strategy behind each gate would give them; fresh clients, what the chosen policies give them. Of gates and policies
the change is always that of TOP1: words that a keyboard shows are what its user gains and loses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.cells import Buckets, HistogramCells, HistogramQuery
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.gate import LEVELS, OPEN, GatePolicy, GateRule, deployed_change, policy_change
from tacit.networks.metrics import ALL_TOKENS, METRICS, TOP1, changing

SLICES = ("tokens", "baseline", "joint")
EVERYBODY = "everybody"  # the only slice where none is asked for
# What `policies.design` calls them.
POLICIES = ("one strategy", "one strategy, gate", "strategy by tokens", "strategy by tokens, gate")
ACCURACY = Buckets.steps(0, 60, 100)
MOST_TOKENS = 10**9  # more than anybody types
TOKENS, BASELINES = Buckets((1000.0, 2000.0, 4000.0)), Buckets((0.1, 0.15, 0.2))
FloatArray = NDArray[np.float64]


def changes(shares: Buckets | None = None) -> dict[str, Buckets]:
    """The cuts of each metric's changes, its own or `shares` for those that are shares; who is unchanged is apart."""
    cuts = {name: Buckets.steps(*METRICS[name].changes).with_unchanged_apart() for name in changing()}
    return {name: shares if shares is not None and METRICS[name].unit == "share" else cuts[name] for name in cuts}


@dataclass(frozen=True, kw_only=True)
class Queries:
    """Which histograms are made. `levels` are the gates that design clients are asked about; (1.0,): no gate."""

    strategies: tuple[str, ...]
    metrics: tuple[str, ...] = (TOP1,)
    slices: tuple[str, ...] = ("tokens", "baseline")
    tokens: Buckets = TOKENS
    baseline: Buckets = BASELINES
    changes: Mapping[str, Buckets] = field(default_factory=lambda: changes())
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        for name, given, known in (("metric", self.metrics, changing()), ("slice", self.slices, SLICES)):
            unknown = [each for each in given if each not in known]
            if unknown:
                raise InputError(f"the {name} {unknown[0]!r} is unknown; choose of {', '.join(known)}.")
        for name, cuts, most in (("tokens", self.tokens.cuts, MOST_TOKENS), ("baseline", self.baseline.cuts, 1)):
            if beyond := [cut for cut in cuts if not 0 < cut < most]:
                raise InputError(f"the cut {beyond[0]:g} of {name} parts nobody; give cuts above 0 and below {most:,}.")
        if len(set(self.strategies)) < len(self.strategies):
            raise InputError("two strategies have one name, under which only one could be counted; name each once.")
        if not self.metrics or METRICS[self.metrics[0]].unit != "share":
            raise InputError(
                f"the first metric is the one whose baseline is asked, a share; begin with {TOP1} or {ALL_TOKENS}."
            )
        if self.gated and TOP1 not in self.metrics:
            raise InputError(f"{TOP1} is what policies are chosen by; ask about it, or leave the gate out.")
        if self.gated and "tokens" not in self.slices:
            raise InputError("a gate's policy goes by train tokens; slice by tokens as well, or leave the gate out.")

    @property
    def metric(self) -> str:
        """The one whose baseline is asked, and by whose baseline clients are sliced."""
        return self.metrics[0]

    @property
    def gated(self) -> bool:
        """Whether policies are designed on one group and judged on another."""
        return self.levels != (OPEN,)

    def labels(self, which: str) -> tuple[str, ...]:
        """The slices of a kind, as people read them."""
        if which == "joint":
            return tuple(f"{t}, {b}" for t in self.tokens.labels() for b in self.baseline.labels())
        return {"tokens": self.tokens, "baseline": self.baseline, EVERYBODY: Buckets()}[which].labels()

    def slice_of(self, which: str, deltas: Deltas) -> NDArray[np.int64]:
        """In which slice of a kind each client is (n,)."""
        tokens, baseline = self.tokens.of(deltas.tokens), self.baseline.of(deltas.baseline[self.metric])
        return {"tokens": tokens, "baseline": baseline, "joint": tokens * len(self.baseline) + baseline}[which]

    def cells(self, name: str) -> HistogramCells:
        """The cells of the question called `name`."""
        return self._cells[name]

    def of_step(self, policies: Sequence[GatePolicy] | None) -> dict[str, HistogramCells]:
        """The histograms that a group is asked for, in their order: the one that designs (None), or the one that judges
        these policies.
        """
        names = [
            baseline_name(self.metric),
            *(change_name(*each) for each in product(self.metrics, self.strategies, self._kinds)),
        ]
        if policies is None:
            names += [
                rule_name(strategy, level) for level in self.levels if level < OPEN for strategy in self.strategies
            ]
        else:
            names += [policy_name(each.name) for each in policies]
        return {name: self.cells(name) for name in names}

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many histograms each group is asked for."""
        designing = len(self.of_step(None))
        if not self.gated:
            return (designing,)
        return designing, 1 + len(self.metrics) * len(self.strategies) * len(self._kinds) + len(POLICIES)

    def about_strategies(self, deltas: Deltas, silent: int) -> list[HistogramQuery]:
        """The global model's accuracy, and each strategy's change of each metric by each slice."""
        queries = [self._query(baseline_name(self.metric), np.zeros(len(deltas)), deltas.baseline[self.metric], silent)]
        for metric in self.metrics:
            for column, strategy in enumerate(self.strategies):
                for which in self._kinds:
                    name, change = change_name(metric, strategy, which), deltas.change[metric][:, column]
                    queries.append(self._query(name, self._sliced_by(which, deltas), change, silent))
        return queries

    def about_rules(self, deltas: Deltas, silent: int) -> list[HistogramQuery]:
        """What each strategy behind each gate would change, by train tokens; without a gate that is asked already."""
        return [
            self._query(rule_name(strategy, level), deltas.tokens, change, silent)
            for level in self.levels
            if level < OPEN
            for column, strategy in enumerate(self.strategies)
            for change in [deployed_change(deltas, GateRule(strategy=column, level=level))]
        ]

    def about_policies(self, policies: Sequence[GatePolicy], deltas: Deltas, silent: int) -> list[HistogramQuery]:
        """What each policy changes."""
        return [
            self._query(policy_name(each.name), np.zeros(len(deltas)), policy_change(each, deltas), silent)
            for each in policies
        ]

    @property
    def _kinds(self) -> tuple[str, ...]:
        return self.slices or (EVERYBODY,)

    @property
    def _cells(self) -> dict[str, HistogramCells]:
        joint = Buckets(tuple(float(number) for number in range(1, len(self.tokens) * len(self.baseline))))
        by = {"tokens": self.tokens, "baseline": self.baseline, "joint": joint, EVERYBODY: Buckets()}
        change = self.changes[TOP1]
        found = {baseline_name(self.metric): HistogramCells(slices=Buckets(), bins=ACCURACY)}
        for strategy in self.strategies:
            for metric in self.metrics:
                for which in self._kinds:
                    cells = HistogramCells(slices=by[which], bins=self.changes[metric])
                    found[change_name(metric, strategy, which)] = cells
            for level in self.levels:
                found[rule_name(strategy, level)] = HistogramCells(slices=self.tokens, bins=change)
        for name in POLICIES:
            found[policy_name(name)] = HistogramCells(slices=Buckets(), bins=change)
        return found

    def _query(self, name: str, sliced_by: ArrayLike, values: FloatArray, silent: int) -> HistogramQuery:
        cells = self.cells(name)
        nothing = np.full(silent, cells.size - 1, np.int64)
        return HistogramQuery(name=name, cells=cells, chosen=np.concatenate([cells.of(sliced_by, values), nothing]))

    def _sliced_by(self, which: str, deltas: Deltas) -> FloatArray:
        if which == "joint":
            return self.slice_of(which, deltas).astype(np.float64)
        by = {"tokens": deltas.tokens, "baseline": deltas.baseline[self.metric], EVERYBODY: np.zeros(len(deltas))}
        return by[which].astype(np.float64)


def baseline_name(metric: str) -> str:
    return f"baseline {metric}"


def change_name(metric: str, strategy: str, which: str) -> str:
    return f"change of {metric} by {which}, {strategy}"


def rule_name(strategy: str, level: float) -> str:
    return f"change of {TOP1} by tokens, {strategy}, gate {level:g}"


def policy_name(name: str) -> str:
    return f"change of {TOP1}, policy {name}"
