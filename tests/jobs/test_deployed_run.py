"""A run of devices without identities: from a recipe with [deployment] to a statement, a report and a budget."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.training.phones import DEPLOYED, Killed, Phones
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, RunError, TrainingError
from tacit.federation.collector import Answered
from tacit.jobs.account.budget import spent_by
from tacit.jobs.account.population import account_population, begin_population
from tacit.privacy import Participation
from tacit.progress import Advanced, Event
from tacit.recipe import Recipe
from tacit.reports.summary import summarise
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.training import TrainQuestion, loop
from tacit.training.one_by_one import DevicesOneByOne

ONE = Hardware(workers=1)
TIMED = {**DEPLOYED, "round_index": False, "timer_hours": 48.0}


@pytest.fixture(scope="module")
def phones(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("phones") / "cache")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """The server's own clients: nobody to train."""
    return tiny_cache(tmp_path_factory.mktemp("ours") / "cache", {"validation": 5, "test": 6})


def recipe(ours: Cache, deployment: dict[str, Any] = DEPLOYED, **sections: Any) -> Recipe:
    return tiny_recipe(ours.path, deployment=deployment, **sections)


@pytest.fixture(scope="module")
def trained(phones: Cache, ours: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trained") / "run"
    asked = recipe(
        ours, {**DEPLOYED, "timer_hours": 48.0}, clipping={"initial": 0.2, "bit_stddev": 2.0}, privacy=RESTARTING
    )
    tacit.train(asked, path, collector=Phones(phones, asked), hardware=ONE)
    return path


RESTARTING = {"mechanism": {"name": "tree", "restarts": [5]}, "noise_multiplier": 0.6}


def test_the_folder_counts_and_the_statement_says_who_kept_what(trained: Path) -> None:
    with Run.open(trained) as run:
        assert reconciled(run).counts().tolist() == [6] * 9
        with pytest.raises(RunError, match="without identities"):
            run.participations()
        accounts = tacit.account_run(run)
    assert accounts.realised is not None and accounts.realised.zcdp <= accounts.planned.zcdp * (1 + 1e-12)
    stated = tacit.statement(trained)
    said = stated.markdown()
    for part in (
        "a population of about 40 devices, by the operator's word",
        "counts 54 participations of devices without identities: whoever stays away from the 2 rounds after one of its "
        "own and stays away for 48 hours came at most so",
        "A device that keeps this has the guarantee, whatever the others do",
        "each device keeps the separation for itself, and nobody else enforces it",
        "of the server's own cache",
    ):
        assert part in said, part
    assert "draws exactly" not in said and "mean training loss of its cohort" not in said
    assert stated.facts.separation.rounds == 3 and stated.facts.unit == "device"
    assert tacit.verify(trained).holds and tacit.verify(stated, run=trained).holds


def test_pages_and_notes_of_such_a_run_name_no_number_that_nobody_has(trained: Path) -> None:
    for name in ("report", "simulation"):
        page = (trained / name / "report.html").read_text(encoding="utf-8")
        assert not re.search(r"\bnan\b", page), name
        assert "about 40 devices" in page or name == "simulation"
    assert "EXACT NUMBERS" in page and "SIMULATION ONLY" not in page
    with Run.open(trained) as run:
        summary = summarise(run)
        assert summary.rounds.participants.tolist() == [6] * 9
    assert not summary.rounds.simulated and summary.deployed
    assert [each.zcdp for each in summary.spent] == sorted(each.zcdp for each in summary.spent)


def test_what_is_planned_by_round_index_is_what_is_realised(phones: Cache, ours: Cache, tmp_path: Path) -> None:
    """Also on the way, round by round; a banded mechanism may be designed for it."""
    asked = recipe(ours, privacy={"mechanism": {"name": "banded-toeplitz", "bands": 3}, "zcdp": 3.0})
    costs = []

    def heard(event: Event) -> None:
        if isinstance(event, Advanced):
            costs.append(event.figures.get("zcdp"))

    result = tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked.designed()), progress=heard)
    realised = result.account.realised
    assert realised is not None
    limits = realised.sequences[0].guarantee.participation
    assert limits == Participation.worst_case(rounds=9, min_separation=3)
    assert realised.zcdp == pytest.approx(3.0) and costs[0] < 3.0
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known)


