"""WhatsApp's export of a chat as text ("Export chat"), as Android and iOS write it in the locales of their phones.

    Android   31/12/20, 22:15 - Ann: hello          iOS   [31.12.20, 22:15:30] Ann: hello

A line that begins otherwise goes on with the message above it. A client is a name or number as the phone that exported
shows it, under a pseudonym (`pseudonyms.py`). Left out and counted is what nobody typed: notices of the system, media,
messages that were deleted. A notice of Android with a colon and a blank in it cannot be told from a message.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import ClassVar, NamedTuple

from tacit.data.clients import MOST_TEXT
from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.lines import UTF_8, lines_of
from tacit.data.formats.pseudonyms import Pseudonyms
from tacit.data.formats.row_files import Here, Row, RowFiles, files_at, zone_of
from tacit.errors import SourceError

DAY = timedelta(days=1)
ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1), "ymd": (0, 1, 2)}  # where the year, the month and the day stand
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # of direction, which WhatsApp writes around dates
_LRM = "\u200e"  # iOS begins with it what it writes itself
_HALVES = {  # of the day, without dots and blanks; the second
    **dict.fromkeys(("am", "πμ", "ص", "上午", "午前", "오전", "sa", "vorm", "de"), 0),
    **dict.fromkeys(("pm", "μμ", "م", "下午", "午後", "오후", "ch", "nachm", "du"), 12),
}
_DATE = r"(?P<a>\d{1,4})\s?[./-]\s?(?P<b>\d{1,2})\s?[./-]\s?(?P<c>\d{1,4})\.?"
_BEFORE = r"(?:(?P<before>上午|下午|午前|午後|오전|오후)\s?)?"
_TIME = rf"{_BEFORE}(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
_AFTER = r"(?:\s?(?P<after>[^\W\d_][^\W\d_.\s]{0,6}(?:\.?\s?[^\W\d_]{1,2}\.)?\.?))?"
_BETWEEN = r"(?:[,،]|\s(?:à|um|at|a\sles|a\slas))?\s"
_ANDROID = re.compile(rf"{_DATE}{_BETWEEN}{_TIME}{_AFTER}\s[-–]\s(?P<rest>.*)", re.DOTALL)
_IOS = re.compile(rf"\[{_DATE}{_BETWEEN}{_TIME}{_AFTER}\]\s(?P<rest>.*)", re.DOTALL)
_MEDIA = re.compile(r"<[^<>]{3,60}>|null")
_ATTACHED = re.compile(
    r"\S[^\n]*\.\w{2,5} \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|file allegato|"
    r"arquivo anexado|bestand bijgevoegd|файл добавлен|plik dołączony|dosya ekli)\)(?:\n|$)"
)
_DELETED = re.compile(
    r"(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht|"
    r"Du hast diese Nachricht gelöscht|Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje|"
    r"Ce message a été supprimé|Vous avez supprimé ce message|Questo messaggio è stato eliminato|"
    r"Hai eliminato questo messaggio|Esta mensagem foi apagada|Mensagem apagada|Você apagou esta mensagem|"
    r"Dit bericht is verwijderd|Je hebt dit bericht verwijderd|Сообщение удалено|Данное сообщение удалено)\.?"
)
_EDITED = re.compile(
    r"\s?<(?:This message was edited|Diese Nachricht wurde bearbeitet\.?|Se editó este mensaje\.?|"
    r"Ce message a été modifié|Questo messaggio è stato modificato|Mensagem editada|Dit bericht is bewerkt)>$"
)


class Begun(NamedTuple):
    """A message as its first line begins it."""

    date: tuple[str, str, str]
    clock: tuple[int, int, int]
    half: str  # of the day, as it is written; empty for 24 hours
    rest: str
    marked: bool  # whether iOS says that it wrote the text


class WhatsApp(RowFiles):
    """A Source over exports of chats; a person is one client in all of them."""

    name: ClassVar[str] = "whatsapp"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "WhatsApp's export of chats as text: a person is a client, named anew each time"
    called_kind: ClassVar[str] = "WhatsApp"
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)
    by_name: ClassVar[bool] = True

    def __init__(
        self,
        files: Sequence[tuple[Path, str | None]],
        *,
        time_zone: str | None = None,
        date_order: str | None = None,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """time_zone: of the phone that exported; None leaves times unread, as an export does not say which it is.

        date_order: dmy, mdy or ymd; None finds out. Files and what is passed over: as `RowFiles`.
        """
        if date_order not in (None, *ORDERS):
            raise SourceError(f"date_order={date_order!r:.20} is unknown; give {', '.join(ORDERS)}.")
        self._zone, self._order, self._pseudonyms = zone_of(time_zone), date_order, Pseudonyms()
        super().__init__(files, passed_over=passed_over)

    @classmethod
    def open(cls, place: str, *, time_zone: str | None = None, date_order: str | None = None) -> "WhatsApp":
        """A file, or a folder of files."""
        files, passed_over = files_at(place, cls.suffixes, cls.called_kind)
        return cls(files, time_zone=time_zone, date_order=date_order, passed_over=passed_over)

    def said_of(self, path: Path) -> str:
        """How messages and times are read. Raises: SourceError where the first line begins no message."""
        next(_messages(path), None)
        times = (
            "times are not read, as they do not say of which time zone they are (--time-zone)"
            if self._zone is None
            else f"times are of {self._zone}, dates {self._order_in(path)}"
        )
        return f"a message is a text, also one of several lines; {times}; people get pseudonyms"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A message a row; SourceError where the file begins with something else."""
        order = None if self._zone is None else self._order_in(path)
        last = datetime.min
        for here, begun in _messages(path):
            time = None
            if order is not None and self._zone is not None:
                local = _local(begun, order, here)
                time = _seconds(local, last, self._zone)
                last = local
            who, colon, text = begun.rest.partition(": ")
            if not colon:
                who, colon, text = begun.rest.partition(":\n")
            if not colon or "\n" in who:
                self.leave_out("notices of the system")
                continue
            text = _EDITED.sub("", text.strip())
            attached = _ATTACHED.match(text)  # what follows it is its caption
            text = text[attached.end() :] if attached else text
            if begun.marked or _MEDIA.fullmatch(text) or (attached and not text):
                self.leave_out("media and notices of the system")
            elif _DELETED.fullmatch(text):
                self.leave_out("messages that were deleted")
            else:
                yield self._pseudonyms.of(who.strip().encode()), text, time

    def _order_in(self, path: Path) -> str:
        """The order of dates: the one in which all are dates, and never go back by more than a day."""
        if self._order is not None:
            return self._order
        last = dict.fromkeys(ORDERS, datetime.min)
        for _, begun in _messages(path):
            for order in tuple(last):
                try:
                    day = _day(begun.date, order)
                    if order == "ymd" and len(begun.date[0]) == 2:
                        raise ValueError  # rare, and days of a month look like years: who has it declares it
                except ValueError:
                    del last[order]
                    continue
                if day < last[order] and last[order] - day > DAY:
                    del last[order]
                else:
                    last[order] = day
            if len(last) < 2:
                break
        if len(last) != 1:
            raise SourceError(
                f"the dates of {name_of_file(path)} may be read as {' or '.join(last) or 'none of the usual orders'}; "
                "say which, --date-order dmy (day, month, year), mdy or ymd."
            )
        return next(iter(last))


