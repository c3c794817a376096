"""The files of a page that the server serves itself: read once, kept in memory, each at the path of its name alone.

The page reads what its owner types, and whoever serves it could serve another: this is for demonstrations.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.errors import InputError

MOST_FILES, MOST_BYTES, DEEPEST = 1000, 1 << 26, 8
INDEX = "index.html"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
TAKEN = frozenset({"v1", "admin", "healthz", "metrics"})  # first parts of paths that the server has
ENCODINGS: Mapping[str, str] = {".br": "br", ".gz": "gzip"}  # the same file compressed, beside it; the first is shorter
TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
OTHER = "application/octet-stream"
POLICY = (  # as `web/page/content_policy.ts` has it
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types tacit; frame-ancestors 'none'"
)
# Of every file: workers and service workers have the policy of their own file.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",  # kept, and asked for again by its digest: another version is one at once
    "Vary": "Accept-Encoding",
}


class PageFile(NamedTuple):
    """A file of the page."""

    content: bytes
    digest: str  # SHA-256


@dataclass(frozen=True)
class WebPage:
    """The files by their names, `/` between folders."""

    files: Mapping[str, PageFile]

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """All of it, at most MOST_FILES of MOST_BYTES together. Raises: InputError naming the file that cannot be."""
        if not folder.is_dir():
            raise InputError(f"--web '{folder}' is no folder; give the one that the page was built into.")
        files: dict[str, PageFile] = {}
        left = MOST_BYTES
        for path in _files_of(folder):
            content = _read(path, left)
            left -= len(content)
            if left < 0:
                raise InputError(
                    f"--web '{folder}' has more than {MOST_BYTES:,} bytes; give what the page was built into."
                )
            files[path.relative_to(folder).as_posix()] = PageFile(content, sha256(content).hexdigest())
        if INDEX not in files:
            raise InputError(f"--web '{folder}' has no {INDEX}; give the folder that the page was built into.")
        return cls(files)

    def write(self, folder: Path) -> None:
        """The same files, for other processes to read."""
        for name, file in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)

    def routes(self) -> list[Route]:
        """A path for each file, and no pattern: what is asked for meets no file system."""
        named = [name for name in self.files if not self._is_encoding(name)]
        return [Route(f"/{each}", self._file, methods=["GET"]) for each in ["", *named]]

    async def _file(self, request: Request) -> Response:
        name = request.url.path[1:] or INDEX
        chosen, headers = name, dict(HEADERS)
        accepted = {each.partition(";")[0].strip() for each in request.headers.get("accept-encoding", "").split(",")}
        for suffix, encoding in ENCODINGS.items():
            if name + suffix in self.files and encoding in accepted:
                chosen, headers["Content-Encoding"] = name + suffix, encoding
                break
        file = self.files[chosen]
        headers["ETag"] = f'"{file.digest}"'  # of these bytes, so that each encoding has its own
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        # By the suffix alone, and never by a guess of the browser's.
        headers["Content-Type"] = TYPES.get(Path(name).suffix, OTHER)
        return Response(file.content, headers=headers)

    def _is_encoding(self, name: str) -> bool:
        """Whether it is another file, compressed."""
        stem, dot, suffix = name.rpartition(".")
        return dot + suffix in ENCODINGS and stem in self.files


def _files_of(folder: Path) -> list[Path]:
    """The files in it and in its folders, in the order of their names. Raises: InputError for what is none."""
    found: list[Path] = []
    waiting, seen = [folder], 0
    while waiting:
        for entry in _entries(waiting.pop()):
            path, seen = Path(entry.path), seen + 1
            _check_entry(entry, path.relative_to(folder).parts)
            (waiting if entry.is_dir(follow_symlinks=False) else found).append(path)
            if seen > MOST_FILES:
                raise InputError(
                    f"--web '{folder}' has more than {MOST_FILES:,} files; give what the page was built into."
                )
    return sorted(found)


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Raises: InputError."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise InputError(f"--web: '{folder}' cannot be read ({error}); let its owner be who serves it.") from None


def _check_entry(entry: "os.DirEntry[str]", parts: Sequence[str]) -> None:
    """parts: of its path within the page's folder. Raises: InputError."""
    if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        raise InputError(f"--web: '{entry.path}' is a link or no file, and may lead elsewhere; put a file there.")
    if not NAME.fullmatch(entry.name) or parts[0] in TAKEN or len(parts) > DEEPEST:
        raise InputError(
            f"--web: '{entry.path}' has a name that no path can have: up to {DEEPEST} parts of letters, digits and . _ "
            f"-, none hidden, the first none of {', '.join(sorted(TAKEN))}; rename it, or remove it."
        )


def _read(path: Path, most: int) -> bytes:
    """At most one byte more than `most`. Raises: InputError."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise InputError(f"--web: '{path}' cannot be read ({error}); let its owner be who serves it.") from None
