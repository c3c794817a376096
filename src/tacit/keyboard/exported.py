"""An exported model as a folder: what its manifest says, and that each file is the one that was written.

`export.py` writes such folders; whoever only reads one needs neither JAX nor the network's own code.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from tacit.errors import InputError
from tacit.files import PathLike, as_path, read_bounded
from tacit.networks.models import COUNTED, SETTINGS, WEIGHTS, WORDS
from tacit.parsing import parsed_json, strict_json
from tacit.records import from_plain, to_plain
from tacit.text.vocabulary import Provenance, Vocabulary

SCHEMA, VERSION = "tacit.export", 1
MANIFEST = "manifest.json"
NO_FILES = ("", "..", MANIFEST)  # names that none of its files has
STEP, SCORE, TRAIN = "step.onnx", "score.onnx", "train.onnx"
COUNTS = "counts.safetensors"  # n-grams, and what bends them
ALWAYS = (STEP, SCORE, WEIGHTS, WORDS)
ALWAYS_COUNTED = (COUNTS, SETTINGS, WORDS)  # of a counted model, or a mixture


@dataclass(frozen=True, kw_only=True)
class ExportedFile:
    """What a file of the folder must be."""

    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExportedWords:
    """The vocabulary: its digest (`Vocabulary.sha256`), its ids with the four specials, its origin, how it is written.

    lowercase, language, emoji: as `text.words.Writing` has them.
    """

    sha256: str
    size: int
    lowercase: bool
    provenance: Provenance
    language: str = ""
    emoji: bool = False

    @classmethod
    def from_vocabulary(cls, words: Vocabulary) -> Self:
        """What a manifest says of a vocabulary."""
        return cls(sha256=words.sha256, size=words.size, provenance=words.provenance, **vars(words.writing))


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is known of the privacy of the text that the model was made from.

    An export computes from the model alone, so that whatever was promised of the model holds of the export
    (post-processing: Dwork & Roth 2014, Proposition 2.1), and nothing is released anew.
    """

    kind: Literal["statement", "public text", "unknown"]
    says: str  # in a sentence, for people
    statement: Mapping[str, Any] | None = None  # the run's, as `tacit verify` reads it
    public_text: str | None = None

    def __post_init__(self) -> None:
        told = {"statement": self.statement is not None, "public text": self.public_text is not None}
        if any(there is not (self.kind == kind) for kind, there in told.items()):
            raise InputError(
                f"the privacy of an export is of the kind {self.kind!r}, and what it says is of another; export the "
                "model again."
            )


@dataclass(frozen=True, kw_only=True)
class ExportManifest:
    """Everything that an export says of itself."""

    schema: ClassVar[str] = SCHEMA
    version: ClassVar[int] = VERSION

    tacit: str  # the version that wrote it
    model: str  # SHA-256 over the files of the model that was exported, as `load_model` gives it
    run: str | None  # the seal of the run that trained it
    network: Mapping[str, Any]  # the network's kind and settings, as recipes have them
    parameters: int  # how many numbers
    quantization: str | None  # of the graphs; None is float32, which the weights always are
    opset: int  # of ONNX, which the graphs need
    vocabulary: ExportedWords
    privacy: Promise
    files: Mapping[str, ExportedFile]  # by name, the manifest left out

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        record: dict[str, Any] = to_plain(self)
        return {"schema": SCHEMA, "version": VERSION, **record}


@dataclass(frozen=True)
class Exported:
    """A folder that `tacit export` wrote."""

    folder: Path
    manifest: ExportManifest
    digest: str  # SHA-256 of the manifest, which has those of all files

    def file(self, name: str) -> Path:
        """Where a file of it is. Raises: InputError where it lacks the file, or it is not the one that was exported."""
        path, wanted = self.folder / name, self.manifest.files.get(name)
        if wanted is None:
            raise InputError(f"the export in '{self.folder}' has no {name}; export the model again.")
        try:
            with path.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"'{path}' cannot be read ({error.strerror}); export the model again.") from error
        if (found, path.stat().st_size) != (wanted.sha256, wanted.bytes):
            raise InputError(
                f"'{path}' is not the file that was exported: its SHA-256 or size is not that of {MANIFEST}; export "
                "the model again, or restore the folder from a copy."
            )
        return path

    def read(self, name: str) -> bytes:
        """The content of a file of it. Raises: as `file`."""
        return self.file(name).read_bytes()

    def vocabulary(self) -> Vocabulary:
        """Its words. Raises: as `file`, and InputError where they are not those of the manifest."""
        words = Vocabulary.load(self.file(WORDS))
        if ExportedWords.from_vocabulary(words) != self.manifest.vocabulary:
            raise InputError(f"'{self.folder / WORDS}' has other words than {MANIFEST} says; export the model again.")
        return words

    def complaint(self, name: str) -> str | None:
        """What is wrong with a file of it; None where nothing is."""
        try:
            self.vocabulary() if name == WORDS else self.file(name)
        except InputError as error:
            return str(error)
        return None

    @property
    def counted(self) -> bool:
        """Whether it is a counted model or a mixture, whose network is one part."""
        return self.manifest.network.get("kind") in COUNTED

    @property
    def names(self) -> tuple[str, ...]:
        """The files that every export has, and whatever else its manifest names."""
        return tuple(dict.fromkeys((*(ALWAYS_COUNTED if self.counted else ALWAYS), *self.manifest.files)))

    def check(self) -> None:
        """Raises: InputError where any file is not what was exported."""
        for name in self.names:
            self.file(name)


def is_exported(path: PathLike) -> bool:
    """Whether a folder has what only an export has: its graphs, or a manifest that calls itself one, of any version."""
    folder = Path(path)
    if (folder / STEP).is_file():
        return True
    try:
        record = parsed_json(read_bounded(folder / MANIFEST))
    except (OSError, ValueError):
        return False
    return isinstance(record, Mapping) and record.get("schema") == SCHEMA


def load_exported(path: PathLike) -> Exported:
    """The folder's manifest; its files are checked as they are read.

    Raises: InputError where there is none, it is damaged, or another version of tacit is needed.
    """
    folder = as_path("path", path)
    try:
        content = read_bounded(folder / MANIFEST)
        record = strict_json(content.decode())
    except OSError:
        raise InputError(
            f"'{folder}' is no exported model (no {MANIFEST}); `tacit export RUN --out FOLDER` writes one."
        ) from None
    except ValueError as error:
        raise InputError(f"'{folder / MANIFEST}' is damaged ({error}); export the model again.") from error
    if not isinstance(record, Mapping) or record.get("schema") != SCHEMA:
        raise InputError(f"'{folder / MANIFEST}' is of no exported model; `tacit export RUN --out FOLDER` writes one.")
    if record.get("version") != VERSION:
        raise InputError(
            f"'{folder}' is an export of the format {record.get('version')!r}, and this tacit reads {VERSION}; export "
            f"the model again, or install the tacit that wrote it ({record.get('tacit')})."
        )
    said = {name: value for name, value in record.items() if name not in ("schema", "version")}
    manifest = from_plain(ExportManifest, said, where=f"{folder / MANIFEST}")
    strange = [name for name in manifest.files if Path(name).name != name or name in NO_FILES or "\0" in name]
    if strange:
        raise InputError(f"'{folder / MANIFEST}' names the file {strange[0]!r}, which no export has; export it again.")
    return Exported(folder, manifest, hashlib.sha256(content).hexdigest())
