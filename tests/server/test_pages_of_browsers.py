"""Real pages in a real browser: one of another origin takes no place in a round, the listed and the own ones do."""

import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.server.listening import listening
from tests.support.server.served import check_in, served

from tacit.server.http.origins import AskingPages, listed_origin
from tacit.server.http.web_page import WebPage

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120  # seconds
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")

# Each way by which a page may send a check-in. What it learns stands in the page when all have ended.
TRIES = """
const server = SERVER, said = SAID, told = {};
const tried = async (name, asked) => { told[name] = await asked().catch(String); };
const post = (more) => fetch(server + '/v1/check-in', { method: 'POST', body: said, ...more });
const whole = async (answer) => [answer.type, answer.status, answer.type === 'opaque' ? '' : await answer.text()];
await tried('no-cors', async () => whole(await post({ mode: 'no-cors' })));
await tried('no type', async () => whole(await post({ mode: 'no-cors', body: new Blob([said]) })));
await tried('form type', async () => whole(await post({ mode: 'no-cors', body: new URLSearchParams([[said, '']]) })));
await tried('beacon', async () => navigator.sendBeacon(server + '/v1/check-in', said));
await tried('json', async () => whole(await post({ headers: { 'content-type': 'application/json' } })));
await tried('key', async () => whole(await fetch(server + '/v1/key')));
document.documentElement.dataset.told = JSON.stringify(told);
"""


def a_script(server: str) -> str:
    return TRIES.replace("SERVER", json.dumps(server)).replace("SAID", json.dumps(json.dumps(check_in())))


@contextmanager
def page_elsewhere(script: list[str]) -> Iterator[str]:
    """The origin of a page that runs the script: the first of the list, by when it is asked for."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!doctype html><script type="module">{script[0]}</script>'.encode()
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is said of requests."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def opened(url: str, folder: Path, *more: str) -> str:
    """The document at this address, once its scripts have ended, as Chromium writes it."""
    assert CHROMIUM is not None
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    words += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", *more, "--dump-dom", url]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def told_by(document: str) -> dict[str, Any]:
    found = re.search(r'data-told="([^"]*)"', document)
    assert found is not None, document
    told: dict[str, Any] = json.loads(unescape(found[1]))
    return told


def test_a_foreign_page_takes_no_place(tmp_path: Path) -> None:
    worker, script = served(tmp_path, pages=AskingPages(local=True)), [""]
    with listening(worker.app) as url, page_elsewhere(script) as origin:
        script[0] = a_script(url)
        told = told_by(opened(origin + "/", tmp_path))
    assert worker.attempt().assigned == 0
    assert told["json"] == told["key"] == "TypeError: Failed to fetch"
    assert [each["type"] for each in _refused(worker)] == ["origin"]
    assert sum(each["count"] for each in _refused(worker)) >= 6  # one each; of JSON its preflight


def test_a_page_of_another_port_that_is_listed_checks_in_once_and_reads_what_it_is_told(tmp_path: Path) -> None:
    script = [""]
    with page_elsewhere(script) as origin:
        worker = served(tmp_path, pages=AskingPages(listed=frozenset({listed_origin(origin)}), local=True))
        with listening(worker.app) as url:
            script[0] = a_script(url)
            told = told_by(opened(origin + "/", tmp_path))
    kind, status, text = told["json"]
    assert (kind, status, json.loads(text)["answer"]) == ("cors", 200, "assignment") and told["key"][1] == 200
    assert worker.attempt().assigned == 1  # by JSON alone: the types of forms are refused to it too
    assert [each["type"] for each in _refused(worker)] == ["encoding"]


def test_the_own_page_works_under_its_policy_and_a_name_that_points_here_does_not(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    inline = "<script>document.documentElement.dataset.inline = 'ran'</script>"
    (dist / "index.html").write_text(f'<!doctype html>{inline}<script type="module" src="page.mjs"></script>')
    wasm = (
        "document.documentElement.dataset.wasm = WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));"
    )
    isolated = "document.documentElement.dataset.isolated = crossOriginIsolated;"
    (dist / "page.mjs").write_text(wasm + isolated + a_script(""))
    worker = served(tmp_path, pages=AskingPages(local=True), web_page=WebPage.from_folder(dist))
    with listening(worker.app) as url:
        document = opened(url + "/", tmp_path)
        port = urlsplit(url).port
        rebound = opened(f"http://evil.test:{port}/", tmp_path, "--host-resolver-rules=MAP evil.test 127.0.0.1")
    told = told_by(document)
    assert told["json"][1] == 200 and json.loads(told["json"][2])["answer"] == "assignment"
    assert worker.attempt().assigned == 1
    assert "data-inline" not in document and 'data-isolated="true"' in document and 'data-wasm="true"' in document
    assert "tacit:misdirected" in rebound and "data-told" not in rebound


def _refused(worker: Any) -> list[dict[str, Any]]:
    """By type, how many requests were."""
    text = worker.services.metrics.text().decode()
    found = re.findall(r'^tacit_problems_total\{type="([a-z-]+)"\} ([0-9.]+)$', text, re.MULTILINE)
    return [{"type": name, "count": float(count)} for name, count in found]
