"""A folder of text files: a file is a client, its paragraphs (or its lines) are what it typed."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal, get_args

from tacit.data.clients import ClientText, paragraphs
from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.folder_files import files_below
from tacit.data.formats.lines import UTF_8, check_encoding, lines_of
from tacit.errors import SourceError

SUFFIXES = frozenset({".txt", ".md", ".rst", ".text", ""})
Lines = Literal["paragraphs", "messages"]
READ: dict[Lines, str] = {
    "paragraphs": "lines without a blank line between are one text",
    "messages": "each line is a text of its own",
}
NARROW = 60  # characters: whoever breaks lines to fit breaks them later
FEW_BREAKS = 8  # too few to say how the others are meant
FULL, EARLY = 0.1, 0.5  # shares of line breaks that stand where the next word had room


class TextFolder:
    """A Source over the text files of a folder and its sub-folders; hidden files are not read."""

    name: ClassVar[str] = "folder"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "a folder of text files: a file is a client, its paragraphs are what it typed"

    def __init__(self, folder: Path, *, lines: Lines = "paragraphs", encoding: str = UTF_8) -> None:
        """lines: what a text is, a paragraph whose lines were broken to fit, or each line, as in a log of a chat."""
        shown = name_of_file(folder)
        if lines not in get_args(Lines):
            raise SourceError(f"lines={lines!r:.20} is unknown; give {' or '.join(get_args(Lines))}.")
        if not folder.is_dir():
            raise SourceError(f"{shown} is not a folder; give folder:PATH of a folder with text files.")
        check_encoding(encoding)
        self._folder, self._lines, self._encoding = folder, lines, encoding
        there = files_below(folder)
        self._files = [path for path in there if self._is_text(path)]
        if not self._files:
            raise SourceError(f"{shown} has no text files ({', '.join(sorted(SUFFIXES - {''}))}); give another folder.")
        self.description = f"folder {name_of_file(folder.resolve().name)}, a text file is a client"
        self.expected_clients: int | None = len(self._files)
        others = len(there) - len(self._files)
        self.left_out: dict[str, int] = {"files that are hidden or not text by their names": others} if others else {}
        self.how_read = (READ[lines],)
        self.doubts: list[str] = []

    @classmethod
    def open(cls, place: str, *, lines: Lines = "paragraphs", encoding: str = UTF_8) -> "TextFolder":
        """The folder at a path."""
        return cls(Path(place).expanduser(), lines=lines, encoding=encoding)

    def _is_text(self, path: Path) -> bool:
        hidden = any(part.startswith(".") for part in path.relative_to(self._folder).parts)
        return not hidden and path.suffix.lower() in SUFFIXES and path.is_file()

    def clients(self) -> Iterator[ClientText]:
        """Each file in the order of its path; SourceError naming the first that is not in the encoding."""
        early = breaks = 0
        for path in self._files:
            text = "".join(lines_of(path, self._encoding, ends=None))
            some, all_of_them = _early_breaks(text)
            early, breaks = early + some, breaks + all_of_them
            texts = paragraphs(text).split("\n") if self._lines == "paragraphs" else _messages(text)
            yield ClientText(client_id=name_of_file(path.relative_to(self._folder)), texts=texts)
        self.doubts = list(self._doubts(early, breaks))

    def _doubts(self, early: int, breaks: int) -> Iterator[str]:
        if breaks < FEW_BREAKS:
            return
        if self._lines == "paragraphs" and early / breaks > EARLY:
            yield (
                f"{early:,} of {breaks:,} line breaks inside paragraphs stand where the next word had room, as in a "
                "file with a message a line; read so, many messages are one sentence. If each line is a message, say "
                "--lines messages."
            )
        if self._lines == "messages" and early / breaks < FULL:
            yield (
                f"{breaks - early:,} of {breaks:,} line breaks stand where the next word had no room, as in text that "
                "is broken to fit; read so, sentences are cut in two. If blank lines part the paragraphs, say --lines "
                "paragraphs."
            )


def _messages(text: str) -> list[str]:
    """Lines with anything in them; one empty text where there is none."""
    return [line.strip() for line in text.split("\n") if line.strip()] or [""]


def _early_breaks(text: str) -> tuple[int, int]:
    """Line breaks that the next word did not ask for, and all, between lines with anything in them."""
    lines = [line.strip() for line in text.split("\n")]
    width = max(NARROW, *map(len, lines))
    between = [(above, below) for above, below in pairwise(lines) if above and below]
    return sum(len(above) + 1 + len(below.split(None, 1)[0]) <= width for above, below in between), len(between)
