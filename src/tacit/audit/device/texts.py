"""What the owners of audited devices typed: texts that differ in one word, in their number of sentences, in anything.

Sentences are made of an invented vocabulary, so that a device needs no import and no file of anybody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data import ClientText, VocabularyRecord, build_cache
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS, Provenance, Vocabulary

ODD = ("na\u00efve", "\u05e9\u05dc\u05d5\u05dd", "\u01c6ep", "\u0e01\u0e34\u0e19", "x" * 200)
WORDS = (
    *(f"w{chr(97 + at // 8)}{chr(97 + at % 8)}" for at in range(56)),
    *ODD,
)  # of several scripts, and of 200 letters
SPELLED = Vocabulary(words=WORDS, provenance=Provenance(kind="word list", description="invented"), lowercase=False)
KNOWN = Vocabulary(words=WORDS[16:50], provenance=Provenance(kind="public", description="invented"))  # of a discovery
SECRET, OTHER = 7, 8  # places of the word that only one of two owners typed, and of the one typed in its place
_CHATTY = (f"{WORDS[SECRET]} {WORDS[9]} {WORDS[SECRET]}", *(" ".join(WORDS[at : at + 6]) for at in range(10, 50)))
_LONG = tuple(" ".join(WORDS[(at + step) % 56] for step in range(5)) for at in range(3_000))


class Typed(NamedTuple):
    """What one owner typed."""

    sentences: Sequence[str]
    dated: bool = True  # whether each sentence has a time

    @property
    def has_secret(self) -> bool:
        """Whether the word of which an operator would like to know is in it."""
        return any(WORDS[SECRET] in each.split() for each in self.sentences)


TEXTS = {
    "the word": Typed(_CHATTY),
    "another word": Typed([each.replace(WORDS[SECRET], WORDS[OTHER]) for each in _CHATTY]),
    "one word": Typed([WORDS[20]]),
    "3,000 sentences": Typed(_LONG),
    "at no known time": Typed(_CHATTY, dated=False),
    "no known word": Typed(["unheard unseen", "unsaid"] * 9),
    "odd letters": Typed([*_CHATTY, " ".join(ODD)]),
}
Pair = tuple[str, str]
ONE_WORD: Pair = ("the word", "another word")
EVERY_PAIR: tuple[Pair, ...] = (ONE_WORD, *(("another word", name) for name in list(TEXTS)[2:]))


@dataclass
class _Owner:
    """A source of one client; sentences are an hour apart."""

    typed: Typed
    split: str
    description: str = "invented"
    left_out: dict[str, int] = field(default_factory=dict)
    expected_clients: int = 1

    def clients(self) -> Iterator[ClientText]:
        times = 1_000_000 + 3600 * np.arange(len(self.typed.sentences), dtype=np.int64) if self.typed.dated else None
        yield ClientText(client_id="owner", texts=tuple(self.typed.sentences), timestamps=times, split=self.split)


class _Ids(NamedTuple):
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    text_of: NDArray[np.int32]


def _encoded(texts: Sequence[str]) -> _Ids:
    rows = [[BOS, *(SPELLED.id_of(word) for word in text.split()), EOS] for text in texts]
    flat = np.array([id for row in rows for id in row], np.int32)
    return _Ids(flat, np.array([len(row) for row in rows], np.int32), np.arange(len(rows), dtype=np.int32))


def cache_of(folder: Path, name: str, *, trains: bool) -> Path:
    """The cache of one of TEXTS below `folder`, made where it is not there. trains: whether training may read it."""
    path = folder / f"{list(TEXTS).index(name)}-{'train' if trains else 'test'}"
    if not path.exists():
        record = VocabularyRecord(
            size=SPELLED.size,
            sha256=SPELLED.sha256,
            lowercase=False,
            oov_id=OOV,
            kind="word list",
            description="invented",
        )
        build_cache(
            _Owner(TEXTS[name], "train" if trains else "test"),
            _encoded,
            path,
            vocabulary=record,
            vocabulary_json=SPELLED.to_json(),
            tokenizer="words",
        )
    return path


def id_of_secret() -> int:
    """The id by which models know the word."""
    return SECRET + SPECIALS
