"""A cache with canaries behind its clients: those of gradients, then the users of random sentences."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.audit.one_run.canaries import canary_sentence
from tacit.audit.one_run.settings import CanarySettings
from tacit.data import Cache
from tacit.data.importing import add_clients
from tacit.data.manifest import MANIFEST, SPLITS
from tacit.errors import InputError
from tacit.text.vocabulary import BOS, EOS, SPECIALS
from tacit.training import generator_for, key_from_seed

NAME = "canary of an audit "  # how the names of canaries begin
JOINED = "canaries of an audit"  # in the description of a cache that has them
WORDS = 5  # of a random sentence, as the card numbers of arXiv:1802.08232 have a few digits


@dataclass(frozen=True)
class Sentence:
    """A random sentence, how often each of its users has it, and how many they are."""

    words: tuple[int, ...]
    repeats: int
    users: int

    @property
    def ids(self) -> list[int]:
        """As in a cache."""
        return [BOS, *self.words, EOS]


def random_sentences(seed: int, settings: CanarySettings, vocabulary: int) -> list[Sentence]:
    """Words drawn uniformly from those that the vocabulary knows, for each number of repeats and of users."""
    draw = generator_for(key_from_seed(seed), "canary sentences")
    cells = [(repeats, users) for repeats in settings.repeats for users in settings.users]
    drawn = draw.integers(SPECIALS, vocabulary, (len(cells) * settings.sentences, WORDS))
    each = [cell for cell in cells for _ in range(settings.sentences)]
    return [Sentence(tuple(map(int, words)), *cell) for words, cell in zip(drawn, each, strict=True)]


def other_sentences(seed: int, number: int, vocabulary: int) -> NDArray[np.int32]:
    """Sentences of the same law that nobody has, (number, WORDS + 2) ids."""
    draw = generator_for(key_from_seed(seed), "canary references")
    words = draw.integers(SPECIALS, vocabulary, (number, WORDS))
    return np.pad(words, ((0, 0), (1, 1)), constant_values=((0, 0), (BOS, EOS))).astype(np.int32)


def joined(cache: Cache, out: Path, seed: int, settings: CanarySettings) -> Cache:
    """A new cache at `out`: the clients of `cache`, all canaries of gradients, group by group, and all sentence users.

    Raises: InputError where the cache has canaries already, or `out` has people's text without any; CacheError where
    `out` is something else than a cache.
    """
    check_no_canaries(cache)
    if (out / MANIFEST).is_file() and JOINED not in Cache.open(out).manifest.source:
        raise InputError(f"'{out}' is a cache without canaries, so it is left alone; give another --out.")
    vocabulary = cache.manifest.vocabulary.size
    if settings.groups > vocabulary**2:
        raise InputError(f"{settings.groups} groups have no numbers of two words of {vocabulary}; give fewer canaries.")
    more: dict[str, list[list[int]]] = {
        f"{NAME}{number:06d}": [canary_sentence(number // settings.alike, vocabulary)]
        for number in range(settings.canaries)
    }
    for at, sentence in enumerate(random_sentences(seed, settings, vocabulary)):
        for user in range(sentence.users):
            more[f"{NAME}sentence {at:04d} user {user:04d}"] = [sentence.ids] * sentence.repeats
    return add_clients(cache, more, out, description=description(cache, settings, seed))


def description(cache: Cache, settings: CanarySettings, seed: int) -> str:
    """What a joined cache says of its source: from which clients it was made, and with which canaries."""
    sentences = ""
    if settings.sentences:
        lists = [",".join(map(str, each)) for each in (settings.repeats, settings.users)]
        sentences = f", {settings.sentence_users} users of {settings.sentences} random sentences for each of "
        sentences += f"{lists[0]} repeats and {lists[1]} users"
    return (
        f"{cache.manifest.source}; and {JOINED}: {settings.canaries} with gradients, {settings.alike} "
        f"alike{sentences}, seed {seed}; behind the clients {cache.manifest.digest[:16]}"
    )


def check_no_canaries(cache: Cache) -> None:
    """Raises: InputError where clients are canaries already, naming the split: a held-out one is tested on itself."""
    for split in SPLITS:
        for client in map(int, cache.clients(split)):
            if cache.name(client).startswith(NAME):
                raise InputError(
                    f"client {client} of '{cache.path}', in the {split} split, is the canary of an audit: its own "
                    "canaries are all that an audit may have, and they train; give the data without them."
                )
