"""`tacit plan production`: a recipe that loads, figures that accountant and simulator confirm, one line for errors."""

import csv
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.conftest import REPOSITORY
from typer.testing import CliRunner, Result

from tacit.cli.account import app as account
from tacit.cli.plan_production import plan_production
from tacit.cli.simulate import simulate
from tacit.recipe import Recipe
from tacit.statements.verify import verify

app = typer.Typer()
app.command()(plan_production)
SMALL = "--population 6000 --rounds 300 --report-goal-max 120 --cache caches/text"
# A pair that two thousand devices bear: twenty times the noise of the papers'.
BORNE = "--small-report-goal 20 --small-noise-multiplier 1"


@pytest.fixture(autouse=True, scope="module")
def undrawn() -> Iterator[None]:
    """Drawing takes most of the time; `tacit simulate` has tests of its own for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.reports.simulation.figures", lambda run: ())
        yield


def invoke(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line))


def planned(line: str, out: Path) -> dict[str, Any]:
    result = invoke(f"{line} --out {shlex.quote(str(out))} --json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("production") / "plan"
    return out, planned(f"{SMALL} {BORNE} --target-epsilon 12", out)


def test_the_recipe_promises_what_was_planned(reached: tuple[Path, dict[str, Any]]) -> None:
    out, found = reached
    plan = found["plan"]
    assert found["at_utility"] and plan["epsilon"] <= 12
    recipe = Recipe.load(out / "production.toml")
    guarantee = recipe.guarantee()
    assert (guarantee.zcdp, guarantee.epsilon(recipe.privacy.delta or 0)) == (plan["zcdp"], plan["epsilon"])
    assert recipe.rounds.report_goal == plan["report_goal"] <= 120
    assert recipe.population is not None
    assert recipe.population.timer_hours == found["simulated"]["timer_hours"]
    assert str(recipe.data.cache) == "caches/text"


def test_every_value_has_a_reason(reached: tuple[Path, dict[str, Any]]) -> None:
    out, _ = reached
    lines = (out / "production.toml").read_text().splitlines()
    assert all(" # " in line for line in lines if " = " in line and not line.startswith(("#", "name")))


def test_the_plan_counts_on_the_rounds_in_its_folder(reached: tuple[Path, dict[str, Any]]) -> None:
    """MinS and MaxP again from rounds.csv, and the simulation again from its settings."""
    out, found = reached
    seen, plan = found["simulated"], found["plan"]
    line = f"log {shlex.quote(str(out / 'simulation' / 'rounds.csv'))} --timer {seen['timer_hours']:g}h --json"
    log = CliRunner().invoke(account, shlex.split(f"{line} --mechanism tree --noise-multiplier 7"))
    assert log.exit_code == 0, log.output
    told = json.loads(log.stdout)
    assert (told["min_separation"], told["max_participations"]) == (plan["min_separation"], plan["max_participations"])
    with (out / "simulation" / "rounds.csv").open() as file:
        assert {int(row["reported"]) for row in csv.DictReader(file)} == {plan["report_goal"]}
    again = typer.Typer()
    again.command()(simulate)
    result = CliRunner().invoke(again, ["--settings", str(out / "simulation" / "settings.toml"), "--json"])
    told = json.loads(result.stdout)
    assert told["realised"]["rounds_between"] == seen["realised_rounds_between"] >= plan["rounds_between"]
    assert told["devices"] == 6000 and told["days"] == seen["days"] <= 14


def test_the_statement_is_planned_and_follows_from_its_facts(reached: tuple[Path, dict[str, Any]]) -> None:
    out, found = reached
    assert (out / "statement.md").read_text().startswith("**PLANNED: nothing has been trained.")
    record = json.loads((out / "statement.json").read_text())
    assert record["planned"]["epsilon"] == found["plan"]["epsilon"] and "realised" not in record
    assert all(line.holds for line in verify(record))
    assert json.loads((out / "plan.json").read_text()) == found


def test_seven_steps_are_shown(tmp_path: Path) -> None:
    shown = invoke(f"{SMALL} {BORNE} --target-epsilon 20 --mechanism tree-variance-reduced --out {tmp_path / 'plan'}")
    assert shown.exit_code == 0, shown.output
    assert [text[0] for text in shown.stdout.splitlines() if text[:1].isdigit()] == list("1234567")
    for words in ("tacit pretrain", "as given", "the least report goal that reaches epsilon 20", "Theorem 1"):
        assert words in shown.stdout
    for words in ("in a simulation of all 6,000 devices", "realised there: MinS", "tacit tune", "tacit account run"):
        assert words in shown.stdout
    assert Recipe.load(tmp_path / "plan" / "production.toml").privacy.mechanism_name == "tree-variance-reduced"


def test_a_target_out_of_reach_says_what_it_costs_the_model(tmp_path: Path) -> None:
    line = f"{SMALL} --target-epsilon 4 --timer-hours 24 --mechanism blt-b100"
    shown = invoke(f"{line} --out {tmp_path / 'shown'}")
    assert "OUT OF REACH" in shown.stdout and "120 reports a round are the most" in shown.stdout
    assert "the paper's pair" in shown.stdout and "not a measurement of this task" in shown.stdout
    assert "WARNING: do not expect a usable model" in shown.stdout
    found = planned(line, tmp_path / "told")
    scale = found["steps"][2]["figures"]
    assert not found["at_utility"] and found["plan"]["report_goal"] == 120
    assert found["plan"]["epsilon"] == pytest.approx(4, rel=1e-9)
    assert scale["signal_to_noise"] == pytest.approx(1 / found["times_the_noise"])
    head = (tmp_path / "told" / "production.toml").read_text().splitlines()[1]
    assert "times the noise that the model bears" in head


def test_secure_sums_are_counted(tmp_path: Path) -> None:
    line = f"{SMALL} {BORNE} --target-epsilon 400 --timer-hours 24 --mechanism tree"
    found = planned(f"{line} --secagg", tmp_path / "plan")
    clear = planned(line, tmp_path / "clear")
    factor = found["steps"][6]["figures"]["clip_inflation"]
    assert factor == 1.01
    assert found["steps"][6]["figures"]["clipping_probability"] < 1e-12
    recipe = Recipe.load(tmp_path / "plan" / "production.toml")
    assert recipe.aggregation is not None and recipe.guarantee().clip_inflation == factor
    assert recipe.guarantee().zcdp == pytest.approx(found["plan"]["zcdp"])
    assert Recipe.load(tmp_path / "clear" / "production.toml").aggregation is None
    assert found["plan"]["sensitivity"] == pytest.approx(clear["plan"]["sensitivity"] * factor)
    assert "secure aggregation" in (tmp_path / "plan" / "statement.md").read_text()
    assert "--clip-inflation" in (tmp_path / "plan" / "statement.md").read_text()


def test_the_noise_of_all_decryptors_is_what_the_model_bears(tmp_path: Path) -> None:
    """Of four decryptors each may add half as much, so that the same report goal promises a quarter of the zCDP's
    room.
    """
    for name, decryptors in (("one", ""), ("four", "decryptors = 4\n")):
        shipped = (REPOSITORY / "recipes" / "chat-secure.toml").read_text().split("[aggregation]")
        (tmp_path / f"{name}.toml").write_text(f"{shipped[0]}[aggregation]\n{decryptors}{shipped[1].lstrip()}")
    line = f"--population 6000 --rounds 300 --report-goal-max 120 {BORNE} --target-epsilon 400 --timer-hours 24"
    one, four = (
        planned(f"{line} --mechanism tree --recipe {shlex.quote(str(tmp_path / name))}.toml", tmp_path / f"p-{name}")
        for name in ("one", "four")
    )
    goals = [found["plan"]["report_goal"] for found in (one, four)]
    noises = [found["plan"]["noise_multiplier"] / goal for found, goal in zip((one, four), goals, strict=True)]
    assert noises[1] == pytest.approx(noises[0] / 2, rel=0.05)  # by another separation the strategy's error changes
    assert [found["plan"]["noise_of_mean"] for found in (one, four)] == [
        pytest.approx(four["plan"]["noise_of_mean"])
    ] * 2
    bits = [found["steps"][6]["figures"]["bits_per_coordinate"] for found in (one, four)]
    assert bits[1] > bits[0]
    alone = ["find the norm without them" in str(found["steps"][4]) for found in (one, four)]
    assert alone == [False, True]
    made = Recipe.load(tmp_path / "p-four" / "production.toml")
    assert made.aggregation is not None and made.aggregation.decryptors == 4
    stated = (tmp_path / "p-four" / "statement.md").read_text()
    assert "4 decryptors each add the whole noise" in stated and "the server is trusted" not in stated


def test_a_recipe_a_model_and_a_tuning_are_taken_over(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        'name = "es"\ndata = {cache = "caches/es"}\nmodel = {units = 64}\nserver = {method = "nesterov"}\n'
        "rounds = {rounds = 9, report_goal = 3, min_separation = 2}\nrun = {seed = 3}\n"
        'privacy = {mechanism = {name = "tree", restarts = [4]}, zcdp = 3.0, extrapolate_to = 70}\n'
        "clipping = {initial = 0.1, bit_stddev = 50.0}\n"
    )
    tuning = {
        "schema": "tacit.tuning",
        "version": 1,
        "chosen": {"server_learning_rate": 0.7, "clip_norm": 0.25},
        "trial_report_goal": 20,
        "trial_noise_multiplier": 1.0,
        "privacy_of_tuning": {"words": "The 3 trials cost nothing."},
    }
    (tmp_path / "tuning.json").write_text(json.dumps(tuning))
    line = "--population 6000 --rounds 300 --report-goal-max 120 --target-zcdp 9 --timer-hours 24 --mechanism tree"
    found = planned(f"{line} --recipe {base} --model m/public --tuning {tmp_path}", tmp_path / "plan")
    recipe = Recipe.load(tmp_path / "plan" / "production.toml")
    assert (recipe.model.units, str(recipe.model.init), recipe.clipping) == (64, "m/public", None)
    assert (recipe.server.method, recipe.server.learning_rate, recipe.privacy.clip_norm) == ("nesterov", 0.7, 0.25)
    assert recipe.privacy.extrapolate_to is None and recipe.rounds.rounds == 300
    assert found["steps"][1]["figures"]["report_goal"] == 20 and found["plan"]["zcdp"] <= 9
    statement = (tmp_path / "plan" / "statement.md").read_text()
    assert "FIXED SEED" in statement and "The 3 trials cost nothing." in statement


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{SMALL} {BORNE} --target-epsilon 4 --timer-hours 4000", r"starve; use report_goal <= .*timer_hours <= "),
        (f"{SMALL} {BORNE} --target-epsilon 4 --acceptable-days 0.3", "use --acceptable-days 1 or fewer --rounds"),
        (f"{SMALL} --target-epsilon 4 --timer-hours 24 --acceptable-days 10", "do not end in 10 days in a simulation"),
        (f"{SMALL} --target-epsilon 0", "give a number above 0"),
        (f"{SMALL} --target-zcdp -1", "give a finite number above 0"),
        (f"{SMALL}", "no target given"),
        (f"{SMALL} --target-epsilon 4 --target-zcdp 1", "give one of them"),
        (f"{SMALL} --target-epsilon 4 --delta 2", "not a probability"),
        (f"{SMALL} --target-epsilon 4 --timer-hours soon", "neither 'auto' nor a number"),
        (f"{SMALL} --target-epsilon 4 --acceptable-days 0", "leaves no time"),
        (f"{SMALL} --target-epsilon 4 --small-report-goal 20", "are one pair"),
        (f"{SMALL} --target-epsilon 4 --small-report-goal 20 --small-noise-multiplier 0", "no guarantee to plan"),
        (f"{SMALL} --target-epsilon 4 --mechanism magic", "'magic' is none of"),
        (f"{SMALL} --target-epsilon 4 --tuning nowhere", "tacit tune"),
        (f"{SMALL} --target-epsilon 4 --settings nowhere.toml", "no file of settings"),
        (f"{SMALL} --target-epsilon 4 --rounds 0", "at least 1"),
        ("--population 100 --report-goal-max 120 --target-epsilon 4 --cache c", "exceeds the 100 devices"),
        ("--population 6000 --report-goal-max 120 --target-epsilon 4", "give --recipe BASE.toml, or --cache FOLDER"),
        ("--population 6000 --report-goal-max 120 --target-epsilon 4 --recipe no.toml", "there is no recipe"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_fit(line: str, says: str, tmp_path: Path) -> None:
    result = invoke(f"{line} --out {tmp_path / 'plan'}")
    assert result.exit_code == 2, result.output
    complaint = [text for text in result.output.splitlines() if text.startswith("error:")]
    assert len(complaint) == 1 and re.search(says, complaint[0])
    assert not (tmp_path / "plan" / "production.toml").exists()


@pytest.mark.parametrize("made", ["folder", "file"])
def test_a_model_that_is_there_and_is_none_is_refused_before_the_work(made: str, tmp_path: Path) -> None:
    """One that is not there yet may be made later; what is empty never is one."""
    empty = tmp_path / "empty"
    empty.mkdir() if made == "folder" else empty.touch()
    result = invoke(f"{SMALL} --target-epsilon 4 --cache c --model {empty} --out {tmp_path / 'plan'}")
    assert result.exit_code == 2 and "holds no model" in result.output
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"format": "other"}', "not of the format"),
        ('{"schema": "tacit.tuning", "version": 1, "chosen": null}', "every trial failed"),
        ('{"schema": "tacit.tuning", "version": 1, "chosen": {"server_learning_rate": -1}}', "not above 0"),
    ],
)
def test_a_tuning_that_is_none_is_refused(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(content)
    result = invoke(f"{SMALL} --target-epsilon 4 --tuning {tmp_path} --out {tmp_path / 'plan'}")
    assert result.exit_code == 2 and says in result.output
