"""`tacit report` and `tacit compare`: what people and programs are told, and damaged folders in one line."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.of_runs import invoke, values_of
from tests.support.made_runs import write_run

from tacit.privacy import Tree
from tacit.privacy.rounding import rounded_up


def test_people_see_the_labels_the_headline_and_where_the_report_is(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=7)
    shown = values_of("report", path)
    published, whole = path / "report" / "report.html", path / "simulation" / "report.html"
    assert (shown["files"]["html"], shown["simulation"]["files"]["html"]) == (str(published), str(whole))
    text = invoke("report", path).stdout
    assert text.splitlines()[-2:] == [
        f"read (exact, keep it to yourself): {whole}",
        f"publish (what was released, and its statement): {published}",
    ]
    figures = ("7 of 20", "epsilon at delta 1e-10, realised", rounded_up(shown["realised"]["zcdp"]), "SIMULATION ONLY")
    for words in ("UNFINISHED: 7 of 20 rounds are done; go on with `tacit resume", *figures):
        assert words in text


def test_people_see_runs_side_by_side(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", strategy=Tree(), name="tree"), write_run(tmp_path / "b", strategy=None)
    shown = values_of("compare", a, b, "--out", tmp_path / "figures")
    assert shown["figure"] == str(tmp_path / "figures" / "compare-b.png") and Path(shown["figure"]).is_file()
    assert shown["runs"][1]["realised"]["zcdp"] == "inf"
    result = invoke("compare", a, b)
    for words in (
        "NOTE: B, made by hand (b): NON-PRIVATE",
        "Settings that differ",
        "name  A: tree; B: made by hand",
        "MaxP",
        "tree",
        "infinite",
        f"figure: {a}/simulation/compare-b.png",
    ):
        assert words in result.stdout


def ruin_nothing(path: Path) -> None:
    path.mkdir()


def ruin_text(path: Path) -> None:
    path.mkdir()
    (path / "run.db").write_text("not a database, but long enough to look at " * 40)


def ruin_foreign(path: Path) -> None:
    path.mkdir()
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("CREATE TABLE metadata (name TEXT, value TEXT)")
        database.execute("INSERT INTO metadata VALUES ('format', '\"tacit run 99\"')")
    database.close()


def ruin_recipe(path: Path) -> None:
    write_run(path, strategy=Tree())
    (path / "settings.toml").write_text("name = ")


def ruin_facts(path: Path) -> None:
    write_run(path, strategy=Tree(), participation={"rounds": 3})


def ruin_rounds(path: Path) -> None:
    write_run(path, strategy=Tree())
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("DROP TABLE journal")
    database.close()


def ruin_ledger(path: Path) -> None:
    write_run(path, strategy=Tree(), guarantee={"strategy": None, "clip_norm": 1.0, "noise_multiplier": 0.0})


@pytest.mark.parametrize(
    "ruin",
    [ruin_nothing, ruin_text, ruin_foreign, ruin_recipe, ruin_facts, ruin_rounds, ruin_ledger],
    ids=lambda ruin: ruin.__name__.removeprefix("ruin_"),
)
def test_a_foreign_or_damaged_folder_is_refused_in_one_line(ruin: Any, tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", strategy=Tree())
    path = tmp_path / "run"
    ruin(path)
    for words in (("report", path), ("compare", path, whole), ("compare", whole, path)):
        result = invoke(*words)
        assert result.exit_code == 2, result.output
        assert result.stdout == "" and result.stderr.count("\n") == 1
    if ruin in (ruin_nothing, ruin_text, ruin_foreign, ruin_facts):
        result = invoke("account", "run", path)
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.output


@pytest.mark.parametrize("count", [2, 3, 6])
def test_eighty_columns_suffice_for_six_runs(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is whole within the window; only sentences, paths and lists of settings are broken into lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tacit.cli.console.console.width", 80, raising=False)
    monkeypatch.setattr("tacit.jobs.report.render", lambda figure, form: b"")
    for number in range(count):
        write_run(Path(f"run-{number}"), strategy=Tree(), noise=6.0 + number, name=f"name {number}", rounds=20 + number)
    result = invoke("compare", *(f"run-{number}" for number in range(count)))
    assert result.exit_code == 0, result.output
    assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= 80, result.stdout


def test_the_command_says_first_what_the_page_says_first(tmp_path: Path) -> None:
    lines = invoke("report", write_run(tmp_path / "run", strategy=Tree())).stdout.splitlines()
    (said,) = [
        at for at, line in enumerate(lines) if line.startswith("After 20 rounds of 4 clients the model suggests")
    ]
    assert said == 1 and lines[0].startswith("SIMULATION ONLY")
