"""Training runs side by side: how good at equal rounds, at which price, and what they were asked differently.

Any number of runs, each with a letter; the first is compared with. Every table has a row for each run, so that six fit
into 80 columns, and every epsilon is at one delta. Of a run that makes a mixture the rows of its parts stand below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tacit.evaluation.comparison_models import FREE, MODEL
from tacit.networks.metrics import OF_KNOWN, TOP1
from tacit.privacy import gaussian
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table
from tacit.reports.figure import HUES, Axis, Figure, Line, Panel
from tacit.reports.judgement import TOP3, failures, points
from tacit.reports.mixture import UNFINISHED, MixtureSummary
from tacit.reports.page import Page, to_html_fragment
from tacit.reports.summary import RunSummary
from tacit.reports.text import to_text
from tacit.reports.train_published import setting_text
from tacit.statements.statement import Label

if TYPE_CHECKING:  # Numba and SciPy would come with it
    from tacit.evaluation.intervals import Estimate

ON_TEST = f"Accuracy on test clients, {OF_KNOWN}"
ON_VALIDATION = f"Top-1 accuracy {OF_KNOWN} on validation clients after equal rounds"
EXACT = frozenset({ON_TEST, ON_VALIDATION})  # the headings of exact numbers of clients' text
EQUAL_ROUNDS = 6  # columns of the table of accuracies over rounds
MOST = len(ascii_uppercase)  # runs: each has a letter
NATS = "cross_entropy"
COST = ("zcdp", "epsilon", "rounds_between", "max_participations")
TRAINED, MIXED = "train", "mixture"
Summary: TypeAlias = RunSummary | MixtureSummary
JUDGED = ("clients", "test_clients", "sentences")  # of an evaluation: where these differ accuracies are not compared


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What the comparison says of one run: plain values, None for what it does not have."""

    letter: str
    name: str
    path: str
    kind: str  # "train", or "mixture"
    rounds: int
    clients_per_second: float | None
    test: Mapping[str, float]
    interval: "Estimate | None"  # top-1 accuracy on test clients, with its 95% interval over them
    gain: "Estimate | None"  # of it against the first run, where both counted the same words, client by client
    over_free: "Estimate | None"  # the same against the run's own best free model
    validation: Mapping[int, float]  # top-1 accuracy by rounds done
    planned: Mapping[str, Any] | None  # prices at the comparison's delta
    realised: Mapping[str, Any] | None
    arms: tuple[tuple[str, Mapping[str, float]], ...] = ()  # of a mixture: all up to this part, on test clients
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of a mixture: each part's price

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        cost = {which: None if of is None else {key: of[key] for key in COST} for which, of in self._costs}
        return {
            "name": self.name,
            "path": self.path,
            "kind": self.kind,
            "rounds": self.rounds,
            "clients_per_second": self.clients_per_second,
            "test": dict(self.test),
            "test_interval": self.interval,
            "gain_over_first": self.gain,
            "gain_over_best_free_model": self.over_free,
            "validation": {str(rounds): value for rounds, value in self.validation.items()},
            **cost,
            "arms": {name: dict(values) for name, values in self.arms},
            "parts": {name: dict(price) for name, price in self.parts.items()},
        }

    @property
    def _costs(self) -> tuple[tuple[str, Mapping[str, Any] | None], ...]:
        return (("planned", self.planned), ("realised", self.realised))


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """Runs beside the first. Equal settings are left out; `warnings` say what makes the rest incomparable."""

    runs: tuple[Compared, ...]
    delta: float  # of every epsilon: the smallest of the runs', where each of their promises holds
    warnings: tuple[str, ...]
    settings: Mapping[str, tuple[Any, ...]]  # that differ, a value for each run
    origins: Mapping[str, tuple[Any, ...]]  # the same of data, models and programs
    figure: Figure
    drawn: Path | None = None  # where the figure is
    written: Path | None = None  # where the page is

    def written_at(self, page: Path, figure: Path | None) -> "RunComparison":
        """The same, with its page in a file, and its figure where it has one."""
        return replace(self, written=page, drawn=figure)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: the runs in their order, and of what differs a value for each.

        Every accuracy is of known words, over words: who types more counts more. `arms` and `parts` are a mixture's.
        """
        return {
            "schema": "tacit.comparison",
            "version": 2,
            "delta": self.delta,
            "warnings": list(self.warnings),
            "runs": [each.to_record() for each in self.runs],
            "settings": {name: list(values) for name, values in self.settings.items()},
            "origins": {name: list(values) for name, values in self.origins.items()},
            "figure": None if self.drawn is None else str(self.drawn),
            "page": None if self.written is None else str(self.written),
        }

    def blocks(self) -> list[Block]:
        """What people read of it: which letter is which run, how good, at which price, and what differs."""
        blocks: list[Block] = [Labels(tuple(Label("NOTE", warning) for warning in self.warnings))] * bool(self.warnings)
        blocks.append(Table(tuple((each.letter, f"{each.name}, in {each.path}") for each in self.runs)))
        blocks += self._accuracy()
        blocks += self._cost()
        blocks += _differences("Settings that differ", self.settings)
        blocks += _differences("Data and programs that differ", self.origins)
        files = {"figure": self.drawn, "page (exact, for you alone)": self.written}
        return [*blocks, *(Paragraph(f"{name}: {path}", soft=True) for name, path in files.items() if path is not None)]

    def __str__(self) -> str:
        return to_text(self.blocks())

    @property
    def drawing(self) -> list[Block]:
        """Its figure, where a run has a curve: a mixture has none."""
        return [FigureOf(self.figure)] if any(panel.marks for panel in self.figure.panels) else []

    def page(self) -> Page:
        """The comparison as people read it, with its figure."""
        blocks = replace(self, drawn=None, written=None).blocks()
        return Page(
            kind=f"comparison of {len(self.runs)} training runs",
            title=self.figure.title,
            blocks=(*blocks, *self.drawing),
            record=self.to_record(),
        )

    def _repr_html_(self) -> str:
        return to_html_fragment(self.page().blocks)

    def _accuracy(self) -> list[Block]:
        rows = []
        for each in self.runs:
            interval = "–" if each.interval is None else f"{each.interval.low:.2%} to {each.interval.high:.2%}"
            gain = "" if each.gain is None else points(each.gain)
            rows.append((each.letter, *_accuracies(each.test, interval), gain))
            rows += [(f"{each.letter}: {name}", *_accuracies(values, ""), "") for name, values in each.arms]
        head = ("", "top-1", "95% interval", "top-3", "nats", f"top-1 against {self.runs[0].letter}")
        curved = [each for each in self.runs if each.kind == TRAINED]
        common = sorted(set.intersection(*(set(each.validation) for each in curved))) if curved else []
        chosen = np.unique(np.linspace(0, len(common) - 1, min(EQUAL_ROUNDS, len(common))).round().astype(int))
        rounds = [common[at] for at in chosen]
        over = [(each.letter, *(_share(each.validation[at]) for at in rounds)) for each in curved]
        found: list[Block] = [Heading(ON_TEST), Table(tuple(rows), head)]
        if any(each.over_free is not None for each in self.runs):
            free = [(each.letter, "–" if each.over_free is None else points(each.over_free)) for each in self.runs]
            found.append(Table(tuple(free), ("", "top-1 against the best free model")))
        if rounds:
            found.append(Heading(ON_VALIDATION))
            found.append(Table(tuple(over), ("rounds", *(f"{at:,}" for at in rounds))))
        return found

    def _cost(self) -> list[Block]:
        head = ("", "epsilon", "zCDP", "MinS", "MaxP", "rounds", "planned epsilon", "clients/s")
        rows = []
        for each in self.runs:
            rows.append(
                (
                    each.letter,
                    *_costs(each.realised, "epsilon", "zcdp", "rounds_between", "max_participations"),
                    f"{each.rounds:,}",
                    *_costs(each.planned, "epsilon"),
                    "–" if each.clients_per_second is None else f"{each.clients_per_second:,.1f}",
                )
            )
            rows += [
                (f"{each.letter}: {name}", *_costs(price, "epsilon", "zcdp"), "", "", "", "", "")
                for name, price in each.parts.items()
            ]
        return [Heading(f"Price, realised; every epsilon at delta {self.delta:g}"), Table(tuple(rows), head)]


def comparison(summaries: Sequence[Summary]) -> RunComparison:
    """The runs in their order, the first one to compare with."""
    delta = min(each.delta for each in summaries)
    return RunComparison(
        runs=tuple(_compared(letter, each, summaries, delta) for letter, each in _lettered(summaries)),
        delta=delta,
        warnings=tuple(_warnings(summaries, delta)),
        settings=_differing([each.settings for each in summaries]),
        origins=_differing([_origin(each) for each in summaries]),
        figure=figure(summaries),
    )


def label_of(summary: Summary, beside: Sequence[Summary]) -> str:
    """The run's name; with its folder where another has the same."""
    same = sum(each.name == summary.name for each in beside) > 1
    name = f"{summary.name} ({Path(summary.path).name})" if same else summary.name
    return name if summary.private else f"{name}, NON-PRIVATE"


