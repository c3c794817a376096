"""`tacit.extend_vocabulary`: old ids stay, noise that no text is cut into stays out, where words come from is said."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.jobs.finished_discovery import finished
from tests.support.discovery.typed_words import KNOWN, SETTINGS, asked

from tacit.errors import InputError, RunError
from tacit.jobs.discover.job import RESULT
from tacit.jobs.vocabulary import extend_file, extend_vocabulary
from tacit.runs import Run
from tacit.text.vocabulary import Vocabulary


def test_words_follow_the_old_ones_by_their_counts(tmp_path: Path) -> None:
    new = extend_vocabulary(KNOWN, finished(tmp_path))
    assert new.words == ("the", "of", "don't", "selfie", "brunch")
    assert new.provenance.kind == "discovered" and new.discovered == ("don't", "selfie", "brunch")
    assert new.provenance.description == "two words; and words discovered with local epsilon 8 a report, 2 a user"


def test_the_most_frequent_only(tmp_path: Path) -> None:
    run = finished(tmp_path)
    assert extend_vocabulary(str(tmp_path / "vocabulary.json"), str(run), most=1).words == ("the", "of", "don't")


def test_a_simulation_says_that_nothing_protects_its_clients(tmp_path: Path) -> None:
    provenance = extend_vocabulary(KNOWN, finished(tmp_path, seed=4)).provenance
    assert provenance.kind == "private" and "nothing is promised" in provenance.description


def test_a_file_is_made_and_never_replaced(tmp_path: Path) -> None:
    run, old, new = finished(tmp_path), tmp_path / "vocabulary.json", tmp_path / "made" / "new.json"
    made = extend_file(old, run, new, most=3)
    assert Vocabulary.load(new) == made.vocabulary and made.vocabulary.provenance.discovered == 3
    record = made.to_record()
    assert (record["added"], record["not_words"], record["provenance"]) == (3, 2, "discovered")
    with pytest.raises(InputError, match="never replaced"):
        extend_file(old, run, new)
    with pytest.raises(InputError, match="another vocabulary"):
        extend_file(new, run, tmp_path / "third.json")
    with pytest.raises(InputError, match="takes no word"):
        extend_file(old, run, tmp_path / "third.json", most=0)
    assert not (tmp_path / "third.json").exists()


def test_what_is_learnt_of_a_result_helps_others(clients: Path, tmp_path: Path) -> None:
    found = asked(clients, tmp_path / "run", replace(SETTINGS, seed=2))
    new = extend_vocabulary(KNOWN, found)
    assert new.words[:2] == KNOWN.words and {"covid", "selfie"} <= set(new.words)
    old = clients / "vocabulary.json"
    made = extend_file(old, found.run.path, tmp_path / "new.json", data=str(clients / "typed.parquet"))
    assert made.vocabulary == new and made.held_out is not None
    assert made.held_out.oov_rate_after < 0.01 < 0.05 < made.held_out.oov_rate_before
    assert made.to_record()["held_out"]["split"] == "test"


def test_nothing_to_add_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no word"):
        extend_vocabulary(KNOWN, finished(tmp_path, found=[{"word": "a;b", "votes": 3}]))


def test_an_unfinished_or_damaged_run_is_refused(tmp_path: Path) -> None:
    run = finished(tmp_path, found=None)
    with pytest.raises(RunError, match="is not finished"):
        extend_vocabulary(KNOWN, run)
    (run / RESULT).write_text("{")
    with Run.open(run) as opened:
        opened.keep_files(RESULT)
    with pytest.raises(RunError, match="is damaged"):
        extend_vocabulary(KNOWN, run)
    with pytest.raises(RunError, match="no run folder"):
        extend_vocabulary(KNOWN, tmp_path)


def test_a_word_is_what_text_is_cut_into() -> None:
    words = {"don't": True, "3.14": True, "ab;": False, "a b": False, "<url>": False, "": False, "\x0b": False}
    assert {word: KNOWN.cuts(word) for word in words} == words
    assert not replace(KNOWN, lowercase=True).cuts("Oslo")


def test_words_that_another_wrote_into_the_result_are_refused(tmp_path: Path) -> None:
    run = finished(tmp_path)
    text = (run / RESULT).read_text()
    (run / RESULT).write_text(text.replace("selfie", "selfies"))
    with pytest.raises(RunError, match=r"result.json' is not what the run wrote"):
        extend_vocabulary(KNOWN, run)
