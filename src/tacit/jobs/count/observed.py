"""What a run of sums released, as a model is bent by it: cells of one word, two and three, in occurrences."""

from collections.abc import Sequence

import numpy as np

from tacit.evaluation.counts.cell_list import LONGEST, CellSum
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.counts.sums import ReleasedSums
from tacit.networks.ngram.bend import Observed, ObservedCells
from tacit.text.vocabulary import Vocabulary

DENSE = ("word_counts", "word_pairs")  # the sums over all n-grams of one word, and of two


def observed_in(found: ReleasedSums, sums: Sequence[StatisticSum | CellSum], vocabulary: Vocabulary) -> Observed:
    """The released cells by the ids of a vocabulary that has their words; `sums` are those of the run.

    The cells of a list stand for all of their length, in place of a sum over the first words.
    """
    by_length: list[ObservedCells | None] = [None] * LONGEST
    for each in sums:
        if isinstance(each, StatisticSum) and each.statistic in DENSE:
            counts = found.sums[str(each)].reshape(each.axes) / each.unit
            by_length[DENSE.index(each.statistic)] = ObservedCells.dense(counts, found.stddev / each.unit)
    if found.ngrams:
        ids = [[vocabulary.id_of(word) for word in ngram.split(" ")] for ngram in found.ngrams]
        lengths, counts = np.array(list(map(len, ids))), found.sums[CellSum.statistic] / found.units
        for length in range(1, LONGEST + 1):
            at = np.flatnonzero(lengths == length)
            if len(at):
                own = np.array([ids[place] for place in at], np.int64)
                by_length[length - 1] = ObservedCells(own, counts[at], found.stddev / found.units[at])
    return Observed(*by_length)