def figure(summaries: Sequence[Summary]) -> Figure:
    """Top-1 accuracy of all on validation clients over rounds, and over zCDP where all are private.

    A mixture has no curve: it is measured when it is made.
    """
    accuracy = Axis(f"top-1 {OF_KNOWN}, validation", percent=True)
    trained = [(letter, each) for letter, each in _lettered(summaries) if isinstance(each, RunSummary)]
    named = {letter: f"{letter}: {label_of(each, summaries)}" for letter, each in _lettered(summaries)}

    def curves(of: Mapping[str, list[tuple[float, float]]]) -> tuple[Line, ...]:
        return tuple(
            Line(
                x=[x for x, _ in found],
                y=[y for _, y in found],
                label=named[letter],
                hue=ascii_uppercase.index(letter) % HUES,
                stroke=ascii_uppercase.index(letter) // HUES % 4,
            )
            for letter, found in of.items()
        )

    over_rounds = {letter: each.by_rounds(TOP1) for letter, each in trained}
    panels = [Panel(marks=curves(over_rounds), x=Axis("rounds", whole=True, low=0), y=accuracy)]
    if all(each.private for each in summaries):
        over_zcdp = {letter: each.by_zcdp(TOP1) for letter, each in trained}
        if over_zcdp and all(over_zcdp.values()):
            panels.append(Panel(marks=curves(over_zcdp), x=Axis("zCDP spent, realised", low=0), y=accuracy))
    first, *others = (each.name for each in summaries)
    return Figure(
        name="compare",
        title=f"{first} and {others[0]}" if len(others) == 1 else f"{first} and {len(others)} others",
        alt=f"Top-1 accuracy of {', '.join([first, *others])} on validation clients.",
        panels=tuple(panels),
        legend="below",
    )


