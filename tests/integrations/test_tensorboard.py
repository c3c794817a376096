"""A log for TensorBoard, read back by the messages and checks of another writer, tensorboardX."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe, tiny_toml
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.integrations import TensorBoard
from tacit.integrations.event_file import crc32c, event
from tacit.jobs.train.job import train
from tacit.progress import Advanced, StageEnded

ONE = Hardware(workers=1)


def scalars(folder: Path) -> list[tuple[str, int, float, float]]:
    """(name, step, value, time) of all event files, the oldest first: framed as TensorFlow records are."""
    return [each for path in sorted(folder.glob("events.out.tfevents.*")) for each in of_file(path.read_bytes())]


def of_file(content: bytes) -> Iterator[tuple[str, int, float, float]]:
    first: Any = Event.FromString(content[12 : 12 + struct.unpack("<Q", content[:8])[0]])
    assert first.file_version == "brain.Event:2"
    while content:
        (length,), (check,) = struct.unpack("<Q", content[:8]), struct.unpack("<I", content[8:12])
        body, (of_body,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        assert check == masked_crc32c(content[:8]) and of_body == masked_crc32c(body)
        content = content[16 + length :]
        event: Any = Event.FromString(body)
        for value in event.summary.value:
            yield value.tag, event.step, value.simple_value, event.wall_time


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    with TensorBoard(tmp_path / "mine") as log:
        log(Advanced("training", 1, {"zcdp": 0.125, "training_loss": 3.0}))
        log(Advanced("training", 2, {"zcdp": 0.25, "training_loss": 2.0}))
    found = scalars(tmp_path / "mine")
    assert [each[:3] for each in found] == [("training/zcdp", 1, 0.125), ("training/zcdp", 2, 0.25)]
    assert found[0][3] == found[1][3]  # no time of a round
    with TensorBoard(tmp_path / "mine", exact=True) as again:  # another file, of a run that goes on
        again(Advanced("training", 3, {"training_loss": 1.5}))
    assert scalars(tmp_path / "mine")[-1][:3] == ("training/training_loss", 3, 1.5)


def test_what_was_said_is_on_disk(tmp_path: Path) -> None:
    log = TensorBoard(tmp_path / "mine")
    log(Advanced("training", 1, {"zcdp": 0.5}))
    log(StageEnded("training"))
    TensorBoard(tmp_path / "mine").close()  # in the same second: another file
    assert [each[:3] for each in scalars(tmp_path / "mine")] == [("training/zcdp", 1, 0.5)]
    log.close()


@given(
    numbers=st.lists(st.tuples(st.text(min_size=1), st.floats(width=32, allow_nan=False))),
    step=st.integers(0, 2**63 - 1),
    when=st.floats(0, 1e11),
)
def test_every_event_is_what_the_other_reads(numbers: list[tuple[str, float]], step: int, when: float) -> None:
    read: Any = Event.FromString(event(numbers, step, when))
    assert (read.step, read.wall_time) == (step, when)
    assert [(each.tag, each.simple_value) for each in read.summary.value] == numbers


def test_the_check_is_the_one_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        TensorBoard(tmp_path / "file")


def test_training_that_goes_on_is_one_curve_and_its_bits_are_the_same(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache")
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["blt"])
    alone = train(recipe, tmp_path / "alone", hardware=ONE)
    for until in (4, None):
        with TensorBoard(tmp_path / "logs", exact=True) as log:
            watched = train(recipe, tmp_path / "watched", hardware=ONE, until=until, progress=log)
    assert [row.digest for row in watched.run.steps()] == [row.digest for row in alone.run.steps()]
    found = scalars(tmp_path / "logs")
    losses = {step: value for name, step, value, _ in found if name == "training/training_loss"}
    assert list(losses) == list(range(1, 10))
    assert list(losses.values()) == pytest.approx(watched.history()["loss"][1:].tolist())
    accuracies = {step: value for name, step, value, _ in found if name == "validation/top1_accuracy"}
    assert set(accuracies) == {0, 4, 8, 9}


def test_the_command_tells_a_log(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(tiny_toml(tiny_cache(tmp_path / "cache").path, privacy=MECHANISMS["blt"]), encoding="utf-8")
    run, logs = tmp_path / "run", tmp_path / "logs"

    def tacit(*arguments: object) -> Any:
        return CliRunner().invoke(app, ["train", str(recipe), "--workers", "1", "--json", *map(str, arguments)])

    refused = tacit("--out", tmp_path / "file" / "run", "--log", f"tensorboard:{recipe}")
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1 and "Traceback" not in refused.stderr
    assert not (tmp_path / "file").exists()
    done = tacit("--out", run, "--log", f"tensorboard:{logs}")
    assert done.exit_code == 0, done.output
    assert {name for name, *_ in scalars(logs / "run")} == {"training/zcdp", "training/epsilon", "training/delta"}
    exact = tacit("--out", tmp_path / "exact", "--log", f"tensorboard:{logs}", "--log-exact")
    assert exact.exit_code == 0, exact.output
    assert "test/top1_accuracy" in {name for name, *_ in scalars(logs / "exact")}
    nobody = tacit("--out", tmp_path / "other", "--log", "wandb:x")
    assert nobody.exit_code == 2 and "tensorboard:FOLDER or mlflow:URI" in nobody.stderr
    assert not (tmp_path / "other").exists()
