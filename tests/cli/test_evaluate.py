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

from tacit.cli import account
from tacit.cli.evaluate import evaluate
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import HeldOut
from tacit.evaluation.accuracy import evaluate as count
from tacit.jobs import evaluate as evaluate_work
from tacit.keyboard.model_folder import load_model, write_model
from tacit.privacy.participation import Participation
from tacit.runs import Run
from tacit.statements.ledger import Ledger, release_from
from tacit.statements.verify import verify

app = typer.Typer()
app.command()(evaluate)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("world")
    cache, model = typists_and_model(folder, 90)
    other = folder / "other"
    other.mkdir()
    words = Cache.open(cache).vocabulary_path.read_bytes()
    write_model(other, SETTINGS, SETTINGS.init(jax.random.key(8)), words)
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
    slow = count(SETTINGS, load_model(model).parameters, held_out, cores=Cores(Hardware(workers=1)))
    row = exact["models"][str(model)]
    assert row["pooled"] == pytest.approx(slow.total.value("top1_accuracy"))
    assert row["mean"][0] == pytest.approx(np.mean([each.value("top1_accuracy") for each in slow.clients]))
    assert row["worst_decile"][0] <= row["quantiles"]["0.1"][0]
    against = exact["against_the_first"][str(other)]
    assert against["mean"][0] == pytest.approx(exact["models"][str(other)]["mean"][0] - row["mean"][0])


def test_it_talks_to_people(world: tuple[Path, Path, Path]) -> None:
    cache, model, other = world
    said = run(model, other, "--data", cache, "--clients", "12")
    assert "SIMULATION ONLY" in said and "decile" in said and "better for" in said
    assert "NOTHING WAS RELEASED" in said


@pytest.fixture(scope="module")
def released(world: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, list[Any]]:
    """(run folder, what was printed, the command)."""
    cache, model, other = world
    out = tmp_path_factory.mktemp("runs") / "r"
    command = [model, other, "--data", cache, "--epsilon", "9", "--delta", "1e-5", "--seed", "4"]
    return out, run(*command, "--out", out, "--json"), command


def test_a_release_has_its_ledger_row(released: tuple[Path, Any, list[Any]]) -> None:
    out, found, command = released
    with Run.open(out) as opened:
        ledger = Ledger(tuple(release_from(row.releases[0]) for row in opened.steps()))
        assert opened.finished and not (out / "noise.key").exists()
    once = Participation(rounds=1, min_separation=1, max_participations=1)
    promise = found["promise"]
    assert ledger.composition(once).zcdp == promise["zcdp"] and promise["epsilon"] == pytest.approx(9.0)
    assert promise["histograms"] == [3], "two accuracies, one change"
    assert promise["stddev_of_a_count"] == [pytest.approx(np.sqrt(3 / (2 * promise["zcdp"])))]
    assert found["released"]["models"][str(command[0])]["histogram"]["asked"] == 90


def test_what_is_released_is_near_what_is_exact_and_no_more(released: tuple[Path, Any, list[Any]]) -> None:
    out, found, command = released
    for name in map(str, command[:2]):
        told, exact = (found[part]["models"][name] for part in ("released", "simulation_only"))
        for what in ("mean", "worst_decile"):
            assert told[what][1] - 0.005 <= exact[what][0] <= told[what][2] + 0.005
            assert told[what][2] - told[what][1] > exact[what][2] - exact[what][1], "the noise is in the bars"
    page = (out / "report" / "released.md").read_text()
    record = json.loads((out / "report" / "released.json").read_text())
    assert record == {name: value for name, value in found.items() if name not in ("run", "simulation_only")}
    assert "FIXED SEED" in page and "zCDP" in page and "SIMULATION" not in page and "simulation" not in page
    whole = (out / "report" / "report.md").read_text()
    assert whole.startswith(page.rstrip()) and "## SIMULATION ONLY" in whole
    for name in ("accuracy", "change"):
        for source in ("released", "simulation"):
            assert (out / "report" / f"{name}-{source}.png").exists() and f"{name}-{source}.png" in whole


def what_was_found(out: Path) -> tuple[str, str, list[Any]]:
    with Run.open(out) as opened:
        report = (out / "report" / "report.json").read_text().replace(str(out), "RUN")
        return report, opened.settings, [(row.digest, dict(row.releases[0])) for row in opened.steps()]


