"""What every network must be: all of MODELS, and a GRU that knows no fast path."""

import json
import pickle
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tomli_w
from jax.flatten_util import ravel_pytree
from tests.support.device.operator import Operator, a_plan, recipe_text
from tests.support.evaluation.typists import typists_and_model
from tests.support.keyboard.counting import nats, whole
from tests.support.networks import small
from tests.support.networks.gru import KIND, Gru
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.device.own_text import OwnText
from tacit.device.train import ByJax
from tacit.device.train_onnx import ByOnnx
from tacit.errors import InputError, RecipeError
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.personalize.outcomes import FineTuning, TemporalSplit
from tacit.evaluation.personalize.population import personalize_clients
from tacit.keyboard.model_folder import SETTINGS, load_model, write_model
from tacit.keyboard.phone_model import load_phone_model
from tacit.keyboard.ranking import rank
from tacit.keyboard.suggest import LONGEST, HasReader, Rereader, reader_of
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.networks.language_model import (
    HasLoss,
    HasSgdStep,
    LanguageModel,
    count,
    cross_entropy,
    kind_of,
    leaves,
    model_class,
    model_of,
    next_word_loss,
    parameter_count,
    settings_of,
    sgd_step,
)
from tacit.networks.metrics import Counts, counts_of
from tacit.networks.models import MODELS, WEIGHTS
from tacit.networks.on_device import HasOnDeviceTraining, HeldModel, Padded, SgdStep, held
from tacit.protocol.train import TrainDocument
from tacit.recipe import Recipe
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

SMALL: list[LanguageModel] = [*small.SMALL, Gru()]
SENTENCES = np.array(
    [[BOS, 5, OOV, 59, EOS, PAD], [BOS, 7, 7, 8, 9, EOS], [BOS, EOS, PAD, PAD, PAD, PAD], [PAD] * 6], np.int32
)


@cache
def compiled_init(network: LanguageModel) -> Any:
    return jax.jit(network.init)


def begun(network: LanguageModel, seed: int = 0) -> Any:
    return compiled_init(network)(jax.random.key(seed))


def ranked(model: HeldModel, text: Any) -> list[Counts]:
    """The counts of a text by the model alone, and by it with a cache of that text."""
    own = UserCache.from_sentences(text, model.vocabulary)
    return [counts_of(each, np).host() for each in rank(model, model.batches(text, 2), own, [ALONE, Mix(0.1, 0.2)])]


