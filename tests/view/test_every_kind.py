"""Every kind of run has a page, released and exact, that says what its report says."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.jobs.jobs_with_runs import RUNS
from tests.support.training.tiny import tiny_cache
from tests.support.view.looking import Parsed, client, tree

from tacit.federation.kinds import KINDS, loaded
from tacit.reports.record_files import read_records
from tacit.runs import Run
from tacit.view.rows import answer

pytestmark = pytest.mark.long  # a run of each kind takes most of a minute to make


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """One of each kind, as small as it can be."""
    folder = tmp_path_factory.mktemp("kinds")
    cache = tiny_cache(folder / "cache")
    for name, job in RUNS.items():
        job.call(cache, folder / "runs" / name, lambda event: None)
    return {name: folder / "runs" / name for name in RUNS}


def test_every_kind_has_a_run_here() -> None:
    assert set(RUNS) == set(KINDS)


@pytest.mark.parametrize("simulation", [False, True])
@pytest.mark.parametrize("kind", RUNS)
def test_the_page_of_a_kind(kind: str, simulation: bool, runs: Mapping[str, Path]) -> None:
    folder = runs[kind].parent
    asked, before = client(folder, simulation=simulation), tree(folder)
    answered = asked.get(f"/run/0/{kind}")
    assert answered.status_code == 200, answered.text
    text = Parsed(answered.text).text
    record = asked.get(f"/run/0/{kind}?format=json").json()
    assert (record["kind"], record["state"]) == (kind, "finished") and record["answer"]
    with Run.open(runs[kind], read_only=True) as run:
        records = read_records(run) if KINDS[kind].records is None else loaded(KINDS[kind].records or "")(run)
    maker, exact = loaded(KINDS[kind].page), simulation and records.exact is not None
    if exact or records.released is not None:
        page = maker.page(records.exact) if exact else maker.released_page(records.released)
        assert record["answer"] == answer(page.title, page.blocks) and " ".join(page.title.split()) in text
    else:
        assert "Nothing of this run may be published" in text
    assert tree(folder) == before


def test_all_are_listed_with_their_answers(runs: Mapping[str, Path]) -> None:
    folder = next(iter(runs.values())).parent
    asked = client(folder)
    while (found := asked.get("/?format=json").json())["waiting"]:
        time.sleep(0.05)
    listed = {row["place"]: row for row in found["runs"]}
    assert {f"0/{kind}" for kind in RUNS} <= listed.keys()
    for kind in RUNS:
        assert listed[f"0/{kind}"]["kind"] == kind and listed[f"0/{kind}"]["answer"]
    assert any(place.startswith("0/tune/runs/") for place in listed), "the trials of a tuning are runs, too"
    only = asked.get("/?format=json&search=discover").json()["runs"]
    assert [row["kind"] for row in only] == ["discover"]


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.statement is not None])
def test_the_statement_of_a_kind_holds_and_a_changed_one_does_not(kind: str, runs: Mapping[str, Path]) -> None:
    asked = client(runs[kind].parent)
    while (found := asked.get(f"/statement/0/{kind}?format=json")).status_code == 202:
        time.sleep(0.05)
    record = found.json()
    assert record["ok"] and record["holds"], [line for line in record["lines"] if not line["holds"]]
    assert len(record["lines"]) > 10
    statement = runs[kind] / "report" / "statement.json"
    before = statement.read_bytes()
    try:
        statement.write_bytes(before.replace(b'"title"', b'"titel"', 1))
        while (changed := asked.get(f"/statement/0/{kind}")).status_code == 202:
            time.sleep(0.05)
        assert "FAILS" in Parsed(changed.text).text
    finally:
        statement.write_bytes(before)


def test_a_discovery_shows_the_trie_and_says_first_that_it_was_simulated(runs: Mapping[str, Path]) -> None:
    asked = client(runs["discover"].parent)
    page = asked.get("/run/0/discover").text
    text = Parsed(page).text
    assert "The trie as it grew" in text and "prefixes kept" in text and "After step" in text
    assert 0 < page.index("RESAMPLED USERS") < page.index('class="answer"'), "before any figure"


def test_runs_of_several_kinds_are_laid_side_by_side_by_their_answers(runs: Mapping[str, Path]) -> None:
    asked = client(runs["train"].parent)
    text = Parsed(asked.get("/compare?run=0/train&run=0/discover").text).text
    assert "discover" in text and "Curves are laid over each other where all runs train" in text
    for places in ((), ("0/train",), ("0/train", "0/train"), [f"0/{at}" for at in range(30)]):
        assert asked.get("/compare?" + "&".join(f"run={each}" for each in places)).status_code == 422
    trials = [row["place"] for row in asked.get("/?format=json&search=tune/runs").json()["runs"]]
    both = asked.get("/compare?" + "&".join(f"run={each}" for each in trials))
    assert both.status_code == 200 and "server.learning_rate" in both.text
    assert "Accuracy on test clients" not in both.text
    exact = client(runs["train"].parent, simulation=True).get("/compare?" + "&".join(f"run={each}" for each in trials))
    assert "Accuracy on test clients" in exact.text