@pytest.mark.parametrize("killed", ["in the second group", "in a line", "at the release", "at the report"])
def test_a_killed_evaluation_goes_on_to_the_same_result(
    released: tuple[Path, Any, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    whole, _, command = released
    out, groups = tmp_path / "cut", []

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if killed == "at the release":
            patch.setattr(evaluate_work.Run, "commit", die)
        elif killed == "at the report":
            patch.setattr("tacit.reports.evaluation.figures", die)
        else:
            read = HeldOut.read
            patch.setattr(HeldOut, "read", lambda *a, **k: die() if groups else groups.append(1) or read(*a, **k))
        CliRunner().invoke(app, [*map(str, command), "--out", str(out), "--workers", "1"])
    lines = out / evaluate_work.COUNTS
    assert lines.read_bytes().count(b"\n") == (64 if "in " in killed else 90)
    if killed == "in a line":
        lines.write_bytes(lines.read_bytes()[:-30])
    assert (out / "noise.key").exists()
    run(*command, "--out", out)
    assert what_was_found(out) == what_was_found(whole)
    counted = [json.loads(line)["client"] for line in lines.read_text().splitlines()]
    assert len(counted) == len(set(counted)) == 90


def test_the_same_command_shows_a_finished_run_and_another_is_refused(
    released: tuple[Path, Any, list[Any]], world: tuple[Path, Path, Path]
) -> None:
    out, found, command = released
    before = what_was_found(out)
    again = run(*command, "--out", out, "--json")
    assert again == found and what_was_found(out) == before
    assert "sentences was 64 and is now 8" in run(*command, "--out", out, "--sentences", "8", fails=True)
    recipe = (out / "settings.toml").read_text()
    for name in ("sha256", "split", "clients", "sentences", "words"):
        assert f"{name} = " in recipe, "what a release means can be read from its folder"


def test_without_a_price_a_folder_keeps_the_counts_and_releases_nothing(
    world: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    cache, model, _ = world
    found = run(model, "--data", cache, "--clients", "12", "--out", tmp_path / "r", "--json")
    assert found["promise"] == {"kind": "nothing"} and found["released"] is None
    assert not list((tmp_path / "r" / "report").glob("*released*"))
    assert (tmp_path / "r" / "report" / "accuracy-simulation.png").exists()
    assert "NOTHING WAS RELEASED" in run(model, "--data", cache, "--clients", "12", "--out", tmp_path / "r")


def test_devices_may_randomise_their_own_reports(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, other = world
    found = run(model, other, "--data", cache, "--local-epsilon", "8", "--out", tmp_path / "r", "--json")
    assert found["promise"]["kind"] == "local" and found["promise"]["epsilon"] == 8.0
    asked = [row["histogram"]["asked"] for part in found["released"].values() for row in part.values()]
    assert asked == [30, 30, 30], "each device answers one question"


accounting = typer.Typer()
accounting.add_typer(account.app, name="account")


def test_the_account_of_an_evaluation(released: tuple[Path, Any, list[Any]], tmp_path: Path) -> None:
    out, found, _ = released

    def accounted(*options: str, code: int = 0) -> str:
        result = CliRunner().invoke(accounting, ["account", "run", str(out), *options])
        assert result.exit_code == code, result.output
        return result.output.replace("\n", " ")

    assert json.loads(accounted("--json"))["promise"] == found["promise"]
    assert json.loads(accounted("--json", "--delta", "1e-9"))["promise"]["epsilon"] > 9
    said = accounted()
    assert "RELEASED (central): epsilon 9" in said and "FIXED SEED" in said and "3 histograms" in said
    accounted("--statement", str(tmp_path / "s.json"))
    assert all(line.holds for line in verify(json.loads((tmp_path / "s.json").read_text())))


def test_bad_input_is_one_line(world: tuple[Path, Path, Path], tmp_path: Path) -> None:
    cache, model, _ = world
    assert "name one with --out" in run(model, "--data", cache, "--zcdp", "1", fails=True)
    assert "named twice" in run(model, model, "--data", cache, fails=True)
    assert "say nothing about many" in run(model, "--data", cache, "--clients", "1", fails=True)
    assert "above 0" in run(model, "--data", cache, "--zcdp", "0", "--out", tmp_path / "r", fails=True)
    assert "not a probability" in run(
        model, "--data", cache, "--zcdp", "1", "--delta", "5", "--out", tmp_path / "r", fails=True
    )
    assert not (tmp_path / "r").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    complaint = run(model, "--data", cache, "--zcdp", "1", "--out", tmp_path / "full", fails=True)
    assert "exists already" in complaint and "clients" not in complaint, "before anybody is counted"
    assert "holds no model" in run(tmp_path, "--data", cache, fails=True)
    _, stranger = typists_and_model(tmp_path, 4, [*WORDS[:-1], "elsewhere"])
    assert "different words" in run(model, stranger, "--data", cache, fails=True)
