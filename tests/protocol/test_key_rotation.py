"""An operator that changes its key: devices of the old one follow once, nobody else leads them anywhere."""

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.support.device.operator import HOUR, NOON, Operator, a_plan, cache_of_one, once
from tests.support.server.served import served
from tests.support.server.stores import sqlite_store

from tacit.data import Cache
from tacit.device.record import opened
from tacit.errors import InputError, TaskRefused
from tacit.protocol.key_rotation import kept, signed_key_rotation
from tacit.protocol.log_proofs import key_rotation_entry, plan_entry
from tacit.protocol.messages import KeyRotation, SignedKeyRotation, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest, is_signed
from tacit.server.log.transparency import LogView, TransparencyLog
from tacit.server.serve import SharedResources

OLD, NEW, OTHER = (OperatorKey(bytes([number] * 32)) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return cache_of_one(tmp_path_factory.mktemp("device") / "cache")


def changed_to(operator: Operator, new: OperatorKey, *, logged: bool = True) -> None:
    """From now on the operator signs with another key, which the one before handed over to."""
    operator.key_rotation = signed_key_rotation(operator.key, new)
    if logged:
        operator.log.append(key_rotation_entry(digest(operator.key_rotation.document)))
    operator.key = new


def came(operator: Operator, cache: Cache, state: Path, round: int, run: str, *, first_time: bool = True) -> str:
    """What a device that was given the first key says of a round."""
    plan = a_plan(cache.manifest.vocabulary.sha256, run=run)
    operator.assign(plan, operator.task(plan, round))
    return str(once(operator, cache.path, state, now=NOON + 2 * round * HOUR, key=OLD.public, first_time=first_time))


def test_a_device_follows_and_goes_on_with_the_same_record(cache: Cache, tmp_path: Path) -> None:
    operator = Operator(key=OLD)
    assert came(operator, cache, tmp_path, 0, "before").startswith("reported")
    changed_to(operator, NEW)
    said = came(operator, cache, tmp_path, 5, "after")
    assert said.startswith(f"refused: the operator changed its key from {OLD.public[:16]}... to {NEW.public[:16]}...")
    assert came(operator, cache, tmp_path, 6, "after").startswith("reported")
    with opened(tmp_path, now=NOON + 12 * HOUR) as record:
        assert record.operators == (NEW.public,) and [each["run"] for each in record.participations()] == [
            "before",
            "after",
        ]
    operator.key = OLD  # which is believed no more, even with its own word for it
    operator.key_rotation = signed_key_rotation(NEW, OLD)
    operator.log.append(key_rotation_entry(digest(operator.key_rotation.document)))
    assert "which is one that it had before" in came(operator, cache, tmp_path, 7, "back")
    assert len(operator.received) == 2


def test_a_record_made_again_of_the_journal_knows_the_runs_of_the_key_before(cache: Cache, tmp_path: Path) -> None:
    operator = Operator(key=OLD)
    assert came(operator, cache, tmp_path, 0, "before").startswith("reported")
    shutil.rmtree(tmp_path)
    changed_to(operator, NEW)
    assert "changed its key" in came(operator, cache, tmp_path, 6, "after", first_time=False)
    other = a_plan(cache.manifest.vocabulary.sha256, run="before", code="cd" * 32)
    with opened(tmp_path, now=NOON + 14 * HOUR) as record:
        record.pin(NEW.public)
        with pytest.raises(TaskRefused, match="a run has one plan for ever"):
            record.keep_plan(digest(other.to_json()), NEW.plan(other.to_json()))


WRONG: dict[str, tuple[str, Callable[[Operator], None]]] = {
    "to a key without a word": ("is not signed by the operator", lambda operator: setattr(operator, "key", NEW)),
    "that no log shows": ("does not have 'hand-over", lambda operator: changed_to(operator, NEW, logged=False)),
    "of another operator": (
        "handed over to no other key",
        lambda operator: (setattr(operator, "key", OTHER), changed_to(operator, NEW))[0],
    ),
    "that the old key did not sign": (
        f"is not signed by {OLD.public[:16]}",
        lambda operator: forged(operator, signed_key_rotation(OTHER, NEW).by_old, signed_key_rotation(OLD, NEW).by_new),
    ),
    "to a key that is not its own": (
        f"is not signed by {NEW.public[:16]}",
        lambda operator: forged(operator, signed_key_rotation(OLD, NEW).by_old, signed_key_rotation(OLD, OTHER).by_new),
    ),
}


def forged(operator: Operator, by_old: str, by_new: str) -> None:
    made = KeyRotation(old=OLD.public, new=NEW.public).to_json()
    operator.key_rotation = SignedKeyRotation(document=made, by_old=by_old, by_new=by_new)
    operator.log.append(key_rotation_entry(digest(made)))
    operator.key = NEW


@pytest.mark.parametrize("name", WRONG)
def test_a_key_rotation(name: str, cache: Cache, tmp_path: Path) -> None:
    why, happens = WRONG[name]
    operator = Operator(key=OLD)
    came(operator, cache, tmp_path, 0, "before")
    happens(operator)
    for round in (5, 6):
        said = came(operator, cache, tmp_path, round, "after")
        assert said.startswith("refused") and why in said, said
    assert len(operator.received) == 1
    with opened(tmp_path, now=NOON + 12 * HOUR) as record:
        assert record.operators == (OLD.public,)


def test_the_server_makes_it_once_and_serves_it_when_the_old_key_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "operator.key"
    shared = SharedResources(store=f"sqlite:///{tmp_path / 'store.db'}", blobs="memory://", key=file, enrolment=False)
    first, store = shared.checked(False, [], []), sqlite_store(tmp_path)
    TransparencyLog.beside(store, OperatorKey.in_file(file), file).append(plan_entry("ab" * 32))
    file.rename(tmp_path / "operator.previous")
    second = shared.checked(False, [], [])
    said = kept(file)
    assert said is not None and second == shared.checked(False, [], []) != first and kept(file) == said
    signed = SignedKeyRotation.model_validate_json(said)
    change = KeyRotation.from_json(signed.document)
    assert (change.old, change.new) == (first, second)
    assert (tmp_path / "operator.log").read_text().splitlines()[1:] == [key_rotation_entry(digest(signed.document))]
    head = LogView(store).head()
    assert head is not None and head.read(TreeHead).size == 2 and is_signed(TreeHead, head, second)
    (tmp_path / "operator.previous").unlink()
    assert shared.checked(False, [], []) == second and kept(file) == said
    (tmp_path / "operator.previous").write_bytes(file.read_bytes())
    (tmp_path / "operator.previous").chmod(0o600)
    with pytest.raises(InputError, match="and so is the one before it"):
        shared.checked(False, [], [])


def test_a_worker_gives_it_to_whoever_asks(tmp_path: Path) -> None:
    worker = served(tmp_path)

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.get("/v1/key/hand-over")

    assert worker.asks(ask).status_code == 404
    object.__setattr__(worker.services, "key_rotation", signed_key_rotation(OLD, NEW).model_dump_json())
    assert SignedKeyRotation.model_validate_json(worker.asks(ask).content) == signed_key_rotation(OLD, NEW)
