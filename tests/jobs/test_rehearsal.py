"""What a run needs after its first release is tried before it, and what fails later all the same costs nothing.

A fault is planted in each piece, for each kind of run: from the start, where nothing may be released then; and from the
end of the rehearsal on, where what was released must stay and the run must end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.evaluation.phones import Phones
from tests.support.jobs.jobs_with_runs import ONE, RUNS, content, model_for
from tests.support.training.phones import DEPLOYED
from tests.support.training.phones import Phones as TrainingPhones
from tests.support.training.tiny import CLIENTS, MECHANISMS, Typists, tiny_cache, tiny_recipe

import tacit
from tacit.data import Cache
from tacit.errors import AccountingError, InputError, RunError, TacitError, TrainingError
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings
from tacit.jobs import analytics_run, pretrain, rehearsal
from tacit.jobs.account.population import account_population, begin_population
from tacit.jobs.discover import job as discovery_job
from tacit.jobs.train import rehearsal as training_rehearsal
from tacit.jobs.train import release
from tacit.progress import Evaluated, Event, StageBegan, StageEnded, Warned, silent
from tacit.reports import summary
from tacit.runs import Run

pytestmark = pytest.mark.rehearsed
ERRORS = (RuntimeError, ZeroDivisionError, MemoryError, OSError, InputError, RunError, KeyError)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def whole(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A run of each kind, and of each way of training, in which nothing fails; to be left as it is."""
    folder = tmp_path_factory.mktemp("whole")

    def of(name: str) -> Path:
        out = folder / name
        if not out.exists() and name in WAYS:
            begin_training(cache, out, name, silent).run.close()
        elif not out.exists():
            RUNS[name].call(cache, out, silent).run.close()
        return out

    return of


class Heard:
    """Remembers warnings, and whether a rehearsal has ended."""

    def __init__(self) -> None:
        self.rehearsed = False
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.rehearsed = self.rehearsed or event == StageEnded(rehearsal.REHEARSING)

    @property
    def warned(self) -> list[str]:
        return [each.message for each in self.events if isinstance(each, Warned) and each.code == rehearsal.NOT_DONE]


class Fault:
    """What a piece calls, which fails while `planted()`; `fails(...)`: on which calls."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, error: type[Exception]) -> None:
        real = getattr(owner, name)
        self.planted: Callable[[], bool] = lambda: True
        self.fails: Callable[..., bool] = lambda *_, **__: True
        self.times = 0

        def call(*arguments: Any, **named: Any) -> Any:
            if self.planted() and self.fails(*arguments, **named):
                self.times += 1
                raise error("a fault that a test planted")
            return real(*arguments, **named)

        patch.setattr(owner, name, call)


# -- the text of the held-out clients ----------------------------------------------------------------------------------


class Unknown(Typists):
    """All words of one split are of another script than the vocabulary's."""

    def __init__(self, split: str) -> None:
        super().__init__(CLIENTS)
        self.split = split

    def clients(self) -> Iterator[Any]:
        for client in super().clients():
            if client.split == self.split:
                client = type(client)(client_id=client.client_id, texts=("здравствуй мир",), split=client.split)
            yield client


def cyrillic(path: Path, split: str, monkeypatch: pytest.MonkeyPatch) -> Cache:
    with monkeypatch.context() as patch:
        patch.setattr("tests.support.training.tiny.Typists", lambda counts: Unknown(split))
        return tiny_cache(path)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_words_that_nobody_knows_are_refused_before_a_round_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str
) -> None:
    """One round was released, then the command stopped there, and `resume` for ever after, without a model."""
    unknown = cyrillic(tmp_path / "cache", split, monkeypatch)
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=3.0, delta=1e-6)
    wanted = {"mechanism": {"name": "tree"}, "zcdp": 2.0, "population": str(budget)}
    with pytest.raises(InputError, match=f"the evaluation on {split} clients, .* none of the .* words .* vocabulary"):
        tacit.train(tiny_recipe(unknown.path, privacy=wanted), tmp_path / "run", hardware=ONE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "phones"], "nothing is left on disk"
    spent = account_population(budget).spent
    assert spent is None or spent.zcdp == 0.0

    known = tiny_cache(tmp_path / "known")
    begun_again = tacit.train(tiny_recipe(known.path, privacy=wanted), tmp_path / "run", hardware=ONE)
    assert begun_again.run.finished


