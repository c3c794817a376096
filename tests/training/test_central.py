"""Central training: it learns, it repeats itself, it sees what it was told to see."""

from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest

from tacit.data import Cache
from tacit.errors import InputError, TrainingError
from tacit.networks.cifg.loss import loss
from tacit.networks.cifg.network import Cifg
from tacit.networks.gradients import LossWithGradient, central_loss
from tacit.text.vocabulary import BOS, EOS
from tacit.training import central
from tacit.training.central import CentralState, CentralTraining, Pool, central_start, central_states

SETTINGS = CentralTraining(batch_size=4, words=6, learning_rate=0.02)
TEXT = [[[BOS, 4, 5, 6, 7, EOS], [BOS, 4, 5, EOS]], [[BOS, 6, 7, 8, EOS]] * 3]
CLIENTS = np.arange(len(TEXT))


def cache_of(clients: list[list[list[int]]]) -> Cache:
    def sentences(client: int) -> tuple[Any, Any]:
        text = clients[client]
        ids = np.array([w for s in text for w in s], np.uint16)
        return ids, np.array([len(s) for s in text], np.int64)

    return cast(Cache, SimpleNamespace(sentences=sentences))


def trained(**changes: Any) -> tuple[Any, list[CentralState]]:
    start = Cifg(vocabulary=9, embedding=4, units=6).init(jax.random.key(0))
    options: dict[str, Any] = {"sentences": 400, "settings": SETTINGS, "key": b"k", **changes}
    begin = central_start(start, options["sentences"], options["settings"])
    of = options.pop("loss", loss)
    seen = list(central_states(of, begin, cache_of(TEXT), CLIENTS, **options))
    return seen[-1].model, seen


@pytest.mark.parametrize("settings", [SETTINGS, CentralTraining(optimizer="sgd", learning_rate=0.5, batch_size=4)])
def test_the_loss_falls(settings: CentralTraining) -> None:
    _, seen = trained(settings=settings)
    assert [p.sentences for p in seen] == [128, 256, 384, 400]
    assert seen[-1].loss < 0.6 * seen[0].loss


def test_equal_keys_give_equal_models_and_others_do_not() -> None:
    one, two, other = (jax.tree.leaves(trained(key=key)[0]) for key in (b"k", b"k", b"l"))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_pass_sees_each_sentence_once_and_passes_differ() -> None:
    blocks = list(central._blocks(5, 163, 4, b"k"))
    assert [len(b) for b in blocks] == [128, 128]
    order = np.concatenate(blocks)
    assert (order[163:] == -1).all()
    passes = order[:160].reshape(32, 5)
    assert (np.sort(passes, axis=1) == np.arange(5)).all()
    assert len({tuple(p) for p in passes.tolist()}) > 1


def test_steps_equal_those_taken_one_by_one() -> None:
    start = Cifg(vocabulary=9, embedding=4, units=6).init(jax.random.key(0))
    pool = Pool.from_cache(cache_of(TEXT), CLIENTS)
    (chosen,) = central._blocks(5, 10, 4, b"k")
    optimizer, model = SETTINGS.transformation(3), start
    state = optimizer.init(start)

    @jax.jit
    def one_step(model: Any, state: Any, batch: Any) -> Any:
        change, state = optimizer.update(jax.grad(loss)(model, batch), state, model)
        return jax.tree.map(lambda p, c: p + c, model, change), state

    for step in range(3):  # 4 + 4 + 2 sentences
        model, state = one_step(model, state, pool.padded(chosen[4 * step : 4 * step + 4], SETTINGS.words))
    for slow, fast in zip(jax.tree.leaves(model), jax.tree.leaves(trained(sentences=10)[0]), strict=True):
        np.testing.assert_allclose(fast, slow, atol=2e-5)


def test_a_fast_gradient_takes_the_same_steps() -> None:
    """That of a network against JAX's derivative of the same loss; and it is asked for."""
    network = Cifg(vocabulary=9, embedding=4, units=6)
    fast, slow = (trained(loss=of, sentences=40)[0] for of in (central_loss(network), network.loss))
    for one, other in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)

    class Steeper(LossWithGradient):
        def with_gradient(self, *of: Any, precision: str = "float32") -> Any:
            value, gradient = super().with_gradient(*of, precision=precision)
            return value, jax.tree.map(lambda each: -each, gradient)

    _, seen = trained(loss=Steeper(network))
    assert seen[-1].loss > seen[0].loss


def test_sentences_are_cut_and_padded() -> None:
    rows = Pool.from_cache(cache_of(TEXT), CLIENTS).padded(np.array([1, 0, -1, 4]), 4)
    assert rows.tolist() == [[BOS, 4, 5, EOS, 0], [BOS, 4, 5, 6, 7], [0] * 5, [BOS, 6, 7, 8, EOS]]


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="sentences=0 must be at least 1"):
        trained(sentences=0)
    with pytest.raises(InputError, match=r"central\.warmup=1\.0"):
        CentralTraining(warmup=1.0)
    with pytest.raises(InputError, match=r"central\.precision='float16' is unknown; use float32 or bfloat16"):
        CentralTraining(precision="float16")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 clients to train on have no sentence"):
        Pool.from_cache(cache_of(TEXT), np.zeros(0, np.int64))


def test_a_diverged_model_is_not_returned() -> None:
    def nan_loss(model: Any, sentences: Any) -> Any:
        return loss(model, sentences) * np.float32("nan")

    with pytest.raises(TrainingError, match=r"has diverged; lower central\.learning_rate"):
        trained(loss=nan_loss, sentences=8)
