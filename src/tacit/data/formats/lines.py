"""The lines of a text file in a declared encoding, packed by gzip or not: each whole, none without an end."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tacit.data.clients import MOST_TEXT
from tacit.data.formats.file_names import name_of_file
from tacit.errors import SourceError

if TYPE_CHECKING:
    pass

MOST_LINE = 4 * MOST_TEXT  # characters: escapes make a text longer where it is written down
PACKED = ".gz"
UTF_8 = "utf-8"
_UNDECODABLE = "\udcff"  # stands where bytes are no text; no decoder gives it otherwise
_BOM = "\ufeff"


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _UNDECODABLE, error.end


codecs.register_error("tacit.undecodable", _mark)  # so that the line is known, which a decoder does not count


def check_encoding(encoding: str) -> str:
    """Raises: SourceError for an encoding that Python does not know, or that is no encoding of text."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding).close()
    except (LookupError, ValueError) as error:
        raise SourceError(
            f"the encoding {encoding!r:.40} is unknown; give utf-8, utf-16, latin-1, cp1252 or another of Python's."
        ) from error
    return "utf-8-sig" if codecs.lookup(encoding).name == UTF_8 else encoding


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where its name ends in .gz. Raises: SourceError wherever reading fails."""
    shown = name_of_file(path)
    try:
        with path.open("rb") as raw:
            if path.suffix.lower() == PACKED:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield unpacked  # type: ignore[misc]  # it reads, which is all that is asked of it
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"{shown} cannot be unpacked ({error}); copy it anew, or unpack it and give the file."
        ) from error
    except OSError as error:
        raise SourceError(f"{shown} cannot be read ({error.strerror or error}); check the path.") from error


@contextmanager
def decoded(path: Path, encoding: str, *, ends: str | None) -> Iterator[IO[str]]:
    """The text of a file, undecodable bytes marked. ends: of lines, as `newline` of Python's `open`."""
    declared = check_encoding(encoding)
    with opened(path) as content:
        try:
            yield io.TextIOWrapper(content, encoding=declared, errors="tacit.undecodable", newline=ends)
        except UnicodeError as error:
            raise SourceError(f"{name_of_file(path)} is not {encoding} ({error}); {_declare(path)}.") from error


def lines_of(path: Path, encoding: str, *, ends: str | None = "") -> Iterator[str]:
    """Each line with its end. Raises: SourceError for one that is not in the encoding, or longer than MOST_LINE."""
    with decoded(path, encoding, ends=ends) as file:
        number = 0
        while line := file.readline(MOST_LINE + 1):
            number += 1
            if len(line) > MOST_LINE:
                raise SourceError(
                    f"{name_of_file(path)}, line {number:,} has more than {MOST_LINE:,} characters, so it is no row of "
                    "text; check that it is the file you mean."
                )
            check_decoded(line, path, encoding, number)
            yield line.removeprefix(_BOM) if number == 1 else line


def check_decoded(text: str, path: Path, encoding: str, line: int) -> None:
    """Raises: SourceError where bytes of the text are not in the encoding. line: its first."""
    if not text.isascii() and _UNDECODABLE in text:
        line += text.count("\n", 0, text.index(_UNDECODABLE))
        raise SourceError(f"{name_of_file(path)}, line {line:,} is not {encoding}; {_declare(path)}.")


def _declare(path: Path) -> str:
    with opened(path) as content:
        begin = content.read(4)
    wide = begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return f"declare what it is, --encoding {'utf-16' if wide else 'cp1252'} say"
