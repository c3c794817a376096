"""`tacit evaluate`: one model, two side by side, and a release with its ledger."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import typer
from tests.evaluation.typists import typists_and_model
from tests.training.tiny import SETTINGS, WORDS
from typer.testing import CliRunner

from tacit.cli.evaluate import evaluate
from tacit.cli.models import load_model, write_model
from tacit.evaluation.federated import HeldOut
from tacit.evaluation.federated import evaluate as count
from tacit.keyboard import model as cifg
from tacit.population import Cache
from tacit.privacy.ledger import Ledger, RoundRelease
from tacit.privacy.participation import Participation
from tacit.runs import Run
from tacit.training import Cores, Hardware

app = typer.Typer()
app.command()(evaluate)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("world")
    cache, model = typists_and_model(folder, 90)
    other = folder / "other"
    other.mkdir()
    words = Cache.open(cache).vocabulary_path.read_bytes()
    write_model(other, cifg.init(SETTINGS, key=jax.random.key(8)), SETTINGS, words)
    return cache, model, other


def run(*arguments: str | Path, fails: bool = False) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--workers", "1"])
    assert result.exit_code == (2 if fails else 0), result.output
    if fails:
        return result.output.replace("\n", " ")
    return json.loads(result.stdout) if "--json" in arguments else result.output


def test_two_models_on_the_same_clients(world: tuple[Path, Path, Path]) -> None:
    cache, model, other = world
    found = run(model, other, "--data", cache, "--json")
    exact = found["simulation_only"]
    assert found["asked"] == 90 and found["released"] is None
    opened = Cache.open(cache)
    held_out = HeldOut.read(opened, opened.clients("test"), sentences=64, words=20)
    slow = count(load_model(model)[0], held_out, cores=Cores(Hardware(workers=1)))
    row = exact["models"][str(model)]
    assert row["pooled"] == pytest.approx(slow.total.top1_accuracy)
    assert row["mean"][0] == pytest.approx(np.mean([each.top1_accuracy for each in slow.clients]))
    assert row["worst_decile"][0] <= row["quantiles"]["0.1"][0]
    against = exact["against_the_first"][str(other)]
    assert against["mean"][0] == pytest.approx(exact["models"][str(other)]["mean"][0] - row["mean"][0])


def test_it_talks_to_people(world: tuple[Path, Path, Path]) -> None:
    cache, model, other = world
    said = run(model, other, "--data", cache, "--clients", "12")
    assert "SIMULATION ONLY" in said and "worst decile" in said and "better for" in said


def test_a_release_has_its_ledger_row(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, other = world
    out = tmp_path / "r"
    found = run(model, other, "--data", cache, "--zcdp", "0.5", "--out", out, "--json")
    released = found["released"]
    with Run.open(out) as opened:
        ledger = Ledger(tuple(RoundRelease.from_record(row.release) for row in opened.rounds()))
    once = Participation(rounds=1, min_separation=1, max_participations=1)
    assert ledger.composition(once).zcdp == pytest.approx(0.5) and released["zcdp"] == pytest.approx(0.5)
    assert released["stddev_of_a_count"] == pytest.approx(np.sqrt(2 / (2 * 0.5)))
    histogram = released["models"][str(model)]["histogram"]
    assert histogram["asked"] == 90 and not (out / "noise.key").exists()
    complaint = run(model, "--data", cache, "--zcdp", "0.5", "--out", out, fails=True)
    assert "never released again" in complaint


def test_bad_input_is_one_line(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, _ = world
    assert "belong together" in run(model, "--data", cache, "--zcdp", "1", fails=True)
    assert "named twice" in run(model, model, "--data", cache, fails=True)
    assert "say nothing about many" in run(model, "--data", cache, "--clients", "1", fails=True)
    assert "above 0" in run(model, "--data", cache, "--zcdp", "0", "--out", tmp_path / "r", fails=True)
    assert "holds no model" in run(tmp_path, "--data", cache, fails=True)
    _, stranger = typists_and_model(tmp_path, 4, [*WORDS[:-1], "elsewhere"])
    assert "different words" in run(model, stranger, "--data", cache, fails=True)
