"""New words by counts: candidates once a client, found above what noise lifts, and learnt by a vocabulary."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError, RunError
from tacit.evaluation.counts.cell_list import CellList
from tacit.evaluation.counts.device_part import StatisticHistogram
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.count.new_words import FALSE_WORDS, candidates, found_words, threshold
from tacit.runs import Run
from tacit.text.vocabulary import Provenance, Vocabulary

KNOWN, NEW = ("the", "of", "a"), tuple(f"nov{a}{b}" for a in "abcde" for b in "klmno")
TYPED = 60  # clients, all of whom type the first new word, and a third the second; nobody the others
LOUD = ReleaseCost(zcdp=0.5, delta=1e-5)  # noise of one client


def vocabulary(words: tuple[str, ...], kind: Any = "public") -> Vocabulary:
    return Vocabulary(words=words, provenance=Provenance(kind=kind, description="a test"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cache]:
    folder = tmp_path_factory.mktemp("words")
    vocabulary(KNOWN).save(folder / "old.json")
    vocabulary((*KNOWN, *NEW)).save(folder / "larger.json")
    typed = {
        f"client {n}": [f"the {NEW[0]} of {NEW[0]}", *([f"a {NEW[1]}"] if n % 3 == 0 else [])] for n in range(TYPED)
    }
    cache = tacit.import_data(
        TextsOf(typed), folder / "cache", vocabulary=VocabularyChoice(file=folder / "larger.json")
    )
    return folder, cache


def counted(world: tuple[Path, Cache], out: Path, *, seed: int | None = None, words_each: int = 2) -> Path:
    made = candidates(world[0] / "old.json", world[0] / "larger.json", out / "words.txt", words_each=words_each)
    settings = CountSettings(cells=made.cells, split_name="train")
    tacit.count(world[1], out / "run", settings=settings, release=LOUD, seed=seed)
    return out / "run"


def test_words_that_many_typed_are_found_and_learnt(world: tuple[Path, Cache], tmp_path: Path) -> None:
    run = counted(world, tmp_path)
    listed = CellList.load(tmp_path / "words.txt")
    assert listed.once and [each[0] for each in listed.ngrams] == list(NEW) and set(listed.units) == {2896}
    with Run.open(run) as opened:
        found = found_words(opened)
    clients = len(world[1].clients("train"))
    assert found[0].word == NEW[0] and abs(found[0].devices - clients) < 8 * found[0].stddev
    assert found[0].stddev == pytest.approx(4096 / 2896)
    assert {each.word for each in found} <= set(NEW) and len(found) <= 4, "23 words that nobody typed stay hidden"
    out = tmp_path / "learnt.json"
    done = CliRunner().invoke(
        app,
        ["vocab", "extend", "--vocabulary", str(world[0] / "old.json"), "--words", str(run), "--out", str(out)],
    )
    assert done.exit_code == 0, done.output
    learnt = Vocabulary.load(out)
    assert learnt.words[: len(KNOWN) + 1] == (*KNOWN, NEW[0]) and learnt.provenance.kind == "discovered"
    assert learnt.discovered == tuple(each.word for each in found)
    assert "counted at central epsilon" in learnt.provenance.description
    said = tacit.statement(run).markdown()
    assert f"25 n-grams of a list (SHA-256 {listed.sha256}; public: a test)" in said


def test_a_fixed_seed_promises_nothing(world: tuple[Path, Cache], tmp_path: Path) -> None:
    learnt = tacit.extend_vocabulary(world[0] / "old.json", counted(world, tmp_path, seed=1))
    assert learnt.provenance.kind == "private" and "fixed seed" in learnt.provenance.description


def test_noise_lifts_few_words_that_nobody_typed() -> None:
    for many in (1, 10, 10_000):
        high = threshold(many, 3.0)
        assert many * (1 - ndtr(high / 3.0)) == pytest.approx(FALSE_WORDS, rel=1e-6)
    draw = np.random.default_rng(1).normal(0, 3.0, (2_000, 100))
    assert 0.02 < (draw > threshold(100, 3.0)).sum() / 2_000 < 0.08
    assert (draw > threshold(100, 1.0)).sum() / 2_000 > 1  # a threshold of less noise lets noise through


def test_a_client_with_many_candidates_counts_each_less(world: tuple[Path, Cache], tmp_path: Path) -> None:
    """Its vector has the norm of one word, however many it typed."""
    run = counted(world, tmp_path, words_each=1, seed=1)
    again = tacit.resume(run)
    exact = again.exact["sums"]["cells"]  # type: ignore[attr-defined]
    both = exact["clients_scaled_down"]
    assert 0 < both < len(world[1].clients("train")) and exact["typed"] > exact["sent"]


def test_what_is_no_list_of_candidates_is_refused(world: tuple[Path, Cache], tmp_path: Path) -> None:
    old, larger = world[0] / "old.json", world[0] / "larger.json"
    vocabulary(KNOWN, "private").save(tmp_path / "private.json")
    vocabulary((*KNOWN, "one", "two"), "private").save(tmp_path / "more.json")
    for first, second, said in (
        (old, tmp_path / "more.json", "were chosen by clients' own text"),
        (larger, old, "0 cells with 0 units make no list"),
        (old, tmp_path / "none.json", "there is no vocabulary"),
    ):
        with pytest.raises(InputError, match=said):
            candidates(first, second, tmp_path / "words.txt")
    with pytest.raises(InputError, match="words_each=0 must lie"):
        candidates(old, larger, tmp_path / "words.txt", words_each=0)
    candidates(old, larger, tmp_path / "words.txt")
    with pytest.raises(InputError, match="says something else"):
        candidates(old, larger, tmp_path / "words.txt", words_each=9)
    listed = CellList.load(tmp_path / "words.txt")
    tacit.count(world[1], tmp_path / "exact", settings=CountSettings(cells=listed, split_name="train"))
    with pytest.raises(RunError, match="has released no counts"):
        tacit.extend_vocabulary(old, tmp_path / "exact")
    words = CountSettings(statistics=(StatisticHistogram.from_text("words:3"),), split_name="train")
    tacit.count(world[1], tmp_path / "other", settings=words, release=LOUD)
    with pytest.raises(InputError, match="counts no list of cells"):
        tacit.extend_vocabulary(old, tmp_path / "other")
