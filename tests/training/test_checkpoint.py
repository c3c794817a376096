"""A state comes back bit for bit, or is refused: torn, missing, of another recipe, or not the one in the ledger."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import load_file, save_file

from tacit.errors import RunError
from tacit.mechanisms import NoiseState
from tacit.training.checkpoint import forget_old_checkpoints, leaves, load_checkpoint, save_checkpoint


class State(NamedTuple):
    model: Any
    optimizer: Any
    noise: NoiseState | None
    count: Any


def state(buffers: int = 2, dimension: int = 5) -> State:
    draw = np.random.default_rng(0)
    return State(
        model=jnp.asarray(draw.normal(size=dimension), jnp.float32),
        optimizer=({"trace": draw.normal(size=dimension).astype(np.float32)}, ()),
        noise=NoiseState(
            np.asarray(buffers, np.int32),
            draw.normal(size=(buffers, dimension)),
            draw.integers(0, 256, (1, 32), np.uint8),
        ),
        count=np.arange(3, dtype=np.int32),
    )


def same_bits(a: Any, b: Any) -> bool:
    one, two = leaves(a), leaves(b)
    return list(one) == list(two) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(one.values(), two.values(), strict=True)
    )


def saved(path: Path, given: Any) -> str:
    return save_checkpoint(path, leaves(given))


def test_a_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    back = load_checkpoint(path, state(), saved(path, state()))
    assert isinstance(back, State) and isinstance(back.noise, NoiseState)
    assert same_bits(back, state())
    assert back.noise.round.shape == ()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


odd_floats = st.sampled_from([0.0, -0.0, 1.0, -1e-45, 3e38, float("inf"), float("nan")])


@given(model=arrays(np.float32, st.integers(1, 6), elements=odd_floats), count=st.integers(-(2**31), 2**31 - 1))
def test_every_bit_pattern_survives(tmp_path_factory: pytest.TempPathFactory, model: Any, count: int) -> None:
    path = tmp_path_factory.mktemp("odd") / "round-000000.safetensors"
    given = {"model": model, "count": np.array(count, np.int32)}
    assert same_bits(load_checkpoint(path, given, saved(path, given)), given)


@pytest.mark.parametrize("buffers", [0, 1, 4])
def test_buffers_may_have_grown_since_the_beginning(tmp_path: Path, buffers: int) -> None:
    path = tmp_path / "round-000000.safetensors"
    back = load_checkpoint(path, state(buffers=0), saved(path, state(buffers=buffers)))
    assert back.noise.buffers.shape == (buffers, 5)
    assert same_bits(back, state(buffers=buffers))


types = st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint8, np.bool_])


@given(
    shapes=st.lists(st.tuples(types, st.lists(st.integers(0, 3), max_size=3)), min_size=1, max_size=6),
    name=st.text(max_size=4),
)
def test_what_is_written_is_what_safetensors_writes(
    tmp_path_factory: pytest.TempPathFactory, shapes: Any, name: str
) -> None:
    """The library's own reader finds the arrays that its own writer would have written."""
    path = tmp_path_factory.mktemp("twin")
    given = {
        f"{name}{i}": (3 * np.arange(np.prod(s, dtype=int))).reshape(s).astype(t) for i, (t, s) in enumerate(shapes)
    }
    save_file(given, path / "theirs")
    save_checkpoint(path / "ours", given)
    ours, theirs = load_file(path / "ours"), load_file(path / "theirs")
    assert same_bits({name: ours[name] for name in given}, {name: theirs[name] for name in given})


