"""Public text of a test: words as unequal as real ones are."""

import numpy as np

WORDS = tuple(f"{a}{b}" for a in "abcdefgh" for b in "klmnopqr")


def sentences(seed: int, many: int) -> list[str]:
    """Words of Zipf's law, in sentences of one to nine."""
    draw = np.random.default_rng(seed)
    shares = 1 / np.arange(1, len(WORDS) + 1)
    return [" ".join(draw.choice(WORDS, draw.integers(1, 10), p=shares / shares.sum()).tolist()) for _ in range(many)]
