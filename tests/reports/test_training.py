"""The report of a training run: of every state that a run can be in, with its labels first."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_runs import DELTA, REPORT_GOAL, RUNS, write_adaptive_run, write_run

from tacit.jobs.report import report
from tacit.privacy import Guarantee, Participation, Tree
from tacit.privacy.rounding import rounded_up
from tacit.statements.verify import verify

EXPECTED: dict[str, tuple[str, ...]] = {
    "non-private": ("NON-PRIVATE",),
    "unfinished": ("UNFINISHED",),
    "empty": ("NOTHING RELEASED YET",),
    "empty and non-private": ("NOTHING RELEASED YET", "NON-PRIVATE"),
    "stands in": ("EXTRAPOLATED",),
    "private words": ("VOCABULARY FROM PRIVATE TEXT",),
    "fixed seed": ("FIXED SEED",),
    "broken promise": ("WEAKER THAN PLANNED",),
}
DRAWN = {"tree", "blt", "non-private", "unfinished", "empty", "empty and non-private", "one round"}


FIRST = "SIMULATION ONLY"  # of the labels in `simulation`


def written(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `tacit report --json` prints of everything, and what simulation/report.json holds."""
    files = report(path)
    assert files.simulation is not None
    return files.to_record()["simulation"], json.loads(files.simulation.json.read_text())


@pytest.mark.parametrize("kind", RUNS)
def test_every_run_has_a_report(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind not in DRAWN:  # drawing takes most of the time, and these have no figures of their own
        monkeypatch.setattr("tacit.reports.train.figures", lambda summary: ())
    path = write_run(tmp_path / "run", **RUNS[kind])
    shown, record = written(path)
    assert shown["labels"] == [FIRST, *EXPECTED.get(kind, ())]
    assert record["labels"] == shown["labels"]
    assert record["rounds"] == len(record["per_round"]["loss"])
    html, markdown = (Path(shown["files"][name]).read_text() for name in ("html", "markdown"))
    for text in (unescape(html), markdown):
        for label in shown["labels"]:
            assert text.index(label) < text.index("How well it predicts"), "labels stand first"
        for number in ("1.", "2a.", "2b.", "2c.", "2d.", "3a.", "3b.", "3c.", "3d."):
            assert (f"{number} " in text) or shown["rounds"] == 0
        assert ("Nothing was released" in text) == (shown["rounds"] == 0)
        assert "made <by> hand" in text.replace("\\<", "<")
    assert "made <by> hand" not in html, "what others wrote is escaped"
    figures = [Path(figure) for figure in shown["files"]["figures"]]
    assert all(figure.read_bytes().startswith(b"\x89PNG") for figure in figures)
    assert all(f"({figure.name})" in markdown for figure in figures)
    assert len(figures) == (0 if kind not in DRAWN else 1 if shown["rounds"] == 0 else 4 if shown["private"] else 3)
    assert not [each for each in (path / "simulation").iterdir() if each.name.startswith(".")], "no drafts left"
    published = json.loads((path / "report" / "report.json").read_text())
    page = (path / "report" / "report.md").read_text()
    assert ("This page may be published" in page) == shown["private"]
    assert published["labels"] == shown["labels"][1:] and FIRST not in page
    statement = path / "report" / "statement.json"
    assert statement.exists() == (shown["rounds"] > 0)
    if statement.exists():
        assert all(line.holds for line in verify(json.loads(statement.read_text())))


@pytest.mark.long  # where figures are printed, and not only composed
@pytest.mark.parametrize(
    "kind", ["tree", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("unfinished", "one round"))]
)
def test_its_figures_are_printed(kind: str, tmp_path: Path) -> None:
    files = report(write_run(tmp_path / "run", **RUNS[kind]))
    assert files.figures and all(figure.read_bytes().startswith(b"\x89PNG") for figure in files.figures)


