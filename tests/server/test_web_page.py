"""`tacit serve --web`: the files of one folder, read once, each at its own path, under strict headers."""

import gzip
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from tests.support.server.served import Served, served

from tacit.errors import InputError
from tacit.protocol.address import Address
from tacit.server.http import web_page
from tacit.server.http.origins import AskingPages
from tacit.server.http.web_page import POLICY, WebPage
from tacit.server.web_settings import WebSettings

FILES = {
    "index.html": b"<!doctype html><title>a page</title>",
    "app.mjs": b"export const a = 1;" * 50,
    "ort/ort.wasm": b"\0asm",
    "model.onnx": b"onnx",
}
HERE = {"Host": "127.0.0.1:8470"}


def made(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def worker(tmp_path: Path) -> Served:
    page = WebPage.from_folder(made(tmp_path / "dist"))
    return served(tmp_path, pages=AskingPages(local=True), web_page=page)


def got(worker: Served, path: str, method: str = "GET", **said: str) -> httpx.Response:
    return worker.asks(lambda client: client.request(method, path, headers=HERE | said))


@pytest.mark.parametrize(
    ("path", "name", "media_type"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/index.html", "index.html", "text/html; charset=utf-8"),
        ("/app.mjs", "app.mjs", "text/javascript; charset=utf-8"),
        ("/ort/ort.wasm", "ort/ort.wasm", "application/wasm"),
        ("/model.onnx", "model.onnx", "application/octet-stream"),
    ],
)
def test_a_file_is_at_its_own_path(worker: Served, path: str, name: str, media_type: str) -> None:
    answer = got(worker, path)
    assert answer.content == FILES[name] and answer.headers["content-type"] == media_type
    said = answer.headers
    assert said["content-security-policy"] == POLICY and said["x-content-type-options"] == "nosniff"
    assert said["cross-origin-opener-policy"] == "same-origin"
    assert said["cross-origin-embedder-policy"] == "require-corp"
    assert not [each for each in said if each.startswith("access-control") or each == "set-cookie"]
    again = got(worker, path, **{"If-None-Match": said["etag"]})
    assert again.status_code == 304 and not again.content and again.headers["content-security-policy"] == POLICY
    assert got(worker, path, "HEAD").headers["etag"] == said["etag"]


def test_the_policy_lets_no_code_in_but_its_own() -> None:
    rules = dict(each.partition(" ")[::2] for each in POLICY.split("; "))
    assert rules["default-src"] == "'none'" and rules["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert not [each for each in rules.values() if "*" in each or "unsafe-inline" in each or "'unsafe-eval'" in each]


def test_what_is_compressed_beside_it_is_sent_to_who_takes_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "dist")
    (folder / "app.mjs.gz").write_bytes(gzip.compress(FILES["app.mjs"]))
    (folder / "app.mjs.br").write_bytes(b"as if by brotli")
    worker = served(tmp_path, web_page=WebPage.from_folder(folder))
    plain, packed = (got(worker, "/app.mjs", **{"Accept-Encoding": each}) for each in ("identity", "gzip, deflate"))
    assert plain.content == packed.content == FILES["app.mjs"]
    assert packed.headers["content-encoding"] == "gzip" and packed.headers["etag"] != plain.headers["etag"]
    assert packed.headers["vary"] == "Accept-Encoding" and packed.headers["content-type"].startswith("text/javascript")
    shortest = got(worker, "/app.mjs", "HEAD", **{"Accept-Encoding": "gzip, br;q=1"})
    assert shortest.headers["content-encoding"] == "br"
    assert got(worker, "/app.mjs.gz").status_code == 404  # it is no file of its own


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_files_are_only_read(worker: Served, method: str) -> None:
    assert got(worker, "/app.mjs", method).status_code == 405


@pytest.mark.parametrize("path", ["/v1/key", "/healthz"])
def test_the_paths_of_the_protocol_stay(worker: Served, path: str) -> None:
    assert got(worker, path).headers["content-type"] == "application/json"


PIECES = ["..", ".", "", "%2e%2e", "%2f", "app.mjs", "index.html", "ort", "secret.txt", "dist", "store.db", "%00", "\\"]


@given(parts=st.lists(st.sampled_from(PIECES), max_size=6))
@settings(max_examples=60, deadline=None)
def test_no_path_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "secret.txt").write_text("secret")
    app = Starlette(routes=WebPage.from_folder(made(folder / "dist")).routes())
    path = "/" + "/".join(parts)
    answer = _asked(app, path)
    assert answer.status_code == 404 or answer.content in FILES.values()


def _asked(app: Any, path: str) -> httpx.Response:
    import asyncio

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(ask())


def test_a_folder_that_is_no_page_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is no folder"):
        WebPage.from_folder(tmp_path / "none")
    with pytest.raises(InputError, match=r"has no index\.html"):
        WebPage.from_folder(tmp_path)
    (tmp_path / "outside").write_text("secret")

    def links(folder: Path) -> None:
        (folder / "out.txt").symlink_to(tmp_path / "outside")

    def linked_folder(folder: Path) -> None:
        (folder / "out").symlink_to(tmp_path)

    def inner_link(folder: Path) -> None:
        (folder / "a.mjs").symlink_to(folder / "app.mjs")

    def hidden(folder: Path) -> None:
        (folder / ".env").write_text("secret")

    def of_the_protocol(folder: Path) -> None:
        (folder / "v1").mkdir()

    def strange(folder: Path) -> None:
        (folder / "{path}").write_text("a pattern")

    def pipe(folder: Path) -> None:
        os.mkfifo(folder / "pipe")

    def deep(folder: Path) -> None:
        (folder / "/".join("abcdefghi")).mkdir(parents=True)

    for number, (spoil, match) in enumerate(
        [(each, "is a link or no file") for each in (links, linked_folder, inner_link, pipe)]
        + [(each, "a name that no path can have") for each in (hidden, of_the_protocol, strange, deep)]
    ):
        folder = made(tmp_path / f"page-{number}")
        spoil(folder)
        with pytest.raises(InputError, match=match):
            WebPage.from_folder(folder)
    page = made(tmp_path / "page")
    with monkeypatch.context() as few:
        few.setattr(web_page, "MOST_FILES", 3)
        with pytest.raises(InputError, match="more than 3 files"):
            WebPage.from_folder(page)
    with monkeypatch.context() as small:
        small.setattr(web_page, "MOST_BYTES", 900)
        with pytest.raises(InputError, match="more than 900 bytes"):
            WebPage.from_folder(page)
    assert WebPage.from_folder(page).files.keys() == FILES.keys()


def test_every_worker_serves_what_was_there_when_the_server_began(tmp_path: Path) -> None:
    folder = made(tmp_path / "dist")
    pages = WebSettings.checked(folder, (), Address())
    (folder / "index.html").write_text("another page")
    with pages.told() as told:
        assert WebPage.from_folder(Path(told["web"])).files == pages.page.files  # type: ignore[union-attr]
    assert not Path(told["web"]).exists()
