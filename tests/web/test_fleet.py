"""Pages and processes in one sealed run: every sum that is opened is that of what each of them says it reported.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tomli_w
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
TEXTS = [  # of the pages: each second one has a word that the model lacks
    [" ".join(WORDS[(page + at) % 56] for at in range(6)), WORDS[page % 56] + " faced" * (page % 2)]
    for page in range(PAGES)
]
GOALS = {"count": DEVICES, "discover": DEVICES // 2}  # reports of a round: a device answers once
QUESTIONS: dict[str, dict[str, Any]] = {
    "count": {
        "clients": DEVICES,
        "statistics": [{"statistic": "words", "cuts": [8.0]}, {"statistic": "unknown_share", "cuts": [0.1]}],
        "release": {"zcdp": 2.0, "delta": 1e-6},
    },
    "discover": {
        "users_per_layer": DEVICES // 2,
        "prefixes": 30,
        "depth": 2,
        "reports": {"local_epsilon": 2.0, "contributions": 1},
        "alphabet": {"characters": "abcdefghw"},
    },
}
Words = NDArray[np.uint32]
Said = Sequence[Mapping[str, Any]]  # lines of a program


class Encoded(NamedTuple):
    """A report as its device says it: its numbers, and in a page that trained of which update and secret they are."""

    device: str
    words: Words  # (length,)
    update: NDArray[np.float32] | None = None  # (parameters,)
    seed: bytes = b""


class Played(NamedTuple):
    """What came of a run."""

    served: Serving
    released: Sequence[round_states.Attempt]
    reports: Mapping[str, Sequence[Encoded]]  # by the task
    said: Mapping[str, Said]  # by the program
    cpu: Mapping[str, float]  # seconds, by the program
    seconds: float


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
def serving(job: Recipe | Path, out: Path, page: Path, key: Path) -> Iterator[tuple[Serving, threading.Event]]:
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
            tacit.serve([job], out, address=Address(port=0), serving=says, stop=stop, **rest)
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
    programs.start("pages", ["npm", "run", "--silent", "fleet"], {**asked, "policy": rules, "texts": TEXTS}, web)
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
            tasks, all_made = [taken["task"] for taken in each["participations"]], each["encoded"]
            if any(made["update"] for made in all_made):  # one that trains first makes the report that says nothing
                assert not any(_array(made["update"], "<f4").any() for made in all_made[::2])
                all_made = all_made[1::2]
            assert len(set(tasks)) == len(tasks) == len(all_made), each["turn"]
            for task, made in zip(tasks, all_made, strict=True):
                device, words = f"page {each['page']}", _array(made["words"], "<u4")
                trained = (
                    {"update": _array(made["update"], "<f4"), "seed": base64.b64decode(made["seed"])}
                    if made["update"]
                    else {}
                )
                found[task].append(Encoded(device, words, **trained))
    return found


def _array(said: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(said), kind)


def digest_of(total: Words) -> str:
    return hashlib.sha256(sum_body(total)).hexdigest()


def total_of(reports: Sequence[Encoded]) -> Words:
    return np.asarray(np.sum([each.words for each in reports], axis=0, dtype=np.uint32), np.uint32)


def check_opened(attempt: round_states.Attempt, reports: Sequence[Encoded], *, goal: int = DEVICES) -> None:
    """What decryptors and server opened is the sum of these, one of each device."""
    assert attempt.reports == goal == len(reports) == len({each.device for each in reports})
    assert digest_of(total_of(reports)) == attempt.total_digest
    assert digest_of(total_of(reports[1:])) != attempt.total_digest


def check_sum(attempt: round_states.Attempt, reports: Sequence[Encoded]) -> None:
    """It is their sum, and Python alone makes the same of what the devices say they encoded."""
    check_opened(attempt, reports)
    asks = Signed.from_json(attempt.signed_task).read(RoundTask).question(TrainDocument)
    assert asks.encoded is not None
    encoding, signs = asks.encoded.encoding(), bytes.fromhex(asks.encoded.signs)
    by_pages = [(each.words, each.update, each.seed) for each in reports if each.update is not None]
    assert len(by_pages) == PAGES
    for words, update, seed in by_pages:
        again = encode(update, encoding, signs=signs, rounding=seed)
        assert again.tobytes() == words[: encoding.dimension].tobytes()
    alone = play("one-message", [each.words for each in reports], bits=32, each=2 * encoding.largest)
    assert alone.total.tobytes() == total_of(reports).tobytes()


def question_of(kind: str, folder: Path, decryptors: Sequence[str], export: Path) -> Path:
    """The file of a sealed run in which each device answers."""
    deployment = {"population": "phones", "devices": DEVICES, "decryptors": decryptors, "over_selection": 1.0}
    said = {"kind": kind, "name": "asked", "vocabulary": str(export / "vocabulary.json"), **QUESTIONS[kind]}
    file = folder / "asked.toml"
    file.write_text(tomli_w.dumps({**said, "deployment": deployment | {"reporting_minutes": 5.0}}), encoding="utf-8")
    return file


def exported(folder: Path) -> tuple[Path, Path]:
    """(the devices' text, a model for phones)"""
    cache = tiny_cache(folder / "cache", {"train": max(DEVICES, 18), "validation": 5, "test": 6})
    before = tiny_recipe(cache.path, rounds={"rounds": 3}, privacy=MECHANISMS["independent"])
    tacit.export(tacit.train(before, folder / "before").run.path, folder / "export")
    return cache.path, folder / "export"


def played(
    web: Path,
    folder: Path,
    cache: Path,
    export: Path,
    job: Callable[[Sequence[str]], Recipe | Path],
    *,
    least: int = DEVICES,
) -> Played:
    """A sealed run to its end. job: what is served, by the lines of two decryptors. least: reports of a sum."""
    page, key = built_page(web, export, folder / "page"), folder / "operator.key"
    operator, programs = OperatorKey.in_file(key).public, Programs(folder)
    with ExitStack() as stack:
        folders = [folder / f"decryptor-{each}" for each in range(2)]
        keepers = [stack.enter_context(decryptor(each, operator, least=least))[0] for each in folders]
        served, done = stack.enter_context(serving(job(keepers), folder / "served", page, key))
        stack.callback(programs.kill)
        began = time.monotonic()
        start_all(programs, web, cache, served)
        names = list(programs.started)
        while not done.wait(0.2):
            assert time.monotonic() < began + PATIENCE, "the run does not end"
            programs.check_alive()
        seconds = time.monotonic() - began
        cpu = {each: programs.end(each, by_signal=each != "pages") for each in names}
    said = {name: programs.said(name) for name in names}
    with closing(Store.open(f"sqlite:///{folder / 'served' / 'store.db'}")) as store:
        all_attempts = round_states.attempts(store, served.runs[0].name)
    released = [each for each in all_attempts if each.total_digest is not None]
    return Played(served, released, encoded(said), said, cpu, seconds)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
@pytest.mark.parametrize("kind", ["count", pytest.param("discover", marks=pytest.mark.nightly)])  # of QUESTIONS
def test_pages_and_processes_answer_in_one_sealed_sum(kind: str, web: Path, tmp_path: Path) -> None:
    cache, export = exported(tmp_path)
    found = played(
        web,
        tmp_path,
        cache,
        export,
        lambda keepers: question_of(kind, tmp_path, keepers, export),
        least=GOALS[kind],
    )
    assert len(found.released) == DEVICES // GOALS[kind]
    for attempt in found.released:
        check_opened(attempt, found.reports[attempt.task], goal=GOALS[kind])
    reports = [each for said in found.reports.values() for each in said]
    of_pages = {each.device: each.words.tolist() for each in reports if each.device.startswith("page ")}
    assert len(of_pages) == PAGES
    if kind == "count":  # seven words or eight, of which none or one is unknown
        wanted = {f"page {page}": [0, 1, 0] * 2 if page % 2 else [1, 0, 0] * 2 for page in range(PAGES)}
        assert of_pages == wanted
    with Run.open(found.served.runs[0]) as run:
        assert run.finished
    assert tacit.verify(found.served.runs[0]).holds
    assert all(each.holds for each in tacit.verify_log(found.served.runs[0], str(tmp_path / "operator.log")))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_pages_and_processes_make_sums_of_what_each_says_it_encoded(web: Path, tmp_path: Path) -> None:
    cache, export = exported(tmp_path)
    found = played(web, tmp_path, cache, export, lambda keepers: recipe_of(cache, keepers))
    assert [each.round for each in found.released] == list(range(ROUNDS))
    for attempt in found.released:
        check_sum(attempt, found.reports[attempt.task])
    run = found.served.runs[0]
    with Run.open(run) as opened:
        assert [each["reports"] for row in opened.steps() for each in row.releases] == [DEVICES] * ROUNDS
    held, log = tacit.verify(run), tacit.verify_log(run, str(tmp_path / "operator.log"))
    assert held.holds and log and all(each.holds for each in log)

    said = found.said
    browser = next(each for each in said["pages"] if each["what"] == "browser")
    kept = [report["bytes"] for each in said["pages"] if each["what"] == "page" for report in each["reports"]]
    sizes = {*kept, *(each["bytes"] for lines in said.values() for each in lines if each["what"] == "report")}
    assert len(sizes) == 1  # whoever made it
    if file := os.environ.get("FIGURES"):
        figures = {
            "sizes": {"pages": PAGES, "processes": PROCESSES, "rounds": ROUNDS, "attempts": len(found.reports)},
            "seconds": found.seconds,
            "cpu_s": {"of pages": browser["pagesCpu"], "rest of the browser": browser["otherCpu"]},
            "processes_cpu_s": sum(each for name, each in found.cpu.items() if name != "pages"),
            "bytes": {"report": sizes.pop(), "pages sent": browser["sent"], "pages got": browser["received"]},
            "lines that hold": {"statement": len(held.lines), "log": len(log)},
        }
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(json.dumps(figures) + "\n")
