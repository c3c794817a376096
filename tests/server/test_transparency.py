"""The log: an entry once, one head for each size whatever is lost or restored; and what a device makes of it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.server.signs_once import SignsOnce, entry
from tests.support.device.operator import shown_log
from tests.support.server.served import KEY, served
from tests.support.server.stores import quick_folder, sqlite_store

from tacit.errors import InputError, ServerError, StoreError, TaskRefused
from tacit.protocol.bounded_http import driven
from tacit.protocol.fields import MOST_ENTRIES, MOST_PROOF
from tacit.protocol.log_check import logged
from tacit.protocol.log_proofs import is_included, leaf_of
from tacit.protocol.messages import ShownLog, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.requests import MOST_LOG, Answer, Ask
from tacit.protocol.signing import is_signed
from tacit.server.log.merkle_tree import MerkleTree
from tacit.server.log.pinned_key import check_key
from tacit.server.log.transparency import ENTRY, LogView, TransparencyLog


def a_log(folder: Path, key: OperatorKey = KEY) -> TransparencyLog:
    return TransparencyLog(sqlite_store(folder), key, folder / "operator.log")


def test_an_entry_is_in_it_once_and_proved(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for number in (1, 2, 3, 2, 1):
        proof = log.append(entry(number))
        root, path = bytes.fromhex(proof.head.read(TreeHead).root), [bytes.fromhex(each) for each in proof.path]
        assert proof.index == number - 1 and is_signed(TreeHead, proof.head, KEY.public)
        assert is_included(leaf_of(entry(number)), proof.index, proof.head.read(TreeHead).size, path, root)
    assert (tmp_path / "operator.log").read_text() == "".join(f"{entry(each)}\n" for each in (1, 2, 3))
    view = LogView(sqlite_store(tmp_path))
    assert view.entries() == (tmp_path / "operator.log").read_text().splitlines()
    assert view.proof(leaf_of(entry(4)).hex()) is None


def test_a_log_that_devices_could_not_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.log.transparency.MOST_ENTRIES", 3)
    log = a_log(tmp_path)
    for number in range(3):
        log.append(entry(number))
    with pytest.raises(InputError, match=r"has 3 entries, and devices read no longer one; begin another with another"):
        log.append(entry(3))
    assert log.append(entry(1)).head.read(TreeHead).size == 3 == len(LogView(log._store).entries())
    assert (tmp_path / "operator.log").read_text().count("\n") == 3


def test_the_largest_log_that_may_be_written_may_be_read() -> None:
    longest = f"{'a' * 31} {'9' * 10} {'f' * 64}"
    content = shown_log(KEY, [longest] * MOST_ENTRIES).to_json()
    assert len(content) <= MOST_LOG and 2**MOST_PROOF >= MOST_ENTRIES
    assert ENTRY.fullmatch(longest) and len(ShownLog.from_json(content).entries) == MOST_ENTRIES


def test_a_head_is_signed_for_nothing_but_itself() -> None:
    signed = KEY.signed(TreeHead(size=1, root="ab" * 32))
    assert is_signed(TreeHead, signed, KEY.public)
    other = TreeHead(size=2, root="ab" * 32).to_json()
    assert not is_signed(TreeHead, signed.model_copy(update={"document": other}), KEY.public)


class Life(RuleBasedStateMachine):
    """A store that is killed, copied, restored and lost, and a file that is cut off: the log goes on as one."""

    @initialize()
    def begin(self) -> None:
        self.context = quick_folder()
        self.folder = self.context.__enter__()
        self.key, self.entered = SignsOnce(), list[str]()
        self.copies: list[bytes] = []

    def teardown(self) -> None:
        if hasattr(self, "context"):
            self.context.__exit__(None, None, None)

    @property
    def file(self) -> Path:
        return self.folder / "operator.log"

    @rule(number=st.integers(0, 5))
    def append(self, number: int) -> None:
        store = sqlite_store(self.folder)
        proof = TransparencyLog(store, self.key, self.file).append(entry(number))
        store.close()
        if entry(number) not in self.entered:
            self.entered.append(entry(number))
        assert proof.index == self.entered.index(entry(number)) and proof.head.read(TreeHead).size == len(self.entered)

    @rule(number=st.integers(0, 5))
    def killed_before_it_is_committed(self, number: int) -> None:
        """The file has the entry, the store not; nobody was shown a head."""
        if entry(number) not in self.entered:
            self.entered.append(entry(number))
            self.file.write_text("".join(f"{each}\n" for each in self.entered))

    @rule()
    def killed_while_it_writes(self) -> None:
        with self.file.open("a") as file:
            file.write("plan 00")

    @rule()
    def copy(self) -> None:
        store = sqlite_store(self.folder)
        with store.writing() as connection:
            connection.exec_driver_sql("SELECT 1")
        store.close()
        self.copies.append((self.folder / "store.db").read_bytes())

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        for name in ("store.db-wal", "store.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        if self.copies:
            (self.folder / "store.db").write_bytes(data.draw(st.sampled_from(self.copies)))

    @rule()
    def lose_the_store(self) -> None:
        for name in ("store.db", "store.db-wal", "store.db-shm"):
            (self.folder / name).unlink(missing_ok=True)

    @invariant()
    def heads_are_those_of_the_entries(self) -> None:
        if hasattr(self, "key"):
            tree = MerkleTree(map(leaf_of, self.entered))
            assert all(tree.root(size).hex() == root for size, root in self.key.heads.items())


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)


def test_a_store_and_a_file_that_differ_are_not_joined(tmp_path: Path) -> None:
    a_log(tmp_path).append(entry(1))
    (tmp_path / "operator.log").write_text(entry(2) + "\n")
    with pytest.raises(StoreError, match="differ"):
        a_log(tmp_path).append(entry(3))
    (tmp_path / "operator.log").write_text("my shopping list\n")
    with pytest.raises(InputError, match="no log"):
        a_log(tmp_path).append(entry(3))
    assert LogView(sqlite_store(tmp_path)).entries() == [entry(1)]


def test_a_file_that_is_lost_is_written_again(tmp_path: Path) -> None:
    a_log(tmp_path).append(entry(1))
    os.unlink(tmp_path / "operator.log")
    assert a_log(tmp_path).append(entry(2)).index == 1
    assert (tmp_path / "operator.log").read_text() == f"{entry(1)}\n{entry(2)}\n"


def test_a_file_that_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        TransparencyLog(sqlite_store(tmp_path), KEY, tmp_path / "nowhere" / "operator.log").append(entry(1))


# -- served ------------------------------------------------------------------------------------------------------------


def test_what_a_worker_answers(tmp_path: Path) -> None:
    worker = served(tmp_path)

    def get(path: str) -> tuple[int, str]:
        answer = worker.asks(lambda client: client.get(path))
        return answer.status_code, answer.text

    assert get("/v1/log")[0] == 404
    log, sizes = TransparencyLog(worker.store, KEY, tmp_path / "operator.log"), []
    for number in range(3):
        log.append(entry(number))
        shown = ShownLog.from_json(get("/v1/log")[1])
        sizes.append(shown.head.read(TreeHead).size)
        assert shown == shown_log(KEY, [entry(each) for each in range(number + 1)])
        assert is_signed(TreeHead, shown.head, KEY.public)
    assert sizes == [1, 2, 3] and get("/v1/log")[1] == get("/v1/log")[1]
    for gone in ("head", "entries", "consistency?first=1&second=3", "proof/" + "0" * 64):
        assert get(f"/v1/log/{gone}")[0] == 404


# -- what a device makes of it -----------------------------------------------------------------------------------------


def numbered(*numbers: int) -> tuple[str, ...]:
    return tuple(map(entry, numbers))


def seen_by(shown: ShownLog, number: int, kept: Sequence[str] = ()) -> tuple[str, ...]:
    """What a device that kept these entries makes of an entry in the log that it is shown."""
    asked: list[Ask] = []

    def answered(ask: Ask) -> Answer:
        asked.append(ask)
        return Answer(200, {}, shown.to_json().encode())

    try:
        found = driven(logged(entry(number), operator=KEY.public, kept=kept), answered)
        assert found == shown
        return found.entries
    finally:
        assert [(each.method, each.path, each.body) for each in asked] == [("GET", "/v1/log", b"")]


@given(st.integers(1, 12), st.integers(0, 12), st.data())
def test_a_device_takes_any_length_of_the_same_list(shown: int, kept: int, data: st.DataObject) -> None:
    """Whatever it kept: a refusal, or another request, would tell how long a list it saw before."""
    number = data.draw(st.integers(0, shown - 1))
    entries = numbered(*range(shown))
    assert seen_by(shown_log(KEY, entries), number, numbered(*range(kept))) == entries


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_a_device_refuses_another_list_than_it_saw(shown: int, kept: int, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, min(shown, kept) - 1))
    before = [*numbered(*range(kept))]
    before[changed] = entry(99)
    with pytest.raises(TaskRefused, match="do not begin alike: it was written anew"):
        seen_by(shown_log(KEY, numbered(*range(shown))), shown - 1, before)


def test_a_device_refuses_an_entry_that_is_not_shown() -> None:
    """Not even where it saw it once: whoever is shown nothing else would refuse."""
    for kept in ((), numbered(1, 2, 3, 4)):
        with pytest.raises(TaskRefused, match="does not have 'plan"):
            seen_by(shown_log(KEY, numbered(1, 2, 3)), 4, kept)


def test_a_device_refuses_a_head_that_is_another() -> None:
    mine = shown_log(KEY, numbered(1, 2, 3))
    with pytest.raises(TaskRefused, match="not signed"):
        seen_by(shown_log(OperatorKey(b"x" * 32), numbered(1, 2, 3)), 3)
    for entries in (numbered(1, 2), numbered(1, 2, 3, 4), numbered(1, 3, 2), numbered(1, 2, 9)):
        with pytest.raises(TaskRefused, match="is not the one whose head the operator signed"):
            seen_by(mine.model_copy(update={"entries": entries}), 2)


def test_a_server_that_does_not_answer_now_is_asked_again() -> None:
    def busy(ask: Ask) -> Answer:
        raise ServerError("the server answers 503: busy.", final=False)

    with pytest.raises(ServerError, match="busy"):
        driven(logged(entry(1), operator=KEY.public, kept=()), busy)

    def none(ask: Ask) -> Answer:
        raise ServerError("the server answers 404: the log has no entries yet.", final=True)

    with pytest.raises(TaskRefused, match="shows no log"):
        driven(logged(entry(1), operator=KEY.public, kept=()), none)


def test_a_lost_or_exchanged_key_is_refused_before_another_is_made(tmp_path: Path) -> None:
    file, log = tmp_path / "operator.key", a_log(tmp_path)
    check_key(file, log._store, [])  # nothing was signed yet
    log.append(entry(1))
    for why in ("there is no operator's key at", "the key in '"):
        with pytest.raises(InputError, match=f"{why}.* the log in the store.* is signed by another.* No key was made"):
            check_key(file, log._store, [])
        assert file.exists() == (why == "the key in '")
        OperatorKey.in_file(file)  # as another would be made
    file.write_text(bytes(32).hex())
    check_key(file, log._store, [])
