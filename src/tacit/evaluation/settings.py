"""What is asked of an evaluation, all of it that changes the result, as frozen values."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from tacit.data.splits import TemporalSplit
from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import CellList, CellSum
from tacit.evaluation.counts.cells import Buckets
from tacit.evaluation.counts.device_part import NORM, StatisticHistogram, StatisticsQuestion, StatisticSum, SumsQuestion
from tacit.evaluation.counts.queries import BASELINES, TOKENS, Queries, changes
from tacit.evaluation.counts.statistics import SUMS
from tacit.evaluation.personalize.fine_tuning import FineTuning, Grid
from tacit.evaluation.personalize.gate import OPEN
from tacit.networks.metrics import TOP1
from tacit.records import from_plain, to_plain

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
class CountSettings:
    """Which clients count statistics of their text: by cuts and slices, or cell by cell. One of the two is given.

    cells: a list of n-grams that are summed besides.
    """

    statistics: tuple[StatisticHistogram, ...] = ()
    sums: tuple[StatisticSum, ...] = ()
    cells: CellList | None = None
    split_name: WhichClients = "test"
    clients: HowMany = 0

    def __post_init__(self) -> None:
        if self.clients < 0:
            raise InputError(f"clients={self.clients} must be 0 (all of the split) or more.")
        summed = isinstance(self.computation, SumsQuestion)  # refuses statistics here
        if self.statistics and summed:
            raise InputError(
                f"{self.statistics[0]} is a histogram and {(*self.sums, 'cells')[0]} a sum, and a run releases one of "
                "the two; count each in a run of its own."
            )

    @staticmethod
    def named_by(texts: Iterable[str]) -> dict[str, tuple[Any, ...]]:
        """The fields `statistics` and `sums` of what texts name: a sum has a norm, or a name of SUMS.

        Raises: InputError naming the text that cannot be read.
        """
        named = list(texts)
        sums = [text for text in named if NORM in text or text.partition(":")[0].strip() in SUMS]
        return {
            "statistics": tuple(StatisticHistogram.from_text(text) for text in named if text not in sums),
            "sums": tuple(map(StatisticSum.from_text, sums)),
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str) -> Self:
        """What a file says, in which `cells` is the file of a list; beside it, what `counted` gave.

        Raises: InputError naming the key.
        """
        own = dict(table)
        if "cells" in own:
            if not isinstance(own["cells"], str):
                raise InputError(f"{where} has cells = {own['cells']!r:.60}, and the file of a list was expected.")
            own["cells"] = listed = CellList.load(Path(own["cells"]))
            said = [each for each in own.get("sums", ()) if each.get("statistic") == CellSum.statistic]
            own["sums"] = [each for each in own.get("sums", ()) if each not in said]
            if said not in ([], [CellSum.of(listed).to_plain()]):
                raise InputError(
                    f"the list '{listed.path}' is not the one that {where} names: its SHA-256 was "
                    f"{said[0].get('sha256')!s:.12} and is now {listed.sha256[:12]}; put the old list back."
                )
        return from_plain(cls, own, where=where)

    @cached_property
    def computation(self) -> StatisticsQuestion | SumsQuestion:
        """What a device computes."""
        listed = () if self.cells is None else (CellSum.of(self.cells),)
        return SumsQuestion((*self.sums, *listed)) if self.sums or listed else StatisticsQuestion(self.statistics)

    def list_file(self) -> dict[str, str]:
        """The file of the list under its key; nothing where there is none."""
        return {} if self.cells is None else {"cells": str(self.cells.path)}

    def counted(self) -> dict[str, Any]:
        """The statistics or the sums under their own key, for TOML, which has no null."""
        if isinstance(self.computation, SumsQuestion):
            return {"sums": [each.to_plain() for each in self.computation.statistics]}
        return {"statistics": list(map(StatisticHistogram.to_plain, self.statistics))}


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
        plain["strategies"] = {str(each): each.to_plain() for each in self.strategies}
        plain["changes"] = {name: cuts for name, cuts in plain["changes"].items() if name in self.metrics}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """What `to_plain` gave."""
        return from_plain(cls, {**plain, "strategies": [*plain["strategies"].values()]})
