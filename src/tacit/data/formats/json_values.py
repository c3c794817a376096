"""JSON of others, read strictly where two readers could see different things, and in pieces where it is large."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.lines import MOST_LINE, UTF_8, check_decoded, decoded
from tacit.errors import SourceError

AT_ONCE = 1 << 18  # characters


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!a:.40} is there twice in one object")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def value_of(text: str, where: object) -> Any:
    """The one value that a text is in JSON. Raises: SourceError, which begins with `where`."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{where} is no JSON ({_said(error)}); write it anew, or copy it whole.") from error


def _said(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, character {error.colno:,}"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:100]


class JsonFile:
    """A large JSON file, read from its beginning, a value at a time; what is open must be read before what follows it.

    `members` and `items` open an object or a list; `value` reads whatever comes next whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._context = decoded(path, UTF_8, ends="")
        self._text, self._at, self._line, self._ended = "", 0, 1, False

    def __enter__(self) -> "JsonFile":
        self._file = self._context.__enter__()
        self._more()
        if self._text.startswith("\ufeff"):
            self._at = 1
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def peek(self) -> str:
        """The sign that comes next, `{` say; empty at the end."""
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the value of each is to be read before the next key."""
        seen: set[str] = set()
        for _ in self._each("{", "}"):
            key = self.value() if self.peek() == '"' else None
            if not isinstance(key, str):
                raise self._broken("a key is missing")
            if key in seen:
                raise self._broken(f"the key {key!a:.40} is there twice in one object")
            seen.add(key)
            self._take(":")
            yield key

    def items(self) -> Iterator[None]:
        """For each item of the list that comes next, which is to be read before the next one."""
        yield from self._each("[", "]")

    def _each(self, begin: str, end: str) -> Iterator[None]:
        self._take(begin)
        if self.peek() == end:
            self._take(end)
            return
        while True:
            yield
            if self.peek() == end:
                self._take(end)
                return
            self._take(",")

    def value(self) -> Any:
        """The value that comes next, whole. Raises: SourceError, also where it is longer than MOST_LINE."""
        if not self.peek():
            raise self._broken("it ends too early")
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or isinstance(error, RecursionError):
                    raise self._broken(_said(error)) from error
            else:
                if end < len(self._text) or self._ended:  # a number may go on
                    self._at = end
                    return found
            if len(self._text) - self._at > MOST_LINE:
                raise self._broken(f"a value has more than {MOST_LINE:,} characters, or it is no JSON")
            self._more(len(self._text) - self._at)  # twice as much each time, so that all tries together take little

    def end(self) -> None:
        """Raises: SourceError where anything follows."""
        if self.peek():
            raise self._broken("something follows its end")

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._broken(f"{sign!r} is missing" if self.peek() else "it ends too early")
        self._at += 1

    def _more(self, least: int = 0) -> bool:
        """Read on; whether there was anything."""
        text = self._file.read(max(AT_ONCE, least))
        self._line += self._text.count("\n", 0, self._at)
        rest = self._text[self._at :]
        check_decoded(text, self._path, UTF_8, self._line + rest.count("\n"))
        self._text, self._at = rest + text, 0
        self._ended = not text
        return bool(text)

    def _broken(self, why: str) -> SourceError:
        line = self._line + self._text.count("\n", 0, self._at)
        return SourceError(
            f"{name_of_file(self._path)}, line {line:,}, is not the JSON it should be ({why}); copy it anew."
        )
