"""Which list of cells suits a population: as plain loops weigh it, longer where noise is smaller; public text alone."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.support.planning.zipf import WORDS, sentences
from tests.support.training.tiny import tiny_cache

import tacit
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError
from tacit.planning.cells import cells_for
from tacit.planning.counts import FINENESS, passages_of
from tacit.text.vocabulary import SPECIALS

NGram = tuple[str, ...]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    folder = tmp_path_factory.mktemp("public")
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    texts = TextsOf({f"text {n}": sentences(n, 90) for n in range(12)}, description="public text of a test")
    return tacit.import_data(texts, folder / "cache", vocabulary=VocabularyChoice(word_list=folder / "words.txt"))


def passages_by_hand(public: Cache) -> list[Counter[NGram]]:
    """The n-grams of one, two and three words of each made-up client."""
    found = []
    for text in passages_of(public):
        own: Counter[NGram] = Counter()
        at = 0
        for length in text.lengths:
            sentence = [WORDS[id - SPECIALS] for id in text.words[at : at + length]]
            at += int(length)
            for size in (1, 2, 3):
                own.update(tuple(sentence[begin : begin + size]) for begin in range(len(sentence) - size + 1))
        found.append(own)
    return found


@pytest.mark.parametrize(("clients", "rho"), [(2_000, 0.05), (60_000, 0.5)])
def test_units_are_weights_of_public_text_in_the_norm_of_a_passage(clients: int, rho: float, public: Cache) -> None:
    found = cells_for(public, clients=clients, rho=rho)
    passages, listed = passages_by_hand(public), found.cells
    words = sum(sum(count for ngram, count in each.items() if len(ngram) == 1) for each in passages)
    typed: Counter[NGram] = sum(passages, Counter())
    weights: dict[NGram, float] = {}
    for length, part in enumerate(found.parts, start=1):
        own = [ngram for ngram in listed.ngrams if len(ngram) == length]
        assert bool(own) == bool(part)
        raw = {ngram: (typed[ngram] / words) ** -found.power for ngram in own}
        squares = [sum((each[ngram] * raw[ngram]) ** 2 for ngram in own) for each in passages]
        scale = math.sqrt(part / np.mean(squares)) if own else 0.0
        weights |= {ngram: scale * raw[ngram] for ngram in own}
    norms = [math.sqrt(sum((each[ngram] * weights[ngram]) ** 2 for ngram in weights)) for each in passages]
    expected = [max(1, round(FINENESS / float(np.median(norms)) * weights[ngram])) for ngram in listed.ngrams]
    assert np.abs(np.array(listed.units) - expected).max() <= 1
    assert listed.norm == FINENESS and listed.provenance.kind == "public"
    assert all(typed[ngram] >= 2 for ngram in listed.ngrams)


def test_less_noise_makes_a_longer_list_of_which_more_is_believed(public: Cache) -> None:
    few, many = cells_for(public, clients=200, rho=0.01), cells_for(public, clients=10**5, rho=0.5)
    assert len(many.cells.ngrams) > len(few.cells.ngrams) and sum(many.worth) > sum(few.worth)
    assert cells_for(public, clients=200, rho=0.01).cells == few.cells, "the same of the same"
    assert len(few.cells.ngrams) == len(set(few.cells.ngrams))


def test_what_cannot_be_planned_is_refused(public: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is clients', and what is chosen by it would tell of it"):
        cells_for(tiny_cache(tmp_path / "private"), clients=100, rho=1.0)
    with pytest.raises(InputError, match="hides every count of 2 clients"):
        cells_for(public, clients=2, rho=1e-9)
    with pytest.raises(InputError, match="more than a cell of 32 bits can count"):
        cells_for(public, clients=1 << 33, rho=1.0)
