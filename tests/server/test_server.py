"""A worker asked as devices ask it: tasks, models, reports, receipts, and all that is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.support.server.documents import a_plan
from tests.support.server.served import IN_JSON, KEY, TOKEN, Served, a_body, a_model, check_in, headers, served

from tacit.errors import InputError
from tacit.protocol.bodies import sha256
from tacit.protocol.messages import (
    VERSION,
    Assignment,
    CheckIn,
    ComeBack,
    Plan,
    Problem,
    Receipt,
    RoundTask,
    Signed,
    SignedPlan,
)
from tacit.protocol.problem_kinds import KINDS
from tacit.protocol.served_bodies import read_sum
from tacit.protocol.signing import is_signed
from tacit.server.http import application
from tacit.server.http.services import Limits
from tacit.server.store import assignments, round_states

Client = httpx.AsyncClient


@pytest.fixture
def worker(tmp_path: Path) -> Served:
    return served(tmp_path)


async def assigned(client: Client, **changed: Any) -> Assignment:
    answer = await client.post("/v1/check-in", json=check_in(**changed))
    assert answer.status_code == 200, answer.text
    return Assignment.model_validate_json(answer.content)


async def reported(client: Client, given: Assignment, body: bytes, **more: str) -> httpx.Response:
    return await client.post(
        f"/v1/reports/{given.assignment}", content=body, headers=headers(given.secret, body, **more)
    )


def is_problem(answer: httpx.Response, kind: str) -> bool:
    """Whether it is the one shape of errors, of this kind."""
    said = Problem.model_validate_json(answer.content)
    assert answer.headers["content-type"] == "application/problem+json" and "Traceback" not in answer.text
    assert (said.status, said.title) == KINDS[said.type.removeprefix("tacit:")] and answer.status_code == said.status
    return said.type == f"tacit:{kind}"


def test_a_device_is_given_a_task_that_its_operator_signed(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        assert is_signed(RoundTask, given.signed_task, KEY.public) and given.signed_task.read(RoundTask) == worker.task
        other = await assigned(client)
        assert other.assignment != given.assignment and other.secret != given.secret

    worker.asks(ask)
    assert worker.attempt().assigned == 2


def test_no_more_devices_than_the_round_wants_and_none_that_cannot(worker: Served) -> None:
    async def ask(client: Client) -> list[httpx.Response]:
        for changed in ({"versions": {"discover": 1}}, {"versions": {}}, {"population": "keyboards-fr"}):
            answer = await client.post("/v1/check-in", json=check_in(**changed))
            ComeBack.model_validate_json(answer.content)
        return [await client.post("/v1/check-in", json=check_in()) for _ in range(9)]

    kinds = [answer.json()["answer"] for answer in worker.asks(ask)]
    assert kinds == ["assignment"] * 6 + ["come_back"] * 3


def test_the_answer_to_an_idle_device_asks_no_database(tmp_path: Path) -> None:
    worker = served(tmp_path, most=4)

    async def ask(client: Client) -> None:
        for _ in range(4):
            await assigned(client)
        worker.store.close()
        (tmp_path / "store.db").unlink()
        answer = await client.post("/v1/check-in", json=check_in())
        assert ComeBack.model_validate_json(answer.content) == ComeBack(answer="come_back", after_s=60, before_s=180)

    worker.asks(ask)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "malformed"),
        (b"{", "malformed"),
        (b"[]", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 20_000, "malformed"),
        (json.dumps(check_in(population="a\r\nX-Injected: yes")).encode(), "malformed"),
        (json.dumps(check_in(critical=["\x1b]0;title\x07"])).encode(), "malformed"),
        (json.dumps(check_in()).encode().replace(b'"token"', b'"version": 2, "token"'), "malformed"),
        (json.dumps(check_in(version=1)).encode(), "version"),
        (json.dumps(check_in(version=3)).encode(), "version"),
        (json.dumps(check_in()).encode() + b" " * 40_000, "too-large"),
    ],
    ids=range(11),
)
def test_a_check_in_that_is_none_is_a_problem(worker: Served, content: bytes, kind: str) -> None:
    answer = worker.asks(lambda client: client.post("/v1/check-in", content=content, headers=IN_JSON))
    assert is_problem(answer, kind) and "x-injected" not in answer.headers


def test_a_device_of_a_later_version_is_given_what_it_can_do(worker: Served) -> None:
    """A kind that no server knows yet, a later version of one that it does, and a key more."""
    later = check_in(versions={"dance": 3, "train": 2}, pace=1.5)
    answer = worker.asks(lambda client: client.post("/v1/check-in", json=later))
    assert Assignment.from_json(answer.content).signed_task.read(RoundTask) == worker.task
    strange = check_in(versions={"dance": 3})
    assert worker.asks(lambda client: client.post("/v1/check-in", json=strange)).json()["answer"] == "come_back"


def test_reports_are_summed_in_the_order_of_their_arrival_and_receipted(tmp_path: Path) -> None:
    worker, values = served(tmp_path, goal=30), [0.1, 1e-9, -0.2]

    async def ask(client: Client) -> None:
        for value in values:
            given = await assigned(client)
            body = a_body(given.assignment, value)
            answer = await reported(client, given, body)
            signed = Signed.from_json(answer.content)
            receipt = signed.read(Receipt)
            assert is_signed(Receipt, signed, KEY.public) and receipt.sha256 == sha256(body)
            assert receipt.assignment == given.assignment

    worker.asks(ask)
    worker.store.clock.now += 6  # type: ignore[attr-defined]
    worker.write()
    (partial,) = round_states.partial_sums(worker.store, worker.task.task)
    total = read_sum(worker.blobs.get(partial.blob, digest=partial.digest), worker.task)
    expected = np.zeros_like(total)
    for value in values:
        expected += np.float32(value)
    np.testing.assert_array_equal(total, expected)
    assert partial.reports == 3 and worker.attempt().counted == 3


def test_the_same_report_again_has_the_same_receipt_and_counts_once(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        body = a_body(given.assignment)
        first, again = await reported(client, given, body), await reported(client, given, body)
        assert first.content == again.content and first.status_code == 200
        assert is_problem(await reported(client, given, a_body(given.assignment, 0.2)), "other-report")

    worker.asks(ask)
    assert worker.attempt().received == 1 and worker.services.sums.held == 1


def test_a_report_with_nothing_usable_is_receipted_and_in_no_sum(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        body = a_body(given.assignment, 0.0, usable=False)
        first, again = await reported(client, given, body), await reported(client, given, body)
        assert first.status_code == 200 and first.content == again.content
        assert is_problem(await reported(client, given, a_body(given.assignment)), "other-report")

    worker.asks(ask)
    attempt = worker.attempt()
    assert (attempt.received, attempt.lost, worker.services.sums.held) == (0, 1, 0)


def test_a_place_that_a_device_gives_back_is_another_s(tmp_path: Path) -> None:
    worker = served(tmp_path, most=2, goal=2)

    async def ask(client: Client) -> None:
        first, second = await assigned(client), await assigned(client)
        path, said = f"/v1/reports/{first.assignment}", {"Authorization": f"Bearer {first.secret}"}
        wrong = await client.delete(path, headers={"Authorization": f"Bearer {second.secret}"})
        assert is_problem(wrong, "credential") and worker.attempt().assigned == 2
        assert (await client.delete(path, headers=said)).status_code == 204
        assert worker.attempt().assigned == 1
        assert is_problem(await reported(client, first, a_body(first.assignment)), "credential")
        worker.services.snapshot.refresh()
        third = await assigned(client)
        assert (await reported(client, third, a_body(third.assignment))).status_code == 200
        path, said = f"/v1/reports/{third.assignment}", {"Authorization": f"Bearer {third.secret}"}
        assert (await client.delete(path, headers=said)).status_code == 204  # too late: it has reported
        assert (worker.attempt().assigned, worker.attempt().received) == (2, 1)

    worker.asks(ask)


def test_who_has_not_the_secret_cannot_report(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given, other = await assigned(client), await assigned(client)
        body = a_body(given.assignment)
        path = f"/v1/reports/{given.assignment}"
        said = headers(given.secret, body)
        answers = [
            await client.post(path, content=body, headers=headers(other.secret, body)),
            await client.post(path, content=body, headers=headers(given.secret[:-1], body)),
            await client.post(path, content=body, headers=said | {"Authorization": f"Basic {given.secret}"}),
            await client.post(path, content=body, headers={**said, "Authorization": ""}),
            await client.post(f"/v1/reports/{'0' * 32}", content=body, headers=said),
        ]
        assert all(is_problem(answer, "credential") for answer in answers)
        assert all(answer.headers["www-authenticate"] == "Bearer" for answer in answers)
        assert is_problem(await client.post("/v1/reports/..%2f..%2fetc", content=body, headers=said), "not-found")
        mine = await reported(client, other, body)  # a report that says that it is another's
        assert is_problem(mine, "refused")

    worker.asks(ask)
    assert worker.attempt().received == 0


def test_bodies_are_bounded_before_they_are_read(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        body = a_body(given.assignment)
        assert is_problem(await reported(client, given, body + bytes(5000)), "too-large")
        assert is_problem(await reported(client, given, body, **{"Content-Encoding": "br"}), "encoding")
        assert is_problem(await reported(client, given, body, **{"X-Content-SHA256": "0" * 64}), "malformed")
        assert is_problem(await reported(client, given, body, **{"X-Content-SHA256": "zz"}), "malformed")
        assert is_problem(await reported(client, given, body, **{"Content-Length": "-1"}), "length")
        assert is_problem(await reported(client, given, body[:-4]), "refused")
        assert is_problem(await reported(client, given, a_body(given.assignment, 5.0)), "refused")

        async def pieces():  # type: ignore[no-untyped-def]
            yield body

        chunked = headers(given.secret, body)
        path = f"/v1/reports/{given.assignment}"
        assert is_problem(await client.post(path, content=pieces(), headers=chunked), "length")
        short = await client.post(path, content=pieces(), headers=chunked | {"Content-Length": str(len(body) + 9)})
        assert is_problem(short, "malformed")
        long = await client.post(path, content=pieces(), headers=chunked | {"Content-Length": str(len(body) - 9)})
        assert is_problem(long, "too-large")
        assert (await reported(client, given, body)).status_code == 200  # none of it spoilt the assignment

    worker.asks(ask)
    assert worker.attempt().received == 1


def test_a_compressed_report_is_the_same_and_a_bomb_is_none(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        body, packed = a_body(given.assignment), {"Content-Encoding": "gzip"}
        path, said = f"/v1/reports/{given.assignment}", headers(given.secret, body) | packed
        bomb = gzip.compress(bytes(50_000_000))[:4000]
        assert is_problem(await client.post(path, content=bomb, headers=said), "too-large")
        assert is_problem(await client.post(path, content=b"no gzip", headers=said), "malformed")
        assert is_problem(await client.post(path, content=gzip.compress(body)[:-9], headers=said), "malformed")
        assert is_problem(await client.post(path, content=gzip.compress(body) + b"x", headers=said), "malformed")
        answer = await client.post(path, content=gzip.compress(body), headers=said)
        assert answer.status_code == 200 and (await reported(client, given, body)).content == answer.content

    worker.asks(ask)


def test_a_round_that_is_full_may_take_a_report_yet(tmp_path: Path) -> None:
    worker = served(tmp_path, goal=2, most=4)

    async def ask(client: Client) -> None:
        given = [await assigned(client) for _ in range(4)]
        for each in given[:2]:
            assert (await reported(client, each, a_body(each.assignment))).status_code == 200
        spare = given[2]
        full = await reported(client, spare, a_body(spare.assignment))  # the store says so
        assert is_problem(full, "busy") and full.headers["retry-after"] == "5"
        worker.services.snapshot.refresh()
        full = await reported(client, spare, a_body(spare.assignment))  # and now it is known beforehand
        assert is_problem(full, "busy")
        assignments.give_up(worker.store, worker.task.task, worker.services.worker)
        worker.services.snapshot.refresh()
        assert (await reported(client, spare, a_body(spare.assignment))).status_code == 200
        round_states.begin_closing(worker.store, worker.lease, worker.task.task)
        worker.services.snapshot.refresh()
        assert is_problem(await reported(client, given[3], a_body(given[3].assignment)), "late")

    worker.asks(ask)


def test_a_report_that_would_be_alone_is_sent_to_the_worker_that_has_the_others(tmp_path: Path) -> None:
    """On a connection of its own, soon; once nobody holds any, it is taken here."""
    worker, other = served(tmp_path, goal=3, most=4), "cd" * 16

    async def ask(client: Client) -> None:
        there, here = await assigned(client), await assigned(client)
        assignments.receive(worker.store, there.assignment, task=worker.task.task, worker=other, body_digest="ab" * 32)
        sent = await reported(client, here, a_body(here.assignment))
        assert is_problem(sent, "busy")
        assert (sent.headers["retry-after"], sent.headers["connection"]) == ("1", "close")
        assert worker.attempt().received == 1 and worker.services.sums.held == 0
        assignments.give_up(worker.store, worker.task.task, other)
        assert (await reported(client, here, a_body(here.assignment))).status_code == 200

    worker.asks(ask)
    assert worker.services.sums.held == 1


def test_a_round_that_is_over_takes_no_report(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        round_states.begin_closing(worker.store, worker.lease, worker.task.task)
        worker.services.snapshot.refresh()
        body = a_body(given.assignment)
        assert is_problem(await reported(client, given, body), "late")
        round_states.abandon(worker.store, worker.lease, worker.task.task, "test")
        assert is_problem(await reported(client, given, body), "credential")
        assert (await client.post("/v1/check-in", json=check_in())).json()["answer"] == "come_back"

    worker.asks(ask)


def test_reports_wait_for_room_in_memory_and_are_sent_away_when_there_is_none(tmp_path: Path) -> None:
    worker = served(tmp_path, limits=Limits(body_memory=1, wait_s=0.01))

    async def ask(client: Client) -> None:
        import asyncio

        given, other = await assigned(client), await assigned(client)
        never = asyncio.Event()

        async def slow():  # type: ignore[no-untyped-def]
            yield b"1"
            await never.wait()

        body = a_body(given.assignment)
        said = headers(given.secret, body) | {"Content-Length": str(len(body))}
        holding = asyncio.create_task(client.post(f"/v1/reports/{given.assignment}", content=slow(), headers=said))
        await asyncio.sleep(0.1)
        busy = await reported(client, other, a_body(other.assignment))
        assert is_problem(busy, "busy") and busy.headers["retry-after"] == "10"
        never.set()
        assert is_problem(await holding, "malformed")  # it ended too early, and its room is free
        assert (await reported(client, other, a_body(other.assignment))).status_code == 200

    worker.asks(ask)


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    worker = served(tmp_path, limits=Limits(idle_s=0.02))

    async def ask(client: Client) -> None:
        import asyncio

        given = await assigned(client)
        body = a_body(given.assignment)

        async def slow():  # type: ignore[no-untyped-def]
            yield body[:9]
            await asyncio.Event().wait()

        said = headers(given.secret, body) | {"Content-Length": str(len(body))}
        answer = await client.post(f"/v1/reports/{given.assignment}", content=slow(), headers=said)
        assert is_problem(answer, "too-slow")
        said = {"Content-Length": "200", "Content-Type": "application/json"}
        assert is_problem(await client.post("/v1/check-in", content=slow(), headers=said), "too-slow")

    worker.asks(ask)


def test_models_are_served_by_digest_in_ranges_and_never_change(worker: Served) -> None:
    path = worker.task.content.path

    async def ask(client: Client) -> None:
        whole = await client.get(path, headers={"Accept-Encoding": "identity"})
        assert sha256(whole.content) == worker.task.content.sha256 and len(whole.content) == worker.task.content.bytes
        assert "immutable" in whole.headers["cache-control"] and whole.headers["accept-ranges"] == "bytes"
        packed = await client.get(path, headers={"Accept-Encoding": "gzip"})
        assert packed.content == whole.content  # httpx opened it
        for said, first, end in (("0-9", 0, 10), ("10-", 10, None), ("-10", -10, None), ("5-99999", 5, None)):
            part = await client.get(path, headers={"Range": f"bytes={said}"})
            assert part.status_code == 206 and part.content == whole.content[first:end]
            assert part.headers["content-range"].endswith(f"/{len(whole.content)}")
        none = await client.get(path, headers={"Range": f"bytes={len(whole.content)}-"})
        assert is_problem(none, "range") and none.headers["content-range"] == f"bytes */{len(whole.content)}"
        assert is_problem(await client.get(path, headers={"Range": "bytes=9-3"}), "range")
        held = await client.get(path, headers={"If-None-Match": whole.headers["etag"]})
        assert held.status_code == 304 and not held.content
        assert (await client.head(path)).headers["content-length"]
        for other in ("0" * 64, "..%2f..%2fstore.db", "AB" * 32):
            assert is_problem(await client.get(f"/v1/models/{other}"), "not-found")

    worker.asks(ask)
    assert a_model().dtype == np.float32


def test_a_model_of_a_round_that_another_worker_gave_is_there_at_once(worker: Served) -> None:
    snapshot = worker.services.snapshot

    async def ask(client: Client) -> None:
        snapshot.rounds, snapshot.taken = {}, 0.0  # as they were before the round was opened
        assert (await client.get(worker.task.content.path)).status_code == 200

    worker.asks(ask)


def test_plans_are_served_by_digest(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        answer = await client.get(f"/v1/plans/{given.signed_task.read(RoundTask).plan}")
        assert "immutable" in answer.headers["cache-control"]
        signed = SignedPlan.from_json(answer.content)
        assert signed.document == a_plan().to_json() and is_signed(Plan, signed, KEY.public)
        assert is_problem(await client.get(f"/v1/plans/{'0' * 64}"), "not-found")
        assert (await client.get("/v1/key")).json() == {"operator_key": KEY.public}

    worker.asks(ask)


def test_what_is_nowhere_is_a_problem_too(worker: Served) -> None:
    async def ask(client: Client) -> None:
        for path in ("/", "/v2/check-in", "/v1/check-in/", "/docs", "/v1/reports", "/%00", "/v1/models/"):
            nowhere = await client.get(path)
            assert is_problem(nowhere, "not-found") and nowhere.headers["cache-control"] == "no-store"
        wrong = await client.get("/v1/check-in")
        assert is_problem(wrong, "method") and wrong.headers["allow"] == "POST"
        assert is_problem(await client.delete("/v1/key"), "method")

    worker.asks(ask)


def test_nobody_administers_without_the_token(worker: Served) -> None:
    paths = [("GET", "/admin/runs"), ("GET", "/admin/runs/es-1/rounds"), ("POST", "/admin/drain")]
    paths += [("POST", f"/admin/runs/es-1/{what}") for what in ("pause", "resume")]

    async def ask(client: Client) -> None:
        for method, path in paths:
            for said in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \xff", TOKEN):
                answer = await client.request(method, path, headers={"Authorization": said.encode("latin-1")})
                assert is_problem(answer, "credential"), (method, path, said)
        right = {"Authorization": f"Bearer {TOKEN}"}
        (run,) = (await client.get("/admin/runs", headers=right)).json()["runs"]
        assert (run["name"], run["paused"]) == ("es-1", False)
        (round,) = (await client.get("/admin/runs/es-1/rounds", headers=right)).json()["rounds"]
        assert (round["round"], round["state"]) == (3, "selecting")
        assert is_problem(await client.get("/admin/runs/es-2/rounds", headers=right), "not-found")
        assert (await client.post("/admin/drain", headers=right)).json()["runs"][0]["paused"]
        worker.services.snapshot.refresh()
        assert (await client.post("/v1/check-in", json=check_in())).json()["answer"] == "come_back"
        assert not (await client.post("/admin/runs/es-1/resume", headers=right)).json()["runs"][0]["paused"]
        worker.services.snapshot.refresh()
        assert (await client.post("/v1/check-in", json=check_in())).json()["answer"] == "assignment"

    worker.asks(ask)


def test_health_and_metrics_say_nothing_of_devices(worker: Served) -> None:
    async def ask(client: Client) -> None:
        given = await assigned(client)
        await reported(client, given, a_body(given.assignment))
        await client.post("/v1/check-in", json=check_in(versions={}))
        assert (await client.get("/healthz")).json() == {"ok": True}
        assert is_problem(await client.get("/metrics"), "credential")
        text = (await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).text
        assert 'tacit_check_ins_total{answer="assignment"} 1.0' in text
        assert 'tacit_check_ins_total{answer="come_back"} 1.0' in text
        assert 'tacit_reports_total{answer="received"} 1.0' in text and "tacit_reports_unwritten 1.0" in text
        assert given.assignment not in text and given.secret not in text
        worker.store.clock.now += 11  # type: ignore[attr-defined]
        assert is_problem(await client.get("/healthz"), "busy")

    worker.asks(ask)


def test_a_store_that_does_not_answer_is_a_problem_to_come_back_from(worker: Served, tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        worker.store.close()
        (tmp_path / "store.db").write_bytes(b"no database" * 1000)
        answer = await client.post("/v1/check-in", json=check_in())
        assert is_problem(answer, "busy") and answer.headers["retry-after"]

    worker.asks(ask)


def test_a_check_in_that_many_send_is_read_once_and_one_with_a_token_is_not_kept() -> None:
    said = CheckIn(version=VERSION, population="keyboards", versions={"train": 1}, token=None)
    body = said.to_json().encode()
    assert application._read_again(body) is application._read_again(body) == CheckIn.from_json(body) == said
    shown = said.model_copy(update={"token": "ab" * 292}).to_json()
    assert len(body) <= application.COMMON < len(shown)
    for _ in range(2):
        with pytest.raises(InputError):
            application._read_again(body[:-1])