@pytest.fixture(scope="module")
def typists(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache.open(typists_and_model(tmp_path_factory.mktemp("typists"), 6)[0])


def test_every_kind_is_among_the_small_ones() -> None:
    assert {kind_of(network) for network in SMALL} == {*MODELS, KIND}


@pytest.mark.parametrize("network", SMALL, ids=str)
class TestEveryNetwork:
    def test_it_is_a_language_model_that_can_be_compared_and_sent(self, network: LanguageModel) -> None:
        assert isinstance(network, LanguageModel)
        sent = pickle.loads(pickle.dumps(next_word_loss(network)))
        assert sent == next_word_loss(network) and hash(sent) == hash(next_word_loss(network))

    def test_its_settings_are_written_and_read(self, network: LanguageModel) -> None:
        written = settings_of(network)
        assert model_of(written.pop("kind"), written) == network

    def test_parameters_are_named_float32_and_decided_by_the_key(self, network: LanguageModel) -> None:
        parameters, again, other = (begun(network, seed) for seed in (1, 1, 2))
        named = leaves(parameters)
        assert len(named) == len(jax.tree.leaves(parameters))
        assert all(leaf.dtype == jnp.float32 for leaf in named.values())
        assert sum(leaf.size for leaf in named.values()) == parameter_count(network)
        assert jax.tree.all(jax.tree.map(jnp.array_equal, parameters, again))
        assert not jax.tree.all(jax.tree.map(jnp.array_equal, parameters, other))

    def test_its_groups_are_of_its_parameters(self, network: LanguageModel) -> None:
        named, groups = leaves(begun(network)), network.groups()
        assert set(groups["all"]) == set(named)
        assert all(set(group) <= set(named) for group in groups.values())

    def test_scores_look_back_only(self, network: LanguageModel) -> None:
        """The score after a word does not depend on the words that come later, nor on other sentences."""
        parameters, tokens, logits = begun(network), SENTENCES[:, :-1], jax.jit(network.logits)
        scores = np.asarray(logits(parameters, tokens))
        assert scores.shape == (*tokens.shape, network.vocabulary) and scores.dtype == np.float32
        other = np.where(np.arange(5) < 3, tokens, 11)
        other[2:] = tokens[[0, 1]]
        cut = np.asarray(logits(parameters, other))
        np.testing.assert_allclose(scores[:2, :3], cut[:2, :3], rtol=1e-5, atol=1e-6)

    def test_word_by_word_it_scores_what_it_scores_of_the_whole_sentence(self, network: LanguageModel) -> None:
        """Its own reader and the one that reads again; a state that was kept can be gone on with twice."""
        parameters = begun(network, 2)
        tokens = np.random.default_rng(3).integers(3, 60, LONGEST)
        tokens[0] = BOS
        whole = np.asarray(jax.jit(network.logits)(parameters, tokens[None]))[0]
        for reader in (reader_of(network, parameters), Rereader(network, parameters)):
            state, kept = reader.begin(), reader.begin()
            for place, token in enumerate(tokens):
                state, scores = reader.step(state, int(token))
                np.testing.assert_allclose(scores, whole[place], rtol=1e-4, atol=1e-5)
                kept = state if place == 4 else kept
            for token, scores in zip(tokens[5:7], whole[5:7], strict=True):
                kept, found = reader.step(kept, int(token))
                np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-5)

    def test_its_own_loss_and_step_are_the_generic_ones(self, network: LanguageModel) -> None:
        parameters, batch = begun(network, 3), SENTENCES
        value, gradient = jax.jit(jax.value_and_grad(next_word_loss(network)))(parameters, batch)
        generic = jax.jit(lambda p, b: cross_entropy(network.logits(p, b[:, :-1]), b[:, 1:]))(parameters, batch)
        assert float(value) == pytest.approx(float(generic), rel=1e-5)
        stepped, before = jax.jit(partial(sgd_step, network))(parameters, batch, 0.5)
        assert float(before) == pytest.approx(float(generic), rel=1e-5)
        own = [jax.tree.map(lambda p, g: np.asarray(p) - 0.5 * np.asarray(g), parameters, gradient)]
        if isinstance(network, HasSgdStep):
            own.append(jax.jit(partial(network.sgd_step, precision="float32"))(parameters, batch, 0.5)[0])
        for fast in own:
            for name, leaf in leaves(fast).items():
                np.testing.assert_allclose(leaf, leaves(stepped)[name], rtol=1e-4, atol=2e-6, err_msg=name)

    def test_a_batch_of_nothing_teaches_nothing(self, network: LanguageModel) -> None:
        parameters = begun(network, 3)
        stepped, before = jax.jit(partial(sgd_step, network))(parameters, np.zeros_like(SENTENCES), 0.5)
        assert float(before) == 0.0
        assert jax.tree.all(jax.tree.map(jnp.array_equal, stepped, parameters))

    def test_it_is_kept_in_a_folder(self, network: LanguageModel, tmp_path: Path) -> None:
        cache = tiny_cache(tmp_path / "cache", {"train": 1})
        parameters = begun(network, 4)
        write_model(tmp_path / "model", network, parameters, cache.vocabulary_path.read_bytes())
        found = load_model(tmp_path / "model")
        assert found.network == network and found.public_text is None
        assert jax.tree.all(jax.tree.map(jnp.array_equal, found.parameters, parameters))
        assert jax.tree.structure(found.parameters) == jax.tree.structure(parameters)

    @pytest.mark.parametrize(("group", "proximal"), [("all", 0.3), ("output", 0.0)])
    def test_its_way_on_a_device_is_the_padded_one(self, network: LanguageModel, group: str, proximal: float) -> None:
        """Two steps over batches of two, then the ranks: the same but for rounding."""
        parameters = jax.tree.map(lambda leaf: 3.0 * leaf, begun(network, 5))
        step = SgdStep(network.groups()[group], 0.5, proximal)
        text, left = SENTENCES[:3], []
        for start in (held(network, parameters), Padded(network, parameters)):
            before, model, batches = ranked(start, text), start.copy(), start.batches(text, 2)
            memory = start.memory(batches)
            losses = [model.descend(batch, start, step, memory) for batch in batches]
            assert model.finite and [batch.tokens for batch in batches] == [9, 1]
            after = [*before, *ranked(model, text), *ranked(start, text)]
            assert after[:2] == after[4:], "the global model stays as it is"
            left.append((losses, after))
        (losses, after), (slow_losses, slow) = left
        assert losses == pytest.approx(slow_losses, rel=1e-4)
        for fast, padded in zip(after, slow, strict=True):
            assert whole(fast) == whole(padded)
            assert nats(fast) == pytest.approx(nats(padded), rel=1e-4)
        assert len({nats(each) for each in after[:4]}) == 4, "training changes it, and so does a cache"

    def test_ranks_on_a_device_are_those_of_an_evaluation(self, network: LanguageModel) -> None:
        parameters = begun(network, 6)
        model = held(network, parameters)
        found, _ = ranked(model, SENTENCES[:3])
        counted = jax.jit(partial(count, network))(parameters, SENTENCES).host()
        assert whole(found) == whole(counted) and nats(found) == pytest.approx(nats(counted), rel=1e-5)

    def test_clients_are_evaluated_and_personalised_with_it(
        self, network: LanguageModel, typists: Cache, tmp_path: Path
    ) -> None:
        parameters, cores = begun(network, 7), Cores(Hardware(workers=1))
        clients = typists.clients("test")[:3]
        held_out = HeldOut.read(typists, clients, sentences=6, words=6)
        found = evaluate(network, parameters, held_out, cores=cores)
        assert found.metrics()["clients"] == 3
        outcome = personalize_clients(
            network,
            parameters,
            typists,
            clients,
            [FineTuning(learning_rate=0.5), FineTuning(learning_rate=1e30)],
            TemporalSplit(),
            cores=cores,
            words=6,
        )
        learnt = [each.test.personalised[0].value("cross_entropy") for each in outcome.outcomes]
        before = [each.test.baseline.value("cross_entropy") for each in outcome.outcomes]
        assert np.mean(learnt) < np.mean(before)
        assert {each.diverged for each in outcome.outcomes} == {(False, True)}
        again = personalize_clients(
            network,
            parameters,
            typists,
            clients[::-1],
            outcome.strategies,
            TemporalSplit(),
            cores=Cores(Hardware(workers=2)),
            words=6,
        )
        assert again.outcomes[::-1] == outcome.outcomes

    def test_a_recipe_says_it_in_full(self, network: LanguageModel, tmp_path: Path) -> None:
        own = {key: value for key, value in settings_of(network).items() if key != "vocabulary"}
        recipe = tiny_recipe(tmp_path)
        recipe = Recipe.from_toml(
            recipe.model_copy(
                update={"model": Recipe.model_validate({**recipe.model_dump(), "model": network}).model}
            ).to_toml()
        )
        assert recipe.model.settings(60) == network
        assert recipe.model.model_dump(exclude={"init"}) == own


