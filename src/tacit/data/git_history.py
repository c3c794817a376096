"""The history of a git repository: an author is a client, its commit messages are what it typed.

No author's name or address enters a cache: a client is called by an HMAC of the address under a key that
exists only during the import, and trailers with names (`Signed-off-by:` ...) are dropped from the
messages. So two imports give the same author different names, and possibly another split.
"""

import hmac
import re
import secrets
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from tacit.data.clients import ClientText, paragraphs
from tacit.errors import SourceError

_FIELD, _COMMIT = b"\x1f", b"\x00"
_TRAILER = re.compile(r"^(?:[A-Z][a-z]+(?:-[A-Za-z]+)+|CC|Cc|Link|Fixes|Bug):\s.*$|^git-svn-id:.*$", re.MULTILINE)
_ADDRESS = re.compile(r"<?\b[\w.+-]+@[\w-]+\.[\w.-]+\b>?")


class GitHistory:
    """A Source over the commits reachable from HEAD, merges left out."""

    name: ClassVar[str] = "git"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "the history of a git repository: an author is a client, each import names it anew"

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._git("rev-parse", "--verify", "--quiet", "HEAD")  # says no before anything is read
        self._salt = secrets.token_bytes(32)
        self.description = f"git history of {repository.resolve().name}, an author is a client"
        self.expected_clients: int | None = None
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, place: str) -> "GitHistory":
        """The repository at a path."""
        return cls(Path(place).expanduser())

    def clients(self) -> Iterator[ClientText]:
        """Authors in the order of their pseudonyms, so that the order says nothing; messages oldest first."""
        log = self._git("log", "--no-merges", "--use-mailmap", "-z", "--format=%aE%x1f%at%x1f%B")
        messages: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self.left_out.clear()
        for commit in filter(None, log.split(_COMMIT)):
            author, time, body = commit.split(_FIELD, 2)
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError:  # nobody can mend an old commit, so it is counted instead of refused
                self._leave_out("commit messages that are not UTF-8")
                continue
            messages[self._pseudonym(author)].append((int(time), _typed(text)))
        self.expected_clients = len(messages)
        for name in sorted(messages):
            times, texts = zip(*sorted(messages[name]), strict=True)
            yield ClientText(client_id=name, texts=texts, timestamps=np.array(times, np.int64))

    def _pseudonym(self, author: bytes) -> str:
        return "a" + hmac.digest(self._salt, author.lower(), "sha256").hex()[:16]

    def _leave_out(self, what: str) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def _git(self, *arguments: str) -> bytes:
        # The repository's own settings must not start programs (log.showSignature) or change the encoding.
        fixed = ("-c", "log.showSignature=false", "-c", "i18n.logOutputEncoding=UTF-8", "--no-pager")
        command = ["git", "-C", str(self._repository), *fixed, *arguments]
        try:
            return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout
        except FileNotFoundError as error:
            raise SourceError("git:PATH needs the program git, which is not installed; install it.") from error
        except subprocess.CalledProcessError as error:
            why = error.stderr.decode(errors="replace").strip().split("\n")[0] or "no commit"
            raise SourceError(
                f"{self._repository} has no history to read ({why}); give git:PATH of one with commits."
            ) from error


def _typed(message: str) -> str:
    """A commit message as prose: one line per paragraph, without trailers and addresses."""
    return paragraphs(_ADDRESS.sub("<email>", _TRAILER.sub("", message)))
