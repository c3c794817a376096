"""Models are asked about on devices without identities: a simulation's sums, and nothing but what is released."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.support.evaluation.phones import Phones
from tests.support.evaluation.typists import typists_and_model
from tests.support.training.tiny import SETTINGS

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.errors import InputError, RunError
from tacit.evaluation.accuracy import first_shuffled
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import Buckets
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.personalize.gate import LEVELS
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings, PersonalizationSettings
from tacit.federation.collector import Answered
from tacit.jobs import count_steps as of_histograms
from tacit.jobs.statement import verify
from tacit.keyboard.model_folder import write_model
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.statements.run_facts import statement_of

ONE = Hardware(workers=1)
CLIENTS = 24
FEW = EvaluationSettings(clients=CLIENTS, sentences=8, words=6)
GATED = PersonalizationSettings(
    clients=CLIENTS,
    strategies=(FineTuning(learning_rate=1.0),),
    split=TemporalSplit(gate=0.125),
    levels=LEVELS,
    tokens=Buckets((100.0,)),
)
COST = ReleaseCost(zcdp=5.0, delta=1e-5)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cache, Path, Path]:
    folder = tmp_path_factory.mktemp("world")
    cache, model = typists_and_model(folder, CLIENTS)
    other = folder / "other"
    write_model(other, SETTINGS, SETTINGS.init(jax.random.key(8)), Cache.open(cache).vocabulary_path.read_bytes())
    return Cache.open(cache), model, other


@pytest.fixture(scope="module")
def everybody(world: tuple[Cache, Path, Path]) -> list[int]:
    return [int(client) for client in first_shuffled(world[0].clients("test"), CLIENTS)]


@pytest.fixture(scope="module")
def evaluated(world: tuple[Cache, Path, Path], everybody: list[int], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(the result of devices, the devices)"""
    cache, *models = world
    phones, out = Phones(cache, everybody, away=3), tmp_path_factory.mktemp("evaluated") / "run"
    return tacit.evaluate(models, settings=FEW, release=COST, out=out, collector=phones, hardware=ONE), phones


