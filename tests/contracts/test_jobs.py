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
from contextlib import contextmanager, suppress
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
from tacit.reports.record_files import Records, write_run
from tacit.runs import Run

JOBS = sorted((REPOSITORY / "src" / "tacit" / "jobs").rglob("*.py"))


every_run = pytest.mark.parametrize("job", RUNS.values(), ids=RUNS)


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
class IntArray:
    """A run that nobody stopped: what is in its folder, and what was heard on the way."""

    content: Mapping[str, Any]
    events: tuple[Event, ...]
    path: Path  # to be left as it is
    threads: frozenset[int]  # in which something was heard


@pytest.fixture(scope="module")
def whole(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Callable[[MakesARun], IntArray]:
    made: dict[int, IntArray] = {}

    def of(job: MakesARun) -> IntArray:
        if id(job) not in made:
            heard: list[tuple[Event, int]] = []
            out = tmp_path_factory.mktemp("whole") / "run"
            job.call(cache, out, lambda event: heard.append((event, threading.get_ident())))
            events, threads = zip(*heard, strict=True)
            made[id(job)] = IntArray(content(out), events, out, frozenset(threads))
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
    def test_events_come_in_the_thread_of_the_caller(
        self, job: MakesARun, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        assert whole(job).threads == {threading.get_ident()}

    @every_run
    @pytest.mark.parametrize(
        "shares",
        [[0.0, 0.3, 0.3], [1.0], *(pytest.param([share], marks=pytest.mark.nightly) for share in (0.0, 0.3, 0.7))],
    )
    def test_stopped_anywhere_and_called_again_it_ends_with_the_same_bytes(
        self,
        job: MakesARun,
        shares: list[float],
        cache: Cache,
        tmp_path: Path,
        whole: Callable[[MakesARun], IntArray],
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
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
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
        self, job: MakesARun, cache: Cache, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        path = shutil.copytree(whole(job).path, tmp_path / "run")
        with pytest.raises(RunError, match=job.named):
            job.call(cache, path, silent, **job.others)
        assert content(path) == whole(job).content

    @every_run
    def test_damaged_notes_are_refused_or_harmless(
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        assert ask_of_damaged(whole(job).path, tmp_path / "run", every=4)

    @pytest.mark.nightly
    @every_run
    def test_notes_damaged_in_every_way_are_refused_or_harmless(
        self, job: MakesARun, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        assert ask_of_damaged(whole(job).path, tmp_path / "run", every=1)

    @every_run
    def test_what_cannot_be_is_refused_before_anything_is_written(
        self, job: MakesARun, cache: Cache, tmp_path: Path
    ) -> None:
        with pytest.raises(TacitError):
            job.call(cache, tmp_path / "run", silent, **job.impossible)
        assert not list(tmp_path.iterdir())


KEPT_BY = {  # which record files a kind of run has: nothing of public text is exact, and scores of trials are
    **{kind: {"report/record.json", "simulation/record.json"} for kind in RUNS},
    "pretrain": {"report/record.json"},
    "tune": {"simulation/record.json"},
}
FROM_THE_JOURNAL = {"train", "pretrain"}  # whose records are made anew, for they may be under way
every_kind = pytest.mark.parametrize("kind", RUNS)


def pages(path: Path) -> dict[str, bytes]:
    """What of a run people read, by its place, and what that is made from."""
    files = [file for part in ("report", "simulation") for file in sorted((path / part).glob("*.*"))]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files if file.suffix != ".jsonl"}


def records(path: Path) -> dict[str, Any]:
    return {name: json.loads(content) for name, content in pages(path).items() if name.endswith("record.json")}


@contextmanager
def away(*folders: Path) -> Iterator[None]:
    """Folders under other names, where nobody looks."""
    for folder in folders:
        folder.rename(folder.with_name(f"{folder.name}, away"))
    try:
        yield
    finally:
        for folder in folders:
            folder.with_name(f"{folder.name}, away").rename(folder)


@contextmanager
def read_below(folder: Path) -> Iterator[set[Path]]:
    """Which files below a folder are opened meanwhile."""
    opened = set[Path]()
    LISTENERS.append(lambda path: opened.add(path) if path.is_relative_to(folder) else None)
    try:
        yield opened
    finally:
        LISTENERS.pop()


LISTENERS: list[Callable[[Path], object]] = []


def _told(event: str, given: tuple[Any, ...]) -> None:
    if LISTENERS and event in ("open", "sqlite3.connect") and isinstance(given[0], str):
        LISTENERS[-1](Path(given[0].removeprefix("file://").partition("?")[0]).absolute())


sys.addaudithook(_told)


class TestRecords:
    """What pages are made from stands in the folder: `report`, `compare` and all other looks need nothing else."""

    @every_kind
    def test_a_run_leaves_its_records(self, kind: str, whole: Callable[[MakesARun], IntArray]) -> None:
        path = whole(RUNS[kind]).path
        found = records(path)
        assert found.keys() == KEPT_BY[kind]
        for name, record in found.items():
            assert list(record.items())[:2] == [("schema", f"tacit.record.{kind}"), ("version", 1)]
            with Run.open(path) as run:
                assert json.loads(run.kept(name)) == record, "its digest is in the sealed journal"

    @every_kind
    def test_its_pages_are_made_from_its_folder_alone(
        self, kind: str, cache: Cache, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        """Byte by byte, with cache and models gone; nothing else below this test's folders is even opened."""
        path = whole(RUNS[kind]).path
        made = pages(path)
        shutil.copytree(path, tmp_path / "kept")
        try:
            tacit.report(path)  # a pre-training draws its page when it is asked for
            before = pages(path)
            assert made.items() <= before.items()
            shutil.rmtree(path / "model", ignore_errors=True)
            for name in before.keys() - KEPT_BY[kind]:
                (path / name).unlink()
            with away(cache.path.parent), read_below(path.parent.parent) as opened:
                files = tacit.report(path)
            assert pages(path) == before
            assert set(map(str, files.paths)) == {str(path / name) for name in before}
            assert opened and not [each for each in opened if not each.is_relative_to(path)]
            assert not [line for line in tacit.verify(path).failed if not line.name.startswith("file model/")]
        finally:
            shutil.rmtree(path)
            shutil.copytree(tmp_path / "kept", path)

    def test_runs_are_compared_by_their_folders_alone(
        self, cache: Cache, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        one, other = (shutil.copytree(whole(RUNS["train"]).path, tmp_path / name) for name in ("one", "other"))
        beside = tacit.compare(one, other).to_record()
        for run in (one, other):
            shutil.rmtree(run / "model")
        with away(cache.path.parent):
            assert tacit.compare(one, other).to_record() == beside
            assert tacit.account_run(one).to_record()["private"]

    @every_kind
    def test_a_page_is_a_function_of_its_record(
        self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        """The same bytes twice, from whatever folder, whatever the time is; of the page to publish from what may be
        published alone.
        """
        found = {name.partition("/")[0]: record for name, record in records(whole(RUNS[kind]).path).items()}
        both = Records(released=found.get("report"), exact=found.get("simulation"))
        written = []
        for place in ("one", "another"):
            (tmp_path / place).mkdir()
            monkeypatch.chdir(tmp_path / place)
            monkeypatch.setenv("TZ", f"UTC{len(written) * 7}")
            write_run(tmp_path / place / "run", kind, both)
            written.append(pages(tmp_path / place / "run"))
        assert written[0] == written[1] and str(tmp_path).encode() not in b"".join(written[0].values())
        if both.released is not None:
            write_run(tmp_path / "alone", kind, Records(released=both.released))
            alone = pages(tmp_path / "alone")
            assert alone and alone == {name: written[0][name] for name in written[0] if name.startswith("report/")}

    @pytest.mark.parametrize("kind", [kind for kind in RUNS if len(KEPT_BY[kind]) == 2])
    def test_nothing_exact_is_in_what_may_be_published(self, kind: str, whole: Callable[[MakesARun], IntArray]) -> None:
        """The record to publish lacks every part that the other has of the simulation."""
        found = records(whole(RUNS[kind]).path)
        exact = {"simulation_only", "simulation", "exact", "curves", "test", "tested", "validated", "loss", "seconds"}
        public, everything = (
            set(keys_of({**found[f"{part}/record.json"], "statement": None})) for part in ("report", "simulation")
        )
        assert not exact & public and exact & everything

    @every_kind
    def test_a_changed_record_is_noticed(
        self, kind: str, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        for name in KEPT_BY[kind]:
            path = shutil.copytree(whole(RUNS[kind]).path, tmp_path / name.partition("/")[0])
            record = json.loads((path / name).read_text(encoding="utf-8"))
            (path / name).write_text(json.dumps({**record, "asked": 10**6}), encoding="utf-8")
            assert f"file {name}" in {line.name for line in tacit.verify(path).failed}
            if kind in FROM_THE_JOURNAL:
                tacit.report(path)
                assert tacit.verify(path).holds, "it was made anew"
            else:
                with pytest.raises(RunError, match="is not what the run wrote"):
                    tacit.report(path)
                (path / name).unlink()
                with pytest.raises(RunError, match="is missing, and pages are made from it; restore"):
                    tacit.report(path)

    @pytest.mark.parametrize("kind", [kind for kind in RUNS if kind not in FROM_THE_JOURNAL])
    def test_what_is_not_understood_is_refused_by_name(
        self, kind: str, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        """Under digests and seals that fit."""
        changes: dict[str, tuple[Callable[[Any], Any], str]] = {
            "version": (lambda record: {**record, "version": 2}, "in version 2, and this version of tacit reads"),
            "schema": (lambda record: {**record, "schema": "tacit.else"}, "has the schema 'tacit.else'"),
            "a list": (lambda record: [record], "has the schema None"),
            "cut": (lambda record: dict(list(record.items())[:2]), "lacks or misnames a value"),
        }
        for name, (change, complaint) in changes.items():
            path = shutil.copytree(whole(RUNS[kind]).path, tmp_path / name)
            for place in KEPT_BY[kind]:
                record = change(json.loads((path / place).read_text(encoding="utf-8")))
                (path / place).write_text(json.dumps(record), encoding="utf-8")
            with Run.open(path) as run, run.locked():
                run.keep_files(*KEPT_BY[kind])
            with pytest.raises(RunError, match=complaint):
                tacit.report(path)

    @every_kind
    def test_a_run_of_the_format_before_is_refused_by_name(
        self, kind: str, tmp_path: Path, whole: Callable[[MakesARun], IntArray]
    ) -> None:
        path = shutil.copytree(whole(RUNS[kind]).path, tmp_path / "run")
        for name in KEPT_BY[kind]:
            (path / name).unlink()
        with Run.open(path) as run, run.locked():
            run.keep_files("report", "simulation")
        if kind in FROM_THE_JOURNAL:
            assert tacit.report(path).paths
        else:
            with pytest.raises(RunError, match=f"format before this one.*run `tacit {kind}` again with another --out"):
                tacit.report(path)


def keys_of(value: Any) -> Iterator[str]:
    """Every key of nested objects."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(each)


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
    "tacit.jobs.analytics_run",
    "tacit.jobs.clients_or_devices",
    "tacit.jobs.count.new_words",
    "tacit.jobs.count.opened",
    "tacit.jobs.count.run",
    "tacit.jobs.count.sums",
    "tacit.jobs.count_steps",
    "tacit.jobs.evaluate.run",
    "tacit.jobs.personalize.run",
    "tacit.jobs.plan.production",
    "tacit.jobs.plan.production_files",
    "tacit.jobs.train.learner",
    "tacit.jobs.train.mixture_check",
    "tacit.jobs.train.mixture_folder",
    "tacit.jobs.train.mixture_summary",
    "tacit.jobs.train.refusals",
    "tacit.jobs.train.rehearsal",
    "tacit.jobs.train.release",
    "tacit.jobs.train.run",
    "tacit.jobs.train.simulation",
    "tacit.jobs.train.stopping",
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
