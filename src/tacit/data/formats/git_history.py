"""The history of git repositories: an author is a client, its commit messages are what it typed.

No author's name or address enters a cache: a client is called by a pseudonym of one import (`pseudonyms.py`), the same
in all its repositories, and trailers with names (`Signed-off-by:` ...) are dropped from the messages.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import MOST_TEXT, paragraphs
from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.pseudonyms import Pseudonyms
from tacit.data.formats.row_files import Row, RowFiles, believable
from tacit.errors import SourceError

_FIELD, _COMMIT = b"\x1f", b"\x00"
_TRAILER = re.compile(r"^(?:[A-Z][a-z]+(?:-[A-Za-z]+)+|CC|Cc|Link|Fixes|Bug):\s.*$|^git-svn-id:.*$", re.MULTILINE)
_ADDRESS = re.compile(r"<?\b[\w.+-]+@[\w-]+\.[\w.-]+\b>?")
BYTES_AT_ONCE = 1 << 20


class GitHistory(RowFiles):
    """A Source over the commits reachable from HEAD, merges left out; a commit of several repositories counts once."""

    name: ClassVar[str] = "git"
    takes: ClassVar[str] = "PATHS"
    says: ClassVar[str] = "the history of git repositories, commas between: an author is a client, named anew each time"
    called_kind: ClassVar[str] = "git history of"
    by_name: ClassVar[bool] = True

    def __init__(self, repositories: Sequence[Path]) -> None:
        """repositories: folders; an author of several is one client. SourceError where one has no history."""
        for repository in repositories:
            list(self._git(repository, "rev-parse", "--verify", "--quiet", "HEAD"))  # says no before anything is read
        self._pseudonyms = Pseudonyms()
        self._first_in: dict[bytes, Path] = {}
        super().__init__([(repository.resolve(), None) for repository in repositories])
        self.description += ", an author is a client"

    @classmethod
    def open(cls, place: str) -> "GitHistory":
        """The repository at a path, or those at several with commas between."""
        whole = Path(place).expanduser()
        parts = [whole] if whole.is_dir() else [Path(part).expanduser() for part in place.split(",") if part]
        return cls(parts)

    def said_of(self, path: Path) -> str:
        """The same for all."""
        return "a commit message is a text; trailers are dropped, addresses written <email>, authors get pseudonyms"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A commit a row, the oldest first."""
        log = self._git(
            path, "log", "--reverse", "--no-merges", "--use-mailmap", "-z", "--format=%H%x1f%at%x1f%aE%x1f%B"
        )
        for commit in _parted(log):
            if commit is None:
                self.leave_out(f"commit messages of more than {MOST_TEXT:,} bytes")
                continue
            digest, time, author, body = (*commit.split(_FIELD, 3), b"", b"", b"")[:4]
            if self._first_in.setdefault(digest, path) != path:
                self.leave_out("commits that another of the repositories has, too")
                continue
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError:  # nobody can mend an old commit, so it is counted instead of refused
                self.leave_out("commit messages that are not UTF-8")
                continue
            yield self._pseudonyms.of(author.lower()), _typed(text), believable(float(time)) if time.isdigit() else None

    def _git(self, repository: Path, *arguments: str) -> Iterator[bytes]:
        """What git prints, in pieces."""
        # The repository's own settings must not start programs (log.showSignature) or change the encoding.
        fixed = ("-c", "log.showSignature=false", "-c", "i18n.logOutputEncoding=UTF-8", "--no-pager")
        command = ["git", "-C", str(repository), *fixed, *arguments]
        with tempfile.TemporaryFile() as complaints:
            try:
                running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints)
            except FileNotFoundError as error:
                raise SourceError("git:PATHS needs the program git, which is not installed; install it.") from error
            assert running.stdout is not None
            with running:
                try:
                    while piece := running.stdout.read(BYTES_AT_ONCE):
                        yield piece
                finally:
                    running.stdout.close()
            if running.returncode:
                complaints.seek(0)
                why = complaints.read().decode(errors="replace").strip().split("\n")[0] or "no commit"
                raise SourceError(
                    f"{name_of_file(repository)} has no history to read ({why}); give git:PATHS of one with commits."
                )


def _parted(pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    """Each commit; None for one whose message is too long to be somebody's."""
    rest, too_long = b"", False
    for piece in pieces:
        *whole, rest = (rest + piece).split(_COMMIT)
        for commit in whole:
            yield None if too_long else commit
            too_long = False
        if len(rest) > MOST_TEXT:
            rest, too_long = b"", True
    if rest or too_long:
        yield None if too_long else rest


def _typed(message: str) -> str:
    """A commit message as prose: one line per paragraph, without trailers and addresses."""
    return paragraphs(_ADDRESS.sub("<email>", _TRAILER.sub("", message)))
