"""The text of one device's owner: what training reads of it, and what models are judged on, which no training reads.

A client of a cache stands for the device. What the owner's policy keeps to judge models by (`split`) is never read by
training: sentences are numbered without it. Of a client that no training takes, all text may judge.
"""

from collections.abc import Callable, Container
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.mapped_sentences import MappedSentences
from tacit.data.splits import Parts, TemporalSplit, Unsplit
from tacit.errors import InputError, TaskRefused
from tacit.files import PathLike, as_path
from tacit.protocol.messages import Plan


class TextView:
    """Some sentences of the one client, numbered from 0 on, as `evaluation` asks a cache for them."""

    def __init__(self, cache: MappedSentences, rows: NDArray[np.int64]) -> None:
        self._cache, self._rows = cache, rows

    def sentence_count(self, client: int) -> int:
        """How many there are."""
        return len(self._rows)

    def sentences(self, client: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """As `MappedSentences.sentences`."""
        ids, lengths = self._cache.sentences(client)
        return ids[np.isin(np.repeat(np.arange(len(lengths)), lengths), self._rows)], lengths[self._rows]

    def timestamps(self, client: int) -> NDArray[np.int64]:
        """As `MappedSentences.timestamps`."""
        found: NDArray[np.int64] = self._cache.timestamps(client)[self._rows]
        return found

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """As `MappedSentences.padded`."""
        found: NDArray[np.int32] = self._cache.padded(client, self._rows[chosen], length)
        return found


class OwnText:
    """What `training.client.gather` asks a cache of one client for; it has no other client."""

    def __init__(
        self,
        data: PathLike,
        client: int | None,
        split: TemporalSplit | None,
        open_cache: Callable[[Path], MappedSentences] = MappedSentences.open,
    ) -> None:
        """client: its number in the cache; None: the only one. open_cache: an audit watches what is read of it.

        Raises: CacheError, InputError where there is none.
        """
        self._cache = open_cache(as_path("data", data))
        count = self._cache.manifest.clients
        if client is None and count > 1:
            raise InputError(f"'{data}' has {count:,} clients, and a device has the text of one; say --client which.")
        self.client = 0 if client is None else client
        if not 0 <= self.client < count:
            raise InputError(f"--client {self.client} is not in '{data}', which has clients 0 to {count - 1}.")
        self._split = split

    @property
    def vocabulary(self) -> str:
        """The SHA-256 of the words that its ids stand for."""
        return self._cache.manifest.vocabulary.sha256

    @property
    def words(self) -> int:
        """How many ids that vocabulary has."""
        return self._cache.manifest.vocabulary.size

    @property
    def vocabulary_json(self) -> str:
        """Those words. CacheError where they are not those of the import."""
        return self._cache.vocabulary_json

    def check_vocabulary(self, plan: Plan) -> None:
        """Raises: TaskRefused for a plan whose models have other words."""
        if plan.vocabulary != self.vocabulary:
            raise TaskRefused(
                f"run {plan.run!r} has other words than the text of this device was cut into; import the text with its "
                "vocabulary."
            )

    @property
    def whole(self) -> TextView:
        """All of it, for a split of one's own."""
        return TextView(self._cache, np.arange(self._cache.sentence_count(self.client)))

    @property
    def judging(self) -> TextView:
        """What no training reads."""
        return TextView(self._cache, self._unread)

    def check_judges(self) -> None:
        """Raises: TaskRefused where training may read all of it, whatever is typed: where no policy keeps any."""
        if self._split is None and self.client in self._cache.clients("train"):
            raise TaskRefused(
                "training may read all text of this device, so none of it judges models; keep some for that (split in "
                "the policy), or give a client that is not of the split train."
            )

    def check_split(self, split: TemporalSplit) -> None:
        """Raises: TaskRefused where a split judges by earlier text than the owner's own keeps, as far as the two say.

        Nothing here reads the text: who asks chooses the split, and would learn from a refusal when this device typed.
        """
        own = self._split
        if own is None or self.client not in self._cache.clients("train") or (own.rule, split.rule) != ("time", "time"):
            return
        if split.value * (1 - split.gate) < own.value:
            raise TaskRefused(
                f"the split {split} judges models by text of this device that training may have read, as its own "
                f"policy keeps what is after {own} alone; keep as much (split in the policy)."
            )

    def keeps(self, split: TemporalSplit) -> bool:
        """Whether no training reads the text that a split judges models by: nobody but the report is to know."""
        parts = split.parts(self._cache.timestamps(self.client))
        if isinstance(parts, Unsplit):
            return True  # and has nothing to report
        return bool(np.isin(np.concatenate([parts.gate, parts.test]), self._unread).all())

    def check(self) -> None:
        """Raises: TaskRefused where none of it may be trained on, whatever is typed."""
        if self.client not in self._cache.clients("train"):
            raise TaskRefused(
                f"the text of client {self.client} is kept to judge models by (it is not of the split train), so none "
                "is trained on; give another client."
            )

    def check_spelling(self) -> None:
        """Raises: CacheError where the words that its ids stand for are not those of the import."""
        assert self._spelled

    def unknown_words(self, known: Container[str]) -> dict[str, int]:
        """How often each word was typed that is not known and that the cache's own vocabulary spells, in what may be
        trained on.
        """
        words = self._spelled
        ids, lengths = self._cache.sentences(self.client)
        allowed = np.isin(np.repeat(np.arange(len(lengths)), lengths), self._rows)
        found, times = np.unique(ids[allowed], return_counts=True)
        typed = {words[id]: int(count) for id, count in zip(found, times, strict=True)}
        return {word: count for word, count in typed.items() if word is not None and word not in known}

    def sentence_count(self, client: int) -> int:
        """Sentences that may be trained on."""
        self._must_be(client)
        return len(self._rows)

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """As `MappedSentences.padded`, of sentences as they are numbered here."""
        self._must_be(client)
        return self._cache.padded(client, self._rows[chosen], length)

    @cached_property
    def _spelled(self) -> list[str | None]:
        """The word of each id; None of a mark."""
        from tacit.text.vocabulary import SPECIALS, Vocabulary  # loaded where words are asked for

        return [None] * SPECIALS + list(Vocabulary.from_json(self._cache.vocabulary_json).words)

    @cached_property
    def _unread(self) -> NDArray[np.int64]:
        everything = np.arange(self._cache.sentence_count(self.client))
        if self.client not in self._cache.clients("train"):
            return everything
        parts = None if self._split is None else self._split.parts(self._cache.timestamps(self.client))
        # A text without a time is in no part: training leaves it out, too, but for a split it might be older.
        return np.sort(parts.test) if isinstance(parts, Parts) else everything[:0]

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Sentences that may be trained on; found when text is read, since that takes time by how many there are."""
        if self._split is None:
            return np.arange(self._cache.sentence_count(self.client))
        parts = self._split.parts(self._cache.timestamps(self.client))
        # In the order of the cache; a text without a time might be newer than the cut.
        return np.zeros(0, np.int64) if isinstance(parts, Unsplit) else np.sort(parts.train)

    def _must_be(self, client: int) -> None:
        if client != self.client:
            raise InputError(f"client {client} is another device's; this one has the text of client {self.client}.")
