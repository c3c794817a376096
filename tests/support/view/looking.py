"""Pages of `tacit view` without a browser: asked for as one asks, read as one reads."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx

from tacit.view.application import application
from tacit.view.folders import Folders

VOID = {"meta", "link", "input", "br", "hr", "img", "path", "circle", "line", "rect"}


class Asked:
    """Who asks a server: what it raises is a test's failure, and cookies are kept."""

    def __init__(self, app: Any, base: str) -> None:
        self.app, self.base = app, base
        self.cookies = httpx.Cookies()

    def request(self, method: str, address: str, **more: Any) -> httpx.Response:
        async def answered() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=self.base, cookies=self.cookies) as one:
                found = await one.request(method, address, **more)
                self.cookies = one.cookies
                return found

        return asyncio.run(answered())

    def get(self, address: str, **more: Any) -> httpx.Response:
        return self.request("GET", address, **more)

    def post(self, address: str, **more: Any) -> httpx.Response:
        return self.request("POST", address, **more)


def client(*folders: Path, simulation: bool = False, token: str | None = None, host: str = "127.0.0.1") -> Asked:
    """Who asks a server of these folders."""
    app = application(Folders(folders), host=host, token=token, simulation=simulation)
    return Asked(app, f"http://{host}:8480")


class Parsed(HTMLParser):
    """The tags, the text and the addresses of a page; fails where a tag is not closed by its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"{self._open} are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.links += [value for name, value in attrs if name in ("href", "src", "action") and value]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open and self._open[-1] == tag, f"</{tag}> where {self._open[-3:]} are open"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """What one reads."""
        return " ".join(" ".join(self.words).split())


def tree(*folders: Path) -> dict[str, Any]:
    """All that is in folders: names, contents, times of writing and rights."""
    found: dict[str, Any] = {}
    for folder in folders:
        for path in sorted([folder, *folder.rglob("*")]):
            seen = os.lstat(path)
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (content, seen.st_mtime_ns, seen.st_mode, seen.st_size if path.is_file() else 0)
    return found


def everywhere(places: Sequence[str]) -> list[str]:
    """Every address that reads, of runs at these places."""
    found = ["/", "/plan", "/typing", "/servers", "/plan/recipe", "/static/view.css", "/static/view.js"]
    for place in places:
        found += [f"/run/{place}", f"/statement/{place}", f"/typing?run={place}", f"/file/{place}?name=report/x"]
    if len(places) > 1:
        found.append("/compare?" + "&".join(f"run={place}" for place in places))
    return [*found, *(f"{each}{'&' if '?' in each else '?'}format=json" for each in found if "/static" not in each)]
