"""What a device counts of its own text without a model: in one cell of each histogram, or in many cells of a sum.

Which statistics there are, `statistics.py` says. Cuts, slices and the words of a sum's cells are the question's alone,
so no text decides what a report looks like.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import CellList, CellSum, ListedSum
from tacit.evaluation.counts.cells import Buckets, HistogramCells
from tacit.evaluation.counts.statistics import STATISTICS, SUMS, HasSentences, TypedText
from tacit.federation.report_layout import MOST_CELLS, MOST_HISTOGRAMS, MOST_NORM, BoundedLayout, Words
from tacit.parsing import parsed_toml
from tacit.records import from_plain, to_plain
from tacit.text.vocabulary import SPECIALS, Vocabulary

IntArray = NDArray[np.int64]
BY = " by "  # between what is counted and what slices it, in a text
NORM = " norm "  # between a sum and the norm of a device's part of it
UNIT = " unit "  # between that norm and the units of one occurrence


# -- what is asked of them ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StatisticHistogram:
    """One histogram over devices: a statistic by cuts, sliced by another one's cuts where one is named.

    Raises: InputError for an unknown statistic, and for cuts that do not increase or are none.
    """

    statistic: str  # a name of STATISTICS
    cuts: tuple[float, ...]  # one or more, each above the one before
    by: str | None = None  # the statistic that slices; None: all devices together
    slices: tuple[float, ...] = ()  # its cuts

    def __post_init__(self) -> None:
        for name in (self.statistic, *(() if self.by is None else (self.by,))):
            if name not in STATISTICS:
                raise InputError(f"the statistic {name!r} is unknown; choose of {', '.join(STATISTICS)}.")
        if not self.cuts:
            raise InputError(f"{self.statistic} without a cut tells no two devices apart; give one, as in words:100.")
        if (self.by is None) != (not self.slices):
            raise InputError(
                f"slices of {self.statistic} are a statistic and its cuts; give both, as in 'words:9 by sentences:5'."
            )
        assert self.cells  # refuses cuts here

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Of `words:10,100` or `unknown_share:0.01,0.05 by words:100`. Raises: InputError where it cannot be read."""
        what, *sliced = text.split(BY)
        if len(sliced) > 1:
            raise InputError(f"{text!r} is sliced twice; slice by one statistic.")
        (statistic, cuts), (by, slices) = _with_cuts(what), _with_cuts(sliced[0]) if sliced else (None, ())
        return cls(statistic=statistic, cuts=cuts, by=by, slices=slices)

    def __str__(self) -> str:
        """Its name among others: the cuts do not tell two apart."""
        return self.statistic if self.by is None else f"{self.statistic}{BY}{self.by}"

    def to_plain(self) -> dict[str, Any]:
        """For TOML, which has no null."""
        return {name: value for name, value in to_plain(self).items() if value not in (None, [])}

    @cached_property
    def cells(self) -> HistogramCells:
        """What it counts."""
        return HistogramCells(slices=Buckets(self.slices), bins=Buckets(self.cuts))

    def cell_of(self, text: TypedText) -> int:
        """The cell of a device with this text: the last, "no report", where a statistic is nan. Raises: what a
        statistic does.
        """
        value = float(STATISTICS[self.statistic](text))
        sliced_by = 0.0 if self.by is None else float(STATISTICS[self.by](text))
        if math.isnan(value) or math.isnan(sliced_by):
            return self.cells.size - 1
        return int(self.cells.of(sliced_by, value))


def _with_cuts(text: str) -> tuple[str, tuple[float, ...]]:
    name, colon, cuts = text.strip().partition(":")
    try:
        return name, tuple(map(float, cuts.split(","))) if colon else ()
    except ValueError:
        raise InputError(f"{text.strip()!r} is no statistic with cuts; write for example words:10,100,1000.") from None