def test_what_is_realised_by_a_timer_follows_from_when_rounds_finished(
    phones: Cache, ours: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds 20 hours apart: a device that waits for 48 may come in every third, and the plan said every fourth. One
    that came as a round opened, 20 hours before it finished, in every second: that is what is accounted.
    """
    asked = recipe(ours, TIMED, rounds={"min_separation": 4})
    begun = tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE, until=0)
    created = begun.run.metadata.created
    begun.run.close()
    clock = iter(created + 20 * 3600.0 * np.arange(1, 10))
    monkeypatch.setattr(loop, "time", SimpleNamespace(time=lambda: float(next(clock))))
    result = tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE)
    realised = result.account.realised
    assert realised is not None
    found = realised.sequences[0].guarantee.participation
    assert found == Participation(rounds=9, min_separation=2, max_participations=5)
    assert realised.zcdp > result.account.planned.zcdp
    assert [label.name for label in result.summary().labels].count("WEAKER THAN PLANNED") == 1
    assert tacit.verify(tmp_path / "run").holds


def test_a_clock_that_is_set_back_stops_the_run_before_a_release(
    phones: Cache, ours: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = recipe(ours, TIMED)
    tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE, until=2)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", SimpleNamespace(time=lambda: 1.0))
        with pytest.raises(RunError, match=r"finished .* seconds before the one before it.*set the clock right"):
            tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE)
    result = tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE)
    assert result.rounds == 9 and tacit.verify(tmp_path / "run").holds


def test_killed_it_goes_on_with_the_same_collector_to_the_same_bits(phones: Cache, ours: Cache, tmp_path: Path) -> None:
    asked = recipe(ours)
    for name, dies in (("whole", set[int]()), ("parts", {2, 5})):
        left = set(dies)

        def once(round: int, left: set[int] = left) -> bool:
            dies_now = round in left
            left.discard(round)
            return dies_now

        for _ in dies:
            with pytest.raises(Killed):
                tacit.train(asked, tmp_path / name, collector=Phones(phones, asked, once), hardware=ONE)
            with pytest.raises(InputError, match=r"the run '.*parts' is for real devices .*`tacit serve`"):
                tacit.resume(tmp_path / name, hardware=ONE)
        tacit.train(asked, tmp_path / name, collector=Phones(phones, asked, once), hardware=ONE)
    happened = []
    for name in ("whole", "parts"):
        with Run.open(tmp_path / name) as run:
            happened.append([(row.digest, row.releases) for row in run.steps()] + [run.counts().tolist()])
    assert happened[0] == happened[1]


def test_without_a_collector_it_is_refused_before_anything_is_written(ours: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recipe 'tiny' is for real devices \(\[deployment\]\).*start `tacit serve`"):
        tacit.train(recipe(ours), tmp_path / "run", hardware=ONE)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="every trial would ask them again"):
        tacit.tune(recipe(ours), tmp_path / "tuned", hardware=ONE)
    assert tacit.noise_forecast(recipe(ours)).clients == 40, "and what the noise leaves is told of the devices"


class Named(Phones):
    """Says who took part, all the same."""

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        collected, after = super().collect(state, task, seed=seed)
        return collected._replace(clients=np.arange(6)), after


class Miscounting(Phones):
    """Counts fewer devices than reported."""

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        collected, after = super().collect(state, task, seed=seed)
        return collected._replace(clients=collected.participants - 1), after


@pytest.mark.parametrize(
    ("collector", "said"),
    [(Named, "says that devices have no identities"), (Miscounting, "6 reports of 5 clients")],
)
def test_a_cohort_that_is_not_what_the_recipe_says_is_refused(
    phones: Cache, ours: Cache, tmp_path: Path, collector: type[Phones], said: str
) -> None:
    asked = recipe(ours)
    with pytest.raises(TrainingError, match=said):
        tacit.train(asked, tmp_path / "run", collector=collector(phones, asked), hardware=ONE)


def test_its_budget_is_entered_with_the_plan_and_settled_with_what_happened(
    phones: Cache, ours: Cache, tmp_path: Path
) -> None:
    begin_population(tmp_path / "budget", clients="phones of a test", zcdp=100.0)
    asked = recipe(ours).with_population(tmp_path / "budget")
    tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE, until=3)
    (taken,) = account_population(tmp_path / "budget").runs
    planned = account_population(tmp_path / "budget").zcdp
    tacit.train(asked, tmp_path / "run", collector=Phones(phones, asked), hardware=ONE)
    with Run.open(tmp_path / "run") as run:
        assert account_population(tmp_path / "budget").zcdp == spent_by(run).zcdp == pytest.approx(planned)
    assert tacit.verify(tmp_path / "run").holds and taken is not None


def test_a_run_of_devices_has_the_model_of_the_same_clients_simulated(
    phones: Cache, ours: Cache, tmp_path: Path
) -> None:
    """Nothing that the rounds compute depends on knowing who took part."""

    class Known(Phones):
        def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
            return DevicesOneByOne.collect(self, state, task, seed=bytes(32))

    deployed, simulated = recipe(ours), tiny_recipe(phones.path)
    tacit.train(deployed, tmp_path / "devices", collector=Phones(phones, deployed), hardware=ONE)
    tacit.train(simulated, tmp_path / "clients", collector=Known(phones, simulated), hardware=ONE)
    for name in ("devices", "clients"):
        with Run.open(tmp_path / name) as run:
            assert run.steps_done == 9
    models = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("devices", "clients")]
    assert models[0] == models[1]
