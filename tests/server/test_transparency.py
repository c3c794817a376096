"""The log: an entry once, one head for each size whatever is lost or restored; and what a device makes of it."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.server.signs_once import SignsOnce, entry
from tests.support.server.served import KEY, served
from tests.support.server.stores import quick_folder, sqlite_store

from tacit.errors import InputError, ServerError, StoreError, TaskRefused
from tacit.protocol.bounded_http import driven
from tacit.protocol.log_check import logged
from tacit.protocol.log_proofs import is_included, leaf_of
from tacit.protocol.messages import ConsistencyProof, InclusionProof, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.requests import Answer, Ask
from tacit.protocol.signing import is_signed
from tacit.server.log.merkle_tree import MerkleTree
from tacit.server.log.pinned_key import check_key
from tacit.server.log.transparency import LogView, TransparencyLog


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
    assert view.text() == (tmp_path / "operator.log").read_text()
    assert view.proof(leaf_of(entry(4)).hex()) is None and view.consistency(1, 4) is None


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
    assert LogView(sqlite_store(tmp_path)).text() == entry(1) + "\n"


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

    assert get("/v1/log/head")[0] == 404 and get("/v1/log/entries") == (200, "")
    log = TransparencyLog(worker.store, KEY, tmp_path / "operator.log")
    for number in range(3):
        log.append(entry(number))
    proof = InclusionProof.model_validate_json(get(f"/v1/log/proof/{leaf_of(entry(1)).hex()}")[1])
    assert (proof.index, proof.head.read(TreeHead).size) == (1, 3)
    assert get("/v1/log/head")[1] == proof.head.model_dump_json()
    joined = ConsistencyProof.model_validate_json(get("/v1/log/consistency?first=1&second=3")[1])
    assert (joined.first, joined.second) == (1, 3)
    assert get("/v1/log/entries")[1].splitlines() == [entry(number) for number in range(3)]
    wrong = {"first=0&second=3": 400, "first=3&second=1": 404, "first=1&second=4": 404, "first=1": 400, "": 400}
    wrong |= {"first=1e3&second=3": 400, "first=-1&second=3": 400, f"first=1&second={'9' * 400}": 400}
    assert {query: get(f"/v1/log/consistency?{query}")[0] for query in wrong} == wrong
    assert get("/v1/log/proof/" + "0" * 64)[0] == 404 and get("/v1/log/proof/abc")[0] == 404


# -- what a device makes of it -----------------------------------------------------------------------------------------


class Shown:
    """A log as a device sees it."""

    def __init__(self, *numbers: int, key: OperatorKey = KEY) -> None:
        self.entries, self.key = [entry(each) for each in numbers], key
        self.tree = MerkleTree(map(leaf_of, self.entries))

    def log_proof(self, leaf: str) -> InclusionProof:
        leaves = [leaf_of(each).hex() for each in self.entries]
        if leaf not in leaves:
            raise ServerError("the server answers 404: the log has no such leaf.", final=True)
        head = self.key.signed(TreeHead(size=len(self.tree), root=self.tree.root().hex()))
        path = self.tree.inclusion(leaves.index(leaf), len(self.tree))
        return InclusionProof(index=leaves.index(leaf), head=head, path=tuple(each.hex() for each in path))

    def log_consistency(self, first: int, second: int) -> ConsistencyProof:
        path = self.tree.consistency(first, second)
        return ConsistencyProof(first=first, second=second, path=tuple(each.hex() for each in path))


def seen_by(server: Shown, number: int, seen: TreeHead | None = None) -> TreeHead:
    def answered(ask: Ask) -> Answer:
        path = urlsplit(ask.path)
        if path.path == "/v1/log/consistency":
            sizes = {name: int(said) for name, said in parse_qsl(path.query)}
            return Answer(200, {}, server.log_consistency(**sizes).model_dump_json().encode())
        return Answer(200, {}, server.log_proof(path.path.rpartition("/")[2]).model_dump_json().encode())

    return driven(logged(entry(number), operator=KEY.public, seen=seen), answered)


def test_a_device_follows_a_log_that_grows() -> None:
    first = seen_by(Shown(1, 2, 3), 3)
    second = seen_by(Shown(1, 2, 3, 4, 5, 6), 2, first)
    assert (first.size, second.size) == (3, 6) and seen_by(Shown(1, 2, 3, 4, 5, 6), 6, second) == second


def test_a_device_refuses_another_list_than_it_saw() -> None:
    seen = seen_by(Shown(1, 2, 3), 3)
    with pytest.raises(TaskRefused, match="does not have 'plan"):
        seen_by(Shown(1, 2, 3), 4, seen)
    with pytest.raises(TaskRefused, match="does not begin with the 3"):
        seen_by(Shown(1, 9, 3, 4), 4, seen)
    with pytest.raises(TaskRefused, match="had 3 when"):
        seen_by(Shown(1, 2), 2, seen)
    with pytest.raises(TaskRefused, match="had 3 when"):
        seen_by(Shown(1, 2, 4), 4, seen)
    with pytest.raises(TaskRefused, match="not signed"):
        seen_by(Shown(1, 2, 3, 4, key=OperatorKey(b"x" * 32)), 4, seen)


def test_a_device_refuses_a_proof_of_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Shown(1, 2, 3)
    proof = server.log_proof(leaf_of(entry(2)).hex())
    monkeypatch.setattr(server, "log_proof", lambda leaf: proof)
    with pytest.raises(TaskRefused, match="does not hold"):
        seen_by(server, 3)


def test_a_server_that_does_not_answer_now_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(leaf: str) -> InclusionProof:
        raise ServerError("the server answers 503: busy.", final=False)

    server = Shown(1)
    monkeypatch.setattr(server, "log_proof", busy)
    with pytest.raises(ServerError, match="busy"):
        seen_by(server, 1)


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