def test_a_run_that_an_earlier_version_began_without_a_rehearsal_stops_before_its_first_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = cyrillic(tmp_path / "cache", "validation", monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("tacit.jobs.train.run.rehearsed", lambda *_, **__: {"words": 1.0})
        patch.setattr("tacit.jobs.train.run.record_evaluation", lambda *_: None)
        with pytest.raises(InputError, match="evaluation on validation clients after 0 rounds"):
            tacit.train(tiny_recipe(unknown.path, privacy=MECHANISMS["tree"]), tmp_path / "run", hardware=ONE)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 0 and not run.metrics()


# -- training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """Where a piece of a training can fail."""

    piece: rehearsal.Piece
    owner: Any
    name: str
    fails: Callable[..., bool] = lambda *_, **__: True


def of_split(split: str) -> Callable[..., bool]:
    return lambda held_out, which, model: bool(which == split)


PLANTED = {
    "numbers": Planted(rehearsal.NUMBERS, training_rehearsal, "check_finite"),
    "disk": Planted(rehearsal.DISK, training_rehearsal, "save_checkpoint"),
    "validation": Planted(rehearsal.VALIDATION, release.HeldOutClients, "evaluated", of_split("validation")),
    "test": Planted(rehearsal.TEST, release.HeldOutClients, "evaluated", of_split("test")),
    "comparison": Planted(rehearsal.COMPARISON, release, "note_baselines"),
    "model": Planted(rehearsal.MODEL, release, "write_model"),
    "suggestions": Planted(rehearsal.SUGGESTIONS, release, "note_suggestions"),
    "statement": Planted(rehearsal.STATEMENT, training_rehearsal, "statement_of"),
    "report": Planted(rehearsal.REPORT, release, "write_report"),
    "export": Planted(rehearsal.EXPORT, training_rehearsal, "rehearse_export"),
}
# How a training may be run, each rehearsed in the same way; Ray trains clients elsewhere, and evaluates nothing.
WAYS = {
    "simulated": {},
    "sealed": {"aggregation": {"kind": "secure", "protocol": "masks", "protocol_clients": 4}},
    "decryptors": {"aggregation": {"kind": "secure", "decryptors": 2}},
    "served": {"deployment": DEPLOYED},
}


def begin_training(cache: Cache, out: Path, way: str, progress: Callable[[Event], None]) -> Any:
    asked = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], **WAYS[way])
    collector = TrainingPhones(cache, asked) if way == "served" else None
    return tacit.train(asked, out, hardware=ONE, progress=progress, collector=collector)


def test_every_piece_is_planted_somewhere() -> None:
    assert {each.piece for each in PLANTED.values()} == set(rehearsal.OF_TRAINING)


def every_way(pieces: Iterable[str], daily: tuple[str, ...]) -> pytest.MarkDecorator:
    """Of simulated trainings all pieces, of others those of every day; the rest by night."""
    often = {(way, piece) for way in WAYS for piece in pieces if way == "simulated" or piece in daily}
    nightly = pytest.mark.nightly
    cases = [
        pytest.param(way, piece, marks=() if (way, piece) in often else nightly, id=f"{way}-{piece}")
        for way in WAYS
        for piece in pieces
    ]
    return pytest.mark.parametrize(("way", "piece"), cases)


@every_way(PLANTED, daily=("report",))
def test_what_fails_in_the_rehearsal_of_a_training_leaves_nothing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str, way: str
) -> None:
    planted, error = PLANTED[piece], ERRORS[(len(piece) + len(way)) % len(ERRORS)]
    heard = Heard()
    with monkeypatch.context() as patch:
        fault = Fault(patch, planted.owner, planted.name, error)
        fault.fails = planted.fails
        with pytest.raises(InputError, match=rf"the {planted.piece.name}, .*a fault that a test planted.*was released"):
            begin_training(cache, tmp_path / "run", way, heard)
        assert fault.times == 1
    assert not any(isinstance(event, StageBegan) and event.stage == "training" for event in heard.events)
    assert list(tmp_path.iterdir()) == []
    if way == "simulated" and piece in ("report", "validation"):
        begun_again = begin_training(cache, tmp_path / "run", way, heard)
        assert begun_again.run.finished and begun_again.report is not None


def released(path: Path) -> tuple[Any, ...]:
    """What of two runs is alike to the bit if their rounds and models are."""
    with Run.open(path) as run:
        steps = [(each.digest, each.releases, each.measures) for each in run.steps()]
        files = {name: sha for name, sha in run.files.items() if name.startswith("model/")}
        return run.finished, run.counts().tolist(), steps, files


