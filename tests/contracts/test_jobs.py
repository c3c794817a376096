"""What every job owes whoever calls it: silence, events in one's own thread, refusals before anything is written, and
the same bytes after being stopped anywhere and called again.

A new job that leaves a run folder adds a line to RUNS, another one a line to ANSWERS.
"""

import ast
import copy
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.support.jobs.jobs_with_runs import ONE, RUNS, MakesARun, Stop, content
from tests.support.journals import Entries, entries_of, rewrite
from tests.support.training.tiny import tiny_cache

import tacit
from tacit.data import Cache
from tacit.errors import RunError, TacitError
from tacit.jobs.machine_checks import CHECKS
from tacit.planning import Clients, Scenario, Utility
from tacit.planning.targets import Goal
from tacit.population.devices import Population, RoundRules
from tacit.population.settings import SimulationSettings
from tacit.privacy import Participation
from tacit.progress import Event, Progress, silent

JOBS = sorted((REPOSITORY / "src" / "tacit" / "jobs").rglob("*.py"))


every_run = pytest.mark.parametrize("job", RUNS.values(), ids=RUNS)
LATE = (0.0, 0.3, 0.7)  # shares of a run at which it is stopped once


def diagnosis(progress: Progress) -> Any:
    """With one of its checks, each of which is a process; tests/jobs/test_doctor.py has them all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.jobs.doctor.CHECKS", {"BLAS": CHECKS["BLAS"]})
        return tacit.doctor(progress=progress)


SERVED = Participation(rounds=60, min_separation=20, max_participations=3)
SCENARIO = Scenario(clients=Clients(devices=10**6), rounds=700, utility=Utility())
ANSWERS: dict[str, Callable[[Progress], Any]] = {
    "design": lambda progress: tacit.design_mechanism("blt", SERVED, buffers=2, progress=progress),
    "compare_mechanisms": lambda progress: tacit.compare_mechanisms(SERVED, progress=progress),
    "plan": lambda progress: tacit.plan(SCENARIO, "tree", Goal(zcdp=1.0, delta=1e-10), progress=progress),
    "doctor": diagnosis,
    "simulate": lambda progress: tacit.simulate(
        SimulationSettings(
            population=Population(devices=2_000), rules=RoundRules(report_goal=10, timer_hours=12), rounds=40
        ),
        progress=progress,
    ),
}
every_answer = pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@dataclass(frozen=True)
class Whole:
    """A run that nobody stopped: what is in its folder, and what was heard on the way."""

    content: Mapping[str, Any]
    events: tuple[Event, ...]
    path: Path  # to be left as it is
    threads: frozenset[int]  # in which something was heard


@pytest.fixture(scope="module")
def whole(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Callable[[MakesARun], Whole]:
    made: dict[int, Whole] = {}

    def of(job: MakesARun) -> Whole:
        if id(job) not in made:
            heard: list[tuple[Event, int]] = []
            out = tmp_path_factory.mktemp("whole") / "run"
            job.call(cache, out, lambda event: heard.append((event, threading.get_ident())))
            events, threads = zip(*heard, strict=True)
            made[id(job)] = Whole(content(out), events, out, frozenset(threads))
        return made[id(job)]

    return of


def damaged(value: Any) -> Iterator[Any]:
    """Values of other types in place of this one, and in place of each value in it."""
    yield from (each for each in (None, "7", -1, [value], {"a": [None]}) if each != value)
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for other in (None, "x"):
            changed = copy.copy(value)
            changed[key] = other
            yield changed
    if isinstance(value, dict):
        yield from ({key: each for key, each in value.items() if key != gone} for gone in value)
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        yield from ([*value[:-1], each] for each in damaged(value[-1]))


def with_note(entries: Entries, at: int, record: dict[str, Any]) -> Entries:
    return [*entries[:at], (entries[at][0], record), *entries[at + 1 :]]


def ask_of_damaged(run: Path, path: Path, every: int) -> int:
    """Asks everything of copies of a run, each with one note damaged, under seals that fit: whoever can write the
    folder can make those. Returns how many; every: of so many ways to damage it, one is tried.
    """
    shutil.copytree(run, path)
    before = entries_of(path)
    notes = [(at, record) for at, (kind, record) in enumerate(before) if kind == "note"]
    tried = [(at, {**record, "value": value}) for at, record in notes for value in damaged(record["value"])][::every]
    for at, record in tried:
        rewrite(path, lambda _, at=at, record=record: with_note(before, at, record))
        for ask in (tacit.verify, tacit.account_run, tacit.report, resumed):
            with suppress(TacitError):
                ask(path)
    return len(tried)


def resumed(path: Path) -> None:
    """Gone on with, and everything said of it that can be asked for."""
    result: Any = tacit.resume(path, hardware=ONE)
    result.to_record()
    result.blocks(**({"profile": True} if result.run.kind == "train" else {}))


class TestJobsThatMakeARun:
    @every_run
    def test_nothing_is_printed_and_the_result_is_json(
        self, job: MakesARun, cache: Cache, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        result = job.call(cache, tmp_path / "run", silent)
        record = result.to_record()
        assert result.blocks(), "what the command prints of it"
        assert capfd.readouterr() == ("", "")
        assert json.loads(json.dumps(record)) == record
        assert record["schema"] and record["version"]

    @every_run
    def test_events_come_in_the_thread_of_the_caller(self, job: MakesARun, whole: Callable[[MakesARun], Whole]) -> None:
        assert whole(job).threads == {threading.get_ident()}

    @every_run
    @pytest.mark.parametrize(
        "shares", [[0.0, 0.3, 0.3], [1.0], *(pytest.param([s], marks=pytest.mark.long) for s in LATE)]
    )
    def test_stopped_anywhere_and_called_again_it_ends_with_the_same_bytes(
        self,
        job: MakesARun,
        shares: list[float],
        cache: Cache,
        tmp_path: Path,
        whole: Callable[[MakesARun], Whole],
    ) -> None:
        """Each call is stopped when it has said so large a share of what a whole run says."""
        expected = whole(job)
        left = 0

        def impatient(event: Event) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stop

        for share in shares:
            left = int(share * (len(expected.events) - 1))
            with pytest.raises(Stop):
                job.call(cache, tmp_path / "run", impatient)
        job.call(cache, tmp_path / "run", silent)
        assert content(tmp_path / "run") == expected.content
        job.call(cache, tmp_path / "run", silent)  # a finished run stays what it is
        assert content(tmp_path / "run") == expected.content

    @every_run
    def test_every_file_that_it_leaves_for_readers_is_verified(
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], Whole]
    ) -> None:
        path = shutil.copytree(whole(job).path, tmp_path / "run")
        assert tacit.verify(path).holds, tacit.verify(path).failed
        inside = {"run.db", "head", "lock"}
        left = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name not in inside]
        left = [file for file in left if file.parent.name != "steps"]  # those are looked at before anything else
        for file in left:
            before = file.read_bytes()
            file.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
            own = next(folder for folder in file.parents if (folder / "run.db").exists())  # a trial is a run of its own
            failed = {line.name for line in tacit.verify(own).failed if line.name.startswith("file ")}
            assert failed == {f"file {file.relative_to(own)}"}
            file.write_bytes(before)
        (path / "report" / "more.png").write_bytes(b"a figure of another's")
        assert {line.name for line in tacit.verify(path).failed} == {"file report/more.png"}

    @every_run
    def test_other_arguments_are_refused_by_name(
        self, job: MakesARun, cache: Cache, tmp_path: Path, whole: Callable[[MakesARun], Whole]
    ) -> None:
        path = shutil.copytree(whole(job).path, tmp_path / "run")
        with pytest.raises(RunError, match=job.named):
            job.call(cache, path, silent, **job.others)
        assert content(path) == whole(job).content

    @every_run
    def test_damaged_notes_are_refused_or_harmless(
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], Whole]
    ) -> None:
        assert ask_of_damaged(whole(job).path, tmp_path / "run", every=4)

    @pytest.mark.long
    @every_run
    def test_notes_damaged_in_every_way_are_refused_or_harmless(
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], Whole]
    ) -> None:
        assert ask_of_damaged(whole(job).path, tmp_path / "run", every=1)

    @every_run
    def test_what_cannot_be_is_refused_before_anything_is_written(
        self, job: MakesARun, cache: Cache, tmp_path: Path
    ) -> None:
        with pytest.raises(TacitError):
            job.call(cache, tmp_path / "run", silent, **job.impossible)
        assert not list(tmp_path.iterdir())


class TestJobsThatAnswer:
    @every_answer
    def test_nothing_is_printed_events_come_in_the_thread_of_the_caller_and_the_answer_is_json(
        self, ask: Callable[[Progress], Any], capfd: pytest.CaptureFixture[str]
    ) -> None:
        threads = set()
        record = ask(lambda event: threads.add(threading.get_ident())).to_record()
        assert threads <= {threading.get_ident()}
        assert capfd.readouterr() == ("", "")
        assert json.loads(json.dumps(record)) == record


WITH_A_NETWORK = {  # the settings of a network come with JAX: only ever shorter
    "tacit.jobs.clients_or_devices",
    "tacit.jobs.count_steps",
    "tacit.jobs.evaluate.run",
    "tacit.jobs.personalize.record",
    "tacit.jobs.personalize.run",
    "tacit.jobs.plan.production",
    "tacit.jobs.plan.production_files",
    "tacit.jobs.train.refusals",
    "tacit.jobs.train.run",
    "tacit.jobs.tune.job",
    "tacit.jobs.tune.result",
    "tacit.jobs.type_ab.record",
    "tacit.jobs.type_ab.run",
    "tacit.jobs.type_ab.setup",
    "tacit.jobs.type_ab.workers",
}


def test_no_job_prints_or_reads_the_environment() -> None:
    told = {"print", "input", "environ", "getenv", "stdout", "stderr", "argv"}
    found = [
        f"{path.name}:{node.lineno} {name}"
        for path in JOBS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
        and (name := node.id if isinstance(node, ast.Name) else node.attr) in told
    ]
    assert not found, f"{found}: what a job is told are its arguments, and it tells events"


def test_jobs_load_jax_when_they_are_called() -> None:
    package = REPOSITORY / "src"
    named = {".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__") for path in JOBS}
    assert named >= WITH_A_NETWORK
    modules = sorted(named - WITH_A_NETWORK)
    code = f"import sys, {', '.join(modules)}; print({{'jax', 'matplotlib', 'ray'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
