"""A device that is asked about models: what it refuses of plan and task, and what a server refuses of its report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.evaluation.typists import typists_and_model
from tests.support.server.phones import EVERYTHING, Phones
from tests.support.server.stores import quick_folder
from tests.support.training.tiny import tiny_cache

from tacit.data import Cache
from tacit.data.mapped_sentences import MappedSentences
from tacit.data.splits import TemporalSplit
from tacit.device.count import ModelHandler, count_cost
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.errors import InputError, TaskRefused, TrainingError
from tacit.evaluation.device_part import StrategiesQuestion, no_report
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings, PersonalizationSettings
from tacit.jobs.devices import RealDevices
from tacit.privacy.gaussian import epsilon, zcdp
from tacit.protocol.count import HistogramsDocument
from tacit.protocol.messages import HistogramPrivacy, LocalPrivacy, Plan, RoundTask, Signed
from tacit.recipe.deployment_section import DeploymentSection
from tacit.server.count_files import ServedEvaluation
from tacit.server.store.round_states import attempts

CAREFUL = Policy(kinds=EVERYTHING)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return typists_and_model(tmp_path_factory.mktemp("world"), 4)


@pytest.fixture(scope="module")
def asked(world: tuple[Path, Path]) -> Iterator[tuple[Plan, RoundTask, bytes, list[Any]]]:
    """(an honest plan, its task, the models, what a device said that was asked with a policy of its own)"""
    deployment = DeploymentSection(population="phones", devices=1000)
    job = ServedEvaluation(
        devices=RealDevices(name="asked", deployment=deployment),
        models=(world[1],),
        release=ReleaseCost(zcdp=0.5, delta=1e-6),
        settings=EvaluationSettings(clients=2, sentences=4, words=6),
    )
    with quick_folder() as folder:
        phones = Phones(folder, world[0], [1, 0], policy=CAREFUL)
        with pytest.raises(TrainingError):  # client 1 comes alone: the other is asked by the owner's policy first
            phones.coming[:] = [1]
            phones.serve(job, folder / "run")
        found = attempts(phones.store, "asked")
        task = Signed.from_json(found[0].signed_task).read(RoundTask)
        assert phones.plan is not None and len(phones.turns) == 1
        from tacit.evaluation.device_part import ModelsQuestion, NetworkWithParameters
        from tacit.keyboard.model_folder import load_model
        from tacit.protocol.served_bodies import model_body
        from tacit.server.count import content_of

        model = load_model(world[1])
        network = NetworkWithParameters(model.network, model.parameters)
        content = model_body(content_of(ModelsQuestion(models=(network,), sentences=4, words=6)))
        yield phones.plan, task, content, phones.turns


def test_a_plan_costs_what_its_own_numbers_give(asked: Any) -> None:
    plan = asked[0]
    found = count_cost(plan)
    assert isinstance(plan.privacy, HistogramPrivacy)
    z = plan.privacy.noise_multiplier
    assert found.zcdp == pytest.approx(0.5) == pytest.approx(1 / (2 * z**2))
    assert (
        found.epsilon == pytest.approx(epsilon(0.5, 1e-6)) and found.spent([]) == 0 and found.spent([0]) == found.zcdp
    )
    assert asked[3][0].what == "reported" and asked[3][0].zcdp == pytest.approx(0.5)
    local = LocalPrivacy(kind="local", zcdp=2.0, local_epsilon=2.0, report_goal=2, rounds=1, max_participations=1)
    assert count_cost(plan.model_copy(update={"privacy": local})).zcdp == 2.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"noise_multiplier": 0.99}, "its own numbers give"),
        ({"zcdp": 0.4}, "claims zCDP 0.4"),
        ({"epsilon": 1.0}, "claims epsilon 1 at"),
        ({"max_participations": 2}, "more than once"),
        ({"zcdp": None}, "promises nothing"),
        ({"rounds": 2}, "more than once"),
        ({"histograms": (1, 1)}, "says of 2 what is asked"),
    ],
)
def test_a_plan_that_claims_too_much_is_refused(asked: Any, changed: dict[str, Any], said: str) -> None:
    plan: Plan = asked[0]
    with pytest.raises(TaskRefused, match=said):
        count_cost(plan.model_copy(update={"privacy": plan.privacy.model_copy(update=changed)}))


def test_the_owners_policy_bounds_noise_delta_and_local_epsilon(asked: Any) -> None:
    plan: Plan = asked[0]
    local = LocalPrivacy(kind="local", zcdp=2.0, local_epsilon=2.0, report_goal=2, rounds=1, max_participations=1)
    randomised = plan.model_copy(update={"privacy": local})
    CAREFUL.check_plan(plan, count_cost(plan))
    for changed, of, said in (
        ({"kinds": ("train",)}, plan, "allows to train"),
        ({"largest_zcdp": 0.4}, plan, "largest_zcdp"),
        ({"largest_epsilon": 1.0}, plan, "largest_epsilon"),
        ({"largest_delta": 1e-9}, plan, "largest_delta"),
        ({"smallest_noise_multiplier": 2.0}, plan, "smallest_noise_multiplier"),
        ({"largest_local_epsilon": 1.0}, randomised, "largest_local_epsilon"),
    ):
        with pytest.raises(TaskRefused, match=said):
            replace(CAREFUL, **changed).check_plan(of, count_cost(of))


def test_a_task_that_its_plan_does_not_reckon_with_is_refused(world: tuple[Path, Path], asked: Any) -> None:
    plan, task, content, _ = asked
    doing = ModelHandler(OwnText(world[0], 0, None))
    cells = task.question(HistogramsDocument).cells
    for changed, said in (
        ({"cells": (*cells, 5)}, "asks for 2 histograms, and its plan for 1"),
        ({"cells": (cells[0] + 1,)}, "asks for other histograms than its plan"),
        ({"local_epsilon": 1.0}, "wants local_epsilon=1.0, and its plan None"),
        ({"parameters": (task.question(HistogramsDocument).parameters[0] - 1,)}, "the file is not one tensor"),
        ({"parameters": (1, task.question(HistogramsDocument).parameters[0] - 1)}, "2 models came, and its plan has 1"),
    ):
        wrong = task.model_copy(update={"asks": task.asks.model_copy(update=changed)})
        with pytest.raises(TaskRefused, match=said):
            doing.prepare(plan, wrong, content)
    honest = doing.prepare(plan, task, content).read(lambda size: bytes(size))
    assert honest.values.sum() == 1 and len(honest.values) == cells[0]
    strange = 'models = [{network = {kind = "os:system"}}]'
    for recipe, said in (("models = 3", "names no models"), (strange, "has the code of"), ("=", "is no TOML")):
        with pytest.raises(TaskRefused, match=said):
            doing.prepare(plan.model_copy(update={"recipe": recipe}), task, content)


def test_text_that_training_reads_judges_no_model(tmp_path: Path, asked: Any) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": 1, "test": 1}).path
    clients = Cache.open(cache).clients("train")
    text = OwnText(cache, int(clients[0]), None)
    with pytest.raises(TaskRefused, match="training may read all text of this device"):
        ModelHandler(text).check(asked[0])
    kept = OwnText(cache, int(Cache.open(cache).clients("test")[0]), None)
    kept.check_judges()
    assert kept.judging.sentence_count(kept.client) == Cache.open(cache).sentence_count(kept.client)


def test_what_the_policy_keeps_judges_models(world: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a client whose other text is trained on: the two parts share no sentence."""
    monkeypatch.setattr(
        MappedSentences, "clients", lambda self, split: np.arange(4) if split == "train" else np.zeros(0, int)
    )
    cut = TemporalSplit.parse("time:0.8")
    text, whole = OwnText(world[0], 0, cut), Cache.open(world[0]).sentence_count(0)
    judged = text.judging.sentence_count(0)
    assert 0 < judged < whole and judged + text.sentence_count(0) == whole
    text.check_judges()
    later, earlier = TemporalSplit.parse("time:0.9"), TemporalSplit.parse("time:0.5")
    text.check_split(later)
    assert text.keeps(later) and not text.keeps(earlier)
    with pytest.raises(TaskRefused, match=r"as its own policy keeps what is after time:0\.8"):
        text.check_split(earlier)


