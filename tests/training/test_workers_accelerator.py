"""The accelerator's path, on the CPU device: the sums of `Cores` for any chunk, and memory that runs out said plainly.

What a GPU does differently (TF32 products, its own order of additions) is not seen here.
"""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import export
from jax.flatten_util import ravel_pytree
from tests.support.networks.gru import Gru
from tests.support.training.tiny import (
    MECHANISMS,
    POISON,
    collector_of,
    cores,
    first_state,
    poisoned_loss,
    tiny_cache,
    tiny_learner,
    tiny_recipe,
)

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError, TrainingError
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import next_word_loss
from tacit.training import ClientTraining, Learner
from tacit.training import workers_accelerator as accelerator
from tacit.training.client import ClientWork
from tacit.training.cohort import CohortSum, train_cohort
from tacit.training.rounds import run_round
from tacit.training.workers_accelerator import LARGEST_CHUNK, Accelerator, fitting

SETTINGS = ClientTraining(batch_size=4, sentences=12, words=6)
SEED, CLIP = bytes(32), 0.3


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def learner(cache: Cache) -> Learner:
    return tiny_learner(cache)  # one, since compiled code is kept by it


def cohort_sum(learner: Learner, workers: Any, settings: ClientTraining = SETTINGS) -> CohortSum:
    """Of 21 clients."""
    return train_cohort(
        learner.work(settings),
        jnp.asarray(learner.start),
        learner.clients[3:24],
        seed=SEED,
        clip_norm=CLIP,
        workers=workers,
    )