# -- what a device, a phone and a command need of those that are shipped -------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[LanguageModel], Path]:
    @cache
    def of(network: LanguageModel) -> Path:
        folder = tmp_path_factory.mktemp("written")
        words = tiny_cache(folder / "cache", {"train": 1}).vocabulary_json
        write_model(folder / "model", network, begun(network, 8), words.encode())
        tacit.export(folder / "model", folder / "phone")
        return folder

    return of


@pytest.mark.parametrize("network", small.SMALL, ids=str)
class TestEveryShippedNetwork:
    @pytest.fixture
    def model(self, network: LanguageModel, written: Callable[[LanguageModel], Path], tmp_path: Path) -> Path:
        """The folder of a model of the tiny cache's words, and beside it `phone`, its export: a copy for each test."""
        shutil.copytree(written(network), tmp_path, dirs_exist_ok=True)
        return tmp_path / "model"

    def test_the_export_suggests_what_the_model_does(self, network: LanguageModel, model: Path) -> None:
        prompts = ["waa wab", "wba"]
        by_model, by_export = (tacit.suggest(each, prompts).after for each in (model, model.parent / "phone"))
        for (_, own), (_, exported) in zip(by_model, by_export, strict=True):
            assert [each.word for each in own] == [each.word for each in exported]
            assert [each.probability for each in own] == pytest.approx(
                [each.probability for each in exported], rel=1e-4
            )

    def test_it_suggests_about_the_same_in_few_bits(self, network: LanguageModel, model: Path) -> None:
        """With one scheme, and the other example of its kind with the other: tests/networks/test_onnx_quantized.py."""
        scheme = ("int8", "int4")[small.SMALL.index(network) % 2]
        tacit.export(model, model.parent / scheme, quantize=scheme)
        plain, few = (load_phone_model(model.parent / each).typing() for each in ("phone", scheme))
        for session in (plain, few):
            session.commit("waa wab")
        np.testing.assert_allclose(few.log_probabilities, plain.log_probabilities, atol=0.25)

    def test_files_of_another_size_are_refused_by_a_phone(self, network: LanguageModel, model: Path) -> None:
        other = next(each for each in small.SMALL if settings_of(each) != settings_of(network))
        (model / SETTINGS).write_text(json.dumps(settings_of(other)))
        with pytest.raises(InputError, match="do not belong together"):
            load_phone_model(model)

    def test_a_device_reports_the_same_by_jax_and_by_onnx(self, network: LanguageModel, model: Path) -> None:
        """With a proximal term where the other example of its kind has none."""
        proximal = 0.3 * (small.SMALL.index(network) % 2)
        cache = Cache.open(model.parent / "cache")
        section = {key: value for key, value in settings_of(network).items() if key != "vocabulary"}
        recipe = tomli_w.dumps({**tomllib.loads(recipe_text()), "model": section})
        plan = a_plan(cache.manifest.vocabulary.sha256, text=recipe)
        start, _ = ravel_pytree(begun(network, 8))
        task = Operator(model=np.asarray(start)).task(plan, 0)
        asks = task.question(TrainDocument).model_copy(
            update={"client": task.question(TrainDocument).client.model_copy(update={"proximal": proximal})}
        )
        task = task.model_copy(update={"asks": asks})
        text, found = OwnText(cache.path, None, None), []
        for trainer in (ByJax(text), ByOnnx(text, model.parent / "phone")):
            trainer.check(plan)
            found.append(trainer.prepare(plan, task, np.asarray(start))(lambda size: bytes(size)))
        by_jax, by_onnx = found
        assert by_jax.usable and by_onnx.usable and 0.01 < np.linalg.norm(by_jax.values) < 0.2001
        np.testing.assert_allclose(by_onnx.values, by_jax.values, rtol=2e-3, atol=2e-6)