def _lettered(summaries: Sequence[Summary]) -> list[tuple[str, Summary]]:
    return list(zip(ascii_uppercase, summaries, strict=False))


def _compared(letter: str, summary: Summary, beside: Sequence[Summary], delta: float) -> Compared:
    first, ours = beside[0].tested, summary.tested
    gain = None
    if summary is not beside[0] and _data_of(beside[0]).digest == _data_of(summary).digest and first and ours:
        gain = first.gain_of(ours)  # of the same words, client by client
    return Compared(
        letter=letter,
        name=label_of(summary, beside),
        path=summary.path,
        test=summary.test,
        interval=None if ours is None else ours.estimate(MODEL, TOP1),
        gain=gain,
        over_free=None if ours is None else ours.gain(MODEL, FREE, TOP1),
        **(_of_training(summary, delta) if isinstance(summary, RunSummary) else _of_mixture(summary, delta)),
    )


def _of_training(summary: RunSummary, delta: float) -> dict[str, Any]:
    return {
        "kind": TRAINED,
        "rounds": summary.released,
        "clients_per_second": summary.rounds.totals.get("clients_per_second"),
        "validation": dict(summary.curves.get(TOP1, {})),
        "planned": _at(delta, summary.planned),
        "realised": None if summary.holds is None else _at(delta, summary.holds[1]),
    }


def _of_mixture(summary: MixtureSummary, delta: float) -> dict[str, Any]:
    account = summary.account(delta)
    unknown = dict.fromkeys(COST)  # how often a client came is another question for each part
    return {
        "kind": MIXED,
        "rounds": summary.rounds,
        "clients_per_second": None,
        "validation": {},
        "planned": None,
        "realised": {**unknown, **account["realised"]} if account["parts"] else None,
        "arms": tuple(summary.arms),
        "parts": account["parts"],
    }


def _at(delta: float, figures: Mapping[str, Any]) -> dict[str, Any]:
    """A run's prices at another delta than its own."""
    return {**figures, "epsilon": gaussian.epsilon(figures["zcdp"], delta), "delta": delta}


class _Data(NamedTuple):
    """What a run read, and who judged it."""

    digest: str  # of the clients' text
    vocabulary: str
    judged: Mapping[str, Any]


