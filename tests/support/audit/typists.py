"""People of a made-up language of 400 words, and public text in it: for attacks that must succeed, or must not."""

from pathlib import Path

import numpy as np

from tacit.audit.attack.settings import AttackSettings
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.jobs.import_data import import_data

WORDS = tuple(f"{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst")
SETTINGS = AttackSettings(
    clients=24,
    cohort=60,
    sentence_clients=4,
    sentences=4,
    words=8,
    embedding=8,
    units=12,
    pretraining=2_000,
)


def texts(seed: int, many: int, least: int, most: int) -> dict[str, list[str]]:
    """So many people, with sentences of one to seven words: a few frequent words, and many rare ones."""
    draw, shares = np.random.default_rng(seed), 1 / (10 + np.arange(len(WORDS)))
    return {
        f"{seed}-{person}": [
            " ".join(draw.choice(WORDS, draw.integers(1, 8), p=shares / shares.sum()).tolist())
            for _ in range(draw.integers(least, most))
        ]
        for person in range(many)
    }


def caches(folder: Path) -> tuple[Cache, Cache]:
    """Clients, about 130 of whom train, and public text in the same words."""
    words = folder / "words.txt"
    words.write_text("\n".join(WORDS), encoding="utf-8")
    choice = VocabularyChoice(word_list=words)
    clients = import_data(TextsOf(texts(1, 160, 1, 5)), folder / "clients", vocabulary=choice)
    return clients, import_data(TextsOf(texts(2, 40, 40, 50)), folder / "public", vocabulary=choice)