@dataclass(frozen=True)
class StatisticsQuestion:
    """Statistics of the device's text, histogram by histogram. Raises: InputError for none, one twice, or too many."""

    statistics: tuple[StatisticHistogram, ...]
    kind: ClassVar[str] = "count"
    networks: ClassVar[tuple[Any, ...]] = ()  # no model is sent
    sums: ClassVar[None] = None  # a device is in one cell of each histogram

    def __post_init__(self) -> None:
        if not self.statistics:
            raise InputError("no statistic is named, and nothing would be counted; name one, as in words:10,100,1000.")
        if len(self.histograms) < len(self.statistics):
            raise InputError("a statistic is counted twice by the same slices, at twice the noise; count each once.")
        cells = sum(each.size for each in self.histograms.values())
        if len(self.statistics) > MOST_HISTOGRAMS or cells > MOST_CELLS:
            raise InputError(
                f"{len(self.statistics):,} histograms with {cells:,} cells are more than one report holds, which is "
                f"{MOST_HISTOGRAMS:,} with {MOST_CELLS:,}; name fewer statistics, cuts or slices."
            )

    @cached_property
    def histograms(self) -> dict[str, HistogramCells]:
        """What is made of the answers, in their order."""
        return {str(each): each.cells for each in self.statistics}

    def cells_of(self, text: HasSentences, client: int) -> IntArray:
        """The cell (H,) of one client of a `Cache`, or of anything with its `sentences`.

        A statistic that fails counts as "no report": were it refused, who asks would learn that it failed on this text.
        """
        own = TypedText.from_cache(text, client)
        return np.array([_cell_or_none(each, own) for each in self.statistics], np.int64)


def _cell_or_none(statistic: StatisticHistogram, text: TypedText) -> int:
    try:
        return statistic.cell_of(text)
    except Exception:  # whatever it is, it says something of the text
        return statistic.cells.size - 1


@dataclass(frozen=True, kw_only=True)
class StatisticSum:
    """One sum over devices: how often each cell occurs in a device's text, within an L2 norm.

    A cell is one of the first words of the vocabulary, or a tuple of them. A device sends whole numbers, in which one
    occurrence counts as `unit`: the larger it is, the less is lost where numbers are scaled down to the norm and
    rounded. Raises: InputError for an unknown statistic, for fewer words than two, for more cells than a report holds,
    and for a norm or a unit that is none.
    """

    statistic: str  # a name of SUMS
    words: int  # N, the first of the vocabulary; a cell of k words is one of N^k
    norm: float  # that a device's occurrences are scaled down to
    unit: int = 1  # what one occurrence counts in a report

    def __post_init__(self) -> None:
        if self.statistic not in SUMS:
            raise InputError(f"the sum {self.statistic!r} is unknown; choose of {', '.join(SUMS)}.")
        if self.words < 2:
            raise InputError(f"{self.statistic} of {self.words} words tells nothing apart; give 2 words or more.")
        if self.cells > MOST_CELLS:
            most = int(MOST_CELLS ** (1 / len(self.axes)) + 1e-9)
            raise InputError(
                f"{self.statistic} of {self.words:,} words has {self.cells:,} cells, and a report at most "
                f"{MOST_CELLS:,}; give {most:,} words at most."
            )
        if not 1 <= self.unit <= MOST_NORM:
            raise InputError(f"unit={self.unit} must lie between 1 and {MOST_NORM:,}; 16 is fine enough, say.")
        assert self.layout  # refuses a norm here

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Of `word_pairs:1000 norm 30`, or with ` unit 16` behind. Raises: InputError where it cannot be read."""
        what, _, within = text.partition(NORM)
        name, _, words = what.strip().partition(":")
        norm, said, unit = within.partition(UNIT)
        try:
            return cls(statistic=name, words=int(words), norm=float(norm), unit=int(unit) if said else 1)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{text!r} is no sum; write for example 'word_pairs:1000 norm 30'.") from None

    def __str__(self) -> str:
        """Its name among others: words and norm do not tell two apart."""
        return self.statistic

    def to_plain(self) -> dict[str, Any]:
        """For TOML, without what is as usual."""
        return {name: value for name, value in to_plain(self).items() if (name, value) != ("unit", 1)}

    @property
    def axes(self) -> tuple[int, ...]:
        """How its cells lie: by the first word, and by the second where there is one. `numpy.reshape` takes it."""
        return (self.words,) * SUMS[self.statistic][0]

    @property
    def cells(self) -> int:
        """How many."""
        return math.prod(self.axes)

    @property
    def layout(self) -> BoundedLayout:
        """Of a report of this sum alone, in units."""
        return BoundedLayout(sizes=(self.cells,), norms=(self.norm * self.unit,))

    def counted(self, text: TypedText) -> tuple[IntArray, IntArray]:
        """The cells (n,) that occur in a text, increasing, and how often each does in units (n,), not clipped.

        Raises: what a statistic does.
        """
        places = SUMS[self.statistic][1](text) - SPECIALS  # in the vocabulary
        inside = places[((places >= 0) & (places < self.words)).all(axis=1)]
        cells, counts = np.unique(np.ravel_multi_index(tuple(inside.T), self.axes), return_counts=True)
        return cells, counts * self.unit


@dataclass(frozen=True)
class SumsQuestion:
    """Sums over devices' text, one after another. Raises: InputError for one twice, or more than a report holds."""

    statistics: tuple[StatisticSum | CellSum, ...]
    kind: ClassVar[str] = "count"
    networks: ClassVar[tuple[Any, ...]] = ()  # no model is sent

    def __post_init__(self) -> None:
        if len(set(map(str, self.statistics))) < len(self.statistics):
            raise InputError("a statistic is summed twice, at twice the noise; sum each once.")
        if self.sums.length > MOST_CELLS:
            raise InputError(
                f"all sums together have {self.sums.length:,} cells, and a report holds {MOST_CELLS:,}; name fewer "
                "sums, or fewer words."
            )

    @cached_property
    def sums(self) -> BoundedLayout:
        """How a report lies in a vector, and its norms."""
        return BoundedLayout(
            sizes=tuple(each.cells for each in self.statistics),
            norms=tuple(norm for each in self.statistics for norm in each.layout.norms),
        )

    @property
    def cells(self) -> CellSum | None:
        """The sum of a list's cells; None where there is none."""
        return next((each for each in self.statistics if isinstance(each, CellSum)), None)

    def counting(self, listed: CellList, vocabulary: Vocabulary) -> "SumsQuestion":
        """The same with the list of its cells at hand, in the words of a vocabulary.

        Raises: InputError where it is another list than the one asked for, or has a word that is not in the vocabulary.
        """
        asked = self.cells
        if asked is None or (asked.sha256, asked.cells, asked.norm) != (
            listed.sha256,
            len(listed.ngrams),
            listed.norm,
        ):
            raise InputError(f"the list of cells {listed.sha256[:12]} is not the one that is asked for; give that.")
        found = ListedSum.over(listed, vocabulary)
        return SumsQuestion(tuple(found if each is asked else each for each in self.statistics))

    def counting_from(self, content: bytes, vocabulary: str) -> "SumsQuestion":
        """The same from a list's file, and a vocabulary's. Raises: InputError."""
        return self.counting(CellList.from_content(content), Vocabulary.from_json(vocabulary))

    def report_of(self, text: HasSentences, client: int) -> Words:
        """The report (length,) of one client of a `Cache`, or of anything with its `sentences`, clipped.

        Zeros for a statistic that fails: were it refused, who asks would learn that it failed on this text.
        """
        own = TypedText.from_cache(text, client)
        return self.sums.reported([_counted_or_nothing(each, own) for each in self.statistics])


