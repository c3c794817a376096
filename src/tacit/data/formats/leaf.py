"""LEAF's JSON: `{"users": [...], "num_samples": [...], "user_data": {USER: {"x": [...], "y": [...]}}}`.

What a sample is depends on the data set (https://github.com/TalwalkarLab/leaf, `data/*/preprocess`):
- Shakespeare: x is 80 characters and y the one that follows; samples overlap, and are joined to the text again.
- Reddit: x is a comment as pieces of tokens, with <BOS>, <EOS> and <PAD>, which are dropped.
- Sent140: x is a row about a tweet, whose fifth field is the text and second the time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.json_values import JsonFile
from tacit.data.formats.row_files import Here, Row, RowFiles, client_of, files_at
from tacit.errors import SourceError

MARKS = frozenset({"<BOS>", "<EOS>", "<PAD>"})
TIME, TEXT = 1, 4  # fields of a tweet
OFFSETS = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}  # hours
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_TWEETED = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\w{3}) (\d{4})", re.ASCII)


class Leaf(RowFiles):
    """A Source over files of LEAF; a user is a client."""

    name: ClassVar[str] = "leaf"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "LEAF's JSON of Shakespeare, Reddit or Sent140: a user is a client"
    called_kind: ClassVar[str] = "LEAF"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)

    @classmethod
    def open(cls, place: str) -> "Leaf":
        """A file, or a folder of files."""
        files, passed_over = files_at(place, cls.suffixes, cls.called_kind)
        return cls(files, passed_over=passed_over)

    def __init__(
        self, files: Sequence[tuple[Path, str | None]], *, passed_over: Mapping[str, int] | None = None
    ) -> None:
        """Files and what is passed over: as `RowFiles`."""
        super().__init__(files, passed_over=passed_over)

    def said_of(self, path: Path) -> str:
        """The same for all."""
        return "samples of Shakespeare are joined where they overlap; one of Reddit or Sent140 is a text"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A text a row; SourceError where the layout is another."""
        found = False
        with JsonFile(path) as file:
            for key in file.members():
                if key != "user_data":
                    file.value()
                    continue
                found = True
                for number, user in enumerate(file.members(), 1):
                    here = Here(path, "user", number)
                    data = file.value()
                    if not isinstance(data, dict) or not isinstance(data.get("x"), list):
                        raise SourceError(f"{here} has no list of samples, x; give LEAF's JSON.")
                    owner = client_of(user, here)
                    for text, time in _texts(data["x"], data.get("y"), here):
                        yield owner, text, time
            file.end()
        if not found:
            raise SourceError(f"{name_of_file(path)} has no 'user_data', so it is not LEAF's JSON; check the path.")


def _texts(x: list[Any], y: Any, here: Here) -> Iterator[tuple[str, int | None]]:
    if x and all(isinstance(each, str) for each in x):
        yield from ((text, None) for text in _joined(x, y if isinstance(y, list) else []))
        return
    for sample in x:
        if _is_tweet(sample):
            yield sample[TEXT], _tweeted(sample[TIME])
        elif isinstance(sample, list) and all(_is_tokens(piece) for piece in sample):
            yield " ".join(token for piece in sample for token in piece if token not in MARKS), None
        elif _is_tokens(sample):
            yield " ".join(token for token in sample if token not in MARKS), None
        else:
            raise SourceError(
                f"{here} has a sample {sample!r:.40}, which is no text of Shakespeare, Reddit or Sent140; give one of "
                "these."
            )


def _joined(x: list[str], y: list[Any]) -> Iterator[str]:
    """Windows that each begin a character after the one before, as one text; where they do not, another begins."""
    text, expected = "", None
    for window, after in zip_longest(x, y[: len(x)]):
        follows = after if isinstance(after, str) and len(after) == 1 else ""
        if text and window == expected:
            text += follows
        else:
            if text:
                yield text
            text = window + follows
        expected = (window + follows)[1:] if follows else None
    if text:
        yield text


def _is_tokens(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value)


def _is_tweet(sample: object) -> bool:
    """Whether it is a row of an id, a time, a query, a user and a text."""
    return (
        isinstance(sample, list)
        and len(sample) > TEXT
        and isinstance(sample[TEXT], str)
        and isinstance(sample[TIME], str)
        and _tweeted(sample[TIME]) is not None
    )


def _tweeted(said: str) -> int | None:
    """`Mon Apr 06 22:19:45 PDT 2009` in seconds since 1970; None for another form or zone."""
    found = _TWEETED.fullmatch(said)
    if not found or found[1] not in _MONTHS or found[6] not in OFFSETS:
        return None
    zone = timezone(timedelta(hours=OFFSETS[found[6]]))
    month, (day, hour, minute, second) = _MONTHS.index(found[1]) + 1, map(int, found.group(2, 3, 4, 5))
    try:
        return int(datetime(int(found[7]), month, day, hour, minute, second, tzinfo=zone).astimezone(UTC).timestamp())
    except (ValueError, OverflowError):
        return None