def simulated_counts(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> list[Any]:
    """What the collector of a simulation brings."""
    seen: list[Any] = []
    collect = of_histograms.SimulatedCollector.collect

    def told(self: Any, state: Any, task: CountQuestion, **more: Any) -> tuple[Answered, Any]:
        answered, after = collect(self, state, task, **more)
        seen.append(task.opened(answered))
        return answered, after

    monkeypatch.setattr(of_histograms.SimulatedCollector, "collect", told)
    run()
    return seen


def test_devices_count_what_a_simulation_counts(
    world: tuple[Cache, Path, Path], evaluated: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, *models = world
    found = simulated_counts(
        monkeypatch,
        lambda: tacit.evaluate(models, cache, settings=FEW, release=COST, out=tmp_path / "run", hardware=ONE),
    )
    assert np.array_equal(found[0].counts, evaluated[1].counts[0]) and found[0].counts.sum() == 3 * CLIENTS


def test_a_run_of_devices_has_what_was_released_and_nothing_exact(evaluated: Any, tmp_path: Path) -> None:
    result, phones = evaluated
    path = result.run.path
    assert result.found["simulation_only"] is None and result.released is not None
    with pytest.raises(InputError, match="nobody knows exact numbers"):
        result.exact  # noqa: B018
    assert not (path / "simulation").exists() and phones.told == [0]
    assert result.account.to_record()["promise"]["zcdp"] == pytest.approx(5.0)
    page = result.report.markdown.read_text()
    assert "24 devices of the population phones were asked" in page
    assert set(result.released["models"]) == {"model", "other"}  # and not where they lie on the server
    assert "SIMULATION" not in result._repr_html_() + str(result) + json.dumps(result.to_record())
    run = reconciled(Run.open(path))
    assert run.counts().tolist() == [CLIENTS + 3]
    stated = statement_of(run)
    text = stated.markdown()
    assert "27 participations of devices without identities" in text and "Device level" in text
    assert "no part of this software" in text  # the collector of a test
    assert verify(path).holds
    statement = path / "report" / "statement.json"
    assert verify(statement, run=path).holds
    before = result.report.json.read_bytes()
    result.report.html.unlink()
    assert tacit.report(path).to_record() == result.report.to_record() and result.report.json.read_bytes() == before


def test_both_groups_of_a_personalization_count_as_simulated(
    world: tuple[Cache, Path, Path], everybody: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policies that are judged are those that the released histograms chose: the same noise, the same policies."""
    cache, model, _ = world
    hardly_noised = ReleaseCost(zcdp=5000.0, delta=1e-5)  # so that twelve devices say something
    asked = {"settings": GATED, "release": hardly_noised, "seed": 7, "hardware": ONE}
    phones = Phones(cache, everybody)
    result = tacit.personalize(model, None, tmp_path / "devices", collector=phones, **asked)  # type: ignore[arg-type]
    found = simulated_counts(
        monkeypatch,
        lambda: tacit.personalize(model, cache, tmp_path / "simulated", **asked),  # type: ignore[arg-type]
    )
    assert [each.tolist() for each in phones.counts] == [each.counts.tolist() for each in found]
    assert [task.devices for task in phones.asked] == [12, 12] and phones.told == [0, 1]
    assert len(result.policies) == 4 and result.found.exact is None
    assert "devices that did not design it" in str(result)
    assert result.account.to_record()["promise"]["zcdp"] == pytest.approx(5000.0)  # each device is in one step
    assert verify(result.run.path).holds
    again = tacit.resume(result.run.path)
    assert again.to_record() == result.to_record()


def test_devices_that_randomise_their_reports_need_trust_nobody(
    world: tuple[Cache, Path, Path], everybody: list[int], tmp_path: Path
) -> None:
    cache, model, _ = world
    cost = ReleaseCost(local_epsilon=2.0)
    result = tacit.evaluate(
        [model], settings=FEW, release=cost, out=tmp_path / "run", collector=Phones(cache, everybody, away=1)
    )
    assert result.account is not None and isinstance(result.account.realised, LocalGuarantee)
    assert result.account.realised.user_epsilon == 2.0
    assert result.run is not None
    assert verify(result.run.path).holds
    assert "answers one histogram" not in statement_of(result.run).markdown()  # says the software's own server only


class Dies(BaseException):
    pass


def test_a_killed_run_asks_no_step_twice(world: tuple[Cache, Path, Path], everybody: list[int], tmp_path: Path) -> None:
    cache, model, _ = world

    class Mortal(Phones):
        def collect(self, state: Any, task: CountQuestion, *, seed: bytes) -> tuple[Answered, Any]:
            if task.step == 1 and not self.told[1:]:
                self.told.append(-1)
                raise Dies
            return super().collect(state, task, seed=seed)

    phones = Mortal(cache, everybody)

    def run() -> Any:
        return tacit.personalize(model, None, tmp_path / "run", settings=GATED, release=COST, collector=phones)

    with pytest.raises(Dies):
        run()
    with pytest.raises(RunError, match=r"step 1 of .* is not released, and its devices are asked by the server"):
        tacit.resume(tmp_path / "run")
    assert run().run.finished and [task.step for task in phones.asked] == [0, 1]


def test_what_cannot_be_asked_of_devices_is_refused(
    world: tuple[Cache, Path, Path], everybody: list[int], tmp_path: Path
) -> None:
    cache, model, other = world
    phones, out = Phones(cache, everybody), tmp_path / "run"
    asked: dict[str, Any] = {"settings": FEW, "release": COST, "out": out, "collector": phones}
    three = [model, other]
    for changed, said in (
        ({"data": cache}, "devices have their own text"),
        ({"release": None}, "nothing is known but what is released"),
        ({"settings": EvaluationSettings()}, "how many devices are asked is not said"),
        ({"collector": object()}, "does not say whom it asks"),
        ({"collector": None}, "whose text models are asked about is not said"),
        ({"out": None}, "kept in a run folder"),
        ({"release": ReleaseCost(local_epsilon=1.0)}, "might have no answer; ask"),
    ):
        given = {**asked, **changed}
        with pytest.raises(InputError, match=said):
            tacit.evaluate(three, given.pop("data", None), **given)
    assert not out.exists() and not phones.asked
