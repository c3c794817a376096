"""`tacit tune`: options become settings, people see a table, the choice and the price, refusals are one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_toml
from typer.testing import CliRunner, Result

from tacit.cli.commands import app
from tacit.data import Cache


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def written(folder: Path, cache: Cache, **sections: Any) -> Path:
    path = folder / "tiny.toml"
    few = {"every": 4, "clients": 5, "test_clients": 2, "sentences": 8}
    limits = {"rounds": 4, "report_goal": 6, "min_separation": 3}
    given = {"privacy": MECHANISMS["blt"], "evaluation": few, "rounds": limits, **sections}
    path.write_text(tiny_toml(cache.path, **given), encoding="utf-8")
    return path


def tune(recipe: Path, out: Path, *options: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in ("tune", recipe, "--out", out, "--workers", 1, *options)])


def test_people_see_a_table_the_choice_and_the_cost(cache: Cache, tmp_path: Path) -> None:
    recipe, out = written(tmp_path, cache), tmp_path / "tuned"
    shown = tune(recipe, out, "--server-learning-rates", "1,2")
    assert shown.exit_code == 0, shown.output
    for said in ("server rate", "Server learning rate", "6,500 reports a round", "The 2 trials cost zCDP"):
        assert said in shown.stdout
    lines = [line.split("  ")[0] for line in shown.stderr.splitlines()]
    noise, *trials = lines
    assert noise.startswith(
        "NOT FORECAST. What the noise will do to the model cannot be told: it was not measured below 40 rounds"
    )
    assert trials == ["trial 1/2 lr1-q0.5-try1: 4 of 4", "trial 2/2 lr2-q0.5-try1: 4 of 4"], "a line a trial, no more"
    again = tune(recipe, out, "--server-learning-rates", "1,2", "--json")
    assert again.exit_code == 0 and again.stdout.count("\n") == 1 and again.stderr == ""
    assert json.loads(again.stdout) == json.loads((out / "tuning.json").read_text())
    resumed = CliRunner().invoke(app, ["resume", str(out), "--workers", "1"])
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stdout == shown.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--server-learning-rates", "fast"), "is not a list of numbers"),
        (("--server-learning-rates", ","), "the list of server learning rates is empty"),
        (("--quantiles", ","), "the list of quantiles is empty"),
        (("--workers", -1), "workers=-1"),
    ],
)
def test_a_refusal_is_one_line(cache: Cache, tmp_path: Path, options: tuple[object, ...], message: str) -> None:
    refused = tune(written(tmp_path, cache), tmp_path / "tuned", *options)
    assert refused.exit_code == 2 and refused.stdout == ""
    assert refused.stderr.startswith("error: ") and refused.stderr.count("\n") == 1 and message in refused.stderr


def test_when_all_trials_fail_that_is_a_refusal(cache: Cache, tmp_path: Path) -> None:
    failed = tune(written(tmp_path, cache), tmp_path / "tuned", "--server-learning-rates", "1e36", "--json")
    assert failed.exit_code == 2 and failed.stdout == ""
    assert "no trial of 1 can be taken to production (1 diverged)" in failed.stderr
