"""Without --simulation a live page says nothing that `tacit report` would not publish."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_runs import RUNS, write_adaptive_run, write_run
from tests.support.view.looking import client, everywhere

from tacit.jobs.report import report
from tacit.runs import Run
from tacit.view.rows import Rows

Write = Callable[..., Path]
STATES: dict[str, Write] = {
    **{
        kind: lambda path, values=values, **more: write_run(path, **{**values, **more}) for kind, values in RUNS.items()
    },
    "adaptive": write_adaptive_run,
}


QUICK = {
    "tree": True,
    "non-private": False,
    "unfinished": False,
    "one round": True,
    "adaptive": True,
}  # reported or not


@pytest.fixture
def unsealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the seal, which changes with everything that it seals."""
    monkeypatch.setattr(Run, "seals", property(lambda run: ["5e" * 32] * (run.steps_done + 1)))
    monkeypatch.setattr("tacit.reports.drawing.render", lambda figure, kind: repr(figure).encode())


def unmarked(text: str) -> str:
    """Without marks, which change with each time of writing and say nothing."""
    return re.sub(r'(data-mark="|"mark": ?")[0-9a-f]+', r"\1", text)


@pytest.mark.usefixtures("unsealed")
@pytest.mark.parametrize(
    ("state", "reported"),
    [
        pytest.param(state, reported, marks=() if reported is quick else pytest.mark.nightly)
        for state, quick in QUICK.items()
        for reported in (False, True)
    ],
)
def test_what_is_exact_changes_no_byte_of_what_is_shown(state: str, reported: bool, tmp_path: Path) -> None:
    """Losses, dropped clients, times, accuracies and the text's digest are others, and every page is the same."""
    found: list[dict[str, str]] = []
    exact_pages: list[str] = []
    for exact in (0.0, 0.3):
        path = STATES[state](tmp_path / "run", exact=exact)
        other = STATES[state](tmp_path / "other", exact=exact)
        for each in (path, other) if reported else ():
            report(each)
        asked = client(tmp_path)
        addresses = [each for each in everywhere(["0/run", "0/other"]) if not each.startswith("/statement")]
        found.append({address: unmarked(asked.get(address).text) for address in addresses})
        exact_pages.append(client(tmp_path, simulation=True).get("/run/0/run").text)
        shutil.rmtree(path)
        shutil.rmtree(other)
    differing = [address for address in found[0] if found[0][address] != found[1][address]]
    assert not differing
    assert exact_pages[0] != exact_pages[1], "the simulation's page shows them"


def test_a_page_says_what_the_report_says(tmp_path: Path) -> None:
    files = report(write_run(tmp_path / "run", **RUNS["tree"]))
    assert files.simulation is not None
    for simulation, written in ((False, files.json), (True, files.simulation.json)):
        asked = client(tmp_path, simulation=simulation)
        record = asked.get("/run/0/run?format=json").json()
        assert record["report"] == json.loads(written.read_text())
        row = asked.get("/?format=json").json()["runs"][0]
        assert row["answer"] == record["answer"] == record["report"]["opening"]
        assert (row["accuracy"] is not None) == simulation
        assert ("keep these pages to yourself" in asked.get("/").text) == simulation


def test_the_best_free_model_stands_beside_the_accuracy(tmp_path: Path) -> None:
    write_run(tmp_path / "run", **RUNS["tree"])
    row = client(tmp_path, simulation=True).get("/?format=json").json()["runs"][0]
    assert row["accuracy"] == pytest.approx(0.01 * 20**0.5) and 0.1 < row["free"] < 0.2 and row["gain"] > 0


@pytest.mark.parametrize("simulation", [False, True])
def test_a_row_of_a_report_is_that_of_the_page(
    simulation: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast path: what report.json gives is what the run itself gives."""
    for kind, values in RUNS.items():
        report(write_run(tmp_path / kind.replace(" ", "-"), **values))

    def rows() -> list[dict[str, Any]]:
        asked = client(tmp_path, simulation=simulation)
        while (found := asked.get("/?format=json&sort=name").json())["waiting"]:
            time.sleep(0.05)
        return sorted(found["runs"], key=lambda row: str(row["place"]))

    fast = rows()
    monkeypatch.setattr(Rows, "_report", lambda self, path, seen: None)
    assert fast == rows()


def test_the_page_of_a_kept_record_is_that_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path: a finished run's page without its journal read is the page with it."""
    for kind in ("tree", "blt", "non-private", "stands in"):
        report(write_run(tmp_path / kind.replace(" ", "-"), **RUNS[kind]))
        asked = client(tmp_path)
        place = f"/run/0/{kind.replace(' ', '-')}"
        fast = unmarked(asked.get(place).text)
        with monkeypatch.context() as patch:
            patch.setattr("tacit.view.looks.kept_record", lambda path, seen: None)
            assert fast == unmarked(client(tmp_path).get(place).text)