def _data_of(summary: Summary) -> _Data:
    if isinstance(summary, MixtureSummary):
        return _Data(summary.cache_digest, summary.vocabulary, summary.evaluation)
    data = summary.metadata.data
    return _Data(data.cache_digest, data.vocabulary_sha256, summary.metadata.evaluation)


def _warnings(summaries: Sequence[Summary], delta: float) -> list[str]:
    found = []
    for letter, summary in _lettered(summaries):
        if weak := _weak(summary):
            found.append(f"{letter}, {summary.name} ({Path(summary.path).name}): {', '.join(weak)}")
    data = [_data_of(each) for each in summaries]
    if len({each.digest for each in data}) > 1:
        found.append("the runs read different caches, so their accuracies are on different text")
    if len({each.vocabulary for each in data}) > 1:
        found.append("the runs have different vocabularies, so their accuracies count different words")
    judged = [set(each.judged) for each in data]
    known = [key for key in JUDGED if all(key in of for of in judged) or not any(map(_is_mixture, summaries))]
    if any(each.judged.get(key) != data[0].judged.get(key) for each in data for key in known):
        found.append("the runs were evaluated on different numbers of clients or sentences")
    others = {letter: each.delta for letter, each in _lettered(summaries) if each.delta != delta}
    if others:
        own = ", ".join(f"{letter}'s {value:g}" for letter, value in others.items())
        found.append(f"every epsilon here is at delta {delta:g}; a report gives it at the run's own ({own})")
    return found


def _is_mixture(summary: Summary) -> bool:
    return isinstance(summary, MixtureSummary)


def _weak(summary: Summary) -> list[str]:
    """The names of what warns of a run."""
    if isinstance(summary, RunSummary):
        return [label.name for label in (*failures(summary), *summary.labels)]
    labels = [each["name"] for record in summary.promise.statements.values() for each in record["labels"]]
    return list(dict.fromkeys([*([] if summary.finished else [UNFINISHED]), *labels]))


def _origin(summary: Summary) -> dict[str, Any]:
    """What a run depends on besides its settings."""
    data = _data_of(summary)
    both = {"digest of the text": data.digest[:12], "vocabulary": data.vocabulary[:12]}
    if isinstance(summary, MixtureSummary):
        return {
            "clients' text": summary.source,
            **both,
            "training clients": summary.clients,
            "keys from": summary.key_source,
            **{f"version of {name}": version for name, version in summary.versions.items()},
        }
    metadata = summary.metadata
    first = metadata.first_model
    return {
        "clients' text": metadata.data.source,
        **both,
        "training clients": metadata.population,
        "parameters": metadata.parameters,
        "first model": "random" if first is None else first.digest[:12],
        "keys from": metadata.key_source,
        **{f"part of its own: {name}": part for name, part in metadata.hooks.items()},
        **{f"version of {name}": version for name, version in metadata.versions.items()},
    }


def _differing(of_each: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """What is not the same in all, a value for each; None where one has it not."""
    names = dict.fromkeys(name for each in of_each for name in each)
    found = {name: tuple(each.get(name) for each in of_each) for name in sorted(names)}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}


def _differences(title: str, differing: Mapping[str, tuple[Any, ...]]) -> list[Block]:
    """A row for each: the values, each with the letters of the runs that have it."""
    if not differing:
        return [Heading(f"{title}: none")]
    rows = []
    for name, values in differing.items():
        runs_of: dict[str, list[str]] = {}
        for letter, value in zip(ascii_uppercase, values, strict=False):
            runs_of.setdefault("–" if value is None else setting_text(value), []).append(letter)
        rows.append((name, "; ".join(f"{', '.join(letters)}: {value}" for value, letters in runs_of.items())))
    return [Heading(title), Table(tuple(rows))]


def _costs(figures: Mapping[str, Any] | None, *names: str) -> tuple[str, ...]:
    """Rounded up where they promise something; a dash where nothing is released, or one figure cannot say it."""
    found = [None if figures is None else figures[name] for name in names]
    return tuple(
        "–" if value is None else rounded_up(value) if name in ("epsilon", "zcdp") else f"{value:,}"
        for name, value in zip(names, found, strict=True)
    )


def _accuracies(values: Mapping[str, float], interval: str) -> tuple[str, ...]:
    nats = "–" if NATS not in values else f"{values[NATS]:.3f}"
    return _share(values.get(TOP1)), interval, _share(values.get(TOP3)), nats


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"
