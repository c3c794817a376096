"""What a device makes of answers that its server did not give: another program listens on the port, or nobody does.

No answer but a receipt ends a participation, unless it is an error in the protocol's own form. What stays spent is what
may have left, and nothing else.
"""

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.device.operator import HOUR, NOON, SERVER, Clock, Operator, Wire, a_plan, once

from tacit.data import Cache
from tacit.device import record as records
from tacit.device.record import opened
from tacit.device.state_file import StateFile
from tacit.device.turn import LONGEST, MOST_AWAY, SessionOutcome
from tacit.errors import ServerError
from tacit.protocol import requests
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.messages import CheckIn, RoundTask
from tacit.protocol.problem_kinds import KINDS, PASSING, is_final, known_problem

SLOWLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
HTML = b"<!doctype html><title>It works</title>"
PATHS = {  # each request of a turn
    "check-in": "/v1/check-in",
    "plan": "/v1/plans/",
    "log": "/v1/log",
    "model": "/v1/models/",
    "report": "/v1/reports/",
}
MOST_TRIES = 30  # of a report in a round of an hour: 1, 2, 4 ... seconds apart, and 15 minutes at the end


def problem(kind: str, status: int, said: int | None = None) -> httpx.Response:
    """said: the status in the document, where it is another."""
    body = {"type": kind, "title": "t", "status": status if said is None else said, "detail": "d."}
    return httpx.Response(status, json=body)


def strange(status: int, body: bytes) -> httpx.Response:
    return httpx.Response(status, content=body, headers={"Location": "https://elsewhere.example/", "X-Powered-By": "x"})


strange_bodies = st.one_of(
    st.sampled_from([HTML, b"", b"{}", b"null", b'{"detail":"Unauthorized"}', b"\xff\xfe", b"[" * 100]),
    st.binary(max_size=40),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=5,
    ).map(lambda each: json.dumps(each).encode()),
)
# A form of ours under another status, or a type that no version has, is somebody else's too.
nearly = st.one_of(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(400, 599)).filter(
        lambda each: KINDS[each[0]].status != each[1]
    ),
).map(lambda each: lambda: problem(f"tacit:{each[0]}", each[1], KINDS[each[0]].status))
unknown = st.integers(400, 599).map(lambda status: lambda: problem("tacit:of-another", status))
others = st.tuples(st.sampled_from([200, 301, 302, 400, 401, 403, 404, 410, 413, 418, 422, 500, 503]), strange_bodies)
strange_answers = st.one_of(others.map(lambda each: lambda: strange(*each)), nearly, unknown)


class Behind:
    """An operator behind an address at which a stranger answers some requests first."""

    def __init__(self, operator: Operator, path: str, answers: list[Callable[[], httpx.Response]]) -> None:
        self.operator, self.path, self.answers = operator, path, list(answers)
        self.key, self.asked = operator.key, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if self.answers and request.method != "DELETE" and request.url.path.startswith(self.path):
            return self.answers.pop(0)()
        return self.operator(request)

    def tries(self) -> int:
        return sum(each.startswith(f"POST {PATHS['report']}") for each in self.asked)


def turned(behind: Any, cache: Cache, state: Path, now: Clock | None = None) -> SessionOutcome:
    return once(behind, cache.path, state, now=now or Clock(), journal=state.with_name(f"{state.name}-journal"))


def took_part(state: Path) -> list[dict[str, Any]]:
    with opened(state, state.with_name(f"{state.name}-journal"), now=NOON) as record:
        return record.participations()


# -- a stranger, for a while, at each request of a turn ----------------------------------------------------------------


@SLOWLY
@given(answers=st.lists(strange_answers, min_size=1, max_size=6))
def test_a_report_outlasts_a_stranger(answers: list[Any], words: str, cache: Cache) -> None:
    """Another program has the port while the server is down: 401, HTML, a redirect, our form under another status."""
    operator, plan = Operator(), a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    behind = Behind(operator, PATHS["report"], answers)
    with tempfile.TemporaryDirectory() as folder:
        turn = turned(behind, cache, Path(folder) / "state")
        assert turn.what == "reported", turn.says
        (only,) = took_part(Path(folder) / "state")
    assert only["received"] and behind.tries() == len(answers) + 1 and len(operator.received) == 1