def _messages(path: Path) -> Iterator[tuple[Here, Begun]]:
    """Each message with its further lines, without marks of direction."""
    here: Here | None = None
    begun: Begun | None = None
    more: list[str] = []
    length = 0
    for number, line in enumerate(lines_of(path, UTF_8), 1):
        following = _begun(line)
        if following is not None:
            if begun is not None and here is not None:
                yield here, begun._replace(rest="\n".join([begun.rest, *more]))
            here, begun, more, length = Here(path, "line", number), following, [], 0
        elif begun is not None:
            more.append(_MARKS.sub("", line).rstrip("\r\n"))
            length += len(line)
            if length > MOST_TEXT:
                raise SourceError(f"{here}: the message has more than {MOST_TEXT:,} characters; leave it out.")
        elif line.strip():
            packed = ", and is packed: unpack it first" if line.startswith("PK") else ""
            raise SourceError(
                f"{Here(path, 'line', number)} does not begin as a message of WhatsApp's export does, with a date and "
                f"a time{packed}; export the chat anew, or read it as folder:PATH."
            )
    if begun is not None and here is not None:
        yield here, begun._replace(rest="\n".join([begun.rest, *more]))
    else:
        raise SourceError(f"{name_of_file(path)} has no message; export the chat anew.")


def _begun(line: str) -> Begun | None:
    plain = _MARKS.sub("", line).strip("\r\n ")
    found = _ANDROID.fullmatch(plain) or _IOS.fullmatch(plain)
    if found is None:
        return None
    clock = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    half = found["before"] or found["after"] or ""
    return Begun((found["a"], found["b"], found["c"]), clock, half, found["rest"], f": {_LRM}" in line)


def _day(date: tuple[str, str, str], order: str) -> datetime:
    """Raises: ValueError where it is no date in that order."""
    year, month, day = (date[at] for at in ORDERS[order])
    number = int(year) + (2000 if len(year) == 2 else 0)
    if len(year) not in (2, 4) or not 2000 <= number < 2100:
        raise ValueError
    return datetime(number, int(month), int(day))


def _local(begun: Begun, order: str, here: Here) -> datetime:
    """What the clock showed. Raises: SourceError for a time that no clock shows."""
    try:
        hour, minute, second = begun.clock
        if begun.half:
            hour = hour % 12 + _HALVES[re.sub(r"[.\s]", "", begun.half).lower()]
        return _day(begun.date, order).replace(hour=hour, minute=minute, second=second)
    except (ValueError, KeyError) as error:
        shown = f"{'/'.join(begun.date)} {begun.clock[0]}:{begun.clock[1]:02} {begun.half}".strip()
        raise SourceError(
            f"{here}: {shown!r} is no time with dates {order}; say the right --date-order, or leave --time-zone out."
        ) from error


def _seconds(local: datetime, last: datetime, zone: tzinfo) -> int:
    """Seconds since 1970; an hour that clocks show twice is the second one once they have gone back."""
    return int(local.replace(tzinfo=zone, fold=int(local < last)).timestamp())
