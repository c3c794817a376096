"""The settings of an evaluation that change its result, as frozen values; and the privacy cost of a release."""

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self

from tacit.data.splits import TemporalSplit
from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Buckets
from tacit.evaluation.counts.queries import BASELINES, TOKENS, Queries, changes
from tacit.evaluation.personalize.fine_tuning import FineTuning, Grid
from tacit.evaluation.personalize.gate import OPEN
from tacit.networks.metrics import TOP1
from tacit.privacy import gaussian
from tacit.privacy.delta import default_delta
from tacit.records import from_plain, to_plain
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol, check_protocol

WhichClients = Annotated[str, "Which clients: test, validation or train."]
HowMany = Annotated[int, "Clients to ask, in a public random order; 0 is all of the split."]

GRID = Grid().strategies()


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Which clients count how well models predict their text, and how much of it."""

    split_name: WhichClients = "test"
    clients: HowMany = 0
    sentences: Annotated[int, "Sentences of a client, evenly spread over its text."] = 64
    words: Annotated[int, "Words of a sentence; the rest of a longer one is not used."] = 20

    def __post_init__(self) -> None:
        if self.clients < 0 or self.sentences < 1 or self.words < 1:
            raise InputError("clients must be 0 or more, sentences and words 1 or more.")


@dataclass(frozen=True, kw_only=True)
class PersonalizationSettings:
    """Which clients fine-tune a model on their own text, in which ways, and what is counted of it."""

    split_name: WhichClients = "test"
    clients: HowMany = 0
    strategies: tuple[FineTuning, ...] = GRID  # one or more
    split: TemporalSplit = field(default_factory=TemporalSplit)
    levels: tuple[float, ...] = (OPEN,)  # of the gates that are compared; (1.0,): no gate, and nobody is left to judge
    harm_weight: Annotated[float, "How much a loss counts against an equal gain when policies are chosen."] = 2.0
    metrics: Annotated[tuple[str, ...], "Metrics whose changes are counted; the first slices, too."] = (TOP1,)
    slices: Annotated[
        tuple[str, ...], "Histograms by tokens, baseline, joint (both at once); empty: of everybody only."
    ] = ("tokens", "baseline")
    tokens: Annotated[Buckets, "Cuts between buckets of train tokens.", "1000,2000"] = TOKENS
    baseline: Annotated[Buckets, "Cuts between buckets of accuracy before.", "0.1,0.2"] = BASELINES
    changes: Mapping[str, Buckets] = field(default_factory=changes)
    share_changes: InitVar[Buckets | None] = None  # one set of cuts for all changes of shares, in place of `changes`

    def __post_init__(self, share_changes: Buckets | None) -> None:
        if share_changes is not None:
            object.__setattr__(self, "changes", changes(share_changes))
        if self.clients < 0:
            raise InputError(f"clients={self.clients} must be 0 (all of the split) or more.")
        if not self.strategies or len(set(self.strategies)) < len(self.strategies):
            raise InputError("the grid of batch sizes and learning rates is empty or names a strategy twice.")
        if not (self.harm_weight >= 0 and math.isfinite(self.harm_weight)):
            raise InputError(f"harm_weight={self.harm_weight:g} must be 0 or more; 1 counts losses like gains.")
        if self.queries.gated and not self.split.gate:
            raise InputError("a gate is left nothing to look at; give the split a share for it, such as 0.125.")

    @cached_property
    def queries(self) -> Queries:
        """Which histograms are made."""
        return Queries(
            strategies=tuple(map(str, self.strategies)),
            metrics=self.metrics,
            slices=self.slices,
            tokens=self.tokens,
            baseline=self.baseline,
            changes=self.changes,
            levels=self.levels,
        )

    def to_plain(self) -> dict[str, Any]:
        """For TOML: the strategies by their names, and only those changes that are counted."""
        plain: dict[str, Any] = to_plain(self)
        plain["strategies"] = {str(each): to_plain(each) for each in self.strategies}
        plain["changes"] = {name: cuts for name, cuts in plain["changes"].items() if name in self.metrics}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_plain` gave."""
        return from_plain(cls, {**plain, "strategies": [*plain["strategies"].values()]})


@dataclass(frozen=True, kw_only=True)
class ReleaseCost:
    """What a release of histograms costs each client: exactly one of three prices.

    Central, by noise that a trusted aggregator adds: `zcdp`, or `epsilon` at `delta` (left out: that of so many clients
    as are asked, see `asking`). Local, by devices that randomise their one report themselves: `local_epsilon`.
    `secure_sum`: how the reports are added up, at the same price; None: in the clear.
    """

    zcdp: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    local_epsilon: float | None = None
    secure_sum: SimulatedProtocol | None = None

    def __post_init__(self) -> None:
        check_protocol("secure_sum", self.secure_sum)
        given = [each for each in (self.zcdp, self.epsilon, self.local_epsilon) if each is not None]
        if len(given) != 1:
            raise InputError("zcdp, epsilon and local_epsilon each say the whole price; give one.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta {self.delta:g} is not a probability between 0 and 1; give for example 1e-6.")
        if not (given[0] > 0 and math.isfinite(given[0])):
            raise InputError(f"a price of {given[0]:g} releases nothing or promises nothing; give a number above 0.")

    def asking(self, clients: int) -> Self:
        """The same price, its delta in numbers: where none was given, that of so many clients as are asked."""
        return self if self.delta is not None else replace(self, delta=default_delta(clients))

    @property
    def rho(self) -> float:
        """zCDP of a central release. Raises: InputError for a local one, or an epsilon without delta."""
        if self.zcdp is not None:
            return self.zcdp
        if self.epsilon is None:
            raise InputError("local reports have no zCDP; their price is local_epsilon.")
        if self.delta is None:
            raise InputError(f"epsilon {self.epsilon:g} has no zCDP without a delta; give one, or `asking(clients)`.")
        return gaussian.zcdp_for_epsilon(self.epsilon, self.delta)

    def to_plain(self) -> dict[str, Any]:
        """For TOML, which has no null."""
        return {name: value for name, value in to_plain(self).items() if value is not None}
