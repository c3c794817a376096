"""Pages and processes in one sealed run: every sum that is opened is that of what each of them says it encoded.

Three of each and two rounds; FLEET=15,15,5 has so many pages, processes and rounds. FIGURES=FILE adds a line of what
they took.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.conftest import REPOSITORY
from tests.support.server.decryptor_process import decryptor
from tests.support.training.tiny import MECHANISMS, WORDS, tiny_cache, tiny_recipe
from tests.support.web.npm import ENVIRONMENT, ran

import tacit
from tacit.protocol.address import Address
from tacit.protocol.messages import RoundTask, Signed
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import sum_body
from tacit.protocol.train import TrainDocument
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.secure_aggregation import encode
from tacit.secure_aggregation.counts import play
from tacit.server.serve import Serving
from tacit.server.store import round_states
from tacit.server.store.store import Store

PAGES, PROCESSES, ROUNDS = (int(each) for each in os.environ.get("FLEET", "3,3,2").split(","))
DEVICES = PAGES + PROCESSES
PATIENCE = 600  # seconds
POLICY = {"largest_epsilon": 1e6, "largest_zcdp": 1e6, "budget_zcdp": 1e6, "largest_delta": 0.1, "send_after_s": 0.0}
Words = NDArray[np.uint32]
Said = Sequence[Mapping[str, Any]]  # lines of a program


class Encoded(NamedTuple):
    """A report as its device says it: what it encoded, and in a page of which update and secret."""

    device: str
    words: Words  # (length,)
    update: NDArray[np.float32] | None = None  # (parameters,)
    seed: bytes = b""


@dataclass
class Programs:
    """What takes part, each a process that is told a line of JSON and says lines of it."""

    folder: Path
    started: dict[str, "subprocess.Popen[str]"] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], told: Mapping[str, Any], where: Path) -> None:
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        with self._file(name, "out").open("w") as out, self._file(name, "err").open("w") as err:
            process = subprocess.Popen(
                command, cwd=where, stdin=subprocess.PIPE, stdout=out, stderr=err, text=True, env=environment
            )
        self.started[name] = process
        assert process.stdin is not None
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()

    def check_alive(self) -> None:
        for name, each in self.started.items():
            assert each.poll() is None, (name, self._file(name, "err").read_text())

    def end(self, name: str, *, by_signal: bool) -> float:
        """Its CPU-seconds, its children's included."""
        process = self.started.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        if by_signal:
            process.terminate()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert by_signal or process.returncode == 0, self._file(name, "err").read_text()
        return used.ru_utime + used.ru_stime

    def said(self, name: str) -> Said:
        text = self._file(name, "out").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def kill(self) -> None:
        for each in self.started.values():
            each.kill()
            each.communicate()

    def _file(self, name: str, kind: str) -> Path:
        return self.folder / f"{name}.{kind}"


def built_page(web: Path, export: Path, out: Path) -> Path:
    """The page of an export, with the spy before each of its scripts."""
    made = ran(web, "npm", "run", "--silent", "build", "--", str(export), str(out))
    assert made.returncode == 0, made.stdout + made.stderr
    spy = (web / "tests" / "spy.js").read_text(encoding="utf-8")
    for script in out.glob("*.js"):
        script.write_text(spy + script.read_text(encoding="utf-8"), encoding="utf-8")
        (out / f"{script.name}.br").unlink(missing_ok=True)
    return out


@contextmanager
def serving(recipe: Recipe, out: Path, page: Path, key: Path) -> Iterator[tuple[Serving, threading.Event]]:
    """A server of the run; the event is set once it is done, or has failed."""
    there, done, stop = threading.Event(), threading.Event(), threading.Event()
    told: list[Serving] = []
    failed: list[BaseException] = []

    def says(said: Serving) -> None:
        told.append(said)
        there.set()

    def serve() -> None:
        rest: dict[str, Any] = {"operator_key": key, "web": page, "without_enrolment": True, "workers": 1}
        try:
            tacit.serve([recipe], out, address=Address(port=0), serving=says, stop=stop, **rest)
        except BaseException as error:
            failed.append(error)
        finally:
            there.set()
            done.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert there.wait(PATIENCE)
        if told:
            yield told[0], done
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


def recipe_of(cache: Path, decryptors: Sequence[str]) -> Recipe:
    """Of rounds in which each device takes part: one that is missing, or counted twice, changes a sum."""
    phones = {"population": "phones", "devices": DEVICES, "decryptors": decryptors}
    found = tiny_recipe(
        cache,
        deployment={**phones, "pause_minutes": 0.01, "reporting_minutes": 5.0},
        aggregation={"kind": "secure", "threshold": DEVICES},
        rounds={"rounds": ROUNDS, "report_goal": DEVICES, "min_separation": 1},
        privacy={"mechanism": {"name": "blt-b400"}, "noise_multiplier": 6.0},
    )
    return found.model_copy(update={"run": found.run.model_copy(update={"seed": None})})


def start_all(programs: Programs, web: Path, cache: Path, served: Serving) -> None:
    asked = {"address": served.url, "key": served.operator_key, "population": "phones"}
    rules = "\n".join(f"{name} = {value!r}" for name, value in POLICY.items())
    texts = [[" ".join(WORDS[(each + at) % 56] for at in range(6)), WORDS[each % 56]] for each in range(PAGES)]
    programs.start("pages", ["npm", "run", "--silent", "fleet"], {**asked, "policy": rules, "texts": texts}, web)
    device = str(Path(__file__).parent / "fleet_device.py")
    for client in range(PROCESSES):
        own = {"cache": str(cache), "client": client, "state": str(programs.folder / f"device-{client}")}
        programs.start(f"device-{client}", [sys.executable, device], {**asked, **own, "policy": POLICY}, REPOSITORY)