def test_no_refusal_tells_when_its_owner_typed(
    world: tuple[Path, Path], asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks chooses the split, a day or a number of sentences: by refusals alone, which cost nothing, it would
    find out when this device typed, run after run.
    """
    monkeypatch.setattr(
        MappedSentences, "clients", lambda self, split: np.arange(4) if split == "train" else np.zeros(0, int)
    )
    times = np.sort(Cache.open(world[0]).timestamps(0))
    text = OwnText(world[0], 0, TemporalSplit.parse("time:0.8"))
    doing, kept = ModelHandler(text), set()
    for split in (
        TemporalSplit(rule="date", value=float(times[1])),
        TemporalSplit(rule="date", value=float(times[-1])),
        TemporalSplit(rule="last", value=1.0),
        TemporalSplit(rule="count", value=1.0),
    ):
        network = 'models = [{network = {kind = "cifg", embedding = 8, units = 16}}]\n[settings.strategies.a]\n'
        recipe = f'{network}learning_rate = 1.0\n[settings.split]\nrule = "{split.rule}"\nvalue = {split.value}\n'
        plan = asked[0].model_copy(update={"kind": "personalize", "recipe": recipe})
        doing.check(plan)
        assert doing._question(plan).settings.split == split
        kept.add(text.keeps(split))
        if not text.keeps(split):  # no model is asked then
            nobody: Any = None
            asks = StrategiesQuestion(model=nobody, settings=PersonalizationSettings(split=split))
            np.testing.assert_array_equal(doing._cells(plan, asks), no_report(asks.histograms))
    assert kept == {True, False}


HOSTILE = {
    "is no table of a network": "models = [{network = 'abc'}]",
    "has more strategies than can be asked about": "".join(
        f"[settings.strategies.s{number}]\nlearning_rate = 1.{number}\n" for number in range(1, 1200)
    )
    + f"[settings]\nlevels = {[number / 2000 for number in range(1, 2000)]}",
    "cuts a histogram into too many cells": "[settings.strategies.a]\n[settings]\nslices = ['tokens', 'joint']\n"
    f"[settings.tokens]\ncuts = {[float(cut) for cut in range(1, 4000)]}\n"
    f"[settings.baseline]\ncuts = {[cut / 4000 for cut in range(1, 4000)]}",
    "trains for ever": "[settings.strategies.a]\nmax_tokens = 100_000_000\nepochs = 100_000_000",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_recipe_that(name: str, asked: Any, world: tuple[Path, Path]) -> None:
    """What a few lines may ask is refused before it is counted, and a device goes on."""
    plan, task, content = asked[:3]
    doing = ModelHandler(OwnText(world[0], 0, None))
    with pytest.raises(TaskRefused, match="asks what this device cannot do"):
        doing.prepare(plan.model_copy(update={"kind": "personalize", "recipe": HOSTILE[name]}), task, content)


@pytest.mark.parametrize("noise", [5e-324, 1e-200, 1e-160])
def test_next_to_no_noise_is_refused_and_no_error_of_arithmetic(noise: float, asked: Any) -> None:
    plan: Plan = asked[0]
    changed = plan.privacy.model_copy(update={"noise_multiplier": noise})
    with pytest.raises(TaskRefused, match="its own numbers give inf"):
        count_cost(plan.model_copy(update={"privacy": changed}))
    assert zcdp(1.0, noise) == float("inf")


def test_an_epsilon_that_no_randomizer_has_is_refused(asked: Any) -> None:
    local = LocalPrivacy(kind="local", zcdp=2.0, local_epsilon=1e-9, report_goal=2, rounds=1, max_participations=1)
    with pytest.raises(TaskRefused, match="epsilon=1e-09 is not between"):
        count_cost(asked[0].model_copy(update={"privacy": local}))


def test_a_policy_of_rules_that_there_are_not_is_refused(asked: Any) -> None:
    from tacit.evaluation.in_plan import QuestionOfPlan

    network = 'models = [{network = {kind = "cifg", embedding = 8, units = 16}}]\n'
    recipe = network + "[settings.strategies.a]\nlearning_rate = 1.0\n"
    said = QuestionOfPlan(kind="personalize", recipe=recipe, words=60)
    model = np.zeros(asked[1].question(HistogramsDocument).parameters[0], np.float32)
    for name, place, complaint in (("one strategy", 1, "names strategy 1"), ("mine", 0, "no device knows")):
        policy = {"name": name, "cuts": (), "rules": ({"strategy": place, "level": 1.0},)}
        with pytest.raises(InputError, match=complaint):
            said.computation([model], [policy])
