"""`tacit plan`: answers that forward accounting confirms, tables that nothing cuts off, one line for wrong input."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tacit.cli.account import app as account
from tacit.cli.plan import app

ES_ES = "--population 4.21M --rounds 2000"
FAST = "--mechanism tree-variance-reduced --mechanism blt-b400"


def invoke(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line))


def plan(line: str) -> dict[str, Any]:
    result = invoke(f"{line} --json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def accounted(line: str) -> dict[str, Any]:
    result = CliRunner().invoke(account, [*shlex.split(line), "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_run_says_what_the_accountant_says() -> None:
    found = plan(f"run {ES_ES} --report-goal 6500 {FAST} --rounds-per-day 250 --seconds-per-visit 36")
    assert [each["mechanism"] for each in found["plans"]] == ["tree-variance-reduced", "blt-b400"]
    tree, blt = found["plans"]
    assert (tree["min_separation"], tree["max_participations"], tree["noise_multiplier"]) == (647, 4, 7)
    assert (tree["client_visits"], tree["days"], tree["device_hours"]) == (13_000_000, 8, 130_000)
    limits = "--rounds 2000 --min-separation 647"
    assert tree["zcdp"] == accounted(f"tree {limits} --noise-multiplier 7")["zcdp"]
    again = accounted(f"blt-b400 {limits} --noise-multiplier {blt['noise_multiplier']!r} --delta 5e-8")  # of 4.21M
    assert (blt["zcdp"], blt["epsilon"]) == (again["zcdp"], again["epsilon"])
    assert blt["noise_of_mean"] == pytest.approx(tree["noise_of_mean"], rel=1e-12)


def test_target_is_reached_by_forward_accounting() -> None:
    found = plan(f"target --population 16.6M --rounds 2000 --epsilon 1 {FAST}")
    for answer in found["answers"]:
        assert answer["at_utility"]
        assert answer["epsilon"] <= 1
        before = plan(
            f"run --population 16.6M --rounds 2000 --report-goal {answer['report_goal'] - 1} "
            f"--mechanism {answer['mechanism']}"
        )
        assert before["plans"][0]["epsilon"] > 1
    by_name = {answer["mechanism"]: answer["report_goal"] for answer in found["answers"]}
    assert by_name["blt-b400"] < by_name["tree-variance-reduced"] / 2


def test_a_target_out_of_reach_says_how_much_noisier() -> None:
    found = plan(f"target {ES_ES} --epsilon 1 --most-reports 20000 --mechanism blt-b400")
    (answer,) = found["answers"]
    assert answer["report_goal"] <= 20_000
    assert not answer["at_utility"]
    assert answer["times_the_noise"] > 1
    assert answer["epsilon"] == pytest.approx(1)
    shown = invoke(f"target {ES_ES} --epsilon 1 --most-reports 20000 --mechanism blt-b400")
    assert "the model will be worse" in shown.stdout


def test_timer_and_rounds() -> None:
    line = f"timer {ES_ES} --rounds-per-day 150 --report-goal 6500 --mechanism blt-b400 --epsilon 4"
    found = plan(line)
    assert [each["timer_hours"] for each in found["timers"]] == [24, 48, 72, 96, 120]
    assert [each["min_separation"] for each in found["timers"]] == [150, 300, 450, 600, 647]
    shortest = found["shortest_timer_hours"]
    assert {each["timer_hours"]: each["epsilon"] <= 4 for each in found["timers"]}[shortest]
    assert invoke(line).stdout.count("<- the target") == 1
    (answer,) = plan(f"rounds {ES_ES} --report-goal 6500 --mechanism tree --epsilon 8")["answers"]
    noise = answer["noise_multiplier"]
    for rounds, met in ((answer["rounds"], True), (answer["rounds"] + 1, False)):
        again = accounted(f"tree --rounds {rounds} --min-separation 647 --noise-multiplier {noise!r} --delta 5e-8")
        assert (again["epsilon"] <= 8) is met


def test_steps_are_seven_and_meant_without_a_command() -> None:
    line = f"{ES_ES} --epsilon 4 --mechanism tree-variance-reduced --rounds-per-day 313"
    shown, named = invoke(line), invoke(f"steps {line}")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == named.stdout
    numbered = [text for text in shown.stdout.splitlines() if text[:1].isdigit()]
    assert [text[0] for text in numbered] == list("1234567")
    found = plan(line)
    assert [step["step"] for step in found["steps"]] == [1, 2, 3, 4, 5, 6, 7]
    assert found["plan"]["epsilon"] <= 4


def test_tables_are_never_cut_off() -> None:
    for line in (
        f"run {ES_ES} --report-goal 6500 {FAST}",
        f"target {ES_ES} --epsilon 4 {FAST} --seconds-per-visit 60 --joules-per-visit 9 --megabytes-per-visit 5",
        f"rounds {ES_ES} --report-goal 6500 --epsilon 4 {FAST}",
    ):
        result = invoke(line)
        assert result.exit_code == 0, result.output
        assert "…" not in result.stdout
        assert "tree-variance-reduced" in result.stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("run --population 1k --rounds 100 --report-goal 2000", "exceeds the 1000 clients"),
        ("run --population 1M --rounds 100 --report-goal 10 --min-separation 200", "exceeds the 100 rounds"),
        ("run --population 1M --rounds 1000 --report-goal 6500 --min-separation 200", "need 1300000 different"),
        ("run --population 1M --rounds 9 --report-goal 65 --rounds-between 4 --min-separation 5", "give one"),
        ("run --population 1M --rounds 99 --report-goal 9 --rounds-between 49 --max-participations 3", "does not fit"),
        ("run --population 1M --rounds 100 --report-goal 10 --noise-multiplier 0", "noise_multiplier=0"),
        ("run --population 1M --rounds 0 --report-goal 10", "rounds=0"),
        ("run --population 1M --rounds 10 --report-goal 0", "report_goal=0"),
        ("run --population 1M --rounds 10 --report-goal 10 --timer 24h", "give rounds_per_day"),
        ("run --population 1M --rounds 10 --report-goal 10 --timer 2y", "no duration"),
        ("run --population 1M --rounds 10 --report-goal 10 --mechanism foo", "'foo' is none of"),
        ("run --population 1M --rounds 10 --report-goal 10 --delta 2 --mechanism tree", "delta=2"),
        ("run --population 1M --rounds 10 --report-goal 10 --clip-inflation 0.5", "clip_inflation=0.5"),
        ("run --population 1M --rounds 10 --report-goal 10 --availability 0", "availability=0"),
        ("run --population 1M --rounds 10 --report-goal 10 --seconds-per-visit -1", "seconds=-1"),
        ("run --population 1M --rounds 10 --report-goal 10 --objective mean", "neither max nor rms"),
        ("run --population many --rounds 10 --report-goal 10", "'many' is no number"),
        ("target --population 1M --rounds 100", "no target given"),
        ("target --population 1M --rounds 100 --epsilon 1 --zcdp 1", "give one of them"),
        ("target --population 1M --rounds 100 --epsilon -1", "--epsilon -1"),
        ("timer --population 1M --rounds 100 --report-goal 100 --mechanism tree", "give rounds_per_day"),
        ("run --population 1M --rounds 10 --report-goal 10 --figure plan.gif", "ends in neither .png nor .svg"),
    ],
)
def test_wrong_input_is_one_line(line: str, says: str) -> None:
    result = invoke(line)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert says in result.stderr


def test_every_plan_is_drawn(tmp_path: Path) -> None:
    timer = "timer --rounds-per-day 150 --report-goal 6500 --mechanism blt-b400 --epsilon 4"
    for number, line in enumerate(
        (
            f"steps {ES_ES} --epsilon 4 --mechanism tree-variance-reduced",
            f"run {ES_ES} --report-goal 6500 {FAST}",
            f"target {ES_ES} --epsilon 4 {FAST}",
            f"rounds {ES_ES} --report-goal 6500 --epsilon 4 {FAST}",
            f"{timer} {ES_ES}",
        )
    ):
        drawn = tmp_path / "figures" / f"{number}.svg"
        result = invoke(f"{line} --figure {drawn} --json")
        assert result.exit_code == 0, result.output
        assert drawn.read_bytes().startswith(b"<?xml")