AFTER = {
    **{name: PLANTED[name] for name in ("validation", "test", "comparison", "suggestions", "report")},
    "statement": Planted(rehearsal.REPORT, summary, "training_facts"),
}


@every_way(AFTER, daily=("validation",))
def test_what_fails_after_rounds_costs_no_round_and_no_model(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str, way: str, whole: Callable[[str], Path]
) -> None:
    planted, error = AFTER[piece], ERRORS[(len(piece) + len(way)) % len(ERRORS)]
    expected, heard, out = whole(way), Heard(), tmp_path / "run"
    with monkeypatch.context() as patch:
        fault = Fault(patch, planted.owner, planted.name, error)
        fault.fails, fault.planted = planted.fails, lambda: heard.rehearsed
        result = begin_training(cache, out, way, heard)
    assert fault.times >= 1 and result.run.finished
    assert any(planted.piece.name in said and str(out) in said for said in heard.warned), heard.warned
    assert released(out) == released(expected)
    assert (out / "report" / "statement.json").is_file() and tacit.verify(out / "report" / "statement.json").holds
    assert tacit.load_model(out).digest == tacit.load_model(expected).digest
    if piece in ("report", "statement"):
        assert result.report is None and not (out / "report" / "report.html").exists()
        result.blocks(), result.to_record()  # with what there is
    else:
        assert "NOT DONE" in result.report.everything.html.read_text(encoding="utf-8")
        assert "NOT DONE" not in result.report.html.read_text(encoding="utf-8"), "what may be published says none of it"
    assert tacit.resume(out).run.finished  # and writes the report, which says what is missing
    assert planted.piece.name in ("report",) or planted.piece.name in tacit.report(out).everything.markdown.read_text()
    assert tacit.verify(out).holds


def test_a_model_that_cannot_be_written_is_written_when_the_run_goes_on(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Callable[[str], Path]
) -> None:
    """Of all pieces the one without which no run ends."""
    heard = Heard()
    with monkeypatch.context() as patch:
        fault = Fault(patch, release, "write_model", OSError)
        fault.planted = lambda: heard.rehearsed
        with pytest.raises(OSError, match="a fault"):
            begin_training(cache, tmp_path / "run", "simulated", heard)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 9 and not run.finished
    assert tacit.resume(tmp_path / "run").run.finished
    assert content(tmp_path / "run") == content(whole("simulated"))


def test_an_evaluation_that_works_again_is_missed_no_more(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Callable[[str], Path]
) -> None:
    """The machine was short of memory when the run was stopped; its checkpoint is there, so it is evaluated later."""
    heard = Heard()
    with monkeypatch.context() as patch:
        fault = Fault(patch, release.HeldOutClients, "evaluated", MemoryError)
        fault.planted = lambda: heard.rehearsed
        asked = tiny_recipe(cache.path, privacy=MECHANISMS["tree"])
        stopped = tacit.train(asked, tmp_path / "run", hardware=ONE, until=4, progress=heard)
        assert set(stopped.run.notes["missing"]) == {"evaluation on validation clients after 4 rounds"}
        stopped.run.close()
    tacit.resume(tmp_path / "run")
    assert content(tmp_path / "run") == content(whole("simulated"))
    with Run.open(tmp_path / "run") as run:
        assert run.notes["missing"] == {}


def test_a_model_that_diverged_is_released_when_somebody_wants_it(cache: Cache, tmp_path: Path) -> None:
    """No round is released of a model that is no numbers any more; its last one is had by `finish`."""
    wild = tiny_recipe(cache.path, privacy=MECHANISMS["none"], server={"learning_rate": 1e38}, rounds={"rounds": 1})
    with pytest.raises(TrainingError, match=r"no numbers.*tacit finish"):
        tacit.train(wild, tmp_path / "run", hardware=ONE)
    with pytest.raises(TrainingError, match="no numbers"):
        tacit.resume(tmp_path / "run")
    ended = tacit.resume(tmp_path / "run", end=True)
    assert ended.run.finished and (tmp_path / "run" / "model" / "model.safetensors").is_file()