def encoded(said: Mapping[str, Said]) -> Mapping[str, Sequence[Encoded]]:
    """What each device says it encoded, by the task; nothing of a page is beyond its record."""
    found: dict[str, list[Encoded]] = defaultdict(list)
    for name, lines in said.items():
        for each in lines:
            assert each["what"] != "error", each
            if each["what"] == "report":
                found[each["task"]].append(Encoded(name, _array(each["words"], "<u4")))
            if each["what"] != "page":
                continue
            tasks = [taken["task"] for taken in each["participations"]]
            assert len(set(tasks)) == len(tasks) == len(each["encoded"]), each["turn"]
            for task, made in zip(tasks, each["encoded"], strict=True):
                words, update = _array(made["words"], "<u4"), _array(made["update"], "<f4")
                found[task].append(Encoded(f"page {each['page']}", words, update, base64.b64decode(made["seed"])))
    return found


def _array(said: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(said), kind)


def digest_of(total: Words) -> str:
    return hashlib.sha256(sum_body(total)).hexdigest()


def total_of(reports: Sequence[Encoded]) -> Words:
    return np.asarray(np.sum([each.words for each in reports], axis=0, dtype=np.uint32), np.uint32)


def check_sum(attempt: round_states.Attempt, reports: Sequence[Encoded]) -> None:
    """What decryptors and server opened is the sum of these, and Python alone makes the same of them."""
    assert attempt.reports == DEVICES == len(reports) == len({each.device for each in reports})
    whole = total_of(reports)
    assert digest_of(whole) == attempt.total_digest
    assert digest_of(total_of(reports[1:])) != attempt.total_digest
    asks = Signed.from_json(attempt.signed_task).read(RoundTask).question(TrainDocument)
    assert asks.encoded is not None
    encoding, signs = asks.encoded.encoding(), bytes.fromhex(asks.encoded.signs)
    by_pages = [(each.words, each.update, each.seed) for each in reports if each.update is not None]
    assert len(by_pages) == PAGES
    for words, update, seed in by_pages:
        again = encode(update, encoding, signs=signs, rounding=seed)
        assert again.tobytes() == words[: encoding.dimension].tobytes()
    played = play("one-message", [each.words for each in reports], bits=32, each=2 * encoding.largest)
    assert played.total.tobytes() == whole.tobytes()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_pages_and_processes_make_sums_of_what_each_says_it_encoded(web: Path, tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": max(DEVICES, 18), "validation": 5, "test": 6})
    before = tiny_recipe(cache.path, rounds={"rounds": 3}, privacy=MECHANISMS["independent"])
    tacit.export(tacit.train(before, tmp_path / "before").run.path, tmp_path / "export")
    page, key = built_page(web, tmp_path / "export", tmp_path / "page"), tmp_path / "operator.key"
    operator, programs = OperatorKey.in_file(key).public, Programs(tmp_path)
    with ExitStack() as stack:
        folders = [tmp_path / f"decryptor-{each}" for each in range(2)]
        keepers = [stack.enter_context(decryptor(each, operator, least=DEVICES))[0] for each in folders]
        recipe = recipe_of(cache.path, keepers)
        served, done = stack.enter_context(serving(recipe, tmp_path / "served", page, key))
        stack.callback(programs.kill)
        began = time.monotonic()
        start_all(programs, web, cache.path, served)
        names = list(programs.started)
        while not done.wait(0.2):
            assert time.monotonic() < began + PATIENCE, "the run does not end"
            programs.check_alive()
        seconds = time.monotonic() - began
        cpu = {each: programs.end(each, by_signal=each != "pages") for each in names}
    by_task = encoded({name: programs.said(name) for name in names})
    with closing(Store.open(f"sqlite:///{tmp_path / 'served' / 'store.db'}")) as store:
        released = [each for each in round_states.attempts(store, recipe.name) if each.total_digest is not None]
    assert [each.round for each in released] == list(range(ROUNDS))
    for attempt in released:
        check_sum(attempt, by_task[attempt.task])
    run = served.runs[0]
    with Run.open(run) as found:
        assert [each["reports"] for row in found.steps() for each in row.releases] == [DEVICES] * ROUNDS
    held, log = tacit.verify(run), tacit.verify_log(run, str(tmp_path / "operator.log"))
    assert held.holds and log and all(each.holds for each in log)

    said = {each: programs.said(each) for each in names}
    browser = next(each for each in said["pages"] if each["what"] == "browser")
    kept = [report["bytes"] for each in said["pages"] if each["what"] == "page" for report in each["reports"]]
    sizes = {*kept, *(each["bytes"] for lines in said.values() for each in lines if each["what"] == "report")}
    assert len(sizes) == 1  # whoever made it
    if file := os.environ.get("FIGURES"):
        figures = {
            "sizes": {"pages": PAGES, "processes": PROCESSES, "rounds": ROUNDS, "attempts": len(by_task)},
            "seconds": seconds,
            "cpu_s": {"of pages": browser["pagesCpu"], "rest of the browser": browser["otherCpu"]},
            "processes_cpu_s": sum(each for name, each in cpu.items() if name != "pages"),
            "bytes": {"report": sizes.pop(), "pages sent": browser["sent"], "pages got": browser["received"]},
            "lines that hold": {"statement": len(held.lines), "log": len(log)},
        }
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(json.dumps(figures) + "\n")