@pytest.mark.parametrize("request_of", [each for each in PATHS if each != "report"])
@SLOWLY
@given(answer=strange_answers)
def test_before_a_report_a_stranger_costs_a_turn_and_nothing_else(
    request_of: str, answer: Any, words: str, cache: Cache
) -> None:
    operator, plan = Operator(), a_plan(words)
    for _ in range(2):
        operator.assign(plan, operator.task(plan, 0))
    behind = Behind(operator, PATHS[request_of], [answer] * 99)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        turn = turned(behind, cache, state)
        assert turn.what == "unanswered" and turn.spent == 0 and turn.wait[1] <= LONGEST, turn.says
        assert not took_part(state)
        assert len(operator.given_back) == (request_of != "check-in")
        assert behind.tries() == 0
        behind.answers.clear()
        assert turned(behind, cache, state).what == "reported", "the server is back"


@pytest.mark.parametrize("status", [200, 302, 401, 403, 404, 410])
@pytest.mark.parametrize("request_of", PATHS)
def test_what_a_stranger_answers_is_said(
    status: int, request_of: str, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    behind = Behind(operator, PATHS[request_of], [lambda: strange(status, HTML)] * 99)
    turn = turned(behind, cache, tmp_path / "state")
    if status == 302:
        assert "the server sends on to another place (302)" in turn.says
    elif status != 200:
        assert f"the server answers {status}: no reason in the protocol's form" in turn.says
        assert "another program that listens at its address, or a proxy" in turn.says
    else:
        assert "none of the protocol's" in turn.says or "of the model's" in turn.says, turn.says
    assert turn.what == ("lost" if request_of == "report" else "unanswered")
    assert behind.tries() <= MOST_TRIES
    assert [each["received"] for each in took_part(tmp_path / "state")] == [False] * (request_of == "report")


# -- what is final -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_the_protocols_form_is_final_unless_it_passes(
    kind: str, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan, status = a_plan(words), KINDS[kind].status
    operator.assign(plan, operator.task(plan, 0))
    behind = Behind(operator, PATHS["report"], [lambda: problem(f"tacit:{kind}", status)] * 3)
    turn = turned(behind, cache, tmp_path / "state")
    assert (turn.what, behind.tries()) == (("reported", 4) if kind in PASSING else ("lost", 1))
    assert kind in PASSING or f"the server answers {status}: d. It stays spent." in turn.says


@given(status=st.integers(100, 599), body=strange_bodies)
def test_nothing_else_is_a_known_problem(status: int, body: bytes) -> None:
    assert known_problem(status, body) is None


@given(kind=st.sampled_from(sorted(KINDS)), head=st.integers(100, 599), inside=st.integers(400, 599))
def test_a_known_problem_has_its_status_twice(kind: str, head: int, inside: int) -> None:
    found = known_problem(head, problem(f"tacit:{kind}", 400, inside).content)
    assert (found is not None) == (head == inside == KINDS[kind].status)
    assert found is None or is_final(found) == (head not in (408, 500, 503))


def test_no_answer_keeps_a_device_away_for_years(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    """Who listens on the port can say when to come back; a real server says three days at most."""
    for after, before in ((1e9, 1e9), (0.0, 1e9), (1e9, 0.0)):
        operator.answers.append(httpx.Response(200, json={"answer": "come_back", "after_s": after, "before_s": before}))
        turn = turned(operator, cache, tmp_path / "state")
        assert turn.what == "idle" and turn.wait == (min(after, MOST_AWAY), MOST_AWAY)


# -- what never left ---------------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[bool, Callable[[], Exception | httpx.Response]]] = {  # whether the report may have left
    "refused": (False, lambda: httpx.ConnectError("refused")),
    "no connection in time": (False, lambda: httpx.ConnectTimeout("slow")),
    "silent": (True, lambda: httpx.ReadTimeout("slow")),
    "cut off": (True, lambda: httpx.WriteError("gone")),
    "another program": (True, lambda: strange(401, HTML)),
    "a server that breaks": (True, lambda: httpx.Response(500)),
}


class Failing(Behind):
    """An operator whom no report reaches."""

    def __init__(self, operator: Operator, failures: list[str]) -> None:
        super().__init__(operator, PATHS["report"], [])
        self.failures, self.failed = failures, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith(self.path):
            self.failed.append(self.failures[len(self.failed) % len(self.failures)])
            found = FAILURES[self.failed[-1]][1]()
            if isinstance(found, Exception):
                raise found
            return found
        return super().__call__(request)


@SLOWLY
@given(failures=st.lists(st.sampled_from(sorted(FAILURES)), min_size=1, max_size=4))
def test_a_participation_stays_spent_where_its_report_may_have_left(
    failures: list[str], words: str, cache: Cache
) -> None:
    operator, plan = Operator(), a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    failing = Failing(operator, failures)
    with tempfile.TemporaryDirectory() as folder:
        state, clock = Path(folder) / "state", Clock()
        turn = turned(failing, cache, state, clock)
        may_have_left = any(FAILURES[each][0] for each in failing.failed)
        assert turn.what == ("lost" if may_have_left else "unanswered"), turn.says
        assert ("It stays spent." in turn.says) == may_have_left == (turn.spent > 0)
        assert len(took_part(state)) == may_have_left
        assert clock.now >= NOON + HOUR, "it tried until the round was over"
        assert 5 < len(failing.failed) <= MOST_TRIES
        operator.assign(plan, operator.task(plan, 1))  # sooner than its separation, 5, allows after a participation
        later = turned(operator, cache, state, Clock(NOON + 2 * HOUR))
        assert later.what == ("refused" if may_have_left else "reported"), later.says


class Killed(BaseException):
    """A process that is killed: nobody catches it."""


@pytest.mark.parametrize("between", [False, True])
def test_who_is_killed_while_it_takes_back_has_spent(
    between: bool, operator: Operator, words: str, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it begins, and between the journal and the record."""
    plan, state = a_plan(words), tmp_path / "state"
    operator.assign(plan, operator.task(plan, 0))
    writing, take_back = StateFile.writing, records.DeviceRecord.never_left

    @contextmanager
    def killed_behind_the_journal(file: StateFile) -> Iterator[None]:
        with writing(file):
            yield
        if file.path.name == records.JOURNAL:
            raise Killed

    def killed(record: records.DeviceRecord, task: RoundTask) -> None:
        if not between:
            raise Killed
        monkeypatch.setattr(StateFile, "writing", killed_behind_the_journal)
        take_back(record, task)

    monkeypatch.setattr(records.DeviceRecord, "never_left", killed)
    with pytest.raises(Killed):
        turned(Failing(operator, ["refused"]), cache, state)
    monkeypatch.setattr(StateFile, "writing", writing)
    assert len(took_part(state)) == 1


def test_an_older_journal_brings_back_what_was_taken_back(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """It is counted once too often, and never once too seldom."""
    plan, state, copies = a_plan(words), tmp_path / "state", list[bytes]()
    operator.assign(plan, operator.task(plan, 0))
    journal = tmp_path / "state-journal" / records.JOURNAL

    class Copied(Failing):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.startswith(self.path):
                copies.append(journal.read_bytes())
            return super().__call__(request)

    assert turned(Copied(operator, ["refused"]), cache, state).what == "unanswered"
    assert not took_part(state)
    journal.unlink()
    journal.write_bytes(copies[0])
    assert len(took_part(state)) == 1


def test_over_a_socket_no_connection_is_told_from_a_silent_one() -> None:
    def asked(url: str, through: Any = None) -> ServerError:
        said = CheckIn(version=2, population="p", versions={"train": 1}, token=None)
        with connected(Server.from_url(url), through=through) as connection, pytest.raises(ServerError) as error:
            connection.held(requests.check_in(said))
        return error.value

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def hang_up() -> None:
            for _ in range(2):
                listener.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        assert not asked(f"http://127.0.0.1:{port}").unsent, "it was connected: bytes may have left"
        assert asked(f"https://127.0.0.1:{port}").unsent, "no TLS came about, so nothing of the request left"
        thread.join()
    assert asked(f"http://127.0.0.1:{port}").unsent, "nobody listens"
    assert not asked(SERVER, through=Wire(lambda _: httpx.Response(500))).unsent
