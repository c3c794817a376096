"""A bend one n-gram at a time, in dictionaries of tuples and float64: what the arrays are held against."""

import math
from collections.abc import Callable

import numpy as np

from tacit.networks.ngram.bend import LEAST_RATIO, RATIO_STEP, Observed, ObservedCells, believed
from tacit.text.vocabulary import BOS, EOS

Gram = tuple[int, ...]
After = Callable[[Gram], list[float]]


class SlowBend:
    """after, after_pairs: what the model says of each id after a context. often: of each id, how often it is typed."""

    def __init__(self, observed: Observed, *, after: After, after_pairs: After, often: list[float]) -> None:
        self.factors: dict[Gram, float] = {}
        self._after, self._after_pairs, self._often = after, after_pairs, often
        for cells in observed:
            if cells is not None:
                self._believe(cells)

    def _believe(self, cells: ObservedCells) -> None:
        grams = [tuple(row) for row in cells.ids.tolist()]
        expected = np.array([self._expected(gram) for gram in grams])
        expected = np.maximum(expected * max(cells.counts.sum(), 1) / expected.sum(), 1e-9)
        said = believed(cells.counts, expected, cells.stddev)
        if len(grams[0]) == 1:
            said = said * expected.sum() / (said * expected).sum()
            self.factors |= dict(zip(grams, said.tolist(), strict=True))
        else:
            steps = [max(-127, min(127, round(math.log(max(each, LEAST_RATIO)) / RATIO_STEP))) for each in said]
            self.factors |= {gram: math.exp(RATIO_STEP * step) for gram, step in zip(grams, steps, strict=True)}

    def _expected(self, gram: Gram) -> float:
        """The share of all n-grams of its length, by what is bent so far."""
        if len(gram) == 1:
            return self._often[gram[0]]
        context, word = gram[:-1], gram[-1]
        if len(context) == 1:
            first = EOS if context[0] == BOS else context[0]
            before = self._often[first] * self.factors.get((first,), 1.0)
        else:
            before = self._expected(context)
        plain = self._after_pairs(context) if len(context) == 1 else self._after(context)
        return before * self.bent(plain, context)[word]

    def bent(self, probabilities: list[float], context: Gram) -> list[float]:
        """Each probability times the factors of the word, of it after one word, and after two."""
        found = []
        for word, each in enumerate(probabilities):
            gram = (*context, word)
            for length in range(1, min(3, len(gram)) + 1):
                each *= self.factors.get(gram[len(gram) - length :], 1.0)
            found.append(each)
        return [each / sum(found) for each in found]
