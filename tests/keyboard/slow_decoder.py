"""The decoder's slow, obvious twin: every word of a lexicon, letter by letter and tap by tap."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.keyboard.touch import TouchModel


def spatial(touch: TouchModel, word: str, points: Any) -> float:
    """ln of the density of the taps under the best way to type the word; minus infinity where there is none.

    best[i][j]: of the first i letters by the first j taps, the i-th letter typed and not left out.
    """
    typed = touch.layout.typed_form(word)
    assert typed is not None
    keys, moves = touch.layout.key_ids(typed), touch.moves
    taps = [[density(touch, point, key) for key in range(len(touch.layout.keys))] for point in points]
    n, m = len(keys), len(taps)
    best = [[-math.inf] * (m + 1) for _ in range(n + 1)]
    best[0][0] = 0.0
    for j in range(1, m + 1):
        best[0][j] = best[0][j - 1] + moves.stray
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            ways = [best[i - 1][j - 1] + moves.tapped + taps[j - 1][keys[i - 1]]]
            if i > 1:
                ways.append(best[i - 2][j - 1] + moves.omitted + moves.tapped + taps[j - 1][keys[i - 1]])
            if i > 1 and j > 1:
                swapped = moves.transposed + taps[j - 2][keys[i - 1]] + taps[j - 1][keys[i - 2]]
                ways.append(best[i - 2][j - 2] + swapped)
            extra = np.logaddexp(moves.doubled + taps[j - 1][keys[i - 1]], moves.stray)
            ways.append(best[i][j - 1] + float(extra))
            best[i][j] = max(ways)
    return max(best[n][m], best[n - 1][m] + moves.omitted)


def density(touch: TouchModel, point: Any, key: int) -> float:
    """ln of the Gaussian's density in two dimensions."""
    x, y = (float(part) for part in point)
    mean_x, mean_y = touch.means[key]
    along = ((x - mean_x) / touch.deviation_x) ** 2 + ((y - mean_y) / touch.deviation_y) ** 2
    return float(-along / 2 - math.log(2 * math.pi * touch.deviation_x * touch.deviation_y))


def decode(
    touch: TouchModel, words: Sequence[str], points: Any, language: Sequence[float], weight: float
) -> list[tuple[str, float]]:
    """(word, score) of all words that can be typed so, best first."""
    scored = [(word, spatial(touch, word, points) + weight * lnp) for word, lnp in zip(words, language, strict=True)]
    return sorted((each for each in scored if each[1] > -math.inf), key=lambda each: -each[1])


def completions(
    touch: TouchModel, words: Sequence[str], points: Any, language: Sequence[float], weight: float
) -> list[tuple[str, float]]:
    """(word, score) of all words by their best beginning; what the beginning ends with is typed and not left out."""
    no_omission = -math.inf
    scored = []
    for word, lnp in zip(words, language, strict=True):
        typed = touch.layout.typed_form(word)
        assert typed is not None
        begun = [0.0] if len(points) == 0 else [len(points) * touch.moves.stray]
        begun += [spatial(touch, typed[:end], points) for end in range(1, len(typed) + 1)]
        scored.append((word, max(begun, default=no_omission) + weight * lnp))
    return sorted((each for each in scored if each[1] > -math.inf), key=lambda each: -each[1])
