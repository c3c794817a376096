"""Pages of servers and devices: what their folders say, without writing there, whatever is damaged in them."""

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.view.deployments import KEEPERS, write_device, write_server
from tests.support.view.looking import Asked, Parsed, client, tree
from tests.support.waiting import PATIENCE

import tacit
from tacit.errors import InputError
from tacit.server.metrics import Metrics as Counted
from tacit.view import metrics as module
from tacit.view.application import application
from tacit.view.folders import Folders
from tacit.view.metrics import COUNTS, Metrics, checked_address, samples_of

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    write_server(tmp_path / "shown" / "server")
    write_device(tmp_path / "shown" / "phone", tmp_path / "journal")
    return tmp_path / "shown"


def test_a_server_shows_runs_budgets_rounds_check_ins_keepers_and_its_log(both: Path) -> None:
    before, asked = tree(both), client(both)
    text = Parsed(asked.get("/server/0/server").text).text
    for words in (
        "Runs: 2; populations: 1. Rounds released: 3; open: 1. Entries of the transparency log: 2.",
        "es-1 train open keyboards-es 3 of 20",
        "es-2 train paused keyboards-es 0 of 20 sealed",
        "4 times at most 5 rounds 0.5 4.38 at delta 1e-06",
        "all 2 runs 1 ",
        "too few devices came",
        "keyboards-es 1,234 98,765",
        f"{KEEPERS[0][:16]}... es-2 yes 3, of which 1 may be corrupt",
        f"{KEEPERS[2][:16]}... es-2 no",
        "The last 2 of 2 entries. Signed root:",
        "Workers: 1, last seen",
    ):
        assert words in text, text
    record = asked.get("/server/0/server?format=json").json()
    assert record["page"] == "server" and record["runs"][0]["zcdp"] == 0.5 and len(record["rounds"]) == 5
    assert "Runs: 2" in Parsed(asked.get("/servers").text).text
    assert tree(both) == before


def test_a_device_shows_what_it_learnt_sent_and_spent(both: Path, tmp_path: Path) -> None:
    before, asked = tree(both), client(both)
    text = Parsed(asked.get("/device/0/phone").text).text
    for words in (
        "It took part 3 times in 1 run; 2 of its reports were received. It spent zCDP 0.3 of 4.",
        "a clipped update of a model, made of its text each report 1, 6, 11 2 of 3",
        "0.3 2027-01-15 2027-01-15",
        "0.3 zCDP of the last seven days' runs, without a limit",
    ):
        assert words in text, text
    assert "took part 3 times" in Parsed(asked.get("/devices").text).text
    said = asked.get("/device/0/phone?format=json").json()["status"]
    assert tree(both) == before, "the folder is neither written nor locked"
    shown = tacit.device_status(both / "phone", journal=tmp_path / "journal").to_record()
    assert {**said, "state": ""} == {**shown, "state": ""}, "as `tacit device --show` says it"


def test_a_device_with_a_budget_for_a_week_and_a_pause(both: Path) -> None:
    (both / "phone" / "policy.toml").write_text("budget_zcdp = 0.5\nbudget_zcdp_week = 0.25\n")
    (both / "phone" / "paused").touch()
    text = Parsed(client(both).get("/device/0/phone").text).text
    assert "It is paused: it takes part in nothing." in text and "0.3 of 0.5" in text and "of 0.25" in text


def test_no_word_of_an_owner_is_in_a_page_of_a_device(both: Path, tmp_path: Path) -> None:
    """Whatever else lies in the folder, or behind a link in place of the policy."""
    (both / "phone" / "text.txt").write_text("canary words")
    (tmp_path / "diary").write_text('canary = "words"\n')
    (both / "phone" / "policy.toml").symlink_to(tmp_path / "diary")
    for address in ("/devices", "/device/0/phone", "/device/0/phone?format=json", "/file/0/phone?name=text.txt"):
        found = client(both, simulation=True).get(address)
        assert found.status_code in (200, 404, 422) and "canary" not in found.text


@pytest.mark.parametrize("content", [b"", b"nonsense", b"SQLite format 3\0" + bytes(200)])
@pytest.mark.parametrize("name", ["store.db", "device.db"])
def test_a_damaged_file_is_a_sentence(content: bytes, name: str, both: Path) -> None:
    kind, folder = ("server", "server") if name == "store.db" else ("device", "phone")
    (both / folder / name).write_bytes(content)
    asked = client(both)
    one, all_of_them = asked.get(f"/{kind}/0/{folder}"), asked.get(f"/{kind}s")
    assert one.status_code in (200, 422) and all_of_them.status_code == 200
    assert "cannot be" in Parsed(one.text).text or "has the format" in Parsed(one.text).text
    assert (both / folder / name).read_bytes() == content


@pytest.mark.parametrize(
    "plan", ["", "[]", '{"document": "[1]"}', '{"document": "{\\"privacy\\": {\\"zcdp\\": \\"x\\"}}"}']
)
def test_a_plan_that_is_none_says_nothing(plan: str, both: Path) -> None:
    with closing(sqlite3.connect(both / "server" / "store.db")) as database, database:
        database.execute("UPDATE runs SET plan = ?", (plan,))
        database.execute("UPDATE rounds SET opened = 1e300, why = ?", (NASTY,))
    assert client(both).get("/server/0/server").status_code in (200, 422)


def test_names_of_a_server_are_text(tmp_path: Path) -> None:
    write_server(tmp_path / "server", why=NASTY)
    with closing(sqlite3.connect(tmp_path / "server" / "store.db")) as database, database:
        database.execute("UPDATE runs SET population = ?, kind = ?", (NASTY, NASTY))
        database.execute("UPDATE paces SET population = ?", (NASTY,))
        database.execute("UPDATE log SET entry = entry || ?", (NASTY,))
    page = client(tmp_path).get("/server/0/server")
    assert page.status_code == 200 and "img" not in Parsed(page.text).tags and NASTY in Parsed(page.text).text


