"""Runs side by side: what differs, at which price, and what cannot be compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.made_runs import note, write_adaptive_run, write_run

from tacit.errors import InputError
from tacit.jobs.account.run import account_run
from tacit.jobs.report import compare, report
from tacit.jobs.statement import statement
from tacit.privacy import Tree
from tacit.privacy.strategy import PUBLISHED_BLT
from tacit.reports.comparison import _warnings
from tacit.reports.summary import summarise
from tacit.runs import Run


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.jobs.report.render", lambda figure, form: b"\x89PNG" + repr(figure).encode())


def test_compare_shows_what_differs(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=Tree(), name="tree")
    b = write_run(tmp_path / "b", strategy=PUBLISHED_BLT["b400"], name="blt", rounds=10)
    both = compare(a, b)
    shown = both.to_record()
    assert shown["figure"] == str(a / "simulation" / "compare-b.png")
    assert Path(shown["figure"]).read_bytes().startswith(b"\x89PNG")
    assert shown["page"] == str(a / "simulation" / "compare-b.html")
    whole = Path(shown["page"]).read_text(encoding="utf-8")
    assert "<svg" in whole and "Settings that differ" in whole and "<script" not in whole and "style=" not in whole
    with Run.open(a) as run:
        assert {"simulation/compare-b.html", "simulation/compare-b.png"} <= run.files.keys()
    assert shown["settings"] == {"name": ["tree", "blt"], "rounds.rounds": [20, 10]}
    first, second = shown["runs"]
    assert list(first["validation"]) == ["0", "5", "10", "15", "20"] and list(second["validation"]) == ["0", "5", "10"]
    assert first["realised"]["zcdp"] == report(a).to_record()["realised"]["zcdp"]
    assert second["planned"]["epsilon"] == report(b).to_record()["planned"]["epsilon"]
    assert shown["warnings"] == [] and shown["origins"] == {}
    page = both._repr_html_()
    for words in ("Settings that differ", "rounds.rounds", "A: 20; B: 10", "MaxP", "tree", "blt"):
        assert words in page
    assert "".join(f'<th scope="col">{each}</th>' for each in ("rounds", 0, 5, 10)) + "</tr>" in page.replace("\n", "")


@pytest.mark.parametrize("count", [2, 3, 6])
def test_any_number_of_runs(count: int, tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(count)]
    paths = [write_run(tmp_path / name, strategy=Tree(), noise=6.0 + at) for at, name in enumerate(names)]
    made = compare(*paths)
    shown = made.to_record()
    assert [each["path"] for each in shown["runs"]] == [str(path) for path in paths]
    costs = [each["realised"]["zcdp"] for each in shown["runs"]]
    assert costs == sorted(costs, reverse=True) and len(set(costs)) == count
    assert {mark.label for mark in made.figure.panels[0].marks} == {
        f"{letter}: made by hand ({name})" for letter, name in zip("ABCDEF", names, strict=False)
    }
    assert Path(shown["figure"]).name == (
        "compare-run-1.png" if count == 2 else f"compare-run-1-and-{count - 2}-more.png"
    )


def test_the_gain_over_the_first_is_taken_client_by_client(tmp_path: Path) -> None:
    a, b, c = (write_run(tmp_path / name, strategy=Tree()) for name in "abc")
    for path, model in ((b, 0.3), (c, 0.2)):
        with Run.open(path) as run, run.locked():
            note(run, model=model, exact=1.0 if path == c else 0.0)
    first, second, third = compare(a, b, c).to_record()["runs"]
    assert first["gain_over_first"] is None
    value, low, high = first["gain_over_best_free_model"]
    assert low < value < high and value == pytest.approx(0.05, abs=0.01)
    value, low, high = second["gain_over_first"]
    assert low < value < high and value == pytest.approx(0.1 + 2 * 0.5 / 390)
    assert third["gain_over_first"] is None, "it counted other words"
    assert "+10.3 points, " in compare(a, b)._repr_html_()


def test_compare_says_what_cannot_be_compared(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=None)
    data = {
        "cache": "c",
        "source": "s",
        "vocabulary_sha256": "1",
        "vocabulary_size": 9,
        "clients": 3,
        "cache_digest": "2",
    }
    b = write_run(tmp_path / "b", strategy=Tree(), done=0, data=data, delta=1e-6, key_source="fixed seed 3")
    both = compare(a, b, out=tmp_path / "figures")
    shown = both.to_record()
    assert shown["figure"] == str(tmp_path / "figures" / "compare-b.png")
    notes = "\n".join(shown["warnings"])
    for words in (
        "NON-PRIVATE",
        "NOTHING RELEASED YET",
        "different caches",
        "vocabularies",
        "delta 1e-10",
        "B's 1e-06",
    ):
        assert words in notes
    first, second = shown["runs"]
    assert first["realised"]["zcdp"] == float("inf") and second["realised"] is None
    assert shown["origins"]["clients' text"] == ["made <by> hand", "s"]
    assert shown["origins"]["keys from"] == ["operating system", "fixed seed 3"]
    assert "infinite" in both._repr_html_()


@pytest.mark.parametrize(
    ("key", "value", "warned"), [("baselines", False, False), ("every", 3, False), ("clients", 7, True)]
)
def test_only_who_judges_makes_evaluations_different(key: str, value: Any, warned: bool, tmp_path: Path) -> None:
    with (
        Run.open(write_run(tmp_path / "a", strategy=Tree())) as a,
        Run.open(write_run(tmp_path / "b", strategy=Tree())) as b,
    ):
        first, second = summarise(a), summarise(b)
    changed = replace(second.metadata, evaluation={**second.metadata.evaluation, key: value})
    said = _warnings([first, replace(second, metadata=changed)], first.delta)
    assert ("the runs were evaluated on different numbers of clients or sentences" in said) is warned


def test_every_epsilon_is_at_one_delta(tmp_path: Path) -> None:
    """That of the run with the smallest, where the promises of all hold."""
    deltas = (1e-6, 1e-9, 1e-8)
    paths = [write_run(tmp_path / str(at), strategy=Tree(), delta=delta) for at, delta in enumerate(deltas)]
    shown = compare(*paths).to_record()
    assert shown["delta"] == 1e-9
    for which in ("planned", "realised"):
        assert len({each[which]["epsilon"] for each in shown["runs"]}) == 1
    assert shown["runs"][0]["realised"]["epsilon"] == account_run(paths[1]).to_record()["realised"]["epsilon"]


def test_every_command_gives_a_run_its_epsilon_at_the_same_delta(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), delta=1e-7)
    other = write_run(tmp_path / "other", strategy=Tree(), delta=1e-7)
    reported, account, stated = report(path), account_run(path).to_record(), statement(path).figures
    found: list[Any] = [
        account["realised"]["epsilon"],
        stated["realised"]["epsilon"],
        reported.to_record()["realised"]["epsilon"],
        reported.to_record()["simulation"]["realised"]["epsilon"],
        compare(path, other).to_record()["runs"][0]["realised"]["epsilon"],
    ]
    assert len(set(found)) == 1
    assert {account["delta"], stated["delta"], reported.to_record()["realised"]["delta"]} == {1e-7}


def test_the_cost_is_that_of_everything_released(tmp_path: Path) -> None:
    a, b = write_adaptive_run(tmp_path / "a"), write_run(tmp_path / "b", strategy=Tree())
    assert compare(a, b).to_record()["runs"][0]["realised"]["zcdp"] == report(a).to_record()["realised"]["zcdp"]


def test_one_run_and_one_twice_are_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", strategy=Tree())
    with pytest.raises(InputError, match="1 runs were named, and 2 to 26 can be laid side by side"):
        compare(a)
    with pytest.raises(InputError, match="named twice"):
        compare(a, tmp_path / ".." / tmp_path.name / "a")


def test_runs_are_named_one_by_one_or_in_one_list(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, strategy=Tree()) for name in ("one", "two")]
    with Run.open(paths[1]) as opened:
        assert compare(paths).to_record() == compare(*paths).to_record() == compare((paths[0], opened)).to_record()
    for wrong in ([paths[:1]], [paths, paths], [paths, paths[0]], [[]], [[paths]]):
        with pytest.raises(InputError):
            compare(*wrong)
