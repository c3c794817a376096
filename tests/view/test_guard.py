"""Who may look: this machine, and from elsewhere whoever has the token; and what a page is allowed to do."""

import logging
import re
import socket
from pathlib import Path

import pytest
from tests.support.made_runs import write_run
from tests.support.view.looking import Asked, Parsed, client, everywhere
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.privacy import Tree
from tacit.view.guard import checked_token, is_loopback
from tacit.view.serve import listening, view

TOKEN = "correct horse battery staple"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", strategy=Tree(), rounds=2)


def test_every_answer_has_a_strict_policy(run: Path) -> None:
    asked = client(run.parent)
    for address in everywhere(["0/run"]):
        answer = asked.get(address)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "no-store" in answer.headers["cache-control"] or "/static/" in address
        assert "server" not in answer.headers
        if answer.headers["content-type"].startswith("text/html"):
            page = Parsed(answer.text)
            assert not [name for name, _ in page.attributes if name == "style" or name.startswith("on")]
            assert "style" not in page.tags and page.tags.count("script") <= 1
            assert all(link.startswith(("/", "#")) for link in page.links), "nothing is fetched from elsewhere"


def test_without_the_token_nothing_is_seen(run: Path) -> None:
    asked = client(run.parent, token=TOKEN)
    for address in everywhere(["0/run"]):
        if "/static/" not in address:
            answer = asked.get(address)
            assert answer.status_code == 401 and "made by hand" not in answer.text, address
    wrong = asked.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401 and "set-cookie" not in wrong.headers
    assert asked.get("/", headers={"cookie": "tacit_view=x"}).status_code == 401
    assert asked.get("/", headers={"cookie": f"tacit_view={TOKEN}"}).status_code == 401, "the token is no cookie"
    assert asked.get("/", params={"token": TOKEN}).status_code == 401, "nor does it stand in an address"
    assert asked.get("/", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
    assert asked.post("/typing/suggest", json={"runs": ["0/run"], "text": "a"}).status_code == 401
    huge = asked.post("/login", content=b"token=" + b"a" * 10_000_000)
    assert huge.status_code == 401


def test_the_token_opens_once_and_a_cookie_from_then_on(run: Path) -> None:
    asked = client(run.parent, token=TOKEN)
    opened = asked.post("/login", data={"token": TOKEN})
    assert opened.status_code == 303 and opened.headers["location"] == "/"
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and TOKEN not in cookie
    page = asked.get("/run/0/run")
    assert page.status_code == 200 and TOKEN not in page.text
    assert client(run.parent, token=TOKEN).get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8480", "", "127.0.0.1.evil.example", "[::1", "local host"]
)
def test_another_name_of_this_machine_is_refused(host: str, run: Path) -> None:
    answer = client(run.parent).get("/", headers={"host": host})
    assert answer.status_code == 421 and "made by hand" not in answer.text


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:8480", "[::1]:8480", "LOCALHOST"])
def test_this_machine_is_known(host: str, run: Path) -> None:
    assert client(run.parent).get("/", headers={"host": host}).status_code == 200


def test_a_page_of_another_origin_asks_for_nothing(run: Path) -> None:
    asked = client(run.parent)
    body = {"runs": ["0/run"], "text": "a"}
    assert asked.post("/typing/suggest", json=body, headers={"origin": "http://evil.example"}).status_code == 403
    assert asked.post("/typing/suggest", json=body, headers={"origin": "null"}).status_code == 403
    own = asked.post("/typing/suggest", json=body, headers={"origin": "http://127.0.0.1:8480"})
    assert own.status_code == 422, "there is no model, which is another matter"
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert asked.request(method, "/").status_code == 405


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.com", "127.0.0.1.evil.example"])
def test_an_address_that_others_reach_demands_a_token(host: str, tmp_path: Path) -> None:
    assert not is_loopback(host)
    with pytest.raises(InputError, match=r"reached by others.*--token"):
        view([tmp_path], host=host)
    with pytest.raises(InputError, match="can be guessed"):
        checked_token("short", loopback=False, host=host)
    assert checked_token(TOKEN, loopback=False, host=host) == TOKEN


def test_a_port_in_use_names_the_next_free_one() -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=r"in use\); --port (\d+) is free") as refused:
            listening("127.0.0.1", port)
        found = re.search(r"--port (\d+) is free", str(refused.value))
        assert found and int(found[1]) > port
        with listening("127.0.0.1", int(found[1])) as free:
            assert isinstance(free, socket.socket)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere"], "is no folder"),
        ([".", "--port", "70000"], "--port 70000 is none"),
        ([".", "--host", "0.0.0.0"], "--token"),
        ([".", "--host", "no such host"], "cannot be listened on"),
        ([".", "--token", "abc"], "can be guessed"),
    ],
)
def test_bad_input_is_one_line(given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "no such host" in given:
        given = [*given, "--token", TOKEN]
    result = CliRunner().invoke(app, ["view", *given])
    assert result.exit_code == 2 and said in result.stderr.replace("\n", " "), result.stderr
    assert result.stderr.count("error:") == 1 and "Traceback" not in result.stderr


def test_who_asks_for_the_token_is_not_logged(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        asked: Asked = client(run.parent, token=TOKEN)
        asked.post("/login", data={"token": TOKEN})
        asked.post("/login", data={"token": "another secret"})
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore", "asyncio"))]
    assert not [each for each in ours if TOKEN in each.getMessage() or "another secret" in each.getMessage()]