def test_a_listener_that_stops_a_run_is_no_piece_that_failed(cache: Cache, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(event: Event) -> None:
        if isinstance(event, Evaluated) and event.rounds == 4:
            raise Stop

    with pytest.raises(Stop):
        begin_training(cache, tmp_path / "run", "simulated", stop)
    with Run.open(tmp_path / "run") as run:
        assert "missing" not in run.notes and not run.finished


def test_the_rehearsal_draws_nothing_and_changes_no_bit(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is that of a program that plays nothing: state by state, but for the evaluation of the first model."""
    with monkeypatch.context() as patch:
        patch.setattr("tacit.jobs.train.run.rehearsed", lambda *_, **__: {})
        patch.setattr("tacit.jobs.train.run.record_evaluation", lambda *_: None)
        without = begin_training(cache, tmp_path / "without", "simulated", lambda event: None)
    drawn: list[int] = []
    monkeypatch.setattr("tacit.mechanisms.stream.NoiseStream.add_noise", watched(drawn))
    with_it = begin_training(cache, tmp_path / "with", "simulated", lambda event: None)
    assert len(drawn) == 9
    assert content(without.run.path) == content(with_it.run.path)


def watched(drawn: list[int]) -> Callable[..., Any]:
    from tacit.mechanisms.stream import NoiseStream

    real = NoiseStream.add_noise

    def add_noise(self: Any, state: Any, *rest: Any, **named: Any) -> Any:
        drawn.append(int(state.round))
        return real(self, state, *rest, **named)

    return add_noise


# -- disk, memory and numbers ------------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rehearsal.check_room(tmp_path, disk=1000, memory=1000)
    with pytest.raises(InputError, match=r"take 1,000,000,000\.00 GB and the disk of .* has .* GB free; free space"):
        rehearsal.check_room(tmp_path, disk=10**18, memory=1000)
    with pytest.raises(InputError, match=r"takes 1,000,000,000\.00 GB and this machine has .* of memory"):
        rehearsal.check_room(tmp_path, disk=1000, memory=10**18)


def test_room_is_counted_as_the_states_will_take_it(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No state of a run is larger than what its rehearsal wanted room for."""
    wanted: list[dict[str, int]] = []
    monkeypatch.setattr(training_rehearsal, "check_room", lambda folder, **room: wanted.append(room))
    for name in ("none", "tree", "banded", "blt"):
        asked = tiny_recipe(cache.path, privacy=MECHANISMS[name])
        run = tacit.train(asked, tmp_path / name, hardware=ONE, until=9 - 1)
        largest = max(file.stat().st_size for file in (run.run.path / "steps").glob("*"))
        header = 2_000
        assert largest <= wanted[-1]["memory"] + header, name
        assert wanted[-1]["disk"] >= 4 * wanted[-1]["memory"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_plan_without_numbers_is_refused(value: float) -> None:
    rehearsal.check_finite({"zCDP": 0.5, "epsilon": 1e50})
    with pytest.raises(AccountingError, match=f"the epsilon of the plan is {value}"):
        rehearsal.check_finite({"zCDP": 0.5, "epsilon": value})


def test_a_place_that_cannot_be_written_is_refused(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fault(monkeypatch, rehearsal, "folder_beside", PermissionError)  # of a user who is not root
    with pytest.raises(InputError, match=r"cannot be written .*Nothing was released"):
        begin_training(cache, tmp_path / "run", "simulated", lambda event: None)
    assert list(tmp_path.iterdir()) == []


# -- every kind of run -------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[tuple[rehearsal.Piece, Any, str], ...]] = {
    **dict.fromkeys(
        ("evaluate", "count", "personalize", "type"),
        (
            (rehearsal.RELEASE, analytics_run, "released_step"),
            (rehearsal.STATEMENT, analytics_run, "statement_of"),
            (rehearsal.REPORT, analytics_run, "write_run"),
        ),
    ),
    "discover": (
        (rehearsal.RELEASE, discovery_job, "discover_rounds"),
        (rehearsal.STATEMENT, discovery_job, "statement_of"),
        (rehearsal.REPORT, discovery_job, "write_run"),
    ),
    "pretrain": (
        (rehearsal.VALIDATION, pretrain, "_measuring"),
        (rehearsal.MODEL, pretrain, "_write_model"),
        (rehearsal.REPORT, pretrain, "_report"),
    ),
    "tune": ((rehearsal.TEST, release.HeldOutClients, "evaluated"),),
}
EACH = [(kind, *fault) for kind, faults in FAULTS.items() for fault in faults]


def test_every_kind_is_tried() -> None:
    assert {*FAULTS, "train"} == set(RUNS)
    for kind, pieces in (("discover", rehearsal.OF_ASKING), ("pretrain", rehearsal.OF_PRETRAINING)):
        assert tuple(piece for piece, _, _ in FAULTS[kind]) == pieces


@pytest.mark.parametrize(("kind", "piece", "owner", "name"), EACH, ids=[f"{each[0]}-{each[1].name}" for each in EACH])
def test_what_fails_in_the_rehearsal_of_any_kind_releases_nothing(
    cache: Cache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    piece: rehearsal.Piece,
    owner: Any,
    name: str,
    whole: Callable[[str], Path],
) -> None:
    out, heard = tmp_path / "run", Heard()
    with monkeypatch.context() as patch:
        fault = Fault(patch, owner, name, ERRORS[len(kind + name) % len(ERRORS)])
        if kind == "tune":
            fault.fails = of_split("test")
        with pytest.raises(InputError, match=f"the {piece.name}, .*a fault that a test planted"):
            RUNS[kind].call(cache, out, heard)
    if out.exists():  # every client's line is in it, which may be hours of work
        with Run.open(out) as run:
            assert run.steps_done == 0 and not run.finished
            with pytest.raises(TacitError):
                tacit.statement(run)
    assert not list(tmp_path.glob(".*")), "no scratch folder is left"
    again = RUNS[kind].call(cache, out, heard)
    assert again.run.finished and content(out) == content(whole(kind))


LATER = [each for each in EACH if each[1] in (rehearsal.STATEMENT, rehearsal.REPORT, rehearsal.MODEL)]


@pytest.mark.parametrize(("kind", "piece", "owner", "name"), LATER, ids=[f"{each[0]}-{each[1].name}" for each in LATER])
def test_what_fails_after_releases_of_any_kind_is_made_up_for_by_going_on(
    cache: Cache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    piece: rehearsal.Piece,
    owner: Any,
    name: str,
    whole: Callable[[str], Path],
) -> None:
    out, heard = tmp_path / "run", Heard()
    error = ERRORS[len(kind + name) % len(ERRORS)]
    with monkeypatch.context() as patch:
        fault = Fault(patch, owner, name, error)
        fault.planted = lambda: heard.rehearsed
        wanted = RunError if kind != "pretrain" else error
        with pytest.raises(wanted, match="a fault that a test planted"):
            RUNS[kind].call(cache, out, heard)
    with Run.open(out) as run:
        done = run.steps_done
        assert done >= 1
        if kind != "pretrain":
            assert not run.finished and tacit.statement(run)
        if kind != "pretrain" and piece == rehearsal.REPORT:
            assert tacit.verify(out / "report" / "statement.json", run=run).holds
    ended = RUNS[kind].call(cache, out, heard) if kind in ("discover", "type") else tacit.resume(out)
    assert ended.run.finished and ended.run.steps_done == done
    if kind != "type":
        assert content(out) == content(whole(kind))


# -- real devices ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "name"),
    [(rehearsal.RELEASE, "released_step"), (rehearsal.STATEMENT, "statement_of"), (rehearsal.REPORT, "write_run")],
    ids=lambda each: each if isinstance(each, str) else each.name,
)
def test_no_device_is_asked_where_the_rehearsal_fails(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: rehearsal.Piece, name: str
) -> None:
    """Nothing of the server's depends on text then: answers are made up."""
    phones = Phones(cache, [int(client) for client in cache.clients("test")])
    asked: dict[str, Any] = {
        "settings": EvaluationSettings(sentences=8, words=6, clients=6),
        "release": ReleaseCost(epsilon=9.0, delta=1e-5),
        "out": tmp_path / "run",
        "hardware": ONE,
    }
    with monkeypatch.context() as patch:
        Fault(patch, analytics_run, name, RuntimeError)
        with pytest.raises(InputError, match=f"the {piece.name}, "):
            tacit.evaluate([model_for(cache)], collector=phones, **asked)
    assert not phones.counts and not (tmp_path / "run").exists()
    assert tacit.evaluate([model_for(cache)], collector=phones, **asked).run.finished  # type: ignore[union-attr]
    assert len(phones.counts) == 1


def test_made_up_answers_leave_the_devices_randomness_alone(cache: Cache, tmp_path: Path) -> None:
    """Two runs with one seed are alike to the bit, however the rehearsal came out."""
    first, second = (RUNS["personalize"].call(cache, tmp_path / name, lambda event: None) for name in "ab")
    assert content(first.run.path) == content(second.run.path)
