"""`tacit.train` as programs call it: killed and called again, parts of one's own, and what comes back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.support.networks.bigram import Bigram
from tests.support.training.tiny import MECHANISMS, cohorts_of, tiny_cache, tiny_learner, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import AccountingError, InputError, ParticipationError, RecipeError, RunError
from tacit.jobs.train.job import TrainingResult, resume_training, train
from tacit.networks.language_model import LanguageModel
from tacit.progress import ANOTHER, Advanced, Evaluated, Event, StageBegan
from tacit.recipe import Recipe
from tacit.training.client import Loss, Model, Step
from tacit.training.one_by_one import DevicesOneByOne
from tacit.training.shards import _group_sum

ONE = Hardware(workers=1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def whole(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    return train(recipe(cache), tmp_path_factory.mktemp("whole") / "run", hardware=ONE)


def recipe(cache: Cache, **sections: Any) -> Recipe:
    return tiny_recipe(cache.path, privacy=MECHANISMS["blt"], **sections)


# -- what comes back ---------------------------------------------------------------------------------------------------


def test_a_result_is_the_folder_read(cache: Cache, whole: TrainingResult) -> None:
    assert whole.rounds == 9 and 0 <= whole.test["top1_accuracy"] <= 1
    assert whole.report is not None and whole.report.html.is_file()
    assert whole.model().vocabulary.size == 60
    assert whole.profile is not None and whole.profile["phases"]["training"] > 0
    record = whole.to_record()
    assert json.loads(json.dumps(record)) == record
    assert record["schema"] == "tacit.training" and record["rounds"] == 9
    assert record["privacy"]["realised"]["zcdp"] <= record["privacy"]["planned"]["zcdp"]
    shown = whole._repr_html_()
    assert "tiny" in shown and "zCDP" in shown and "<html" not in shown


def test_noise_of_next_to_nothing_ends_with_a_report(cache: Cache, tmp_path: Path) -> None:
    """The axis of its page had a tick for each of 1e52 epsilons: the report never ended."""
    tree = {"mechanism": {"name": "tree"}, "noise_multiplier": 1e-30}
    result = train(tiny_recipe(cache.path, privacy=tree), tmp_path / "run", hardware=ONE, anyway=True)
    assert result.report is not None and result.to_record()["privacy"]["realised"]["epsilon"] > 1e58


def test_what_is_compiled_already_is_not_said_to_be_compiled_again(cache: Cache, tmp_path: Path) -> None:
    openings: list[str] = []
    compiled: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, StageBegan) and event.stage == "training":
            openings.append(event.opening)
        if isinstance(event, Advanced) and event.stage == "training" and event.done == 1:
            compiled.append(_group_sum.cache_info().misses)

    for run, rate in (("first", 0.123), ("second", 0.123), ("another", 0.124)):
        asked = recipe(cache, client={"batch_size": 4, "sentences": 8, "words": 6, "learning_rate": rate})
        train(asked, tmp_path / run, until=1, hardware=ONE, progress=listen)
    assert [bool(each) for each in openings] == [True, False, True] and openings[2] == ANOTHER
    assert compiled[0] == compiled[1] == compiled[2] - 1


def test_what_the_interpreter_prints_fits_a_line(cache: Cache, whole: TrainingResult) -> None:
    """And not all weights, words or pages."""
    model = whole.model()
    for value in (cache, whole, whole.run, whole.history(), model, model.vocabulary):
        printed = repr(value)
        assert printed.startswith(f"{type(value).__name__}(") and "\n" not in printed and "array" not in printed
    assert repr(cache).endswith("51 clients, 1,408 words, 4.0% unknown)")
    assert repr(model.vocabulary) == "Vocabulary(60 ids, word list: tiny)"
    assert repr(whole.run) == f"Run('{whole.run.path}')"
    assert ": 9 rounds, top1_accuracy " in repr(whole)
    assert repr(model).endswith(": Cifg(vocabulary=60, embedding=8, units=16, tied=False))")


def test_the_history_is_columns(whole: TrainingResult) -> None:
    history = whole.history()
    assert history["rounds"].tolist() == list(range(10))
    assert np.isnan(history["loss"][0]) and np.isfinite(history["loss"][1:]).all()
    accuracy = history["validation_top1_accuracy"]
    assert np.flatnonzero(np.isfinite(accuracy)).tolist() == [0, 4, 8, 9]
    assert history["test_top1_accuracy"][9] == whole.test["top1_accuracy"]
    assert {len(column) for column in history.values()} == {10}
    assert history.to_arrow().column_names == list(history)
    assert "loss" in repr(history)
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(InputError, match=r"pip install 'tacit\[pandas\]'"):
            history.to_pandas()
    else:
        assert list(history.to_pandas().columns) == list(history)


# -- killed and called again -------------------------------------------------------------------------------------------


def test_called_again_it_goes_on_and_a_finished_run_stays_what_it_is(
    cache: Cache, tmp_path: Path, whole: TrainingResult
) -> None:
    begun = train(recipe(cache), tmp_path / "run", hardware=ONE, until=4)
    assert (begun.rounds, begun.report, dict(begun.test)) == (4, None, {})
    assert begun.to_record()["report"] is None
    with pytest.raises(InputError, match="holds no model"):
        begun.model()
    for _ in range(2):
        assert train(recipe(cache), tmp_path / "run", hardware=ONE).rounds == 9
    assert what_happened(tmp_path / "run") == what_happened(whole.run.path)


@pytest.mark.parametrize("kind", [Advanced, Evaluated])
def test_a_listener_that_raises_stops_after_the_last_committed_round(
    cache: Cache, tmp_path: Path, whole: TrainingResult, kind: type[Event]
) -> None:
    heard: list[Event] = []

    def impatient(event: Event) -> None:
        heard.append(event)
        if sum(isinstance(each, kind) for each in heard) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe(cache), tmp_path / "run", hardware=ONE, progress=impatient)
    resumed = resume_training(tmp_path / "run", hardware=ONE)
    assert resumed.rounds == 9
    assert what_happened(tmp_path / "run") == what_happened(whole.run.path)


def test_a_path_and_changes_are_a_recipe_too(cache: Cache, tmp_path: Path, whole: TrainingResult) -> None:
    changed = recipe(cache, run={"seed": 8}, data={"cache": "nowhere"})
    (tmp_path / "tiny.toml").write_text(changed.to_toml())
    train(tmp_path / "tiny.toml", tmp_path / "run", data=cache.path, seed=3, hardware=ONE)
    assert what_happened(tmp_path / "run") == what_happened(whole.run.path)
    with pytest.raises(RecipeError, match="--seed -1 must be 0 or more"):
        train(changed, tmp_path / "other", seed=-1)
    with pytest.raises(RunError, match=r"rounds\.rounds is 12, not 9"):
        train(recipe(cache, rounds={"rounds": 12}), tmp_path / "run")


def test_a_mechanism_without_a_known_sensitivity_is_refused_before_anything_is_written(
    cache: Cache, tmp_path: Path
) -> None:
    """From a file the recipe is refused already; one made in Python may never have been a file."""
    asked = recipe(cache)
    rising = {"name": "banded-toeplitz", "coefficients": [1.0, 0.2, 0.5]}
    section = type(asked.privacy).model_validate({**asked.privacy.model_dump(), "mechanism": rising})
    with pytest.raises(AccountingError, match=r"coefficient 2 is 0\.5"):
        train(asked.model_copy(update={"privacy": section}), tmp_path / "run", hardware=ONE)
    assert not any(tmp_path.iterdir())


# -- parts of one's own ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InTurn:
    """A cohort sampler: client after client, as a queue."""

    step: int = 1

    def init(self, clients: int, *, report_goal: int) -> Any:
        if report_goal > clients:
            raise ParticipationError(f"{report_goal} of {clients} clients cannot be had.")
        return {"next": np.zeros((), np.int64), "clients": np.array(clients)}

    def draw(self, clock: Any, *, round: int, report_goal: int, generator: np.random.Generator) -> Any:
        drawn = (int(clock["next"]) + self.step * np.arange(report_goal)) % int(clock["clients"])
        return drawn, {**clock, "next": np.asarray(clock["next"] + report_goal)}


def two_steps(
    loss: Loss, model: Model, sentences: jax.Array, batches: jax.Array, settings: Any, *, step: Step
) -> tuple[Model, jax.Array]:
    """A client algorithm: two steps on the first batch."""
    batch = sentences[: settings.batch_size]
    theta, value = step(step(model, batch)[0], batch)
    return jax.tree.map(jnp.subtract, theta, model), value


def lion(rounds: int) -> optax.GradientTransformation:
    """A server optimizer with a schedule over the whole run."""
    return optax.lion(optax.cosine_decay_schedule(1e-3, rounds))


OWN: dict[str, dict[str, Any]] = {
    "sampler": {"sampler": InTurn(step=1)},
    "algorithm": {"algorithm": two_steps},
    "optimizer": {"optimizer": lion},
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_a_part_of_ones_own_survives_a_kill_and_another_is_refused(
    cache: Cache, tmp_path: Path, whole: TrainingResult, own: dict[str, Any]
) -> None:
    in_one_go = train(recipe(cache), tmp_path / "whole", hardware=ONE, **own)
    assert what_happened(in_one_go.run.path)["rounds"] != what_happened(whole.run.path)["rounds"]
    train(recipe(cache), tmp_path / "parts", hardware=ONE, until=4, **own)
    (name,) = own
    with pytest.raises(RunError, match=rf"began with the {name} tests\.jobs\.test_train_api:.*resume it from Python"):
        resume_training(tmp_path / "parts", hardware=ONE)
    resume_training(tmp_path / "parts", hardware=ONE, **own)
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")


def test_values_belong_to_the_name_and_what_has_none_is_refused(cache: Cache, tmp_path: Path) -> None:
    train(recipe(cache), tmp_path / "run", hardware=ONE, until=1, sampler=InTurn(step=3))
    with pytest.raises(RunError, match=r"InTurn\(step=3\), and .*InTurn\(step=7\) is another"):
        resume_training(tmp_path / "run", hardware=ONE, sampler=InTurn(step=7))
    train(recipe(cache), tmp_path / "usual", hardware=ONE, until=1)
    with pytest.raises(RunError, match="began without a sampler of its own"):
        train(recipe(cache), tmp_path / "usual", hardware=ONE, sampler=InTurn())
    with pytest.raises(InputError, match="optimizer= has no name"):
        train(recipe(cache), tmp_path / "other", hardware=ONE, optimizer=lambda rounds: optax.sgd(1.0))
    assert not (tmp_path / "other").exists()


def test_a_sampler_that_must_fail_later_fails_before_anything_is_written(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(ParticipationError, match="41 of 40 clients"):
        train(recipe(cache, rounds={"report_goal": 41}), tmp_path / "run", sampler=InTurn(), hardware=ONE)
    assert not (tmp_path / "run").exists()


class Asking(DevicesOneByOne):
    """A collector of one's own, which fails now and then as transports do."""

    def __init__(self, cache: Cache, asked: Recipe, fails: Callable[[int], bool]) -> None:
        learner, plan = tiny_learner(cache), asked.plan()
        super().__init__(learner, cohorts_of(learner, plan, b"another key 1234"))
        self._fails = fails

    def collect(self, state: Any, task: Any, *, seed: bytes) -> Any:
        if self._fails(task.round):
            raise ConnectionError("nobody answers")
        return super().collect(state, task, seed=seed)


