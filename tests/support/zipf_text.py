"""Made-up public text: 64 words by Zipf's law."""

import numpy as np

WORDS = tuple(f"{a}{b}" for a in "abcdefgh" for b in "klmnopqr")


def sentences(seed: int, many: int, *, backwards: bool = False) -> list[str]:
    """Of one to nine words. backwards: the order of frequencies turned round."""
    draw, words = np.random.default_rng(seed), WORDS[::-1] if backwards else WORDS
    shares = 1 / np.arange(1, len(words) + 1)
    return [" ".join(draw.choice(words, draw.integers(1, 10), p=shares / shares.sum()).tolist()) for _ in range(many)]
