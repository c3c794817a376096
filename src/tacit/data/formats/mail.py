"""Mail as mbox files or as a maildir: who sent it is a client, what it wrote itself is its text.

The text is that of the plain part, or of the HTML where there is no other. Left out and counted: lines that quote
(`>`), the line that says whom, forwarded and quoted messages below, signatures (`-- `), attachments, automatic mail.
Lines that were broken to fit are joined. A client is an address, under a pseudonym (`pseudonyms.py`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import Message
from email.utils import parseaddr, parsedate_to_datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, ClassVar

from tacit.data.clients import paragraphs
from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.lines import opened
from tacit.data.formats.pseudonyms import Pseudonyms
from tacit.data.formats.row_files import Here, Row, RowFiles, believable, files_at
from tacit.errors import SourceError

MOST_MESSAGE = 1 << 25  # bytes; what is longer is attachments for the most part
MOST_HTML = 1 << 20  # characters; Python's parser may take time with the square of it
MOST_LINE = 1 << 20  # bytes of it that are looked at at once
_BEGIN = b"From "
_TIMED = re.compile(rb"\d:\d\d")
_ESCAPED = re.compile(rb">+From ")
_BELOW = re.compile(  # all that follows is somebody else's
    r"(?:-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Mensaje original|Message d'origine|Messaggio originale|"
    r"Mensagem original|Oorspronkelijk bericht|Forwarded message|Forwarded Message|Weitergeleitete Nachricht|"
    r"Mensaje reenviado|Message transféré|Begin forwarded message) ?-*|Begin forwarded message:|_{20,})"
)
_BLOCKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "blockquote", "pre"})


class Mail(RowFiles):
    """A Source over mbox files (also of Google Takeout and mailing lists), or the folders of a maildir."""

    name: ClassVar[str] = "mbox"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "mail as mbox or maildir: a sender is a client, named anew each time, quotes left out"
    called_kind: ClassVar[str] = "mail"
    suffixes: ClassVar[tuple[str, ...]] = (".mbox", ".mbx")
    by_name: ClassVar[bool] = True

    def __init__(
        self, files: Sequence[tuple[Path, str | None]], *, passed_over: Mapping[str, int] | None = None
    ) -> None:
        """files: mbox files, or maildirs. What is passed over: as `RowFiles`."""
        self._pseudonyms = Pseudonyms()
        super().__init__(files, passed_over=passed_over)

    @classmethod
    def open(cls, place: str) -> "Mail":
        """An mbox file, a folder of them, or a maildir."""
        folder = Path(place).expanduser()
        if (folder / "cur").is_dir():
            return cls([(folder, None)])
        files, passed_over = files_at(place, cls.suffixes, "mail")
        return cls(files, passed_over=passed_over)

    def said_of(self, path: Path) -> str:
        """How mail is read. Raises: SourceError where the file does not begin as an mbox does."""
        next(_messages(path), None)
        return (
            "a mail is a text, its lines joined to paragraphs, quotes and signatures left out; addresses get pseudonyms"
        )

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A mail a row, if anybody wrote one."""
        for _, content in _messages(path):
            if content is None:
                self.leave_out(f"mails of more than {MOST_MESSAGE:,} bytes")
                continue
            try:
                mail = message_from_bytes(content, policy=policy.compat32)
                address = parseaddr(str(mail.get("From", "")))[1].strip().lower()
                automatic = str(mail.get("Auto-Submitted", "no")).strip().lower() != "no"
                found = None if automatic or not address else self._text(mail)
                time = _time(mail)
            except (MessageError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                if isinstance(error, SourceError):
                    raise
                self.leave_out("mails that are damaged")  # the parser of mail is not written for all that comes
                continue
            if automatic:
                self.leave_out("mails that a program sent")
            elif not address:
                self.leave_out("mails that do not say who sent them")
            elif found is None:
                self.leave_out("mails without text")
            else:
                yield self._pseudonyms.of(address.encode(errors="surrogatepass")), paragraphs(self._own(found)), time

    def _text(self, mail: Message) -> str | None:
        """The text of the first plain part, or of the first in HTML; None where neither can be read."""
        parts = {_kind_of(part): part for part in reversed(list(mail.walk()))}
        for part in mail.walk():
            if part.get_content_disposition() == "attachment":
                self.leave_out("attachments of mails")
        shown = parts.get("text/plain", parts.get("text/html"))
        if shown is None:
            return None
        content = shown.get_payload(decode=True)
        charset = str(shown.get_param("charset", "utf-8") or "utf-8")
        try:
            text = content.decode(charset) if isinstance(content, bytes) else ""
        except (UnicodeError, LookupError, ValueError):
            self.leave_out("mails that are not in the charset they say")
            return None
        if "text/plain" in parts:
            return text
        if len(text) > MOST_HTML:
            self.leave_out(f"mails of more than {MOST_HTML:,} characters of HTML")
            return None
        return _plain(text)

    def _own(self, text: str) -> str:
        """The lines that whoever sent it wrote."""
        lines = [line.rstrip() if line != "-- " else line for line in re.split(r"\r\n|\r|\n", text)]
        kept: list[str] = []
        for at, line in enumerate(lines):
            below = len(lines) - at
            if line in ("-- ", "--"):
                self.leave_out("lines of signatures in mails", below)
                break
            if _BELOW.fullmatch(line.strip()):
                self.leave_out("lines of forwarded or quoted mails", below)
                break
            if line.lstrip().startswith(">"):
                if _says_whom(kept):
                    while kept and kept[-1] == "":
                        kept.pop()
                    kept.pop()
                    self.leave_out("lines of mails that say who is quoted")
                self.leave_out("quoted lines of mails")
                kept.append("")
                continue
            kept.append(line)
        return "\n".join(kept)


def _says_whom(kept: list[str]) -> bool:
    """Whether the last line with anything in it introduces a quote: `On 1 May 2024, Ann wrote:`, in any language."""
    last = next((line for line in reversed(kept) if line), "")
    return last.endswith(":") and (len(kept) < 2 or any(sign.isdigit() or sign in "<@" for sign in last))


def _kind_of(part: Message) -> str | None:
    """text/plain or text/html for a part that is shown; None for all else."""
    kind = part.get_content_type()
    shown = not part.is_multipart() and part.get_content_disposition() != "attachment"
    return kind if shown and kind in ("text/plain", "text/html") else None


def _time(mail: Message) -> int | None:
    try:
        sent = parsedate_to_datetime(str(mail.get("Date", "")))
        return believable((sent if sent.tzinfo else sent.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


class _Text(HTMLParser):
    """What a page shows, without what it quotes."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Blocks begin on lines of their own; scripts, styles and quotes are not shown."""
        if tag in ("script", "style", "head", "blockquote"):
            self._hidden.append(tag)
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        """As they began."""
        if tag in self._hidden:
            self._hidden.remove(tag)
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Line breaks of the source are blanks."""
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def _plain(html: str) -> str:
    page = _Text()
    page.feed(html)
    page.close()
    return "".join(page.parts)


def _messages(path: Path) -> Iterator[tuple[Here, bytes | None]]:
    """Each mail of an mbox or a maildir; None for one that is too long."""
    if path.is_dir():
        files = sorted(file for part in ("cur", "new") if (path / part).is_dir() for file in (path / part).iterdir())
        for number, file in enumerate(each for each in files if each.is_file()):
            with opened(file) as content:
                whole = content.read(MOST_MESSAGE + 1)
            yield Here(path, "mail", number + 1), None if len(whole) > MOST_MESSAGE else whole
        return
    with opened(path) as content:
        yield from _of_mbox(content, path)


def _of_mbox(content: IO[bytes], path: Path) -> Iterator[tuple[Here, bytes | None]]:
    """A line `From ` at the beginning or behind a blank one begins a mail; `>From ` in one is `From `.

    Where the first such line has a time, as most have, the others have one, too: `From now on` begins none.
    """
    first = content.readline(MOST_LINE).removeprefix(b"\xef\xbb\xbf")
    if not first.startswith(_BEGIN):
        raise SourceError(f"{name_of_file(path)} does not begin with a line 'From ...', so it is no mbox; check it.")
    lines: list[bytes] = []
    number, length, blank, whole_line = 1, 0, False, first.endswith(b"\n")
    while line := content.readline(MOST_LINE):
        if whole_line and blank and line.startswith(_BEGIN) and (not _TIMED.search(first) or _TIMED.search(line)):
            yield Here(path, "mail", number), None if length > MOST_MESSAGE else b"".join(lines)
            number, lines, length, blank = number + 1, [], 0, False
        else:
            length += len(line)
            if length <= MOST_MESSAGE:
                lines.append(line[1:] if whole_line and _ESCAPED.match(line) else line)
            elif lines:
                lines = []
            blank = whole_line and line in (b"\n", b"\r\n")
        whole_line = line.endswith(b"\n")
    yield Here(path, "mail", number), None if length > MOST_MESSAGE else b"".join(lines)
