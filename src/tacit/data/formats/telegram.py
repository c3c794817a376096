"""Telegram's export as JSON, of one chat or of all (Settings > Advanced > Export; format: machine-readable JSON).

A client is a person in all chats of one import, under a pseudonym (`pseudonyms.py`). Left out and counted is what
nobody in the chat typed: service messages, what was forwarded or written by a bot, posts of channels, media alone.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.json_values import JsonFile
from tacit.data.formats.pseudonyms import Pseudonyms
from tacit.data.formats.row_files import Here, Row, RowFiles, files_at, seconds_of, zone_of
from tacit.errors import SourceError

FORWARDED = ("forwarded_from", "forwarded_from_id", "saved_from")


class Telegram(RowFiles):
    """A Source over exports of Telegram Desktop."""

    name: ClassVar[str] = "telegram"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "Telegram's export as JSON (result.json): a person is a client, named anew each time"
    called_kind: ClassVar[str] = "Telegram"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    by_name: ClassVar[bool] = True

    def __init__(
        self,
        files: Sequence[tuple[Path, str | None]],
        *,
        time_zone: str | None = None,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """time_zone: of older exports, whose times say none. Files and what is passed over: as `RowFiles`."""
        self._zone, self._pseudonyms = zone_of(time_zone), Pseudonyms()
        super().__init__(files, passed_over=passed_over)

    @classmethod
    def open(cls, place: str, *, time_zone: str | None = None) -> "Telegram":
        """A file, or a folder of files."""
        files, passed_over = files_at(place, cls.suffixes, cls.called_kind)
        return cls(files, time_zone=time_zone, passed_over=passed_over)

    def said_of(self, path: Path) -> str:
        """The same for all."""
        return "a message is a text, also one of several lines; people get pseudonyms"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A message a row; SourceError where the layout is another."""
        with JsonFile(path) as file:
            chats = yield from self._of_object(file, path)
            file.end()
        if not chats:
            raise SourceError(f"{name_of_file(path)} has no 'messages', so it is no chat of Telegram's JSON; check it.")

    def _of_object(self, file: JsonFile, path: Path) -> Generator[Row, None, int]:
        """The messages of a chat, or of all chats in an export; returns how many chats there were."""
        chats, bot, kind = 0, None, None
        for key in file.members():
            if key == "messages" and file.peek() == "[":
                chats += 1
                for number, _ in enumerate(file.items(), 1):
                    yield from self._row(file.value(), Here(path, "message", number), bot)
            elif key in ("chats", "left_chats") and file.peek() == "{":
                for inside in file.members():
                    if inside == "list" and file.peek() == "[":
                        for _ in file.items():
                            chats += yield from self._of_object(file, path)
                    else:
                        file.value()
            else:
                value = file.value()
                kind = value if key == "type" else kind
                bot = f"user{value}" if key == "id" and kind == "bot_chat" else bot
        return chats

    def _row(self, message: Any, here: Here, bot: str | None) -> Iterator[Row]:
        if not isinstance(message, dict):
            raise SourceError(f"{here} is {message!r:.40} and no object; export the chat anew.")
        if message.get("type") != "message":
            self.leave_out("service messages")
            return
        owner = message.get("from_id")
        if not isinstance(owner, str | int) or isinstance(owner, bool) or owner == "":
            self.leave_out("messages that do not say who wrote them")
        elif str(owner).startswith("channel"):
            self.leave_out("posts of channels")
        elif "via_bot" in message or owner == bot:
            self.leave_out("messages that a bot wrote")
        elif any(key in message for key in FORWARDED):
            self.leave_out("messages that were forwarded")
        elif not (text := _text(message.get("text"), here)):
            self.leave_out("messages without text (media)")
        else:
            when = message.get("date_unixtime")
            if when is None and self._zone is not None:
                when = message.get("date")
            time = seconds_of(when, here, self._zone)
            yield self._pseudonyms.of(str(owner).encode(errors="surrogatepass")), text, time


def _text(given: Any, here: Here) -> str:
    """The text of a message, which may be in parts."""
    parts = given if isinstance(given, list) else [] if given is None else [given]
    text = ""
    for part in parts:
        said = part.get("text") if isinstance(part, dict) else part
        if not isinstance(said, str):
            raise SourceError(f"{here} has a text {given!r:.40}, which is none; export the chat anew.")
        text += said
    return text
