"""`tacit account log`: MinS and MaxP from round times and a timer, in the formats that logs have."""

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tacit.cli.account import app
from tacit.cli.values import seconds as seconds_of
from tacit.errors import InputError
from tacit.privacy.measured_participation import timed_participation

HOUR = 3600
BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
ZONES = (str, lambda when: when.isoformat(), lambda when: when.strftime("%Y-%m-%dT%H:%M:%SZ"))


def invoke(path: Path, line: str) -> Result:
    return CliRunner().invoke(app, ["log", str(path), *shlex.split(line)])


def account(path: Path, line: str) -> dict[str, Any]:
    result = invoke(path, line + " --json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def write(path: Path, times: list[Any], first: int = 0, header: str = "round,finished") -> Path:
    path.write_text("\n".join([header, *(f"{first + at},{time}" for at, time in enumerate(times))]) + "\n")
    return path


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("written", [*ZONES, lambda when: when.timestamp()])
def test_a_round_an_hour_with_a_two_day_timer(tmp_path: Path, written: Any, first: int) -> None:
    times = [BEGIN + timedelta(hours=at) for at in range(200)]
    path = write(tmp_path / "rounds.csv", [written(time) for time in times], first)
    shown = account(path, "--timer 48h --mechanism tree --noise-multiplier 7")
    measured = timed_participation([time.timestamp() for time in times], timer=48 * HOUR)
    assert shown["rounds"] == 200
    assert (shown["min_separation"], shown["max_participations"]) == (
        measured.min_separation,
        measured.max_participations,
    )
    assert shown["timer_seconds"] == 48 * HOUR
    assert invoke(path, "--timer 2d --mechanism tree --noise-multiplier 7").exit_code == 0


def test_the_zone_of_clocks_is_declared(tmp_path: Path) -> None:
    path = write(tmp_path / "rounds.csv", [f"2026-05-01T{hour:02}:00:00" for hour in range(24)])
    line = "--timer 5h --mechanism tree --noise-multiplier 7"
    refused = invoke(path, line)
    assert refused.exit_code == 2 and "--time-zone" in refused.stderr
    assert account(path, f"{line} --time-zone Europe/Madrid")["min_separation"] == 5


def test_every_mechanism_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "rounds.csv", [HOUR * at for at in range(100)])
    (tmp_path / "strategy.json").write_text('{"kind": "tree", "restarts": [8], "variance_reduced": false}')
    file = shlex.quote(str(tmp_path / "strategy.json"))
    kinds = [
        account(path, f"--timer 20h --noise-multiplier 2 --mechanism {options}")["mechanism"]
        for options in (
            "tree --restarts 8",
            "blt-b400",
            "independent",
            "banded-toeplitz --coefficients 1,0.5",
            "banded-inverse --coefficients 1,-0.5",
            file,
        )
    ]
    assert kinds == ["tree", "blt", "independent", "banded-toeplitz", "banded-inverse", "tree"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("48h", 172_800), ("90m", 5400), ("2d", 172_800), ("1.5h", 5400), (" 30 s ", 30), ("1w", 604_800)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text, "timer") == seconds


@pytest.mark.parametrize("text", ["", "48", "h", "48 hours", "-2h", "0h", "nan", "1e3h", "9" * 400 + "h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InputError, match="--timer"):
        seconds_of(text, "timer")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--mechanism oak", "'oak' is none of"),
        ("--mechanism tree --theta 0.5", "--theta says nothing to --mechanism tree"),
        ("--mechanism independent --restarts 8", "--restarts says nothing"),
        ("--mechanism blt --theta 0.9", "theta and omega come together"),
        ("--mechanism missing.json", "no strategy file"),
    ],
)
def test_a_mechanism_that_is_none(tmp_path: Path, options: str, complaint: str) -> None:
    path = write(tmp_path / "rounds.csv", [HOUR * at for at in range(10)])
    result = invoke(path, f"--timer 3h --noise-multiplier 1 {options}")
    assert result.exit_code == 2
    assert complaint in result.stderr
