"""The first sentences of a training's page: what was learned, at what price, and whether that is good."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_runs import RUNS, note, write_run

from tacit.errors import InputError, RunError
from tacit.jobs.report import report
from tacit.privacy import Tree
from tacit.reports.blocks import Labels
from tacit.reports.drawing import STROKES
from tacit.reports.figure import Rule
from tacit.reports.judgement import NO_BETTER, WORSE, cost, judged, judgement_labels, opening
from tacit.reports.summary import RunSummary, summarise
from tacit.reports.train import figures, page
from tacit.reports.train_record import records_of
from tacit.runs import MetricEntry, Run

RUNGS_OF_MADE_RUNS = ("public n-gram", "best free model", "clients' n-gram")


def summary_of(path: Path, **noted: float | bool) -> RunSummary:
    """Of a finished run with these shares of the words suggested first, by the model and by its start."""
    write_run(path, strategy=Tree())
    with Run.open(path) as run:
        with run.locked():
            note(run, **noted)  # type: ignore[arg-type]
        return summarise(run)


def record_of(summary: RunSummary) -> Mapping[str, Any]:
    """What the page of everything is made from."""
    found = records_of(summary).exact
    assert found is not None
    return found


def test_one_sentence_says_what_was_learned_at_what_cost_and_the_next_whether_that_is_good(tmp_path: Path) -> None:
    said = opening(summary_of(tmp_path / "run"))
    learned, good = said.split(". ")
    assert learned.startswith(
        "After 20 rounds of 4 clients the model suggests the next word first in 4.5% of known words"
    )
    assert "the price is epsilon" in learned and "at delta 1e-10" in learned
    assert good.startswith(
        "Its top-1 accuracy is better than the best free model, public n-grams mixed with its start (+5.1"
    )
    assert "its start (+10.3 points, +9.3 to +11.2)" in good and "n-grams of the clients'" not in good


@pytest.mark.parametrize(
    ("model", "start", "labels", "words"),
    [
        (0.2, 0.1, (), "better than the best free model"),
        (0.1, 0.1, (NO_BETTER,), "no different, as far as these clients tell, from its start"),
        (0.1, 0.2, (WORSE,), "worse than the best free model, public n-grams mixed with its start"),
    ],
)
def test_a_model_is_judged_by_the_interval_of_its_gain(
    model: float, start: float, labels: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    summary = summary_of(tmp_path / "run", model=model, start=start)
    assert tuple(label.name for label in judgement_labels(summary)) == labels
    assert words in judged(summary)
    shown = next(block for block in page(record_of(summary)).blocks if isinstance(block, Labels))
    assert tuple(label.name for label in shown.labels)[1 : 1 + len(labels)] == labels, "at the very top"


def test_of_a_run_under_way_the_curve_tells(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=7)
    with Run.open(path) as run:
        with run.locked():
            run.record_metrics([MetricEntry(step=0, split="validation", name="top1_accuracy", value=0.14)])
        (label,) = judgement_labels(summarise(run))
        assert "validation clients, so far" in opening(summarise(run))
    assert label.name == WORSE and "top-1 2.24% after 7 rounds, and 14.00% before the first (random)" in label.meaning


@pytest.mark.parametrize("kind", RUNS)
def test_every_page_opens_with_a_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.reports.drawing.render", lambda figure, form: b"")
    files = report(write_run(tmp_path / "run", **RUNS[kind]))
    summary = summarise(Run.open(tmp_path / "run"))
    assert cost(summary) in files.page.record["opening"]
    assert opening(summary) == files.everything.page.record["opening"]
    assert ("no noise was added" in opening(summary)) == (not summary.private and summary.released > 0)
    terms = "What these words mean" in files.markdown.read_text()
    assert terms == summary.private


def test_without_public_text_the_page_says_why_there_are_no_n_grams_of_it(tmp_path: Path) -> None:
    summary = summary_of(tmp_path / "run", public=False)
    shown = page(record_of(summary))
    text = repr(shown.blocks)
    assert "There are no n-grams of public text beside it: the run began from no model of public text." in text
    assert "best free model" not in text and "public n-gram" not in shown.record["beside"]


def test_what_no_promise_covers_is_said_so_in_the_table(tmp_path: Path) -> None:
    text = repr(page(record_of(summary_of(tmp_path / "run"))).blocks)
    assert "n-grams of the clients' same sentences, WITHOUT PRIVACY" in text
    assert "n-grams of the same public text, WITHOUT" not in text


def test_a_run_of_before_the_ladder_keeps_its_trigram(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    with Run.open(path) as run, run.locked():
        noted = run.notes["comparison_models"]
        del noted["rungs"]
        for split in ("test", "validation"):
            sums = noted[split]["sums"]
            sums["trigram"] = sums.pop("best free model")
            del sums["public n-gram"], sums["clients' n-gram"]
        run.note("comparison_models", noted)
    with Run.open(path) as run:
        assert "a trigram on the same public text" in judged(summarise(run))


def test_first_words_that_were_not_counted_are_not_spoken_of(tmp_path: Path) -> None:
    with_them, without = (
        page(record_of(summary_of(tmp_path / str(counted), public=False, first_words=counted)))
        for counted in (True, False)
    )
    assert "first words" in repr(with_them.blocks) and "first words" not in repr(without.blocks)


def test_the_comparison_models_stand_in_the_record_with_their_intervals(tmp_path: Path) -> None:
    beside = page(record_of(summary_of(tmp_path / "run"))).record["beside"]
    assert set(beside) == {"public_text", *RUNGS_OF_MADE_RUNS, "model", "start", "first words"}
    value, low, high = beside["start"]["top1_accuracy"]
    assert low < value < high and value == pytest.approx(0.1 + 2 * 1.5 / 390)
    assert beside["start"]["gain"].value == pytest.approx(0.1 + 2 * 0.5 / 390)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("comparison_models", {"trigram": "novels"}),
        ("comparison_models", 3),
        ("suggestions", [{"prompt": 3, "words": []}]),
        ("suggestions", {"I will see": []}),
    ],
)
def test_damaged_notes_are_refused(name: str, damaged: object, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    with pytest.raises(RunError), Run.open(path) as run, run.locked():
        run.note(name, damaged)
        summarise(Run.open(path))


def test_sums_of_other_clients_are_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree())
    with Run.open(path) as run, run.locked():
        noted = run.notes["comparison_models"]
        noted["test"]["predicted"] = [1.0]
        run.note("comparison_models", noted)
    with pytest.raises(InputError, match=r"sums of \[4\] clients beside 1"):
        summarise(Run.open(path))


def test_each_thing_beside_a_curve_has_a_stroke_that_is_one(tmp_path: Path) -> None:
    summary = summary_of(tmp_path / "run")
    rules = [
        mark for figure in figures(summary) for panel in figure.panels for mark in panel.marks if isinstance(mark, Rule)
    ]
    called = {rule.label: rule.stroke for rule in rules}
    assert called["best free model"] != called["first words, always"]
    assert all(0 <= stroke < len(STROKES) for stroke in called.values())
