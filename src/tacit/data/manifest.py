"""What a cache says about itself: where its text came from, which vocabulary cut it, and its files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tacit.errors import CacheError

FORMAT = "tacit-cache-1"
MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.json"


@dataclass(frozen=True, kw_only=True)
class VocabularyRecord:
    """What a cache must know about the vocabulary of its ids; `kind` and `description` are its provenance."""

    size: int
    sha256: str
    lowercase: bool
    kind: str
    description: str
    oov_id: int


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file of a cache; `dtype` is NumPy's name of its items."""

    dtype: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
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
    def oov_rate(self) -> float:
        """The share of words that the vocabulary does not know."""
        return self.oov_words / self.words

    @property
    def digest(self) -> str:
        """What identifies the tokenised text: whose it is, in which split, and which words the ids stand for.

        SHA-256 over the digests that are listed here: no file is read, and `Cache.verify` reads them.
        """
        listed = [f"{name} {file.sha256}" for name, file in sorted(self.files.items())]
        return hashlib.sha256("\n".join([*listed, self.vocabulary.sha256]).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write into a cache's folder; the last step of building."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=1)
        (path / MANIFEST).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read from a cache's folder; CacheError when it is not a finished cache of this format."""
        if not path.is_dir():
            raise CacheError(f"there is no cache at {path}; `tacit data import SOURCE --out {path}` makes one.")
        try:
            record = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise CacheError(
                f"{path} has no {MANIFEST}: it is another folder, or a cache whose import did not end; "
                "import the source again."
            ) from error
        except ValueError as error:
            raise CacheError(f"{path / MANIFEST} is not JSON ({error}); import the source again.") from error
        found = record.get("format") if isinstance(record, dict) else None
        if found != FORMAT:
            raise CacheError(f"{path} has format {found!r}, not {FORMAT!r}; import the source again.")
        try:
            return cls._from_record({name: value for name, value in record.items() if name != "format"})
        except (KeyError, TypeError, AttributeError) as error:
            raise CacheError(f"{path / MANIFEST} is damaged ({error}); import the source again.") from error

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> Self:
        record["vocabulary"] = VocabularyRecord(**record["vocabulary"])
        record["files"] = {name: FileRecord(**file) for name, file in record["files"].items()}
        return cls(**record)


def sha256_of(path: Path) -> str:
    """The digest of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
