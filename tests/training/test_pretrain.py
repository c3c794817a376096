"""Pre-training: it keeps the best, stops when held-out text no longer gains, and can be killed anywhere."""

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.support.training.tiny import LOSS, SETTINGS, tiny_cache

from tacit.data import Cache
from tacit.errors import InputError
from tacit.jobs.run_start import begin, cache_used, of_this_process
from tacit.progress import Advanced, Event
from tacit.runs.metadata import PretrainingMetadata
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretrained, Pretraining, best_of, pretrain

PLAN = Pretraining(
    central=CentralTraining(batch_size=2, words=6, learning_rate=0.01), sentences=400, every=100, patience=2
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


class Stopped(Exception):
    pass


def run(folder: Path, cache: Cache, plan: Pretraining = PLAN, **changes: Any) -> Pretrained:
    """Every 64 sentences are a block."""
    start = SETTINGS.init(jax.random.key(0))
    metadata = PretrainingMetadata(**of_this_process(0), data=cache_used(cache), parameters=1)
    options: dict[str, Any] = {"plan": plan, "measure": held_out(cache), **changes}
    with begin(folder, "", metadata, b"k") as opened, opened.locked():
        return pretrain(opened, LOSS, start, cache, cache.clients("train"), **options)


def held_out(cache: Cache) -> Any:
    sentences = np.concatenate([cache.padded(int(c), np.array([0]), 7) for c in cache.clients("validation")])
    loss = jax.jit(LOSS)
    return lambda model: float(loss(model, sentences))


def test_it_learns_and_is_evaluated_where_it_was_told(tmp_path: Path, cache: Cache) -> None:
    done = run(tmp_path / "run", cache)
    assert [each.sentences for each in done.evaluations] == [0, 128, 256, 320, 400]  # the blocks after each 100
    assert math.isnan(done.evaluations[0].loss)
    assert best_of(done.evaluations).held_out < 0.9 * done.evaluations[0].held_out
    assert held_out(cache)(done.model) == best_of(done.evaluations).held_out
    assert not done.stopped_early


def test_killed_anywhere_it_comes_to_the_same_model(tmp_path: Path, cache: Cache) -> None:
    whole = run(tmp_path / "whole", cache)

    def dies_after(block: int) -> Any:
        seen = [0]

        def watch(event: Event) -> None:
            seen[0] += isinstance(event, Advanced)
            if seen[0] == block:
                raise Stopped

        return watch

    for block in (1, 2, 3, 1):
        with pytest.raises(Stopped):
            run(tmp_path / "killed", cache, progress=dies_after(block))
    (tmp_path / "killed" / "steps" / ".evaluation-000009.safetensors.1.draft").write_bytes(b"torn")
    again = run(tmp_path / "killed", cache)
    for a, b in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.evaluations[1:] == whole.evaluations[1:]
    assert [path.name for path in (tmp_path / "killed" / "steps").iterdir()] == ["evaluation-000004.safetensors"]
    finished = run(tmp_path / "killed", cache, progress=dies_after(1))  # nothing is left to do
    assert finished.evaluations[1:] == whole.evaluations[1:]


def test_it_keeps_the_best_and_stops_when_patience_ends(tmp_path: Path, cache: Cache) -> None:
    values = iter([5.0, 4.0, 4.5, 4.2, 1.0])
    models: list[Any] = []

    def measure(model: Any) -> float:
        models.append(jax.tree.map(np.array, model))
        return next(values)

    done = run(tmp_path / "run", cache, measure=measure)
    assert [each.held_out for each in done.evaluations] == [5.0, 4.0, 4.5, 4.2]
    assert done.stopped_early
    for a, b in zip(jax.tree.leaves(done.model), jax.tree.leaves(models[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert next(values) == 1.0, "the last evaluation was never made"


@pytest.mark.parametrize("name", ["sentences", "every", "patience"])
def test_nothing_may_be_zero(name: str) -> None:
    with pytest.raises(InputError, match=f"pretraining {name}=0 must be at least 1"):
        Pretraining(**{name: 0})