def test_a_phone_types_with_each_of_them_without_jax(written: Callable[[LanguageModel], Path]) -> None:
    code = (
        "import sys\nfrom tacit.keyboard.phone_model import load_phone_model\n"
        "for folder in sys.argv[1:]:\n"
        "    two = [load_phone_model(f'{folder}/{each}').next_words('waa wab', k=3) for each in ('model', 'phone')]\n"
        "    assert [each.word for each in two[0]] == [each.word for each in two[1]]\n"
        "assert 'jax' not in sys.modules"
    )
    folders = [str(written(network)) for network in small.SMALL]
    done = subprocess.run([sys.executable, "-c", code, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", MODELS)
def test_a_kind_is_trained_privately_and_goes_on_as_if_never_stopped(kind: str, tmp_path: Path) -> None:
    cache, network = tiny_cache(tmp_path / "cache"), small.examples(kind)[0]
    recipe = tiny_recipe(cache.path, rounds={"rounds": 3}, evaluation={"every": 3})
    whole = tacit.train(recipe, tmp_path / "whole", model=network)
    tacit.train(recipe, tmp_path / "parts", model=network, until=2)
    parts = tacit.resume(tmp_path / "parts")
    assert parts.test == whole.test and parts.account.realised.zcdp > 0
    first, second = ((tmp_path / name / "model" / WEIGHTS).read_bytes() for name in ("whole", "parts"))
    assert first == second


@pytest.mark.parametrize("kind", MODELS)
def test_a_kind_is_asked_for_without_jax(kind: str) -> None:
    code = f"import sys\nfrom tacit.networks.language_model import model_of\nmodel_of({kind!r}, {{}})\n"
    code += "assert not {'jax', 'numba', 'onnx'} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_fast_paths_are_found() -> None:
    assert isinstance(SMALL[0], HasLoss) and isinstance(SMALL[0], HasSgdStep)
    assert isinstance(SMALL[0], HasOnDeviceTraining) and isinstance(SMALL[0], HasReader)
    assert not isinstance(Gru(), HasLoss | HasSgdStep | HasOnDeviceTraining | HasReader)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("lstm", f"model.kind='lstm' is unknown; it is one of {', '.join(MODELS)}, or a class of your own"),
        ("no.such.module:Net", "cannot be loaded"),
        ("tests.support.networks.gru:Lstm", "cannot be loaded"),
        ("tests.support.networks.gru:KIND", "lacks init, logits, groups"),
    ],
)
def test_what_is_no_network_is_refused(kind: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=complaint):
        model_class(kind)
    with pytest.raises(RecipeError, match=complaint):
        tiny_recipe(tmp_path, model={"kind": kind})


def test_a_setting_that_the_network_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"the key 'model\.embedding' is unknown"):
        tiny_recipe(tmp_path, model={"kind": KIND})  # the tiny recipe's keys are the CIFG's


def test_a_folder_of_another_network_is_refused(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache", {"train": 1})
    write_model(tmp_path / "model", Gru(), Gru().init(jax.random.key(0)), cache.vocabulary_path.read_bytes())
    settings = tmp_path / "model" / SETTINGS
    settings.write_text(settings.read_text().replace('"units": 6', '"units": 7'))
    with pytest.raises(InputError, match="do not belong together"):
        load_model(tmp_path / "model")
    settings.write_text(settings.read_text().replace('"units": 7', '"width": 7'))
    with pytest.raises(InputError, match="cannot be built: model has the unknown key 'width'"):
        load_model(tmp_path / "model")
