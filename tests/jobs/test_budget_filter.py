"""The budget of a population is a filter: a run whose clients come too often stops before it is exceeded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from tests.support.evaluation.typists import typists_and_model
from tests.support.training.failed_sampler import Phones, TheSameAgain
from tests.support.training.tiny import tiny_cache, tiny_recipe, what_happened

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.errors import AccountingError, BudgetError, RunError
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.personalize.gate import LEVELS
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import PersonalizationSettings
from tacit.federation.collector import Answered
from tacit.jobs import count_steps
from tacit.jobs.account.budget import spent_by
from tacit.jobs.account.population import account_population, begin_population
from tacit.jobs.train.job import TrainingResult, resume_training
from tacit.progress import Event, Warned
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.budget import PopulationBudget
from tacit.runs.budget_book import Cost
from tacit.training import participation_so_far
from tacit.training.checkpoint import read_checkpoint

ONE = Hardware(workers=1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe(cache: Cache, population: Path | None, **privacy: Any) -> Recipe:
    """Of 9 rounds, 6 of 40 clients in each, coming at most 3 times, at 0.667 zCDP."""
    wanted = {"mechanism": {"name": "tree"}, "zcdp": 0.667, **privacy}
    return tiny_recipe(
        cache.path, privacy={**wanted, **({} if population is None else {"population": str(population)})}
    )


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    begin_population(tmp_path / "phones", clients="phones of a test", zcdp=0.7, delta=1e-6)
    return tmp_path / "phones"


def trained(cache: Cache, budget: Path, out: Path, **given: Any) -> TrainingResult:
    return tacit.train(recipe(cache, budget), out, sampler=TheSameAgain(), hardware=ONE, anyway=True, **given)


def test_a_run_whose_clients_come_too_often_stops_before_the_budget_is_exceeded(
    cache: Cache, budget: Path, tmp_path: Path
) -> None:
    """It was settled at 4.04 zCDP of 0.7 after its last round."""
    with pytest.raises(BudgetError, match=r"stops before round \d is released.*zCDP 0\.7 of 0\.7 left after 0 other"):
        trained(cache, budget, tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        done, spent = run.steps_done, spent_by(run)
        assert 0 < done < 9 and not run.finished and spent.zcdp <= 0.7
        assert {each.name for each in (tmp_path / "run" / "steps").iterdir()} <= {each.file for each in run.steps()}
    found = account_population(budget)
    assert spent.zcdp <= found.zcdp <= 0.7 and not found.warnings
    with pytest.raises(BudgetError, match=f"stops before round {done} "):
        resume_training(tmp_path / "run", sampler=TheSameAgain(), hardware=ONE)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == done
    with pytest.raises(BudgetError):
        tacit.train(recipe(cache, budget), tmp_path / "second", hardware=ONE, anyway=True)


def test_it_goes_on_where_another_run_took_less_than_planned(cache: Cache, tmp_path: Path) -> None:
    """What is free is reserved on disk first; and the bits are those of a run that was never stopped."""
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=20.0, delta=1e-6)
    book, other = PopulationBudget.open(budget), tmp_path / "other"
    with book.reserving(kind="train", run=other, clients=40, planned=Cost(zcdp=19.0)) as (entry, _):
        other.mkdir()
    warned: list[Event] = []
    with pytest.raises(BudgetError, match="left after 1 other run"):
        trained(cache, budget, tmp_path / "run", progress=warned.append)
    raised = [each for each in warned if isinstance(each, Warned) and each.code == "budget-raised"]
    assert raised and "zCDP 0.667" in raised[0].message
    assert account_population(budget).zcdp <= 20.0
    book.commit(entry, Cost(zcdp=1.0), run=other, seal="ab" * 32)
    result = resume_training(tmp_path / "run", sampler=TheSameAgain(), hardware=ONE)
    assert result.rounds == 9
    spent = spent_by(result.run)
    assert spent.zcdp > 1.0 and account_population(budget).zcdp == pytest.approx(1.0 + spent.zcdp)
    assert tacit.verify(tmp_path / "run").holds
    plain = tacit.train(recipe(cache, None), tmp_path / "plain", sampler=TheSameAgain(), hardware=ONE, anyway=True)
    assert plain.rounds == 9
    assert what_happened(tmp_path / "run") == what_happened(tmp_path / "plain")


def test_a_run_that_was_stopped_can_end_with_the_rounds_that_are_done(
    cache: Cache, budget: Path, tmp_path: Path
) -> None:
    """It had no way to release its last model. No sampler is needed, because nobody is asked."""
    with pytest.raises(BudgetError, match="`tacit finish` releases the model of the last one"):
        trained(cache, budget, tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        done, spent = run.steps_done, spent_by(run)
    result = resume_training(tmp_path / "run", end=True, hardware=ONE)
    assert result.rounds == done < 9 and result.run.finished and result.report is not None
    assert spent_by(result.run) == spent and account_population(budget).zcdp == pytest.approx(spent.zcdp)
    assert tacit.verify(tmp_path / "run").holds
    assert result.test and np.isfinite(next(iter(result.test.values())))
    until = tacit.train(
        recipe(cache, None), tmp_path / "until", sampler=TheSameAgain(), hardware=ONE, anyway=True, until=done
    )
    row = until.run.steps()[-1]
    last = read_checkpoint(tmp_path / "until" / "steps" / row.file, row.digest)[".model"]
    assert np.array_equal(ravel_pytree(result.model().parameters)[0], last)
    assert "ENDED EARLY" in [each.name for each in result.summary().labels]
    assert f"{done} of 9 rounds were done" in result.report.html.read_text(encoding="utf-8")
    assert resume_training(tmp_path / "run", sampler=TheSameAgain(), hardware=ONE).rounds == done


def test_a_run_without_a_round_has_nothing_to_end_with(cache: Cache, tmp_path: Path) -> None:
    tacit.train(recipe(cache, None), tmp_path / "run", sampler=TheSameAgain(), hardware=ONE, anyway=True, until=0)
    with pytest.raises(RunError, match="has no round that is done"):
        resume_training(tmp_path / "run", end=True, hardware=ONE)
    with Run.open(tmp_path / "run") as run:
        assert not run.finished


class Killed(BaseException):
    """Nobody catches it."""


@contextmanager
def killed_after(what: type, method: str, times: int, place: Path) -> Iterator[None]:
    """A process that is killed as soon as the method has returned so often: what stays is the folder as it was then,
    whatever this process does to it when it unwinds.
    """
    left, original, copy = iter(range(times - 1)), getattr(what, method), place.with_name("as it was")

    def dying(*given: Any, **named: Any) -> Any:
        found = original(*given, **named)
        if next(left, None) is None:
            shutil.copytree(place, copy)
            raise Killed
        return found

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(what, method, dying)
        yield
    shutil.rmtree(place)
    copy.rename(place)


@pytest.mark.parametrize(
    ("what", "method"), [(PopulationBudget, "reserve_more"), (Run, "commit")], ids=["raised", "released"]
)
def test_a_kill_leaves_no_release_that_is_not_reserved(cache: Cache, tmp_path: Path, what: type, method: str) -> None:
    budget, out = tmp_path / "here" / "phones", tmp_path / "here" / "run"
    begin_population(budget, clients="phones of a test", zcdp=4.0, delta=1e-6)
    with killed_after(what, method, 2, tmp_path / "here"):
        trained(cache, budget, out)
    with Run.open(out) as run:
        assert spent_by(run).zcdp <= account_population(budget).zcdp * (1 + 1e-9) <= 4.0 * (1 + 1e-9)
    with pytest.raises(BudgetError, match="stops before round"):
        trained(cache, budget, out)
    with Run.open(out) as run:
        assert 0 < spent_by(run).zcdp <= account_population(budget).zcdp <= 4.0


def test_rounds_that_take_long_stop_a_run_of_devices_that_wait(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of devices that stay away for 48 hours, in rounds of 20: planned is every fourth, and they may come sooner."""
    ours = tiny_cache(tmp_path / "ours", {"validation": 5, "test": 6})
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=0.7, delta=1e-6)
    timed = {"population": "phones", "devices": 40, "round_index": False, "timer_hours": 48.0}
    asked = tiny_recipe(
        ours.path,
        deployment=timed,
        rounds={"min_separation": 4},
        privacy={"mechanism": {"name": "tree"}, "zcdp": 0.667, "population": str(budget)},
    )
    collector = Phones(cache, asked)
    with tacit.train(asked, tmp_path / "run", collector=collector, hardware=ONE, until=0, anyway=True).run as run:
        clock = iter(run.metadata.created + 20 * 3600.0 * np.arange(1, 30) / 2)  # one look before a round, one after
    monkeypatch.setattr(participation_so_far, "time", SimpleNamespace(time=lambda: float(next(clock))))
    with pytest.raises(BudgetError, match=r"somebody may have come \d times, 2 rounds apart, and the plan says"):
        tacit.train(asked, tmp_path / "run", collector=collector, hardware=ONE, anyway=True)
    with Run.open(tmp_path / "run") as run:
        assert 0 < run.steps_done < 9
        assert 0 < spent_by(run).zcdp <= account_population(budget).zcdp <= 0.7
    assert resume_training(tmp_path / "run", end=True, hardware=ONE).run.finished  # without the devices' collector
    assert tacit.verify(tmp_path / "run").holds


