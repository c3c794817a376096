"""A client's work on a processor: packed against padded, FedProx against its twin, and the precision that is used."""

import logging
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.support.networks import numpy_model
from tests.support.training.tiny import LOSS, tiny_cache, tiny_learner
from tests.training import numpy_round

from tacit.aggregation.clipping import clip
from tacit.compute import precision as precisions
from tacit.compute.precision import processor_features, usable_precision
from tacit.data import Cache
from tacit.errors import InputError
from tacit.training import ClientTraining
from tacit.training.client import Descends, gather, local_update, precision_of
from tacit.training.shards import shard_sum

SETTINGS = ClientTraining(batch_size=4, sentences=8, words=6)
SEED = b"seed"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def test_the_sum_of_packed_clients_is_that_of_padded_ones(cache: Cache) -> None:
    settings = ClientTraining(batch_size=4, sentences=8, words=6, epochs=2)
    learner, clients = tiny_learner(cache), cache.clients("train")[:5]
    assert isinstance(learner.loss, Descends)
    data, flat = gather(cache, clients, settings, SEED), jnp.asarray(learner.start)
    fast = shard_sum(learner.work(settings), flat, data, clip_norm=0.2, device=jax.devices()[0])
    model, total = learner.unravel(flat), np.zeros(flat.shape)

    @jax.jit
    def padded(sentences: Any, batches: Any) -> Any:
        update, mean_loss = local_update(learner.loss, model, sentences, batches, settings)
        return clip(update, 0.2), mean_loss

    for i in range(5):
        clipped, mean_loss = padded(data.sentences[i], data.batches[i])
        total += numpy_round.flatten(numpy_model.of(clipped.update))
        np.testing.assert_allclose(fast.norms[i], clipped.norm, rtol=1e-5)
        np.testing.assert_allclose(fast.losses[i], mean_loss, rtol=1e-5)
    np.testing.assert_allclose(fast.total, total, atol=2e-6)


def proximal_twin(model: Any, text: list[list[int]], settings: ClientTraining) -> Any:
    """FedProx, arXiv:1812.06127, equation 2: every step goes down loss + mu/2 |theta - theta_t|^2."""
    start = numpy_round.flatten(model)
    theta = start
    for _ in range(settings.epochs):
        for first in range(0, len(text), settings.batch_size):
            batch = text[first : first + settings.batch_size]
            padded = np.array([row + [0] * (settings.words + 1 - len(row)) for row in batch])
            slope = numpy_round.flatten(numpy_model.gradient(numpy_round.unflatten(theta, model), padded))
            theta = theta - settings.learning_rate * (slope + settings.proximal * (theta - start))
    return theta - start


def test_the_proximal_term_is_its_twins(cache: Cache) -> None:
    settings = ClientTraining(batch_size=4, sentences=8, words=6, epochs=3, proximal=0.7)
    learner, clients = tiny_learner(cache), cache.clients("train")[:2]
    flat = jnp.asarray(learner.start)
    data = gather(cache, clients, settings, SEED)
    fast = shard_sum(learner.work(settings), flat, data, clip_norm=1e9, device=jax.devices()[0]).total
    like = numpy_model.of(learner.unravel(flat))
    texts = [numpy_round.sentences_of(cache, int(client), settings, SEED) for client in clients]
    slow = sum(proximal_twin(like, text, settings) for text in texts)
    free = sum(numpy_round.local_update(like, text, settings) for text in texts)
    np.testing.assert_allclose(fast, slow, atol=2e-5)
    assert np.linalg.norm(slow) < 0.9 * np.linalg.norm(free)  # it pulls back, visibly


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"proximal": -0.1}, r"client\.proximal=-0\.1 must be 0 or more"),
        ({"proximal": 2.0}, r"client\.proximal=2\.0 .* below 1/client\.learning_rate=2,"),
        ({"precision": "float16"}, r"client\.precision='float16' is unknown; use float32 or bfloat16"),
    ],
)
def test_impossible_settings_are_refused(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        ClientTraining(**values)


# -- precision -----------------------------------------------------------------------------------------------------


def without_units(monkeypatch: pytest.MonkeyPatch) -> None:
    usable_precision.cache_clear()
    monkeypatch.setattr(precisions, "processor_features", frozenset)


def test_without_units_float32_is_used_and_said_once(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_units(monkeypatch)
    learner, clients = tiny_learner(cache), cache.clients("train")[:2]
    data = gather(cache, clients, SETTINGS, SEED)

    def total(precision: Any) -> Any:
        work = learner.work(ClientTraining(batch_size=4, sentences=8, words=6, precision=precision))
        assert precision_of(work) == "float32"
        return shard_sum(work, jnp.asarray(learner.start), data, clip_norm=0.2, device=jax.devices()[0]).total

    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(total("bfloat16"), total("float32"))
        total("bfloat16")
    assert [record.getMessage() for record in caplog.records] == [
        "precision=bfloat16 was asked for, but this processor has neither of amx_bf16 and avx512_bf16; float32 is used."
    ]
    usable_precision.cache_clear()


def test_units_are_found_in_the_processors_listing(tmp_path: Path) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nflags\t\t: fpu amx_bf16 avx512f\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert processor_features(listing) == {"fpu", "amx_bf16", "avx512f"}
    assert processor_features(tmp_path / "missing") == frozenset()


def test_a_loss_without_a_step_of_its_own_computes_in_float32(cache: Cache) -> None:
    settings = ClientTraining(precision="bfloat16")
    work = tiny_learner(cache, lambda m, s: LOSS(m, s)).work(settings)
    assert precision_of(work) == "float32"
    assert precision_of(work, "gpu") == "bfloat16", "an accelerator multiplies in what is asked"
    usable_precision.cache_clear()
