"""`tacit vocab extend`: old ids stay, noise that no text is cut into stays out, and the origin of the words is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tacit.cli.vocab import app, is_word
from tacit.discovery.campaign_folder import CampaignFolder
from tacit.discovery.device import Terms
from tacit.discovery.settings import Campaign
from tacit.keyboard.vocabulary import Provenance, Vocabulary

OLD = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))
FOUND = [
    {"word": "selfie", "votes": 50, "count": 40.0},
    {"word": "ab;", "votes": 90, "count": 80.0},
    {"word": "don't", "votes": 60, "count": 70.0},
    {"word": "of", "votes": 10, "count": 9.0},
    {"word": "<url>", "votes": 10, "count": 9.0},
    {"word": "brunch", "votes": 99, "count": 20.0},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A vocabulary and a finished campaign of real users beside it."""
    return finished(tmp_path)


def finished(tmp_path: Path, found: list[dict[str, Any]] = FOUND, **simulated: Any) -> Path:
    OLD.save(tmp_path / "vocabulary.json")
    campaign = Campaign(terms=Terms(local_epsilon=8.0, contributions=2), users_per_layer=10, **simulated)
    asked = {**campaign.to_record(), "vocabulary_sha256": OLD.sha256, "population_sha256": "0"}
    with CampaignFolder.opened(tmp_path / "run", asked) as opened:
        opened.write_result("result.json", json.dumps({"found": found}))
    return tmp_path


def extend(folder: Path, *more: object) -> Result:
    given = ["--vocabulary", folder / "vocabulary.json", "--words", folder / "run", "--out", folder / "new.json", *more]
    return CliRunner().invoke(app, ["extend", *(str(part) for part in given)])


def test_words_follow_the_old_ones_by_their_counts(folder: Path) -> None:
    shown = extend(folder)
    assert shown.exit_code == 0, shown.output
    new = Vocabulary.load(folder / "new.json")
    assert new.words == ("the", "of", "don't", "selfie", "brunch")
    assert new.provenance.kind == "discovered"
    assert new.provenance.description == "two words; and words discovered with local epsilon 8 a report, 2 a user"
    assert "2 that no text is ever cut into" in shown.stdout


def test_the_most_frequent_only(folder: Path) -> None:
    facts = json.loads(extend(folder, "--most", 1, "--json").stdout)
    assert (facts["added"], facts["not_words"]) == (1, 2)
    assert Vocabulary.load(folder / "new.json").words[-1] == "don't"


def test_a_simulation_says_that_nothing_protects_its_clients(tmp_path: Path) -> None:
    assert extend(finished(tmp_path, seed=4)).exit_code == 0
    provenance = Vocabulary.load(tmp_path / "new.json").provenance
    assert provenance.kind == "private" and "nothing is promised" in provenance.description


@pytest.mark.parametrize("more", [["--most", 0], ["--split", "nobody", "--data", "nowhere"]])
def test_refusals_are_one_line(folder: Path, more: list[object]) -> None:
    refused = extend(folder, *more)
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1


def test_nothing_to_add_is_refused(tmp_path: Path) -> None:
    refused = extend(finished(tmp_path, found=[{"word": "a;b", "votes": 3}]))
    assert refused.exit_code == 2 and "found no word" in refused.stderr
    assert not (tmp_path / "new.json").exists()


def test_a_word_is_what_text_is_cut_into() -> None:
    words = {"don't": True, "3.14": True, "ab;": False, "a b": False, "<url>": False, "": False, "\x0b": False}
    assert {word: is_word(word, lowercase=False) for word in words} == words
    assert not is_word("Oslo", lowercase=True)
