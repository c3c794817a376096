"""Tokens: who is enrolled takes part, a token once, and what the server keeps says nothing of who came."""

import asyncio
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.server.served import IN_JSON, KEY, Served, check_in, served
from tests.support.server.talking import CODE, OTHER, SAID, a_record, talking

from tacit.device.record import DeviceRecord
from tacit.device.tokens import checked_in
from tacit.errors import InputError, ServerError, TaskRefused
from tacit.protocol.bounded_http import Connection, driven
from tacit.protocol.messages import Assignment, BlindSignatures, CheckIn, Signed, TokenKey, TokenRequest
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.requests import Answer, Ask, token_key
from tacit.protocol.token_format import token_key_entry
from tacit.server.http.services import Limits
from tacit.server.log.transparency import LogView, TransparencyLog
from tacit.server.store.assignments import assign
from tacit.server.store.blind_signer import Signer
from tacit.server.store.tokens import Epochs, Issuer, enrol


@pytest.fixture
def worker(tmp_path: Path) -> Served:
    found = served(tmp_path, enrols=True, goal=30, most=30)
    enrol(found.store, [CODE, OTHER])
    return found


def asked(connection: Any, record: DeviceRecord, code: str | None = CODE) -> Any:
    return driven(checked_in(SAID, record, code, draw=os.urandom), connection.answered)


def came(connection: Any, record: DeviceRecord, code: str | None = CODE) -> Any:
    """The answer to a turn, or to the one after it, where it only got its tokens in the first."""
    return asked(connection, record, code) or asked(connection, record, code)


def shown(seen: list[httpx.Request]) -> list[str]:
    """Tokens that were shown, in order."""
    said = [CheckIn.model_validate_json(each.content) for each in seen if each.url.path == "/v1/check-in"]
    return [each.token for each in said if each.token is not None]


def status(worker: Served, token: str | None) -> int:
    return worker.asks(lambda client: client.post("/v1/check-in", json=check_in(token=token))).status_code


