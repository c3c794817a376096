"""`tacit design blt`: the figures of the design, one mechanism for several participations, refusals in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tacit.cli.design import app
from tacit.design.blt import design_blt
from tacit.design.losses import losses
from tacit.privacy import Blt, Participation
from tacit.privacy.strategy import strategy_from_record

RUNNER = CliRunner()


def run(*arguments: str) -> Any:
    return RUNNER.invoke(app, ["blt", *arguments])


def figures(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


SETTING = ("--rounds", "2052", "--min-separation", "342", "--max-participations", "6", "--buffers", "3")


def test_json_holds_the_design_and_what_it_costs() -> None:
    found = figures(*SETTING, "--objective", "max")
    assert found["loss"] == pytest.approx(10.751381, abs=1e-5)
    assert found["loss"] == found["max_loss"] == pytest.approx(found["max_error"] * found["sensitivity"])
    assert found["rms_loss"] == pytest.approx(found["rms_error"] * found["sensitivity"])
    assert found["seconds"] > 0
    blt = Blt(theta=tuple(found["theta"]), omega=tuple(found["omega"]))
    served = Participation(rounds=2052, min_separation=342, max_participations=6)
    assert losses(blt, served).max_loss == pytest.approx(found["loss"], rel=1e-14)


def test_both_conventions_of_the_separation_and_both_losses() -> None:
    found = figures("--rounds", "2052", "--rounds-between", "341", "--buffers", "3", "--objective", "rms")
    assert found["loss"] == found["rms_loss"] == pytest.approx(9.171304, abs=1e-5)


def test_people_get_a_table() -> None:
    result = run(*SETTING)
    assert result.exit_code == 0
    assert "10.751382" in result.stdout
    assert "loss = error x sensitivity" in result.stdout


def test_the_design_is_written_for_other_commands(tmp_path: Path) -> None:
    path = tmp_path / "blt.json"
    found = figures(*SETTING, "--out", str(path))
    blt = strategy_from_record(json.loads(path.read_text(encoding="utf-8")))
    assert blt == Blt(theta=tuple(found["theta"]), omega=tuple(found["omega"]))


def test_one_design_for_several_rounds_and_separations(tmp_path: Path) -> None:
    path = tmp_path / "robust.json"
    found = figures(
        *("--rounds", "500:1000", "--min-separation", "100,300", "--max-participations", "4"),
        *("--buffers", "2", "--out", str(path)),
    )
    rows = found["participations"]
    assert [(row["rounds"], row["min_separation"], row["max_participations"]) for row in rows] == [
        (500, 100, 4),
        (500, 300, 2),
        (707, 100, 4),
        (707, 300, 3),
        (1000, 100, 4),
        (1000, 300, 4),
    ]
    assert found["worst_ratio"] == max(row["ratio"] for row in rows) < 1.1
    served = Participation(rounds=707, min_separation=300, max_participations=3)
    least = losses(design_blt(served, buffers=2), served).max_loss
    assert rows[3]["least_loss"] == pytest.approx(least)
    assert rows[3]["ratio"] == pytest.approx(rows[3]["loss"] / least)
    assert json.loads(path.read_text(encoding="utf-8"))["theta"] == found["theta"]
    shown = run("--rounds", "500,1000", "--min-separation", "100", "--buffers", "2")
    assert "worst ratio" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--rounds", "1000", "--min-separation", "100", "--max-participations", "11"), "give at most 10 or"),
        (("--rounds", "10", "--min-separation", "11"), "exceeds the 10 rounds"),
        (("--rounds", "10"), "neither of --rounds-between"),
        (("--rounds", "10", "--min-separation", "2", "--rounds-between", "1"), "both (1 and 2)"),
        (("--rounds", "10", "--min-separation", "0"), "min_separation=0"),
        (("--rounds", "0", "--min-separation", "2"), "rounds=0"),
        (("--rounds", "ten", "--min-separation", "2"), "neither a number nor several"),
        (("--rounds", "20:10", "--min-separation", "2"), "no range"),
        (("--rounds", "10", "--min-separation", "2", "--buffers", "0"), "buffers=0"),
        (("--rounds", "10", "--min-separation", "2", "--buffers", "99"), "buffers=99"),
        (("--rounds", "10", "--min-separation", "2", "--objective", "mean"), "neither max nor rms"),
        (("--rounds", "10", "--min-separation", "2", "--max-participations", "0"), "max_participations=0"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
