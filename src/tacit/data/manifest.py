"""What a cache says about itself: where its text came from, which vocabulary cut it, and its files.

Two levels of a hash tree: the manifest lists the SHA-256 of every block of every file, and its own digest, by which
runs remember the cache, is over all that it says. Who has the digest has the text, to the last bit.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from tacit.errors import CacheError
from tacit.parsing import parsed_json
from tacit.records import from_plain, to_plain

FORMAT = "tacit-cache-3"
_OLD_RULES = {"tacit-cache-1": "tacit-words-1", "tacit-cache-2": "tacit-words-1"}  # which cut the words of older ones
MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.json"
PUBLIC = "public text"  # how the description of a source begins whose text is nobody's
FILES: Mapping[str, tuple[str, ...]] = {  # of a cache, and NumPy's names of what their items may be
    "ids": ("<u2", "<i4"),
    "sentence_offsets": ("<i8",),
    "client_offsets": ("<i8",),
    "timestamps": ("<i8",),
    "splits": ("|u1",),
    "names": ("|u1",),
    "name_offsets": ("<i8",),
    VOCABULARY: ("|u1",),
}
BLOCK = 4 << 20  # bytes under one SHA-256: many for the cores to share, few to list
SPLITS = ("train", "validation", "test")  # whole clients; a file has the place of each one's
NO_TIME = -(1 << 63)  # where it is not known when a text was typed

_AGAIN = "import the source again"


@dataclass(frozen=True, kw_only=True)
class VocabularyRecord:
    """What a cache must know about the vocabulary of its ids; `kind` and `description` are its provenance.

    lowercase, language, emoji: how its words are written, see `text.words.Writing`.
    """

    size: int
    sha256: str
    lowercase: bool
    kind: str
    description: str
    oov_id: int
    language: str = ""
    emoji: bool = False


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file of a cache; `dtype` is NumPy's name of its items, `blocks` the SHA-256 of each BLOCK of its bytes."""

    dtype: str
    bytes: int
    blocks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CacheManifest:
    """Everything in a cache, counted. Words are without BOS and EOS; `splits` counts clients."""

    source: str
    tokenizer: str
    vocabulary: VocabularyRecord
    clients: int
    sentences: int
    words: int
    oov_words: int
    splits: Mapping[str, int]
    clients_without_sentences: int
    left_out: Mapping[str, int]
    files: Mapping[str, FileRecord]

    @property
    def public(self) -> bool:
        """Whether it is text that is nobody's: its source says so, or who described a source of their own."""
        return self.source.startswith(PUBLIC)

    @property
    def oov_rate(self) -> float:
        """The share of words that the vocabulary does not know."""
        return self.oov_words / self.words

    @cached_property
    def digest(self) -> str:
        """What identifies the tokenised text, whose it is, in which split, and which words the ids stand for.

        SHA-256 over everything that stands here: no file is read, and `Cache.verify` reads them.
        """
        listed = json.dumps(to_plain(self), ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(listed.encode()).hexdigest()

    def to_json(self) -> str:
        """The content of its file; `load` takes nothing else, to the last blank."""
        record = {"format": FORMAT, "digest": self.digest, **to_plain(self)}
        return json.dumps(record, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: Path) -> None:
        """Write into a cache's folder; the last step of building."""
        (path / MANIFEST).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read from a cache's folder; CacheError when it is not a finished cache of this format, or was changed."""
        if not path.is_dir():
            raise CacheError(f"there is no cache at {path}; `tacit data import SOURCE --out {path}` makes one.")
        try:
            text = (path / MANIFEST).read_bytes().decode()
            record = parsed_json(text)
        except FileNotFoundError as error:
            raise CacheError(
                f"{path} has no {MANIFEST}: it is another folder, or a cache whose import did not end; {_AGAIN}."
            ) from error
        except ValueError as error:
            raise CacheError(f"{path / MANIFEST} is not JSON ({error}); {_AGAIN}.") from error
        found = record.pop("format", None) if isinstance(record, dict) else None
        if found in _OLD_RULES:
            raise CacheError(
                f"{path} has words that the rules {_OLD_RULES[found]} cut (format {found}), and this tacit cuts them "
                f"otherwise; {_AGAIN}."
            )
        if found != FORMAT:
            raise CacheError(f"{path} has format {found!r}, not {FORMAT!r}; {_AGAIN}.")
        said = record.pop("digest", None)
        manifest = from_plain(cls, record, error=CacheError, where=str(path / MANIFEST))
        if manifest.digest != said or manifest.to_json() != text:
            raise CacheError(f"{path / MANIFEST} was changed (its SHA-256 differs); {_AGAIN}.")
        if not manifest._belongs_together():
            raise CacheError(f"{path / MANIFEST} lists files that no import writes; {_AGAIN}.")
        return manifest

    def _belongs_together(self) -> bool:
        """Whether the files are those of a cache of so many clients, so that nothing is read beyond their ends."""
        items = {
            "sentence_offsets": self.sentences + 1,
            "client_offsets": self.clients + 1,
            "timestamps": self.sentences,
            "splits": self.clients,
            "name_offsets": self.clients + 1,
        }
        return self.files.keys() == FILES.keys() and all(
            file.dtype in FILES[name]
            and 0 < file.bytes == items.get(name, file.bytes // int(file.dtype[-1])) * int(file.dtype[-1])
            and len(file.blocks) == -(-file.bytes // BLOCK)
            for name, file in self.files.items()
        )