def test_an_enrolled_device_takes_part_and_shows_each_token_once(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        assert asked(connection, record) is None and not shown(seen), "the code and a token are shown in one turn"
        given = [asked(connection, record) for _ in range(3)]
        assert all(isinstance(each, Assignment) for each in given)
        assert len(set(shown(seen))) == 3 and {len(each) for each in shown(seen)} == {2 * (4 + 32 + 256)}
        with pytest.raises(ServerError, match="all 3 tokens"):
            came(connection, record)
    assert [each.url.path for each in seen].count("/v1/tokens") == 1
    assert worker.attempt().assigned == 3


def test_no_check_in_without_a_task_shows_a_token(tmp_path: Path) -> None:
    worker = served(tmp_path, enrols=True, most=4)
    enrol(worker.store, [CODE])
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        worker.services.snapshot.rounds.clear()
        worker.services.snapshot._giving.clear()
        worker.services.snapshot.refresh = lambda: None  # type: ignore[method-assign]
        assert came(connection, record).answer == "come_back" and not shown(seen)


def test_a_token_that_is_none_or_was_redeemed_takes_no_place(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        came(connection, record)
    (token,) = shown(seen)
    other_epoch, other_prefix = "00000001" + token[8:], token[:8] + "ff" * 32 + token[72:]
    for bad in (None, token, other_epoch, other_prefix, token[:-2], token + "00", "00", "00" * 292):
        assert status(worker, bad) == 401, bad
    assert worker.attempt().assigned == 1


def test_who_has_no_code_gets_no_tokens(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, _), a_record(tmp_path) as record:
        with pytest.raises(ServerError, match="enrolled devices only"):
            came(connection, record, None)
        with pytest.raises(ServerError, match="no device is enrolled"):
            came(connection, record, "a-code-that-nobody-gave-me")
    enrol(worker.store, [OTHER])  # and who was enrolled, is no more
    with (
        talking(worker) as (connection, _),
        a_record(tmp_path / "b") as record,
        pytest.raises(ServerError, match="no device is enrolled"),
    ):
        came(connection, record, CODE)


def test_one_batch_for_a_code_and_an_epoch_as_often_as_it_is_lost(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        answered = connection.answered
        with pytest.MonkeyPatch.context() as patch:

            def lost(ask: Ask) -> Answer:
                answer = answered(ask)
                if ask.path == "/v1/tokens":
                    raise ServerError("the server did not answer in time.")
                return answer

            patch.setattr(connection, "answered", lost)
            with pytest.raises(ServerError, match="in time"):
                came(connection, record)
        assert isinstance(came(connection, record), Assignment)
        first, again = [each.content for each in seen if each.url.path == "/v1/tokens"]
        assert first == again
    with (  # a second device with the same code
        talking(worker) as (connection, _),
        a_record(tmp_path / "b") as record,
        pytest.raises(ServerError, match="has its tokens"),
    ):
        came(connection, record)


def test_an_epoch_ends_with_its_key_and_its_tokens(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        came(connection, record)
        kept = record.tokens["left"][0]
        worker.store.clock.now = 10_500.0  # type: ignore[attr-defined]
        assert status(worker, kept) == 401
        assert isinstance(came(connection, record), Assignment) and shown(seen)[-1].startswith("00000001")
    assert sorted(each.name for each in (tmp_path / "operator.tokens").iterdir()) == ["1.json", "1.pem"]
    assert (tmp_path / "operator.tokens" / "1.pem").stat().st_mode & 0o077 == 0
    assert [each.split()[:2] for each in LogView(worker.store).entries()] == [["token-key", "0"], ["token-key", "1"]]
    with worker.store.reading() as connection:
        assert connection.exec_driver_sql("SELECT DISTINCT epoch FROM tokens").scalars().all() == [1]


def test_what_the_server_keeps_has_no_code_and_no_token(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path / "b") as record:
        came(connection, record)
        came(connection, record)
    asked = TokenRequest.model_validate_json(next(each.content for each in seen if each.url.path == "/v1/tokens"))
    kept = b"".join(each.read_bytes() for each in tmp_path.glob("store.db*"))
    secrets = [CODE, *asked.blinded, *shown(seen), *(each[8:72] for each in shown(seen))]
    for secret in secrets:
        assert secret.encode() not in kept
        assert all(c in "0123456789abcdef" for c in secret) is False or bytes.fromhex(secret) not in kept
    assert not any(each[72:] in asked.blinded or each[8:72] in "".join(asked.blinded) for each in shown(seen))


class Another:
    """The application's answers, with another key of tokens."""

    def __init__(self, connection: Connection, key: Signed) -> None:
        self._connection, self._key = connection, key

    def answered(self, ask: Ask) -> Answer:
        if ask.path == "/v1/tokens/key":
            return Answer(200, {}, self._key.model_dump_json().encode())
        return self._connection.answered(ask)


def test_after_the_clock_was_set_back_an_epoch_still_has_one_key(worker: Served, tmp_path: Path) -> None:
    """The key of an epoch that ended is gone; another for it would be what a device is told from others by."""
    first, store = worker.services.issuer, worker.store
    assert first is not None and first.key().read(TokenKey).epoch == 0
    store.clock.now = 25_000.0  # type: ignore[attr-defined]
    later = first.key()
    assert later.read(TokenKey).epoch == 2
    store.clock.now = 1_000.0  # type: ignore[attr-defined]
    anew = Issuer(store, KEY, tmp_path / "operator.key", Epochs(1e4, 3))
    assert first.key() == anew.key() == later
    assert [each.split()[1] for each in LogView(store).entries()] == ["0", "2"]
    with talking(worker) as (connection, _), a_record(tmp_path) as record:
        assert came(connection, record).answer == "assignment"


def test_a_key_for_one_device_alone_is_refused(worker: Served, tmp_path: Path) -> None:
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        shown_key = connection.held(token_key())
        own = shown_key.read(TokenKey)
        tagged = own.model_copy(update={"modulus": own.modulus[:-1] + ("1" if own.modulus[-1] != "1" else "3")})
        for key, why in (
            (OperatorKey(b"x" * 32).signed(own), "not signed"),
            (KEY.signed(tagged), "log does not have 'token-key"),
        ):
            with pytest.raises(TaskRefused, match=why):
                came(Another(connection, key), record)
        came(connection, record)
        with pytest.raises(TaskRefused, match="log does not have 'token-key"):
            came(Another(connection, KEY.signed(tagged)), record)
        TransparencyLog(worker.store, KEY, tmp_path / "operator.log").append(token_key_entry(0, tagged.to_json()))
        with a_record(tmp_path / "new") as fresh:  # as one that saw the first
            for each, key in itertools.product((record, fresh), (shown_key, KEY.signed(tagged))):
                with pytest.raises(TaskRefused, match="several keys of tokens for epoch 0"):
                    came(Another(connection, key), each)
    assert token_key_entry(0, shown_key.document) in LogView(worker.store).entries()
    assert len(shown(seen)) == 1


@pytest.mark.parametrize("lost", ["*", "*.pem"])
@pytest.mark.parametrize("store_too", [False, True])
def test_after_the_key_of_an_epoch_was_lost_the_next_one_begins(
    store_too: bool, lost: str, worker: Served, tmp_path: Path
) -> None:
    """Another key for the same epoch is one that devices refuse. The log's file has what an older store lacks."""
    with talking(worker) as (connection, _), a_record(tmp_path) as record:
        came(connection, record)
        for each in (tmp_path / "operator.tokens").glob(lost):
            each.unlink()
        if store_too:
            with worker.store.writing() as store:
                store.exec_driver_sql("DELETE FROM log")
        issuer = Issuer(worker.store, KEY, tmp_path / "operator.key", Epochs(1e4, 3))
        anew = issuer.key().read(TokenKey)
        assert (anew.epoch, int(anew.modulus, 16)) == (1, issuer._now().signer.public.n)
        object.__setattr__(worker.services, "issuer", issuer)
        assert asked(connection, record) is None and asked(connection, record).answer == "assignment"
    assert [each.split()[1] for each in LogView(worker.store).entries()] == ["0", "1"]
    assert sorted(each.name for each in (tmp_path / "operator.tokens").iterdir()) == ["1.json", "1.pem"]


@pytest.mark.parametrize("codes", [[], ["short"], [CODE, CODE], ["a code with many spaces in it"]], ids=str)
def test_codes_that_are_no_secrets(worker: Served, codes: list[str]) -> None:
    with pytest.raises(InputError, match="enrolment code"):
        enrol(worker.store, codes)


def test_what_a_worker_answers_to_what_is_no_request(worker: Served, tmp_path: Path) -> None:
    def post(content: bytes) -> int:
        return worker.asks(lambda client: client.post("/v1/tokens", content=content, headers=IN_JSON)).status_code

    key = worker.services.issuer.key().read(TokenKey)  # type: ignore[union-attr]
    good = {"code": CODE, "epoch": key.epoch, "blinded": ("0" * 511 + "2",) * 3, "evidence": None}
    for changed, expected in (
        ({"epoch": 7}, 422),
        ({"blinded": ("0" * 511 + "2",) * 2}, 422),
        ({"blinded": ("0" * 512,) * 3}, 422),
        ({"blinded": ("f" * 512,) * 3}, 422),
        ({"code": "unknown-unknown-unknown"}, 401),
    ):
        assert post(TokenRequest(**(good | changed)).model_dump_json().encode()) == expected, changed
    assert post(b"{}") == 400 and post(b"x" * (1 << 17) + b"x") == 413
    (tmp_path / "off").mkdir()
    off = served(tmp_path / "off")
    assert off.asks(lambda client: client.get("/v1/tokens/key")).status_code == 404


def test_a_token_that_many_show_at_once_takes_one_place(worker: Served) -> None:
    task = worker.task.task
    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(lambda _: assign(worker.store, task, token_hash="ab" * 32), range(8)))
    assert sum(each is not None for each in given) == 1 == worker.attempt().assigned


def test_a_request_that_is_sent_again_is_not_signed_again(worker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 signatures cost a fifth of a second of CPU, and whoever has one code could ask for them without end."""
    signed = list[bytes]()
    sign = Signer.sign

    def counted(signer: Signer, blinded: bytes) -> bytes:
        signed.append(blinded)
        return sign(signer, blinded)

    monkeypatch.setattr(Signer, "sign", counted)
    issuer = worker.services.issuer
    assert issuer is not None
    key = issuer.key().read(TokenKey)
    asked = TokenRequest(code=CODE, epoch=key.epoch, blinded=("0" * 511 + "2",) * key.batch, evidence=None)
    content = asked.model_dump_json().encode()
    answers = {
        worker.asks(lambda client: client.post("/v1/tokens", content=content, headers=IN_JSON)).content
        for _ in range(20)
    }
    assert len(answers) == 1 and len(signed) == key.batch
    other = asked.model_copy(update={"blinded": ("0" * 511 + "3",) * key.batch})
    assert issuer.sign(other) is None and len(signed) == key.batch
    enrol(worker.store, [OTHER])  # whose code is gone is answered no more, kept or not
    assert issuer.sign(asked) is None
    with monkeypatch.context() as few:
        few.setattr("tacit.server.store.tokens.KEPT", 2)
        for number in range(4):
            issuer._kept(bytes([number]), BlindSignatures(epoch=0, signatures=("00" * 256,)))
        assert list(issuer._answers) == [b"\x02", b"\x03"]


def test_who_asks_for_tokens_while_too_many_wait_is_told_to_come_again(tmp_path: Path) -> None:
    worker = served(tmp_path, enrols=True, limits=Limits(waiting_tokens=2))
    begun, go = threading.Event(), threading.Event()
    assert worker.services.issuer is not None

    def slow(_: TokenRequest) -> None:
        begun.set()
        go.wait()

    worker.services.issuer.sign = slow  # type: ignore[method-assign]
    content = TokenRequest(code=CODE, epoch=0, blinded=("0" * 511 + "2",), evidence=None).model_dump_json().encode()

    async def many(client: httpx.AsyncClient) -> list[int]:
        waiting = [asyncio.create_task(client.post("/v1/tokens", content=content, headers=IN_JSON)) for _ in range(5)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert (await client.get("/v1/key")).status_code == 200  # the others' threads are free
        while len(done) < 3:
            await asyncio.sleep(0.01)
            done = {each for each in waiting if each.done()}
        go.set()
        return sorted([each.status_code for each in await asyncio.gather(*waiting)])

    assert worker.asks(many) == [401, 401, 503, 503, 503] and begun.is_set()
