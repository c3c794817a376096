"""What a client's training takes, by its sizes: near what XLA plans, and refused before anything is allocated."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tacit.errors import InputError
from tacit.networks.language_model import model_of, parameter_count, sgd_step
from tacit.networks.training_cost import MOST_BYTES, TrainingCost

ASKED: dict[str, Any] = {"epochs": 1, "batch_size": 16, "sentences": 64, "words": 20}
PHONE: dict[str, Any] = {"vocabulary": 10_000, "parameters": 2_400_000}


@pytest.mark.parametrize("kind", ["cifg", "gru"])
@pytest.mark.parametrize(("vocabulary", "batch", "words"), [(10_000, 64, 20), (1_000, 64, 20), (2_800, 256, 40)])
def test_bytes_are_within_a_factor_of_two_of_what_xla_plans(kind: str, vocabulary: int, batch: int, words: int) -> None:
    network = model_of(kind, {"vocabulary": vocabulary})
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    sentences = jax.ShapeDtypeStruct((batch, words + 1), jnp.int32)
    step = jax.jit(lambda model, given: sgd_step(network, model, given, 0.5)).lower(shapes, sentences).compile()
    planned = step.memory_analysis()
    found = TrainingCost.estimate(
        epochs=1,
        batch_size=batch,
        sentences=batch,
        words=words,
        vocabulary=vocabulary,
        parameters=parameter_count(network),
    )
    ratio = found.bytes / (planned.temp_size_in_bytes + planned.argument_size_in_bytes + planned.output_size_in_bytes)
    assert 0.5 < ratio < 2


def test_a_phones_round_is_far_below_any_bound() -> None:
    found = TrainingCost.estimate(**ASKED, **PHONE)
    assert found.bytes < 200e6 and found.operations < 1e11
    found.check()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"batch_size": 100_000, "sentences": 100_000, "words": 99}, "take about 1,4.. GB of memory, above 32; lower"),
        ({"batch_size": 100_000, "words": 99}, "GB of memory"),  # the batch is filled up with padding
        ({"epochs": 100_000, "sentences": 100_000}, "operations, above 1e.16; lower"),
    ],
)
def test_what_no_machine_has_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        TrainingCost.estimate(**{**ASKED, **changed}, **PHONE).check()
    assert MOST_BYTES == 32e9
