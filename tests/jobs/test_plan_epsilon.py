"""Which epsilon populations afford, as a job: its table, its figure, its record, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import InputError
from tacit.jobs.plan.epsilon import LOUDEST, EpsilonResult, plan_epsilon
from tacit.planning.affordable import PlannedTraining
from tacit.planning.judgement import FreeModel
from tacit.progress import Advanced, Event
from tacit.reports.blocks import Table
from tacit.reports.figure import Line


@pytest.fixture(scope="module")
def found() -> EpsilonResult:
    return plan_epsilon([30, 3_000], training=PlannedTraining(rounds=40), mechanism="tree")


def test_a_row_for_each_population_and_a_column_for_each_share(found: EpsilonResult) -> None:
    (table,) = [block for block in found.blocks() if isinstance(block, Table)]
    assert [row[0] for row in table.rows] == ["30", "3,000"]
    assert table.rows[0][-1] == f">{LOUDEST:,.0f}"  # 30 people afford nothing
    few, many = found.to_record()["answers"]
    assert few["epsilon_half"] < few["epsilon_works"] < few["epsilon_public"]
    assert many["epsilon_works"] < few["epsilon_works"]
    assert found.columns["population"] == [30, 3_000]
    assert json.loads(json.dumps(found.to_record())) == found.to_record()


def test_the_figure_has_a_curve_for_each_population(found: EpsilonResult, tmp_path: Path) -> None:
    curves = {label for _, label, _, _ in found.figure().rows()}
    assert curves == {"30 clients", "3,000 clients", "90% is kept"}
    found.save_figure(tmp_path / "epsilon.svg")
    assert (tmp_path / "epsilon.svg").is_file() and "90% are kept by" in found.figure().alt


def test_a_page_shows_the_name_of_a_text_and_obeys_none(found: EpsilonResult, tmp_path: Path) -> None:
    text = "novels <script>alert(1)</script> \x1b[2J \u202egnp"
    free = FreeModel(weights={"n-gram": 1.0}, text=text, top1=0.2, network=0.15, sentences=50)
    page = replace(found, free=free).write_report(tmp_path / "page").html.read_text()
    assert "novels" in page and "<script" not in page and "&lt;script&gt;" in page
    assert "\x1b" not in page and "\u202e" not in page
    assert "Without any noise such a run gains nothing over the best free model" in page


def test_a_curve_over_rounds_ends_in_what_was_measured(found: EpsilonResult) -> None:
    rounds = next(each for each in found.figures() if each.name == "rounds")
    curve = next(mark for mark in rounds.panels[0].marks if isinstance(mark, Line))
    asked = found.answers[0].works
    assert curve.x == (40.0, 80.0, 160.0), "fewer than 40 rounds were never measured"
    assert curve.y[0] == pytest.approx(asked) and curve.y[0] < curve.y[1] < curve.y[2]


def test_it_says_how_far_it_is() -> None:
    heard: list[Event] = []
    plan_epsilon([30, 40], training=PlannedTraining(rounds=4), mechanism="independent", progress=heard.append)
    assert [each.done for each in heard if isinstance(each, Advanced)] == [1, 2]


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no population is given"):
        plan_epsilon([])
    with pytest.raises(InputError, match="devices=0"):
        plan_epsilon([0])
    with pytest.raises(InputError, match="no-such"):
        plan_epsilon([10], mechanism="no-such")