# -- what a running server counts --------------------------------------------------------------------------------------

TEXT = b'# HELP\ntacit_check_ins_total{answer="come_back"} 3.0\ntacit_devices{population="a\\"b"} 7\nother_total 5\n'


@contextmanager
def serving(answer: bytes, *, status: int = 200, location: str = "", seen: list[Any] | None = None) -> Iterator[str]:
    """A server on this machine that answers everything so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def asks(folder: Path, *addresses: str) -> Asked:
    app = application(Folders([folder]), host="127.0.0.1", token=None, simulation=False, metrics=Metrics(addresses))
    return Asked(app, "http://127.0.0.1:8480")


def test_what_a_server_counts_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.TOKEN, "the administrator's")
    monkeypatch.setattr(module, "KEPT", 60.0)
    seen: list[Any] = []
    with serving(TEXT, seen=seen) as address:
        asked = asks(tmp_path, address)
        text = Parsed(asked.get("/servers").text).text
        assert "devices that checked in come_back 3" in text and 'estimated a"b 7' in text and "other_total" not in text
        record = asked.get("/servers?format=json").json()["counts"][0]
    assert record["samples"][0] == {"name": "tacit_check_ins_total", "labels": [["answer", "come_back"]], "value": 3.0}
    assert seen == [("/metrics", "Bearer the administrator's")], "two questions within a moment are one"


def test_every_count_of_a_server_is_known_here() -> None:
    counted = Counted()
    counted.check_ins.labels("come_back").inc()
    counted.reports.labels("received").inc()
    counted.problems.labels("busy").inc()
    counted.rounds.labels("es-1", "assigned").set(1)
    counted.devices.labels("es").set(5)
    counted.seconds.labels("assign").observe(0.1)
    assert {each.name for each in samples_of(counted.text())} == set(COUNTS)


@pytest.mark.parametrize(
    ("answer", "more", "why"),
    [
        (b"nothing of ours 3\n", {}, "no count of a server"),
        (b"\xff\xfe", {}, "codec"),
        (TEXT * 30_000, {}, "more than 1,048,576 bytes"),
        (b"", {"status": 404}, "status 404"),
        (b"", {"status": 401}, "give its administrator's token as TACIT_ADMIN_TOKEN"),
    ],
)
def test_another_answer_is_a_sentence(answer: bytes, more: Any, why: str, tmp_path: Path) -> None:
    with serving(answer, **more) as address:
        found = asks(tmp_path, address).get("/servers")
    assert found.status_code == 200 and why in Parsed(found.text).text


def test_no_answer_leads_elsewhere(tmp_path: Path) -> None:
    seen: list[Any] = []
    with serving(TEXT, seen=seen) as other, serving(b"", status=302, location=other) as address:
        assert "status 302" in Parsed(asks(tmp_path, address).get("/servers").text).text
    assert not seen


def test_one_that_sends_a_byte_now_and_then_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            taken, _ = listener.accept()
            with taken:
                try:
                    taken.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
                    while True:
                        taken.sendall(b"a")
                        time.sleep(0.1)
                except OSError:
                    return

        threading.Thread(target=drip, daemon=True).start()
        begun = time.monotonic()
        found = asks(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}/metrics").get("/servers")
        assert time.monotonic() - begun < PATIENCE and "did not answer" in Parsed(found.text).text


@pytest.mark.parametrize(
    "address",
    [
        *("", "127.0.0.1:8000/metrics", "file:///etc/passwd", "http://example.org/metrics", "http://10.0.0.1/metrics"),
        *(
            "http://127.0.0.1.example.org/",
            "http://user@127.0.0.1/",
            "http://127.0.0.1/?to=x",
            "http://[::1",
            "http://",
        ),
        *(
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:0/",
            "gopher://127.0.0.1/",
            "http://169.254.169.254/",
            "http://\u0661",
        ),
    ],
)
def test_an_address_that_is_not_of_this_machine_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is no address of a server on this machine; give http://127"):
        checked_address(address)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000/metrics", "https://localhost/metrics", "http://[::1]:80/"])
def test_addresses_of_this_machine_are_taken(address: str) -> None:
    assert checked_address(address).hostname in ("127.0.0.1", "localhost", "::1")


@given(lines=st.lists(st.text(max_size=60) | st.sampled_from([each.decode() for each in TEXT.split(b"\n")])))
def test_only_finite_numbers_of_known_counts_are_taken(lines: list[str]) -> None:
    try:
        found = samples_of("\n".join(lines).encode("utf-8", "replace"))
    except ValueError:
        return
    assert found and all(each.name in COUNTS and abs(each.value) < float("inf") for each in found)


def test_no_address_comes_out_of_a_store(both: Path) -> None:
    """A page asks nobody whom its user did not name, whatever a plan or a log says."""
    seen: list[Any] = []
    with serving(TEXT, seen=seen) as address:
        with closing(sqlite3.connect(both / "server" / "store.db")) as database, database:
            database.execute(
                "UPDATE runs SET population = ?, plan = ?", (address, f'{{"document": "{{}}", "url": "{address}"}}')
            )
            database.execute("UPDATE log SET entry = ? || position", (address,))
        asked = client(both)
        for page in (
            "/servers",
            "/server/0/server",
            f"/servers?metrics={address}",
            f"/server/0/server?metrics={address}",
        ):
            assert asked.get(page).status_code == 200
    assert not seen
