"""The sentences that clients typed, word by word: what somebody who is simulated types once more.

A source has the real spelling; it is cut by the function the caller passes in (the keyboard's own, so that a word here
is a word there). A cache keeps ids, so a word that its vocabulary lacks is None here: only its place is known.

Who is taken is decided by the SHA-256 of a client's name: anybody can draw the choice again, and a source and the cache
that was imported from it give the same users.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappush, heappushpop
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from tacit.data.cache import Cache
from tacit.data.clients import Source, checked_clients, split_of
from tacit.data.splits import TemporalSplit, Unsplit
from tacit.data.unknown_words import READING
from tacit.errors import InputError, SourceError
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

Sentence: TypeAlias = tuple[str | None, ...]  # its words; None for one that the cache does not spell
BY_SOURCE, BY_NAME, BY_CACHE = "the source itself", "the digest of each client's name", "the cache"
BY_BOTH = "the source itself where it says so, else the digest of a client's name"
Cut: TypeAlias = Callable[[str], Sequence[Sequence[str]]]  # a text -> its sentences, each its words


class TypingUser(NamedTuple):
    """One client and the sentences of its text that are typed again."""

    number: int  # in the order of the source, or in the cache
    name: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, kw_only=True)
class Share:
    """How much is typed again: how many users, and how much of each; 0 is all."""

    split: Annotated[str, "Whose text is typed: test, validation or train."] = "test"
    users: Annotated[int, "Users who type, those with the smallest digests of their names; 0 is all of the split."] = 0
    sentences: Annotated[int, "Sentences of a user, evenly spread over its text; 0 is all."] = 0
    words: Annotated[int, "Words of a sentence, its first; 0 is all."] = 0

    def __post_init__(self) -> None:
        for name in ("users", "sentences", "words"):
            if getattr(self, name) < 0:
                raise InputError(f"{name}={getattr(self, name)} must be 0 (all) or more.")

    def of(self, sentences: Sequence[Sequence[str | None]]) -> tuple[Sentence, ...]:
        """What is typed of all sentences of a user."""
        there = len(sentences)
        if self.sentences and self.sentences < there:
            chosen = np.unique(np.linspace(0, there - 1, self.sentences).astype(np.int64)).tolist()
        else:
            chosen = list(range(there))
        return tuple(tuple(sentences[at][: self.words or None]) for at in chosen)


@dataclass(frozen=True, kw_only=True)
class TypedSentences:
    """Users in the order of the digests of their names, each with at least one sentence."""

    users: tuple[TypingUser, ...]
    description: str  # where their text comes from, without machine paths
    split: str
    clients: int  # that there are, of any split
    of_split: int  # of them, those of this one; some may have typed nothing, or not be among the users asked for
    split_by: str  # what decided who is of which: BY_SOURCE, BY_NAME, BY_BOTH or BY_CACHE

    @cached_property
    def words(self) -> int:
        """How many there are, unspelled ones too."""
        return sum(len(sentence) for user in self.users for sentence in user.sentences)

    @cached_property
    def unspelled(self) -> int:
        """How many words a cache did not spell."""
        return sum(word is None for user in self.users for sentence in user.sentences for word in sentence)

    @cached_property
    def sha256(self) -> str:
        """A digest of all of it: equal digests, equal users and sentences."""
        return hashlib.sha256(json.dumps(self.users).encode()).hexdigest()


def read_typed_sentences(source: Source, cut: Cut, share: Share, *, progress: Progress = silent) -> TypedSentences:
    """The sentences of a source's clients, cut by `cut`. Memory grows with what is chosen, not with the source.

    Raises: SourceError where no client of the split has a sentence, or from the source.
    """
    chosen = _Chosen(share)
    seen = fixed = of_split = 0
    for seen, client in enumerate(checked_clients(source), start=1):
        if seen == 1:
            progress(StageBegan(READING, source.expected_clients))  # known once reading has begun
        fixed += client.split is not None
        if (client.split or split_of(client.client_id)) == share.split:
            of_split += 1
            if chosen.wants(client.client_id):
                sentences = [sentence for text in client.texts for sentence in cut(text) if sentence]
                chosen.add(TypingUser(seen - 1, client.client_id, share.of(sentences)))
        progress(Advanced(READING, seen))
    progress(StageEnded(READING))
    by = BY_NAME if not fixed else BY_SOURCE if fixed == seen else BY_BOTH
    return chosen.finish(source.description, seen, of_split, by)


def cached_typed_sentences(
    cache: Cache, word_of_id: Sequence[str | None], share: Share, *, split: TemporalSplit | None = None
) -> TypedSentences:
    """The same from a cache, as far as its own vocabulary spells: `word_of_id[id]`, None for special ids.

    split: only its test part is typed, and nobody types whose text cannot be cut so. Raises: SourceError where the
    split has no client, or none with such a part; InputError for an unknown split.
    """
    chosen = _Chosen(share)
    of_split = cache.clients(share.split)
    for client in map(int, of_split):
        if chosen.wants(name := cache.name(client)):
            chosen.add(TypingUser(client, name, share.of(list(_spelled(cache, client, word_of_id, split)))))
    return chosen.finish(cache.manifest.source, cache.manifest.clients, len(of_split), BY_CACHE)


def _spelled(
    cache: Cache, client: int, word_of_id: Sequence[str | None], split: TemporalSplit | None
) -> Iterator[Sentence]:
    """The sentences of a client that have a word; of a split those of its test part."""
    ids, lengths = cache.sentences(client)
    sentences = np.split(ids, np.cumsum(lengths)[:-1])
    if split is not None:
        parts = split.parts(cache.timestamps(client))
        sentences = [] if isinstance(parts, Unsplit) else [sentences[row] for row in parts.test]
    for sentence in sentences:
        if len(sentence) > 2:  # its beginning and its end
            yield tuple(word_of_id[id] for id in sentence[1:-1])


class _Chosen:
    """The users with the smallest digests so far."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._heap: list[tuple[int, TypingUser]] = []  # by the negated digest: the first is to go next

    def wants(self, name: str) -> bool:
        """Whether a client of this name would be among them."""
        full = bool(self._share.users) and len(self._heap) >= self._share.users
        return not full or -_digest(name) > self._heap[0][0]

    def add(self, user: TypingUser) -> None:
        """One more, if it typed anything; the one with the largest digest makes room."""
        if not user.sentences:
            return
        full = self._share.users and len(self._heap) >= self._share.users
        (heappushpop if full else heappush)(self._heap, (-_digest(user.name), user))

    def finish(self, description: str, clients: int, of_split: int, split_by: str) -> TypedSentences:
        """All of them, the smallest digest first."""
        split = self._share.split
        if not self._heap:
            raise SourceError(
                f"'{description}' has no client with a sentence in the split {split!r}: {of_split:,} of its "
                f"{clients:,} clients are of it, split by {split_by}; give another source, or another split."
            )
        users = tuple(user for _, user in sorted(self._heap, reverse=True))
        return TypedSentences(
            users=users, description=description, split=split, clients=clients, of_split=of_split, split_by=split_by
        )


def _digest(name: str) -> int:
    digest = hashlib.sha256(f"tacit-typing-1:{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:16], "big")
