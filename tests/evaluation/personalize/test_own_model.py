"""A model of one's own as a device types with it, against the counts of the evaluation that lets models go."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.support.evaluation.typists import typists_and_model

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.data.splits import TemporalSplit, Unsplit
from tacit.errors import InputError
from tacit.evaluation.personalize.fine_tuning import FITTED, FineTuning
from tacit.evaluation.personalize.own_model import OwnModels
from tacit.evaluation.personalize.population import personalize_clients
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.keyboard.suggest import Reader
from tacit.networks.on_device import Padded, held
from tacit.text.vocabulary import SPECIALS

SPLIT = TemporalSplit(gate=0.125)
WAYS = {
    "sgd": FineTuning(learning_rate=1.0),
    "both": FineTuning(learning_rate=1.0, bigram=0.2),
    "cache": FITTED,
    "diverges": FineTuning(learning_rate=1e30),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cache, TrainedModel]:
    cache, model = typists_and_model(tmp_path_factory.mktemp("own"), 12)
    return Cache.open(cache), load_model(model)


def own_models(world: tuple[Cache, TrainedModel], how: FineTuning, level: float = 0.5) -> OwnModels:
    cache, model = world
    return OwnModels(
        start=held(model.network, model.parameters),
        reader=model.reader,
        network=(model.network, model.parameters),
        cache=cache,
        how=how,
        split=SPLIT,
        level=level,
    )


def nats_of(reader: Reader, sentence: list[int]) -> float:
    """Of the known words of one sentence, read word by word."""
    state, scores = reader.step(reader.begin(), sentence[0])
    found = 0.0
    for word in sentence[1:]:
        logs = np.asarray(scores, np.float64)
        if word >= SPECIALS:
            found -= float(logs[word] - logs.max() - math.log(np.exp(logs - logs.max()).sum()))
        state, scores = reader.step(state, word)
    return found


@pytest.mark.parametrize("way", ["sgd", "both", "cache"])
def test_it_is_the_model_that_the_evaluation_counted(world: tuple[Cache, TrainedModel], way: str) -> None:
    cache, model = world
    models = own_models(world, WAYS[way])
    clients = [client for client in map(int, cache.clients("test")) if not isinstance(models.parts(client), Unsplit)]
    counted = personalize_clients(
        model.network, model.parameters, cache, clients, [WAYS[way]], SPLIT, cores=Cores(Hardware(workers=1))
    )
    opened = 0
    for client, outcome in zip(clients, counted.outcomes, strict=True):
        found, parts = models.of(client), models.parts(client)
        assert outcome.gate is not None and not isinstance(parts, Unsplit)
        paired = outcome.gate.paired[0]
        assert (found.gained, found.lost) == (paired.only_personalised, paired.only_baseline)
        assert found.opened == (found.gained > found.lost)  # what a level of 0.5 means
        opened += found.opened
        ids, lengths = cache.sentences(client)
        sentences = np.split(ids, np.cumsum(lengths)[:-1])
        nats = sum(nats_of(found.reader, sentences[row].tolist()) for row in parts.test)
        assert nats == pytest.approx(outcome.test.personalised[0].sums["cross_entropy"], rel=1e-4)
    assert opened > 0


def test_a_network_without_a_way_of_its_own_is_fitted_and_read_alike(world: tuple[Cache, TrainedModel]) -> None:
    models = own_models(world, WAYS["sgd"])
    padded = replace(models, start=Padded(*models.network or ()))
    one, other = models.of(0), padded.of(0)
    sentence = world[0].sentences(0)[0][:7].tolist()
    assert nats_of(one.reader, sentence) == pytest.approx(nats_of(other.reader, sentence), rel=1e-3)
    assert (one.gained, one.lost) == (other.gained, other.lost)


def test_a_level_shuts_the_gate_and_no_level_opens_it_to_what_diverged(world: tuple[Cache, TrainedModel]) -> None:
    assert own_models(world, WAYS["sgd"], level=1.0).of(0).opened
    assert not own_models(world, WAYS["sgd"], level=1e-9).of(0).opened
    assert not own_models(world, WAYS["diverges"], level=1.0).of(0).opened


def test_who_typed_too_little_has_none(world: tuple[Cache, TrainedModel]) -> None:
    models = own_models(world, WAYS["sgd"])
    short = next(client for client in range(12) if isinstance(models.parts(client), Unsplit))
    with pytest.raises(InputError, match=f"client {short} has no model of its own"):
        models.of(short)
