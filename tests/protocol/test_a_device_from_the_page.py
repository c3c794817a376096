"""docs/protocol.md and docs/openapi.json suffice to write a device: one that imports nothing of tacit takes part."""

import ast
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import func, select
from tests.conftest import REPOSITORY
from tests.support.device import from_the_page, page_tokens
from tests.support.device.from_the_page import PageDevice
from tests.support.protocol import openapi_documents
from tests.support.protocol.openapi_documents import Documents
from tests.support.server.documents import PARAMETERS, a_plan
from tests.support.server.fleet import a_training_task
from tests.support.server.loopback import Loopback, loopback
from tests.support.waiting import until

from tacit.federation.collector import Answered
from tacit.protocol.operator_key import OperatorKey
from tacit.server.store.schema import assignments

KEY = OperatorKey(bytes(32))  # the operator's
DOCUMENTS = Documents(REPOSITORY / "docs" / "openapi.json")
RECIPE = """
rounds = { rounds = 20, report_goal = 10 }
privacy = { mechanism = { name = "independent" }, noise_multiplier = 7.0 }
clipping = {}
training_loss = { bound = 8.0 }
"""
Edit = Callable[[dict[str, Any]], dict[str, Any]]


class ShownDevice(PageDevice):
    """One to which the operator shows its answers to some paths otherwise."""

    def __init__(self, server: Loopback, folder: Path, code: str | None = None, **edits: Edit) -> None:
        """edits: of the last word of a path, with _ for -."""
        super().__init__(server.url, KEY.public, folder, DOCUMENTS, population=server.plan.population, code=code)
        self.edits = edits

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        status, content = super().ask(method, path, body, **headers)
        edit = self.edits.get(path.rsplit("/", 1)[1].replace("-", "_"))
        return status, content if edit is None else json.dumps(edit(json.loads(content))).encode()

    def until_told(self) -> str:
        """The first turn that is not idle."""
        turns: list[str] = []
        until(lambda: not turns.append(self.turn()) and not turns[-1].startswith("idle"))  # type: ignore[func-returns-value]
        return turns[-1]


def signed(purpose: str, said: dict[str, Any]) -> dict[str, str]:
    text = json.dumps(said)
    operator = Ed25519PrivateKey.from_private_bytes(bytes(32))
    return {"document": text, "signature": operator.sign(f"tacit {purpose} v2\0".encode() + text.encode()).hex()}


def tasks(edit: Edit) -> Edit:
    """The answer to a check-in with another task in it, signed by the operator."""

    def edited(answer: dict[str, Any]) -> dict[str, Any]:
        if answer["answer"] == "come_back":
            return answer
        return answer | {"signed_task": signed("task", edit(json.loads(answer["signed_task"]["document"])))}

    return edited


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Loopback]:
    with loopback(tmp_path, workers=1, recipe=RECIPE, privacy=priced()) as found:
        yield found


def priced() -> Any:
    """1/(2 z^2) a participation, at most four."""
    return a_plan().privacy.model_copy(update={"mechanism": "independent", "zcdp": 4 / (2 * 7.0**2)})


@contextmanager
def round_of(server: Loopback, round: int, goal: int) -> Iterator[list[Answered]]:
    """A round that opens, and what it was when the block has ended."""
    found: list[Answered] = []
    asked = a_training_task(round, goal=goal, clip_estimate=0.75)
    collecting = threading.Thread(
        target=lambda: found.append(server.collector.collect((), asked, seed=bytes(32))[0]), daemon=True
    )
    collecting.start()
    yield found
    collecting.join()
    server.collector.released(round)


def test_it_imports_nothing_of_tacit() -> None:
    files = (from_the_page, page_tokens, openapi_documents)
    for file in (str(each.__file__) for each in files):
        nodes = list(ast.walk(ast.parse(Path(file).read_text("utf-8"))))
        named = [each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)]
        named += [name.name for each in nodes if isinstance(each, ast.Import) for name in each.names]
        ours = {each for each in named if each.split(".")[0] in ("tacit", "tests")}
        assert "hashlib" in named or "json" in named
        assert ours <= {each.__name__ for each in files}