@pytest.mark.parametrize(
    ("chunk", "epochs"), [(1, 1), (7, 2), *(pytest.param(each, 1, marks=pytest.mark.nightly) for each in (7, 8, 64))]
)
def test_any_chunk_gives_the_sum_of_the_cores(learner: Learner, chunk: int, epochs: int) -> None:
    """Clients of one, two and three batches: chunks of equal ones, mixed ones, and one that is not full."""
    settings = ClientTraining(epochs=epochs, batch_size=4, sentences=12, words=6)
    counts = [min(learner.cache.sentence_count(int(c)), 12) for c in learner.clients[3:24]]
    assert {-(-count // 4) for count in counts} == {1, 2, 3}
    slow = cohort_sum(learner, cores(), settings)
    fast = cohort_sum(learner, Accelerator(Hardware(chunk=chunk)), settings)
    assert np.linalg.norm(fast.total - slow.total) < 1e-5 * np.linalg.norm(slow.total)
    np.testing.assert_allclose(fast.norms, slow.norms, rtol=1e-5)
    np.testing.assert_allclose(fast.losses, slow.losses, rtol=1e-5)
    assert fast.counted.all()
    assert (slow.norms > CLIP).any() and (slow.norms < CLIP).any(), "both sides of the clip norm, or this tests less"


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(Cifg(vocabulary=40, embedding=8, units=16), id="cifg"),
        pytest.param(Gru(vocabulary=40), id="gru", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(
    ("products", "said"),
    [
        (accelerator.BFLOAT16, "lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32"),
        ("tensorfloat32", "precision = [HIGH, HIGH]"),
        ("float32", "precision = [HIGHEST, HIGHEST]"),
    ],
)
def test_every_product_on_a_gpu_is_of_the_kind_that_is_asked_for(network: Any, products: str, said: str) -> None:
    """In the program as JAX gives it to CUDA's compiler, which needs no GPU. JAX's own "bfloat16" is TF32 there."""
    flat, unravel = ravel_pytree(network.init(jax.random.key(0)))
    loss = next_word_loss(network)
    program, shapes = accelerator.chunk_program(loss, unravel, SETTINGS, None, len(flat), 3, False, False, products)
    lowered = export.export(program, platforms=["cuda"])(*(jax.ShapeDtypeStruct(*of) for of in shapes))
    of_products = [line for line in lowered.mlir_module().splitlines() if "stablehlo.dot_general" in line]
    assert len(of_products) > 4, "forward and backward"
    assert all(said in line for line in of_products)


class Typed:
    """Clients of so many sentences."""

    counts = (17, 16, 31, 1)

    def sentence_count(self, client: int) -> int:
        return self.counts[client]

    def padded(self, client: int, chosen: Any, length: int) -> Any:
        return np.ones((len(chosen), length), np.int32)


def test_clients_with_equally_many_batches_share_a_chunk() -> None:
    """Up to 16 sentences are one batch, 17 and 31 are two: whole batches and begun ones count alike."""
    settings = ClientTraining(batch_size=16, sentences=64, words=6)
    work = ClientWork(loss=poisoned_loss, unravel=jnp.asarray, cache=Typed(), settings=settings)  # type: ignore[arg-type]
    chunks = list(Accelerator(Hardware())._chunks(work, np.arange(4), 2, SEED))
    assert [(chunk.places.tolist(), chunk.batches.tolist()) for chunk in chunks] == [([0, 2], 2), ([1, 3], 1)]


def test_a_chunk_size_gives_one_result(learner: Learner) -> None:
    one, two = (cohort_sum(learner, Accelerator(Hardware(chunk=7))) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_diverged_client_is_flagged_in_its_place_and_not_summed(cache: Cache) -> None:
    poisoned = tiny_learner(cache, poisoned_loss)
    slow = cohort_sum(poisoned, cores())
    fast = cohort_sum(poisoned, Accelerator(Hardware(chunk=7)))
    assert 0 < (~slow.counted).sum() < len(slow.counted), f"the word {POISON} must be typed by some"
    np.testing.assert_array_equal(fast.counted, slow.counted)
    assert np.linalg.norm(fast.total - slow.total) < 1e-5 * np.linalg.norm(slow.total)


def test_a_whole_round_is_that_of_the_cores_to_rounding(cache: Cache, learner: Learner) -> None:
    plan = tiny_recipe(cache.path, privacy=MECHANISMS["none"]).plan()  # noise is bound to every bit of a sum
    models = []
    for workers in (cores(), Accelerator(Hardware(chunk=6))):
        state, collector = first_state(learner, plan), collector_of(learner, plan, workers, bytes(16))
        for round in range(3):
            state, _ = run_round(state, round, plan=plan, key=bytes(16), collector=collector)
        models.append(np.asarray(state.model))
    np.testing.assert_allclose(models[1], models[0], atol=1e-6)
    assert np.abs(models[0] - learner.start).max() > 1e-3


# -- memory ----------------------------------------------------------------------------------------------------------


@given(memory=st.integers(1, 10**12), needed=st.floats(0, 10**12))
def test_a_chunk_fits_unless_one_client_does_not(memory: int, needed: float) -> None:
    size = fitting(memory, needed)
    assert 1 <= size <= LARGEST_CHUNK
    assert size == 1 or size * needed <= memory


def test_the_chunk_follows_from_the_memory_and_is_cut_evenly(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    work, length = learner.work(SETTINGS), len(learner.start)
    sizes = {}
    for memory in (10**6, 10**7, 10**10):
        monkeypatch.setattr(accelerator.Accelerator, "_memory", lambda self, memory=memory: memory)
        sizes[memory] = Accelerator(Hardware()).chunk_size(work, length, 10_000)
    assert sizes[10**6] < sizes[10**7] < sizes[10**10] == 500, "20 chunks of 500, not 19 of 512 and a rest"
    assert Accelerator(Hardware(chunk=30)).chunk_size(work, length, 21) == 21
    assert Accelerator(Hardware(chunk=20)).chunk_size(work, length, 21) == 11


@pytest.mark.parametrize(("chunk", "advice"), [(8, "--chunk 3"), (1, "a smaller client.batch_size")])
def test_a_device_out_of_memory_is_told_a_smaller_chunk(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, chunk: int, advice: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 75 GiB.")

    monkeypatch.setattr(accelerator, "_compiled", full)
    with pytest.raises(TrainingError, match="is out of memory with") as refused:
        cohort_sum(learner, Accelerator(Hardware(chunk=chunk)))
    assert advice in str(refused.value) and "\n" not in str(refused.value)


def test_a_device_without_units_for_bfloat16_is_told_float32(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA's words on a T4."""

    def refused(*_: Any, **__: Any) -> None:
        raise jax.errors.JaxRuntimeError(
            "UNIMPLEMENTED: Unsupported algorithm on the current device(s): ALG_DOT_BF16_BF16_F32"
        )

    monkeypatch.setattr(accelerator, "_compiled", refused)
    with pytest.raises(TrainingError, match=r"has no units for it .* use client\.precision = 'float32'"):
        cohort_sum(learner, Accelerator(Hardware(chunk=4)))


def test_other_failures_of_the_device_are_not_called_memory(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise jax.errors.JaxRuntimeError("INTERNAL: a wire is loose")

    monkeypatch.setattr(accelerator, "_compiled", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="a wire is loose"):
        cohort_sum(learner, Accelerator(Hardware(chunk=4)))


def test_a_number_of_cores_says_nothing_of_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--workers 8` on a machine with one GPU, which JAX lists alone."""
    only = SimpleNamespace(platform="gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: [only])
    assert Cores(Hardware(workers=8)).devices == [only] == Cores(Hardware()).devices


@pytest.mark.parametrize(("wrong", "complaint"), [({"chunk": -1}, "chunk=-1"), ({"products": "int8"}, "'int8'")])
def test_wrong_settings_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Hardware(**wrong)
