"""Chosen cells: a public list of n-grams, each with the whole number that one occurrence counts in a report.

    # tacit cells 1
    # norm 4096
    # public: public text forum.parquet
    259	the
    487	of the

A device adds up the numbers of what was typed on it, scales them down to the norm, and rounds down. Whoever reads the
released sum divides each cell by its number. So a cell with a larger number has less noise, and takes more of the norm.
The list travels to devices as it is; a plan pins its SHA-256. A third line of a list may be `# once`: a device then
counts each n-gram once, however often it was typed, so that a cell counts devices.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.statistics import TypedText
from tacit.federation.report_layout import MOST_CELLS, MOST_NORM, BoundedLayout
from tacit.files import read_bounded, write_whole
from tacit.text.vocabulary import OOV, Provenance, ProvenanceKind, Vocabulary

IntArray = NDArray[np.int64]
FORMAT = "# tacit cells 1"
ONCE = "# once"
LONGEST = 3  # words of an n-gram
MOST_IDS = 1 << 20  # of a vocabulary: three of them are one number of 64 bits
_NORM = re.compile(r"# norm ([0-9]{1,5})")
_FROM = re.compile(f"# ({'|'.join(get_args(ProvenanceKind))}): (.+)")
_CELL = re.compile(r"([0-9]{1,5})\t([^\t]+)")


@dataclass(frozen=True, kw_only=True)
class CellList:
    """Chosen n-grams of one to three words. Raises: InputError for a list that no device can count.

    provenance: where the choice of n-grams and of their units comes from. A choice by clients' private text is refused:
    the list is sent to every device.
    """

    norm: int  # L2, in units
    ngrams: tuple[tuple[str, ...], ...]
    units: tuple[int, ...]  # of each n-gram, what one occurrence counts
    provenance: Provenance
    once: bool = False  # a device counts each n-gram once at most
    path: Path | None = field(default=None, compare=False)  # the file that has it

    def __post_init__(self) -> None:
        if self.provenance.kind == "private":
            raise InputError(
                f"the cells were chosen by clients' own text ({self.provenance.description}), and a list is sent to "
                "every device; choose by public text (`tacit plan counts`), or by what was released."
            )
        if "\n" in self.provenance.description or not self.provenance.description.strip():
            raise InputError("where a list of cells comes from is one line of text; say it in one.")
        if not 2 <= len(self.ngrams) <= MOST_CELLS or len(self.units) != len(self.ngrams):
            raise InputError(
                f"{len(self.ngrams):,} cells with {len(self.units):,} units make no list; give 2 to {MOST_CELLS:,} "
                "cells, and a unit to each."
            )
        for ngram, unit in zip(self.ngrams, self.units, strict=True):
            if not 1 <= len(ngram) <= LONGEST or any(not re.fullmatch(r"\S+", word) for word in ngram):
                raise InputError(f"the cell {' '.join(ngram)[:60]!r} is not one to {LONGEST} words; give those.")
            if isinstance(unit, bool) or not isinstance(unit, int) or not 1 <= unit <= MOST_NORM:
                raise InputError(
                    f"the cell {' '.join(ngram)!r} counts {unit}, and a whole number from 1 to {MOST_NORM:,} was "
                    "expected."
                )
        twice = next((each for each, times in Counter(self.ngrams).items() if times > 1), None)
        if twice is not None:
            raise InputError(f"the cell {' '.join(twice)!r} is in the list twice, at twice the noise; count it once.")
        assert CellSum.of(self)  # refuses a norm here

    @cached_property
    def text(self) -> str:
        """The list as its file has it; `from_text` is the inverse."""
        head = [FORMAT, f"# norm {self.norm}", *([ONCE] if self.once else [])]
        head.append(f"# {self.provenance.kind}: {self.provenance.description}")
        cells = (f"{unit}\t{' '.join(ngram)}" for ngram, unit in zip(self.ngrams, self.units, strict=True))
        return "\n".join([*head, *cells]) + "\n"

    @cached_property
    def sha256(self) -> str:
        """Of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def save(self, path: Path) -> Self:
        """Write the file; the list as it is read from there."""
        write_whole(path, self.text.encode())
        return type(self).load(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file. Raises: InputError where there is none, or it is no list."""
        try:
            content = read_bounded(path)
        except FileNotFoundError:
            raise InputError(
                f"there is no list of cells at '{path}'; `tacit plan counts --cells` writes one."
            ) from None
        try:
            return cls.from_content(content, path)
        except InputError as error:
            raise InputError(f"'{path}': {error}") from error

    @classmethod
    def from_content(cls, content: bytes, path: Path | None = None) -> Self:
        """The list that a file's content is. Raises: InputError naming the line that cannot be read."""
        try:
            lines = content.decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise InputError("the list of cells is not UTF-8; write it so.") from None
        once = len(lines) > 2 and lines[2] == ONCE
        head = [*lines[:2], *lines[2 + once : 3 + once]]
        norm, comes = (_NORM.fullmatch(head[1]), _FROM.fullmatch(head[2])) if len(head) == 3 else (None, None)
        if head[0] != FORMAT or norm is None or comes is None:
            raise InputError(
                f"a list of cells begins with the lines '{FORMAT}', '# norm 4096' and '# public: where it comes from'."
            )
        found: list[tuple[int, tuple[str, ...]]] = []
        for number, line in enumerate(lines[3 + once :], start=4 + once):
            cell = _CELL.fullmatch(line)
            if cell is None:
                raise InputError(
                    f"line {number} is {line[:60]!r}, and a number, a tab and one to three words were expected."
                )
            found.append((int(cell[1]), tuple(cell[2].split(" "))))
        return cls(
            norm=int(norm[1]),
            ngrams=tuple(ngram for _, ngram in found),
            units=tuple(unit for unit, _ in found),
            provenance=Provenance(kind=cast("ProvenanceKind", comes[1]), description=comes[2]),
            once=once,
            path=path,
        )


@dataclass(frozen=True, kw_only=True)
class CellSum:
    """The sum of a list's cells, as a plan names it: by the digest of the list. Raises: InputError for a norm that is
    none.
    """

    statistic: ClassVar[str] = "cells"
    unit: ClassVar[int] = 1  # a norm is in units already
    sha256: str
    cells: int
    norm: float
    source: str  # where the list comes from

    def __post_init__(self) -> None:
        assert self.layout  # refuses a norm here

    @classmethod
    def of(cls, listed: CellList) -> "CellSum":
        """Of a list."""
        comes = f"{listed.provenance.kind}: {listed.provenance.description}"
        return CellSum(sha256=listed.sha256, cells=len(listed.ngrams), norm=listed.norm, source=comes)

    def __str__(self) -> str:
        """Its name among others."""
        return self.statistic

    def to_plain(self) -> dict[str, Any]:
        """For TOML."""
        own = {"sha256": self.sha256, "cells": self.cells, "norm": self.norm, "source": self.source}
        return {"statistic": self.statistic, **own}

    @property
    def layout(self) -> BoundedLayout:
        """Of a report of this sum alone, in units."""
        return BoundedLayout(sizes=(self.cells,), norms=(self.norm,))

    def counted(self, text: TypedText) -> tuple[IntArray, IntArray]:
        """See StatisticSum. Raises: InputError, for a digest alone says no cells."""
        raise InputError(f"the list of cells {self.sha256[:12]} is not at hand; give it.")


@dataclass(frozen=True, kw_only=True)
class ListedSum(CellSum):
    """The same with the list at hand, over the words of a vocabulary."""

    listed: CellList
    ids: IntArray  # of the vocabulary

    @classmethod
    def over(cls, listed: CellList, vocabulary: Vocabulary) -> Self:
        """Raises: InputError for a word that the vocabulary lacks, and for two cells of the same words there."""
        ids = np.full((len(listed.ngrams), LONGEST), -1, np.int64)
        for at, ngram in enumerate(listed.ngrams):
            ids[at, : len(ngram)] = [vocabulary.id_of(word) for word in ngram]
        if (ids == OOV).any():
            at, word = np.argwhere(ids == OOV)[0]
            raise InputError(
                f"the word {listed.ngrams[at][word]!r} of cell {at + 1} is not in the vocabulary, so nobody's text has "
                "it; drop the cell, or count with a vocabulary that has it."
            )
        if len(np.unique(ids, axis=0)) < len(ids):
            raise InputError("two cells are of the same words as this vocabulary spells them; count them once.")
        if vocabulary.size > MOST_IDS:
            raise InputError(f"a vocabulary of {vocabulary.size:,} ids is beyond {MOST_IDS:,} of a list of cells.")
        return cls(**vars(CellSum.of(listed)), listed=listed, ids=ids)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(cells,) each n-gram, with blanks between its words."""
        return tuple(map(" ".join, self.listed.ngrams))

    @cached_property
    def units(self) -> IntArray:
        """(cells,) what one occurrence counts."""
        return np.array(self.listed.units, np.int64)

    @cached_property
    def _cells(self) -> dict[int, tuple[IntArray, IntArray]]:
        """By length: the n-grams as numbers, increasing, and which cell each is."""
        found = {}
        lengths = (self.ids >= 0).sum(axis=1)
        for length in range(1, LONGEST + 1):
            places = np.flatnonzero(lengths == length)
            numbers = ngram_numbers([self.ids[places, at] for at in range(length)])
            order = np.argsort(numbers)
            found[length] = numbers[order], places[order]
        return found

    def counted(self, text: TypedText) -> tuple[IntArray, IntArray]:
        """See StatisticSum: the cells (n,), each once, and the units of each (n,), not clipped."""
        sentence = np.repeat(np.arange(len(text.lengths)), text.lengths)
        cells, counts = [], []
        for length, (numbers, places) in self._cells.items():
            if not len(numbers):
                continue
            begins = len(text.words) - length + 1
            own = ngram_numbers([text.words[at : begins + at] for at in range(length)]) if begins > 0 else numbers[:0]
            own, times = np.unique(own[sentence[:begins] == sentence[length - 1 :]], return_counts=True)
            at = np.minimum(np.searchsorted(numbers, own), len(numbers) - 1)
            listed = numbers[at] == own
            cells.append(places[at[listed]])
            counts.append(np.ones_like(times[listed]) if self.listed.once else times[listed])
        found = np.concatenate(cells)
        order = np.argsort(found)
        return found[order], np.concatenate(counts)[order] * self.units[found[order]]


def ngram_numbers(columns: list[IntArray]) -> IntArray:
    """Each n-gram of these words as one number: its ids as digits."""
    found = columns[0]
    for column in columns[1:]:
        found = found * MOST_IDS + column
    return found
