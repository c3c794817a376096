"""Typists with habits and a clock: a population on which fine-tuning helps, and a network that has not met it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
from tests.support.training.tiny import SETTINGS, WORDS, Encoded

from tacit.data import Cache, ClientText, VocabularyRecord, build_cache
from tacit.keyboard.model_folder import write_model
from tacit.text.vocabulary import BOS, EOS, OOV, Provenance, Vocabulary


@dataclass
class Typists:
    """Each repeats sentences of its own, a new one every hour; some type hardly anything."""

    clients_: int
    description: str = "typists of a test"
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def expected_clients(self) -> int | None:
        return self.clients_

    def clients(self) -> Iterator[ClientText]:
        draw = np.random.default_rng(5)
        for number in range(self.clients_):
            habits = [" ".join(draw.choice(WORDS, 5)) for _ in range(3)]
            count = 1 if number % 9 == 4 else int(draw.integers(20, 60))
            texts = tuple(habits[int(draw.integers(3))] for _ in range(count))
            times = 1_000_000 + 3600 * np.arange(count, dtype=np.int64)
            yield ClientText(client_id=f"typist-{number}", texts=texts, timestamps=times, split="test")


def typists_and_model(folder: Path, clients: int = 40, words: Sequence[str] = WORDS) -> tuple[Path, Path]:
    """(cache, model folder), with one vocabulary unless other words are given."""
    vocabulary = Vocabulary(
        words=tuple(words), provenance=Provenance(kind="word list", description="tiny"), lowercase=False
    )

    def encode(texts: Sequence[str]) -> Encoded:
        rows = [[BOS, *(vocabulary.id_of(word) for word in text.split()), EOS] for text in texts]
        flat = np.array([id for row in rows for id in row], np.int32)
        return Encoded(flat, np.array([len(row) for row in rows], np.int32), np.arange(len(rows), dtype=np.int32))

    record = VocabularyRecord(
        size=vocabulary.size,
        sha256=vocabulary.sha256,
        lowercase=False,
        kind="word list",
        description="tiny",
        oov_id=OOV,
    )
    cache: Cache = build_cache(
        Typists(clients),
        encode,
        folder / "cache",
        vocabulary=record,
        vocabulary_json=vocabulary.to_json(),
        tokenizer="words",
    )
    (folder / "model").mkdir()
    write_model(folder / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_path.read_bytes())
    return folder / "cache", folder / "model"