@pytest.mark.parametrize("local", [False, True], ids=["central", "local"])
def test_clients_who_are_asked_in_two_steps_stop_a_personalization(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    """Each is planned for one of the two. The second step was released, and settled at twice the price, or never."""
    folder, model = typists_and_model(tmp_path)
    budget = tmp_path / "phones"
    begin_population(budget, clients="phones of a test", zcdp=900.0, local_epsilon=900.0, delta=1e-6)
    first: list[Any] = []
    collect = count_steps.SimulatedCollector.collect

    def the_same(self: Any, state: Any, question: Any, **more: Any) -> tuple[Answered, Any]:
        answered, after = collect(self, state, question, **more)
        first.append(answered.clients)
        return answered._replace(clients=first[0]), after

    monkeypatch.setattr(count_steps.SimulatedCollector, "collect", the_same)
    gated = PersonalizationSettings(
        strategies=(FineTuning(learning_rate=1.0),), split=TemporalSplit(gate=0.125), levels=LEVELS
    )
    cost = ReleaseCost(local_epsilon=8.0) if local else ReleaseCost(zcdp=500.0)
    given = {"settings": gated, "release": cost, "hardware": ONE, "population": budget}
    with pytest.raises((BudgetError, AccountingError), match=r"1 and 2|asked in 2 rounds|would take 1000"):
        tacit.personalize(model, folder, tmp_path / "run", **given)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 1 and not (run.path / "steps" / "release-000001.json").exists()
    found = account_population(budget)
    assert (found.zcdp, found.local_epsilon) == ((0.0, 8.0) if local else (500.0, 0.0))
