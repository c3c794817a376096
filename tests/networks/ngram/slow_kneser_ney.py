"""Kneser-Ney one n-gram at a time, in dictionaries of tuples: what the arrays are held against."""

from collections import Counter, defaultdict

import numpy as np

from tacit.networks.ngram.kneser_ney import discounts
from tacit.text.vocabulary import BOS, PAD

Gram = tuple[int, ...]


class SlowKneserNey:
    """Of sentences, each from BOS to EOS."""

    def __init__(self, sentences: list[list[int]], *, vocabulary: int, order: int, cutoffs: tuple[int, ...]) -> None:
        self.vocabulary, self.order = vocabulary, order
        self.seen: dict[int, Counter[Gram]] = {
            m: Counter(
                tuple(sentence[at : at + m])
                for sentence in sentences
                for at in range(len(sentence) - m + 1)
                if sentence[at + m - 1] != BOS
            )
            for m in range(1, order + 1)
        }
        self.counts = dict(self.seen)
        for m in range(1, order):
            before = defaultdict(set)
            for u, *rest in self.seen[m + 1]:
                before[tuple(rest)].add(u)
            self.counts[m] = Counter(
                {gram: count if gram[0] == BOS else len(before[gram]) for gram, count in self.seen[m].items()}
            )
        self.kept = {1: set(self.counts[1])} | {
            m: {gram for gram, count in self.seen[m].items() if count >= cutoff}
            for m, cutoff in zip(range(2, order + 1), cutoffs, strict=True)
        }

    def p(self, w: int, context: Gram) -> float:
        """After the last words of a sentence, its beginning one of them."""
        return self._p(w, context[len(context) - self.order + 1 :] if len(context) >= self.order else context)

    def p_pairs(self, w: int, before: int) -> float:
        return self._smoothed(w, (before,), self.seen[2], self.kept[2], self._p(w, ()))

    def _p(self, w: int, context: Gram) -> float:
        m = len(context) + 1
        lower = self._p(w, context[1:]) if context else (0.0 if w in (PAD, BOS) else 1 / (self.vocabulary - 2))
        return self._smoothed(w, context, self.counts[m], self.kept[m], lower)

    def _smoothed(self, w: int, context: Gram, counts: Counter[Gram], kept: set[Gram], lower: float) -> float:
        taken = discounts(np.array(list(counts.values()), np.int64))
        of = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == context}
        shares = {v: (c - taken[min(c, 3)]) / sum(of.values()) for v, c in of.items() if (*context, v) in kept}
        return float(shares.get(w, 0.0) + (1 - sum(shares.values())) * lower)
