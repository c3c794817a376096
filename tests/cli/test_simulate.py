"""`tacit simulate` and simulated timers: files that others read, settings that come back, one line for errors."""

import csv
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tacit.cli.account import app as account
from tacit.cli.commands import app
from tacit.population.settings import SimulationSettings
from tacit.population.simulation import COLUMNS, spans

SMALL = "--population 4k --report-goal 10 --rounds 150 --timer-hours 12"


def invoke(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line))


def answer(line: str) -> dict[str, Any]:
    result = invoke(f"{line} --json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_simulation_leaves_rounds_that_the_accountant_reads(tmp_path: Path) -> None:
    told = answer(f"simulate {SMALL} --out {tmp_path / 'out'}")
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == {
        name: value for name, value in told.items() if name != "files"
    }
    assert all((tmp_path / "out" / name).stat().st_size for name in told["files"])
    assert {"rounds.csv", "summary.json", "settings.toml", "days.png", "participation.svg"} <= set(told["files"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"at least {told['realised']['rounds_between']} rounds between" in page
    assert page.count('<svg class="figure"') == 3 and page.index("days for 150 rounds of 10 reports with") < page.index(
        "<svg"
    )
    assert json.loads((tmp_path / "out" / "report.json").read_text())["selected"] == told["selected"]
    with (tmp_path / "out" / "rounds.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS and len(rows) == 150
    assert sum(int(row["selected"]) for row in rows) == told["selected"]
    assert sum(int(row["wasted"]) for row in rows) == told["dropped"] + told["late"]
    line = f"log {tmp_path / 'out' / 'rounds.csv'} --timer 12h --mechanism tree --noise-multiplier 7 --json"
    log = CliRunner().invoke(account, shlex.split(line))
    assert log.exit_code == 0, log.output
    assert json.loads(log.stdout)["min_separation"] == told["promised_by_timer"]["min_separation"]
    assert told["realised"]["min_separation"] >= told["promised_by_timer"]["min_separation"]


def test_the_settings_it_writes_give_the_same_run(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "[population.availability]\nzones = [[-8, 0.25], [-5, 0.75]]\nnight.idle = 0.9\n[rules]\nclock = 'upload'\n"
    )
    first = answer(f"simulate {SMALL} --settings {tmp_path / 'mine.toml'} --seed 7 --out {tmp_path / 'out'}")
    again = answer(f"simulate --settings {tmp_path / 'out' / 'settings.toml'}")
    assert first["clock"] == "upload" and first["seed"] == 7
    assert {name: value for name, value in first.items() if name != "files"} == again
    other = answer(f"simulate --settings {tmp_path / 'out' / 'settings.toml'} --timer-hours 6 --unmetered 0.5")
    assert other["timer_hours"] == 6 and other["days"] != again["days"]
    settings = SimulationSettings.read(tmp_path / "out" / "settings.toml")
    assert settings.population.availability.night.idle == 0.9
    assert settings.population.availability.day.idle == 0.6  # what was not changed is the default
    assert tomllib.loads(settings.to_toml())["rules"]["clock"] == "upload"


def test_eyes_are_told_what_was_realised_and_what_is_assumed() -> None:
    result = invoke(f"simulate {SMALL}")
    assert result.exit_code == 0, result.output
    assert "Realised: MinS" in result.stdout and "wasted" in result.stdout
    assert "A model of devices, not a measurement" in result.stdout


def test_starved_rounds_are_listed() -> None:
    told = answer("simulate --population 2k --report-goal 20 --rounds 60 --timer-hours 72")
    assert told["starved_rounds"] > 0
    listed = [int(part) for span in told["starved"] for part in span.split("-")]
    assert listed == sorted(listed)
    assert "starved" in invoke("simulate --population 2k --report-goal 20 --rounds 60 --timer-hours 72").stdout


def test_spans_are_read_back() -> None:
    assert spans([]) == []
    assert spans([0, 1, 2, 5, 7, 8]) == ["0-2", "5", "7-8"]


WRONG = [
    ("simulate --population 4k --report-goal 10 --rounds 20", "timer_hours is missing; give --timer-hours"),
    ("simulate --report-goal 10 --rounds 20 --timer-hours 4", "devices is missing; give --population"),
    (f"simulate {SMALL} --unmetered 0", "no device is ever available"),
    (f"simulate {SMALL} --dropout 1", "dropout=1.0 is no share below 1"),
    (f"simulate {SMALL} --timer-hours 0", "timer_hours=0.0 is no time above 0"),
    (f"simulate {SMALL} --clock start", "clock='start'"),
    (f"simulate {SMALL} --seed -1", "seed=-1"),
    (f"simulate {SMALL} --settings nowhere.toml", "there is no file of settings"),
    ("simulate --population 10 --report-goal 11 --rounds 20 --timer-hours 4", "report_goal=11 exceeds the 10 devices"),
    ("simulate --population 4k --report-goal 3900 --rounds 20 --timer-hours 4", "round 0 would wait for ever"),
    (f"simulate {SMALL} --timer-hours 80000 --report-goal 40", "starve; use report_goal <="),
    (
        "plan timer --mechanism tree --population 4k --rounds 20 --report-goal 5 --acceptable-days 3",
        "--acceptable-days belongs to --simulate",
    ),
    (
        "plan timer --mechanism tree --population 4k --rounds 900 --report-goal 50 --simulate --acceptable-days 2",
        "most_days=2",
    ),
]


@pytest.mark.parametrize(("line", "says"), WRONG, ids=[says for _, says in WRONG])
def test_wrong_input_is_one_line(line: str, says: str) -> None:
    result = invoke(line)
    assert result.exit_code == 2, result.output
    assert says in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""


TOML = [
    ("rules = 3", "'rules' is a section"),
    ("[rules]\ntimer = 3", "the key 'rules.timer' is unknown"),
    ("[weather]\nrain = 1", "the key 'weather' is unknown"),
    ("[population.work]\ndropout = 'none'", "population.work.dropout = 'none' is no number"),
    ("[population.availability]\nzones = [1]", "zones = [1] are no time zones"),
    ("[population.availability]\nnight = 1", "'population.availability.night' is a section"),
    ("[population", "is not TOML"),
]


@pytest.mark.parametrize(("text", "says"), TOML, ids=[says for _, says in TOML])
def test_wrong_settings_name_the_key(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(text)
    result = invoke(f"simulate {SMALL} --settings {tmp_path / 'wrong.toml'}")
    assert result.exit_code == 2, result.output
    assert says in result.stderr


def test_timers_are_simulated_until_the_days_run_out() -> None:
    line = "plan timer --mechanism tree --population 20k --rounds 400 --report-goal 25 --simulate --noise-at 25"
    found = answer(f"{line} --acceptable-days 4 --zcdp 1.5")
    hours = [each["timer_hours"] for each in found["timers"]]
    assert hours == list(range(24, 24 * len(hours) + 1, 24)) and len(hours) >= 2
    assert all(each["days"] <= 4 for each in found["timers"])
    separations = [each["min_separation"] for each in found["timers"]]
    best = found["timers"][hours.index(found["largest_separation_timer_hours"])]
    assert best["min_separation"] == max(separations)
    for each in found["timers"]:
        assert each["realised_rounds_between"] >= each["rounds_between"]
    first = answer("simulate --population 20k --rounds 400 --report-goal 25 --timer-hours 24 --most-days 4")
    assert first["promised_by_timer"]["min_separation"] == separations[0]
    table = invoke(f"{line} --acceptable-days 4").stdout
    assert "<- largest" in table and f"{separations[0] - 1}" in table
