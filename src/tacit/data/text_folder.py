"""A folder of text files: a file is a client, its paragraphs are what it typed."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import ClientText, paragraphs
from tacit.errors import SourceError

SUFFIXES = frozenset({".txt", ".md", ".rst", ".text", ""})


class TextFolder:
    """A Source over the text files of a folder and its sub-folders; hidden files are not read."""

    name: ClassVar[str] = "folder"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "a folder of text files: a file is a client, its paragraphs are what it typed"

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SourceError(f"{folder} is not a folder; give folder:PATH of a folder with text files.")
        self._folder = folder
        self._files = sorted(path for path in folder.rglob("*") if self._is_text(path))
        if not self._files:
            raise SourceError(
                f"{folder} has no text files ({', '.join(sorted(SUFFIXES - {''}))}); give another folder."
            )
        self.description = f"folder {folder.resolve().name}, a text file is a client"
        self.expected_clients: int | None = len(self._files)
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, place: str) -> "TextFolder":
        """The folder at a path."""
        return cls(Path(place).expanduser())

    def _is_text(self, path: Path) -> bool:
        hidden = any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        return not hidden and path.suffix.lower() in SUFFIXES and path.is_file()

    def clients(self) -> Iterator[ClientText]:
        """Each file in the order of its path; SourceError naming the first file that is not UTF-8."""
        for path in self._files:
            try:
                text = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                perhaps = "UTF-16" if error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "LATIN1"
                raise SourceError(
                    f"{path} is not UTF-8 (byte {error.start}: {error.reason}); convert it "
                    f"(iconv -f {perhaps} -t UTF-8) or move it out of the folder."
                ) from error
            client_id = path.relative_to(self._folder).as_posix()
            yield ClientText(client_id=client_id, texts=paragraphs(text).split("\n"))
