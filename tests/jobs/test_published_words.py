"""A stranger with the published report alone: the words follow from the votes, and whatever is changed is found."""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.statements.every_training import places
from tests.support.discovery.typed_words import SETTINGS, asked, write_clients

from tacit.discovery.rounds import step_content
from tacit.errors import InputError
from tacit.jobs.statement import Verification, verify
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import PROVED
from tacit.privacy.local_supports import SUPPORTS
from tacit.records import json_ready
from tacit.statements import DiscoveryFacts
from tacit.statements.local_releases import digest_of_outputs
from tacit.statements.statement import statement as statement_of

ANONYMOUS = replace(SETTINGS, anonymity=Anonymity(k=20, delta=1e-3))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report folder of a run, far from the run."""
    folder = tmp_path_factory.mktemp("published")
    asked(write_clients(folder), folder / "run", ANONYMOUS)
    shutil.copytree(folder / "run" / "report", folder / "report")
    shutil.rmtree(folder / "run")
    return folder / "report"


@pytest.fixture
def forged(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "report"))


def edit(folder: Path, change: Callable[[dict[str, Any]], None], *files: str) -> None:
    for name in files:
        record = json.loads((folder / name).read_text())
        change(record)
        (folder / name).write_text(json.dumps(record))


def failing(found: Verification) -> list[str]:
    return [line.name for line in found.failed]


def restated(folder: Path, change: Callable[[dict[str, Any]], None] = lambda facts: None) -> None:
    """What a careful forger does: outputs digested anew, and a statement made of the changed facts."""
    record = json.loads((folder / "record.json").read_text())
    steps = record["released"]["steps"]
    facts = copy.deepcopy(record["statement"]["facts"])
    change(facts)
    digests = ((f"{name}.json", sha(step_content(output))) for name, output in steps.items())
    facts["outputs"] = digest_of_outputs(record["released"]["settings"], digests)
    stated = json_ready(statement_of(DiscoveryFacts.from_record(facts)).to_record())
    record["statement"] = stated
    record["figures"] |= {name: stated[name] for name in ("guarantee", "anonymity")}
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "statement.json").write_text(json.dumps(stated))
    edit(folder, lambda shown: shown.update({name: stated[name] for name in ("guarantee", "anonymity")}), "report.json")


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_stranger_derives_epsilon_and_words_from_the_report_alone(published: Path) -> None:
    found = verify(published)
    assert found.holds and found.run is None, found.failed
    names = {line.name for line in found.lines}
    assert {"guarantee.central_epsilon_item", "list.pass-1-layer-01", "list.counting", "list.words"} <= names
    restated_the_same = json.loads((published / "record.json").read_text())
    assert {row["word"] for row in restated_the_same["found"]} == {"covid", "selfie"}


def test_restating_what_is_true_changes_nothing(forged: Path) -> None:
    restated(forged)
    assert verify(forged).holds, verify(forged).failed


def test_an_altered_list_is_found(forged: Path) -> None:
    def other(record: dict[str, Any]) -> None:
        record["found"][0]["word"] = "covfefe"

    edit(forged, other, "record.json", "report.json")
    assert failing(verify(forged)) == ["list.words"]


def test_a_list_altered_for_programs_alone_is_found(forged: Path) -> None:
    edit(forged, lambda shown: shown["found"].pop(), "report.json")
    assert failing(verify(forged)) == ["list.report.json"]


def test_a_word_that_no_layer_kept_is_found_though_all_else_was_made_to_fit(forged: Path) -> None:
    def other(record: dict[str, Any]) -> None:
        step = next(each for each in record["released"]["steps"].values() if "covid" in each.get("words", []))
        step["words"][step["words"].index("covid")] = "covfe"
        for row in record["found"]:
            row["word"] = row["word"].replace("covid", "covfe")

    edit(forged, other, "record.json")
    assert "list.outputs" in failing(verify(forged))
    restated(forged)
    failed = failing(verify(forged))
    assert any(name.startswith("list.pass-1-layer") for name in failed) and "list.words" in failed


def test_votes_below_the_threshold_are_found_though_all_else_was_made_to_fit(forged: Path) -> None:
    def other(record: dict[str, Any]) -> None:
        step = next(each for each in record["released"]["steps"].values() if "selfie" in each.get("words", []))
        step["word_votes"][-1] = 2
        for row in record["found"]:
            row["votes"] = 2 if row["word"] == "selfie" else row["votes"]

    edit(forged, other, "record.json")
    restated(forged)
    assert any(name.startswith("list.pass-1-layer") for name in failing(verify(forged)))


def test_an_altered_threshold_is_found(forged: Path, published: Path) -> None:
    def lower(facts: dict[str, Any]) -> None:
        facts["releases"][0]["least_votes"] -= 1

    with pytest.raises(InputError, match="the thresholds of the layers promise"):
        restated(forged, lower)  # no statement follows

    def higher(facts: dict[str, Any]) -> None:
        facts["releases"][0]["least_votes"] += 1

    restated(forged, higher)
    assert failing(verify(forged))[:1] == ["list.pass-1-layer-01"]
    assert "least_votes" in (verify(forged).failed[0].complaint or "")

    def none(record: dict[str, Any]) -> None:
        del record["released"]["settings"]["anonymity"]

    again = Path(shutil.copytree(published, forged.parent / "again"))
    edit(again, none, "record.json")
    assert "list.settings" in failing(verify(again))


def test_an_altered_epsilon_is_found(forged: Path) -> None:
    def stated(record: dict[str, Any]) -> None:
        record["guarantee"]["local_epsilon_item"] = 1.0

    edit(forged, stated, "statement.json")
    assert "guarantee.local_epsilon_item" in failing(verify(forged))

    def smaller(facts: dict[str, Any]) -> None:
        for release in facts["releases"]:
            known = SUPPORTS[PROVED[release["randomizer"]]](release["domain"], 5.9)
            release |= {"local_epsilon": 5.9, "own_support": known.p, "other_support": known.q, "least_votes": 10**4}
            release["least_votes"] = 1500 if release["what"] == "prefix votes" else 0

    restated(forged, smaller)
    failed = verify(forged).failed
    assert failed[0].name == "list.pass-1-layer-01"
    assert "local_epsilon" in (failed[0].complaint or "") or "least_votes" in (failed[0].complaint or "")


@given(data=st.data())
def test_any_other_value_anywhere_in_the_record_is_found(published: Path, data: st.DataObject) -> None:
    record = json.loads((published / "record.json").read_text())
    *place, last = data.draw(st.sampled_from([path for path in places(record) if path != ("version",)]))
    holder: Any = record
    for key in place:
        holder = holder[key]
    old = holder[last]
    new: Any = data.draw(st.none() | st.booleans() | st.integers(-9, 9999) | st.text(max_size=4) | st.just([]))
    if new == old and type(new) is type(old):
        return
    holder[last] = new
    (published / "record.json.kept").write_bytes((published / "record.json").read_bytes())
    try:
        (published / "record.json").write_text(json.dumps(record))
        assert not verify(published).holds, (*place, last)
    finally:
        (published / "record.json.kept").rename(published / "record.json")


def test_what_is_no_published_discovery_is_refused(published: Path, forged: Path) -> None:
    edit(forged, lambda record: record.pop("released"), "record.json")
    with pytest.raises(InputError, match="of a version before"):
        verify(forged)
    with pytest.raises(InputError, match="published report of a discovery"):
        verify(published / "statement.json", plan="00" * 32)
    assert failing(verify(published, plan="00" * 32)) == ["list.device"]