def test_it_takes_part_and_its_report_is_in_the_sum(server: Loopback, tmp_path: Path) -> None:
    devices = [ShownDevice(server, tmp_path / str(number)) for number in range(2)]
    with round_of(server, 0, goal=2) as found:
        assert [each.until_told() for each in devices] == ["reported: round 0"] * 2
    (got,) = found
    assert got.reports == 2
    assert got.values == pytest.approx([2 * 0.5 / PARAMETERS**0.5] * PARAMETERS)
    assert (got.beside["short"], got.beside["bounded_loss"]) == (2, 2 * (1.0 - 4.0))
    entries = devices[0].record["log"]
    with round_of(server, 1, goal=2):
        again = ShownDevice(server, tmp_path / "0")  # the same device, after a start
        again.asked.clear()
        assert again.record["log"] == entries and again.until_told() == "refused: too soon"
        assert [method for method, path in again.asked if "check-in" not in path] == ["GET", "GET", "DELETE"]
        for number in (2, 3):
            ShownDevice(server, tmp_path / str(number)).until_told()


def test_it_ignores_unknown_keys_and_gives_its_place_back_for_a_critical_one(server: Loopback, tmp_path: Path) -> None:
    def unknown(task: dict[str, Any]) -> dict[str, Any]:
        return task | {"weekdays": {"critical": ["of", "nobody"]}, "asks": task["asks"] | {"hours": [1]}}

    def critical(task: dict[str, Any]) -> dict[str, Any]:
        return task | {"asks": task["asks"] | {"hours": [1], "critical": ["hours"]}}

    with round_of(server, 0, goal=2):
        told = ShownDevice(server, tmp_path / "critical", check_in=tasks(critical))
        assert told.until_told() == "refused: RoundTask.asks: ['hours'] is critical and unknown"
        assert told.asked[-1][0] == "DELETE"
        with server.store.reading() as connection:
            assert connection.execute(select(func.count()).select_from(assignments)).scalar_one() == 0
        for number in range(2):
            device = ShownDevice(server, tmp_path / str(number), check_in=tasks(unknown))
            assert device.until_told() == "reported: round 0"


def test_it_takes_no_part_in_what_the_log_does_not_show(server: Loopback, tmp_path: Path) -> None:
    def without(shown: dict[str, Any]) -> dict[str, Any]:
        other = "plan " + "ab" * 32
        root = from_the_page.root_of([hashlib.sha256(b"\0" + other.encode()).digest()]).hex()
        return {"head": signed("head", {"size": 1, "root": root}), "entries": [other]}

    def unsigned(shown: dict[str, Any]) -> dict[str, Any]:
        return shown | {"head": shown["head"] | {"signature": "00" * 64}}

    with round_of(server, 0, goal=2):
        for edit, why in ((without, "no plan like it is in the log"), (unsigned, "TreeHead is not signed")):
            assert ShownDevice(server, tmp_path / "other", log=edit).until_told().startswith(f"refused: {why}")
        devices = [ShownDevice(server, tmp_path / str(number)) for number in range(2)]
        assert {each.until_told() for each in devices} == {"reported: round 0"}
    with round_of(server, 5, goal=2):
        devices[0].record["log"] = ["plan " + "cd" * 32]  # what it was shown before
        assert devices[0].until_told() == "refused: the log was written anew"
        devices[0].asked.clear()
        assert devices[0].turn() == "refused: the operator signed two logs" and not devices[0].asked
        for number in (2, 3):
            ShownDevice(server, tmp_path / str(number)).until_told()


def test_it_shows_a_token_where_devices_are_enrolled(tmp_path: Path) -> None:
    codes = [f"correct-horse-battery-staple-{number}" for number in range(2)]
    told = {"recipe": RECIPE, "privacy": priced(), "enrolment": "tokens"}
    with loopback(tmp_path, workers=1, codes=codes, **told) as server, round_of(server, 0, goal=2) as found:
        stranger = ShownDevice(server, tmp_path / "stranger")
        assert stranger.until_told() == "unanswered: tacit:token"
        wrong = ShownDevice(server, tmp_path / "wrong", code="wrong-horse-battery-staple")
        assert "tacit:credential" in wrong.until_told() and wrong.asked[-1] == ("POST", "/v1/tokens")
        for number, code in enumerate(codes):
            device = ShownDevice(server, tmp_path / str(number), code=code)
            until(lambda device=device: device.turn().startswith("idle: it asked for tokens"))  # type: ignore[misc]
            assert [path for _, path in device.asked[-4:]] == [
                "/v1/check-in",
                "/v1/tokens/key",
                "/v1/log",
                "/v1/tokens",
            ]
            assert device.turn() == "reported: round 0"
            assert len(device.record["tokens"]["left"]) == 1  # of a batch of two
    assert found[0].reports == 2