def test_a_collector_that_fails_takes_nothing_from_the_rounds_before(cache: Cache, tmp_path: Path) -> None:
    asked = recipe(cache)
    whole = train(asked, tmp_path / "whole", hardware=ONE, collector=Asking(cache, asked, lambda round: False))
    failed = set[int]()

    def once(round: int) -> bool:
        fails = round in (2, 7) and round not in failed
        failed.update([round] if fails else [])
        return fails

    for done in (2, 7):
        with pytest.raises(ConnectionError):
            train(asked, tmp_path / "parts", hardware=ONE, collector=Asking(cache, asked, once))
        with pytest.raises(RunError, match="began with the collector"):
            resume_training(tmp_path / "parts", hardware=ONE)
        assert TrainingResult(run=whole.run.open(tmp_path / "parts"), report=None).rounds == done
    train(asked, tmp_path / "parts", hardware=ONE, collector=Asking(cache, asked, once))
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")
    with pytest.raises(InputError, match="a collector asks its devices by itself"):
        train(asked, tmp_path / "x", collector=Asking(cache, asked, once), sampler=InTurn())


# -- a network of one's own --------------------------------------------------------------------------------------------


def test_a_network_of_ones_own_is_trained_evaluated_and_resumed(cache: Cache, tmp_path: Path) -> None:
    network: LanguageModel = Bigram(scale=0.2)
    plain = tiny_recipe(cache.path, privacy=MECHANISMS["blt"], model={"embedding": 8, "units": 16})
    in_one_go = train(plain, tmp_path / "whole", model=network, hardware=ONE)
    train(plain, tmp_path / "parts", model=network, hardware=ONE, until=5)
    resume_training(tmp_path / "parts", hardware=ONE)  # its class is in the recipe
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")
    found = in_one_go.model()
    assert found.network == Bigram(vocabulary=60, scale=0.2)
    assert set(found.parameters) == {"scores"} and in_one_go.test["top1_accuracy"] >= 0
