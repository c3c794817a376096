"""What every job owes whoever calls it: silence, events in one's own thread, refusals before anything is written, and
the same bytes after being stopped anywhere and called again.

A new job that leaves a run folder adds a line to RUNS, another one a line to ANSWERS.
"""

import ast
import copy
import hashlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import pytest
from tests.conftest import REPOSITORY
from tests.jobs.test_train_api import Bigram
from tests.journals import Entries, entries_of, rewrite
from tests.training.tiny import MECHANISMS, SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache, TextsOf
from tacit.data.splits import TemporalSplit
from tacit.data.typed_sentences import Share
from tacit.discovery.alphabet import Alphabet
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import RunError, TacitError
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.settings import EvaluationSettings, PersonalizationSettings, ReleasePrice
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.jobs.machine_checks import CHECKS
from tacit.keyboard.model_folder import write_model
from tacit.planning import Clients, Scenario, Utility
from tacit.planning.targets import Goal
from tacit.planning.tuning import TuningSettings
from tacit.population.devices import Population, RoundRules
from tacit.population.settings import SimulationSettings
from tacit.privacy import Participation
from tacit.progress import Event, Progress, silent
from tacit.runs import Run
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining

JOBS = sorted((REPOSITORY / "src" / "tacit" / "jobs").glob("*.py"))
ONE = Hardware(workers=1)


class Stop(Exception):
    """What a listener raises to end a job."""


@dataclass(frozen=True)
class MakesARun:
    """A job as the contract calls it: with a cache of tiny clients, where to, who listens, and changes."""

    call: Callable[..., Any]
    others: Mapping[str, Any]  # changes that make it another run
    named: str  # how the refusal of these names the first that differs
    impossible: Mapping[str, Any]  # changes that no run can have


def train(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], rounds={"rounds": 5, **changed})
    return tacit.train(recipe, out, hardware=ONE, progress=progress)


KNOWN = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))
TYPED = TextsOf({f"c{n}": ["the the covid" + " selfie" * (n % 3 == 0)] for n in range(40)})
DISCOVERY = DiscoverySettings(
    reports=LocalReportSettings(local_epsilon=6.0),
    users_per_layer=400,
    prefixes=6,
    depth=6,
    alphabet=Alphabet("abcdefghijklmnopqrstuvwxyz"),
    counting_users=400,
    resample_users=True,
    seed=1,
)


def discover(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    return tacit.discover(TYPED, KNOWN, out, replace(DISCOVERY, **changed), progress=progress)


def model_for(cache: Cache) -> Path:
    """An untrained network beside the cache, with its words."""
    folder = cache.path.parent / "model"
    if not folder.exists():
        write_model(folder, SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_path.read_bytes())
    return folder


def evaluate(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    return tacit.evaluate(
        [model_for(cache)],
        cache,
        settings=EvaluationSettings(**{"sentences": 8, "words": 6, **changed}),
        release=ReleasePrice(epsilon=9.0),
        out=out,
        seed=3,
        hardware=ONE,
        progress=progress,
    )


def personalize(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    settings = PersonalizationSettings(
        strategies=(FineTuning(learning_rate=0.5),), split=TemporalSplit(undated="order"), **changed
    )
    price = ReleasePrice(local_epsilon=4.0)
    return tacit.personalize(
        model_for(cache), cache, out, settings=settings, release=price, seed=3, hardware=ONE, progress=progress
    )


def type_ab(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    settings = TypingSettings(share=Share(**{"sentences": 3, "words": 4, **changed}), sensitivity=2)
    price = ReleasePrice(epsilon=9.0)
    asked: dict[str, Any] = {"settings": settings, "release": price, "noise_seed": 3, "hardware": ONE}
    return tacit.type_ab(model_for(cache), f"trigram:{cache.path}", cache, out, progress=progress, **asked)


def pretrain(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    central = CentralTraining(batch_size=2, words=6, learning_rate=0.01)
    plan = Pretraining(central=central, sentences=128, every=64, patience=2)
    asked = {"model": Bigram(scale=0.2), "settings": plan, "held_out": 3, "declared_public": True, **changed}
    return tacit.pretrain(cache, out, progress=progress, **asked)


def tune(
    cache: Cache, out: Path, progress: Progress, rates: tuple[float, ...] = (0.5, 1.0), report_goal: int = 6
) -> Any:
    rounds = {"rounds": 3, "report_goal": report_goal, "min_separation": 3}
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], rounds=rounds)
    return tacit.tune(recipe, out, TuningSettings(server_learning_rates=rates), hardware=ONE, progress=progress)


RUNS = {
    "pretrain": MakesARun(pretrain, {"held_out": 2}, "held_out", {"held_out": 0}),
    "tune": MakesARun(tune, {"report_goal": 5}, r"rounds\.report_goal", {"rates": (-1.0,)}),
    "evaluate": MakesARun(evaluate, {"sentences": 7}, "sentences", {"clients": 1}),
    "personalize": MakesARun(personalize, {"harm_weight": 3.0}, "harm_weight", {"harm_weight": -1.0}),
    "type": MakesARun(type_ab, {"words": 5}, r"share\.words", {"sentences": -1}),
    "train": MakesARun(train, {"report_goal": 5}, r"rounds\.report_goal", {"report_goal": 5_000}),
    "discover": MakesARun(discover, {"prefixes": 7}, "prefixes", {"resample_users": False}),
}
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


def content(path: Path) -> dict[str, Any]:
    """What two runs with the same arguments have in common to the last bit; clocks, paths and versions are left out."""
    trials = [folder for folder in sorted((path / "runs").glob("*")) if folder.is_dir()]
    files = [file for folder in ("steps", "model") for file in sorted((path / folder).glob("*"))]
    with Run.open(path) as run:
        steps = [(s.step, s.file, s.digest, json.dumps(s.releases), json.dumps(dict(s.measures))) for s in run.steps()]
        return {
            "settings": run.settings,
            "steps": steps,
            "metrics": [(m.step, m.split, m.name, m.value) for m in run.metrics()],
            "participations": [column.tolist() for column in run.participations()],
            "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
            "trials": {folder.name: content(folder) for folder in trials},  # a tuning is of runs
            "finished": run.finished,
        }


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
    *(
        "asked_whom",  # split off from those of evaluation
        "baselines",
        "evaluation_run",
        "histograms",
        "personalization_run",
        "personalization_record",
        "plan_production",
        "production_files",
        "typing_record",
        "typing_run",
        "typing_test",
        "typing_workers",
    ),
    *("training_refusals", "training_run", "tune", "tune_recipes", "tuning_result"),
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
    modules = [f"tacit.jobs.{path.stem}".removesuffix(".__init__") for path in JOBS if path.stem not in WITH_A_NETWORK]
    code = f"import sys, {', '.join(modules)}; print({{'jax', 'matplotlib', 'ray'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