def _counted_or_nothing(statistic: StatisticSum | CellSum, text: TypedText) -> tuple[IntArray, IntArray]:
    try:
        return statistic.counted(text)
    except Exception:  # whatever it is, it says something of the text
        return np.zeros(0, np.int64), np.zeros(0, np.int64)


# -- what a plan says of it --------------------------------------------------------------------------------------------


def question_in(recipe: str) -> StatisticsQuestion | SumsQuestion:
    """What the recipe of a plan asks. Raises: InputError where a device cannot know what."""
    own = settings_in(table_of(recipe))
    match own.get("statistics"), own.get("sums"):
        case list() as listed, None:
            return StatisticsQuestion(
                tuple(from_plain(StatisticHistogram, each, where="a statistic") for each in listed)
            )
        case None, list() as listed:
            return SumsQuestion(sums_in(listed))
    raise InputError("it names neither statistics nor sums, or both.")


def sums_in(listed: Iterable[Any]) -> tuple[StatisticSum | CellSum, ...]:
    """The sums that a plan or the settings of a run list. Raises: InputError."""
    return tuple(map(_sum_in, listed))


def _sum_in(table: Any) -> StatisticSum | CellSum:
    if not (isinstance(table, Mapping) and table.get("statistic") == CellSum.statistic):
        return from_plain(StatisticSum, table, where="a sum")
    return from_plain(CellSum, {name: each for name, each in table.items() if name != "statistic"}, where="a sum")


def table_of(recipe: str) -> Mapping[str, Any]:
    """The TOML of a plan about histograms. Raises: InputError for what is none."""
    try:
        return parsed_toml(recipe)
    except ValueError as error:  # a number of 5,000 digits, too
        raise InputError(f"what it asks is no TOML: {error}") from None


def settings_in(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """What such a plan asks, under the job's own names. Raises: InputError where it says nothing."""
    found = table.get("settings")
    if not isinstance(found, dict):
        raise InputError("it says no settings.")
    return found
