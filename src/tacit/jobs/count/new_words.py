"""New words behind a sealed sum: candidates as a list to count, and those of them that a run of it has found.

Candidates are the words of a larger vocabulary: a public one, or one that `tacit vocab extend` made of discovered
words. Clients' text has to be cut by it. A device counts each candidate once, so that a cell counts devices; one with
more candidates than its norm has room for counts each of them less.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from tacit.errors import InputError, RunError
from tacit.evaluation.counts.cell_list import CellList, CellSum
from tacit.evaluation.counts.device_part import sums_in
from tacit.evaluation.counts.sums import ReleasedSums
from tacit.files import PathLike, as_path, check_file
from tacit.jobs.count.sums import FILE
from tacit.jobs.result import JobResult
from tacit.planning.counts import FINENESS
from tacit.runs import Run
from tacit.runs.metadata import CountMetadata
from tacit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tacit.reports.blocks import Block

FALSE_WORDS = 0.05  # of all candidates that nobody typed, so many are expected above the threshold by noise


@dataclass(frozen=True, kw_only=True)
class Candidates(JobResult):
    """A list of candidates in its file."""

    cells: CellList

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit vocab candidates --json` prints."""
        return {
            "schema": "tacit.candidates",
            "version": 1,
            "list": str(self.cells.path),
            "sha256": self.cells.sha256,
            "candidates": len(self.cells.ngrams),
            "norm": self.cells.norm,
            "unit": self.cells.units[0],
        }

    def blocks(self) -> "list[Block]":
        """What people read of it."""
        from tacit.reports.blocks import Paragraph

        return [
            Paragraph(f"{self.cells.path}: {len(self.cells.ngrams):,} candidates, each counted once a client."),
            Paragraph(f"Count them: tacit count --cells {self.cells.path} --data CACHE --epsilon 4 --out RUN"),
        ]


class FoundWord(NamedTuple):
    """A candidate whose count is above the threshold."""

    word: str
    devices: float  # that typed it, those with many candidates less than whole
    stddev: float  # of the noise


def candidates(
    vocabulary: Vocabulary | PathLike, larger: Vocabulary | PathLike, out: PathLike, *, words_each: int = 1
) -> Candidates:
    """The list of the words that the larger vocabulary has besides, written to the file `out`.

    words_each: so many of them a device counts in full. A larger number has more noise in each cell, by its root; a
    smaller one lowers what devices with many candidates add, by the same. Raises: InputError where there are fewer than
    two, text is cut otherwise by the other vocabulary, its words are of private text, or the file is another.
    """
    known, wanted = (
        each if isinstance(each, Vocabulary) else Vocabulary.load(as_path("vocabulary", each))
        for each in (vocabulary, larger)
    )
    path = as_path("out", out)
    check_file("--out", path)
    if known.writing != wanted.writing:
        raise InputError("the two vocabularies cut text by other rules; give two that are cut alike.")
    if not 1 <= words_each <= FINENESS:
        raise InputError(f"words_each={words_each} must lie between 1 and {FINENESS:,}.")
    old = set(known.words)
    fresh = tuple((word,) for word in wanted.words if word not in old)
    made = CellList(
        norm=FINENESS,
        ngrams=fresh,
        units=(math.floor(FINENESS / math.sqrt(words_each)),) * len(fresh),
        provenance=wanted.provenance,
        once=True,
    )
    if path.is_file() and path.read_bytes() != made.text.encode():
        raise InputError(f"'{path}' is there and says something else; give another --out.")
    return Candidates(cells=made.save(path))


def threshold(candidates: int, stddev: float) -> float:
    """Above it noise lifts FALSE_WORDS of so many words that nobody typed, as expected. stddev: of the noise."""
    return stddev * float(ndtri(1 - FALSE_WORDS / candidates))


def found_words(run: Run) -> list[FoundWord]:
    """The words of a run's list that are above the threshold, the surest first.

    Raises: InputError for a run of something else; RunError where it has released nothing.
    """
    run.of_kind(CountMetadata, "words are found by `tacit discover`, and by `tacit count --cells`")
    named = tuple(map(str, sums_in(run.settings_table.get("sums", []))))
    if CellSum.statistic not in named:
        raise InputError(f"'{run.path}' counts no list of cells; `tacit vocab candidates` makes one.")
    if f"report/{FILE}" not in run.files:
        raise RunError(f"'{run.path}' has released no counts; run its `tacit count` with a price.")
    found = ReleasedSums.from_content(run.kept(f"report/{FILE}"), named)
    counts, noise = found.sums[CellSum.statistic] / found.units, found.stddev / found.units
    high = counts >= threshold(len(counts), 1.0) * noise
    order = sorted(np.flatnonzero(high), key=lambda at: -counts[at] / noise[at])
    return [
        FoundWord(found.ngrams[at], float(counts[at]), float(noise[at])) for at in order if " " not in found.ngrams[at]
    ]