def test_the_page_is_in_one_file(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    html, again = report(path).everything.html.read_text(), report(path).everything.html.read_text()
    assert again == html, "the same folder writes the same page"
    assert re.findall(r'(?:src|href)="', html) == [] and html.count('<svg class="figure"') == 4
    assert "<script" not in html and "url(" not in html and "@import" not in html
    assert 'name="viewport"' in html


def test_headline_figures_are_those_of_the_run(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    shown, _ = written(path)
    happened = Participation(rounds=20, min_separation=5, max_participations=4)
    guarantee = Guarantee(participation=happened, strategy=Tree(), clip_norm=1.0, noise_multiplier=6.0)
    assert shown["realised"]["zcdp"] == guarantee.zcdp
    assert shown["realised"]["epsilon"] == guarantee.epsilon(DELTA)
    assert shown["test"]["top1_accuracy"] == pytest.approx(0.01 * 20**0.5)
    assert shown["clients_per_second"] == pytest.approx(REPORT_GOAL / 0.5)
    assert shown["dropped_clients"] == 10
    assert shown["clipped_last_round"] == 0.5
    assert shown["loss_last_round"] == pytest.approx(4.1)


def test_what_is_extrapolated_stands_apart(tmp_path: Path) -> None:
    """13 times the cohort at the same noise on the mean has 1/169 of the zCDP; never where the run's stands."""
    path = write_run(tmp_path / "run", strategy=Tree(), extrapolate_to=52)
    shown, _ = written(path)
    larger = shown["extrapolated"]["realised"]["zcdp"]
    assert larger == pytest.approx(shown["realised"]["zcdp"] / 169)
    html = (path / "simulation" / "report.html").read_text()
    apart = html.index('class="card other"')
    assert html.count("if its model were as good") == 1
    section = (path / "simulation" / "report.md").read_text().partition("## Privacy statement\n")[2].lstrip()
    assert section.startswith("**EXTRAPOLATED"), "the statement begins with its labels, wherever it is quoted"
    assert html.index("if its model were as good") > apart > html.index("3d. Transparency")
    assert rounded_up(larger) not in html[: html.index("Privacy statement")]


def test_adaptive_clipping_is_in_every_figure(tmp_path: Path) -> None:
    shown, record = written(write_adaptive_run(tmp_path / "run", extrapolate_to=52))
    zcdp = shown["realised"]["zcdp"]
    assert (
        zcdp == shown["planned"]["zcdp"] == pytest.approx(sum(each["zcdp"] for each in shown["realised"]["sequences"]))
    )
    assert shown["extrapolated"]["in_all"]["realised"]["zcdp"] == pytest.approx(zcdp / 13**2)
    assert [each["rounds"] for each in record["spent"]] == list(range(21))
    assert record["spent"][-1]["zcdp"] == zcdp
    assert record["per_round"]["clip_norm"] == [1.0] * 8 + [2.5] * 12
    assert len(record["per_round"]["dropped"]) == len(record["per_round"]["clip_estimate"]) == 20
    assert "clip_norm.png" in record["figures"]


def test_failing_adaptive_clipping_stands_among_the_labels(tmp_path: Path) -> None:
    losses = [4.0 if round < 2 else 60.0 + round % 3 for round in range(20)]
    path = write_adaptive_run(tmp_path / "run", losses=losses, clipped=[1.0] * 20, estimates=range(1, 21))
    assert "ADAPTIVE CLIPPING FAILED, clip norm exploding" in written(path)[0]["labels"]
    assert "begin a new run with a smaller clipping.initial" in (path / "simulation" / "report.md").read_text()


def test_a_notebook_shows_the_page(tmp_path: Path) -> None:
    shown = report(write_run(tmp_path / "run", strategy=Tree()), out=tmp_path / "elsewhere")._repr_html_()
    assert "made by hand" in shown and "Planned and realised" in shown and "<html" not in shown
    assert (tmp_path / "elsewhere" / "report" / "report.html").is_file()
    assert (tmp_path / "elsewhere" / "simulation" / "report.html").is_file()
    assert not list((tmp_path / "run" / "report").iterdir())