def test_the_digest_is_the_files_and_sees_names_types_shapes_and_bits(tmp_path: Path) -> None:
    base = {"a": np.arange(6, dtype=np.float32)}
    others = [
        {"b": base["a"]},
        {"a": base["a"].view(np.int32)},
        {"a": base["a"].reshape(2, 3)},
        {"a": base["a"] * np.float32(1 + 2**-23)},
        {"a": np.where(base["a"] == 0, np.float32(-0.0), base["a"])},
        {"a": base["a"], "b": np.zeros(0, np.float32)},
    ]
    digests = [save_checkpoint(tmp_path / str(at), each) for at, each in enumerate([base, *others])]
    assert len(set(digests)) == 1 + len(others)
    assert digests[0] == save_checkpoint(tmp_path / "again", {"a": base["a"].copy()})
    assert digests[0] == hashlib.sha256((tmp_path / "0").read_bytes()).hexdigest()


def test_what_is_saved_does_not_follow_the_memory_it_came_from(tmp_path: Path) -> None:
    memory = np.zeros(3, np.float32)
    taken = leaves({"model": memory})
    memory += 1
    assert not taken["['model']"].any()


# -- what is refused -------------------------------------------------------------------------------------------------


def refused(path: Path, like: Any, expected: str) -> str:
    with pytest.raises(RunError) as refusal:
        load_checkpoint(path, like, expected)
    message = str(refusal.value)
    assert str(path) in message and "restore" in message and "\n" not in message
    return message


def test_a_torn_or_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    expected = saved(path, state())
    whole = path.read_bytes()
    for length in (0, 4, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "cannot be read" in refused(path, state(), expected)
    path.unlink()
    assert "cannot be read" in refused(path, state(), expected)


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    expected = saved(path, state())
    flipped = bytearray(path.read_bytes())
    flipped[-1] ^= 1
    path.write_bytes(flipped)
    assert "is not the state that its ledger row names" in refused(path, state(), expected)


def test_another_rounds_or_another_models_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    expected = saved(path, state())
    saved(path, state()._replace(count=np.arange(1, 4, dtype=np.int32)))
    assert "is not the state" in refused(path, state(), expected)
    saved(path, state(dimension=7))
    assert "is not the state" in refused(path, state(), expected)


def test_another_structure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    for other in (
        state()._replace(noise=None),
        state()._replace(optimizer=()),
        state()._replace(model=np.zeros(5, np.float64)),
    ):
        expected = saved(path, other)
        assert "holds another recipe's state" in refused(path, state(), expected)


def test_a_scalar_that_became_a_vector_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    expected = saved(path, {"count": np.int32(1)})
    saved(path, {"count": np.arange(2, dtype=np.int32)})
    assert "is not the state" in refused(path, {"count": np.int32(1)}, expected)


# -- full disks and old files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["fsync", "write"])
def test_a_full_disk_leaves_the_old_checkpoints_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    saved(tmp_path / "round-000000.safetensors", state())
    before = (tmp_path / "round-000000.safetensors").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    if at == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr("tacit.training.checkpoint._safetensors", full)
    with pytest.raises(OSError, match="No space left"):
        saved(tmp_path / "round-000001.safetensors", state())
    assert [file.name for file in tmp_path.iterdir()] == ["round-000000.safetensors"]
    assert (tmp_path / "round-000000.safetensors").read_bytes() == before


@pytest.mark.parametrize("keep", [0, 1, 2, 9])
def test_only_the_newest_are_kept(tmp_path: Path, keep: int) -> None:
    names = [f"round-{round:06d}.safetensors" for round in (0, 1, 9, 10, 11)]
    for name in names:
        (tmp_path / name).touch()
    forget_old_checkpoints(tmp_path, keep=keep)
    assert sorted(file.name for file in tmp_path.iterdir()) == (names[-keep:] if keep else [])


def test_a_loaded_state_can_be_computed_with(tmp_path: Path) -> None:
    path = tmp_path / "round-000000.safetensors"
    back = load_checkpoint(path, state(), saved(path, state()))
    doubled = jax.jit(lambda s: jax.tree.map(lambda x: x * 2, s))(back)
    np.testing.assert_array_equal(doubled.model, 2 * np.asarray(state().model))
