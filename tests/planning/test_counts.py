"""Which sums suit a population: as plain Python chooses them of the same passages, larger where noise is smaller."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.planning.zipf import WORDS, sentences
from tests.support.training.tiny import tiny_cache

import tacit
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.errors import InputError
from tacit.planning import counts
from tacit.planning.counts import BELIEVED, COVERED, LENGTH, proposed_sums, sums_for
from tacit.text.vocabulary import SPECIALS

EASY = 50.0  # rho of nearly no noise


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    folder = tmp_path_factory.mktemp("public")
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    texts = TextsOf({f"text {n}": sentences(n, 90) for n in range(12)}, description="public text of a test")
    return tacit.import_data(texts, folder / "cache", vocabulary=VocabularyChoice(word_list=folder / "words.txt"))


def passages_by_hand(public: Cache) -> list[list[list[int]]]:
    """Made-up clients: the sentences of each, as places in the vocabulary."""
    found = []
    for text in np.random.default_rng(LENGTH).permutation(public.manifest.clients):
        ids, lengths = public.sentences(int(text))
        own: dict[int, list[list[int]]] = {}
        begin = typed = 0
        for length in lengths:
            sentence = [int(each) - SPECIALS for each in ids[begin + 1 : begin + length - 1]]
            begin, typed = begin + int(length), typed + len(sentence)
            own.setdefault(typed // LENGTH, []).append(sentence)
        found += [own[number] for number in sorted(own) if number < typed // LENGTH and own[number]]
    return found


def by_hand(public: Cache, clients: int, rho: float) -> dict[str, tuple[int, float]]:
    """N and the norm of each sum, in loops."""
    passages = passages_by_hand(public)
    vectors: dict[str, list[Counter[tuple[int, ...]]]] = {
        "word_counts": [Counter((word,) for sentence in each for word in sentence) for each in passages],
        "word_pairs": [Counter(pair for sentence in each for pair in pairwise(sentence)) for each in passages],
    }
    found: dict[str, tuple[int, float]] = {}
    for parts in (2, 1):
        for name, of_all in vectors.items():
            norms = [math.sqrt(sum(count**2 for count in each.values())) for each in of_all]
            norm = max(1.0, round(float(np.median(norms)), 1))
            rates: dict[tuple[int, ...], float] = {}
            for vector, own in zip(of_all, norms, strict=True):
                for cell, count in vector.items():
                    rates[cell] = rates.get(cell, 0.0) + count * min(1.0, norm / own) / len(passages)
            stddev = norm * math.sqrt(parts / (2 * rho))
            kept = {cell: rate * clients for cell, rate in rates.items() if rate * clients >= BELIEVED * stddev}
            if kept:
                words = next(
                    n
                    for n in range(1, len(WORDS) + 1)
                    if sum(count for cell, count in kept.items() if max(cell) < n)
                    >= COVERED * sum(kept.values()) * (1 - 1e-12)
                )
                found[name] = (len(WORDS) if name == "word_counts" else max(2, words), norm)
        if len(found) == parts or parts == 1:
            return {name: each for name, each in found.items() if parts == 2 or name == "word_counts"}
        found = {}
    return found


@settings(max_examples=20, deadline=None)
@given(clients=st.integers(2, 10**6), rho=st.floats(1e-4, 100))
def test_it_is_what_plain_loops_choose(clients: int, rho: float, public: Cache) -> None:
    chosen = {str(each): (each.words, each.norm) for each in sums_for(public, clients=clients, rho=rho)}
    assert chosen == by_hand(public, clients, rho)


def test_more_people_and_less_noise_count_more_words(public: Cache) -> None:
    few, many, loud = (sums_for(public, clients=n, rho=rho) for n, rho in ((60, 0.1), (6_000, 0.1), (60, 1e-6)))
    assert loud == () and [str(each) for each in many] == ["word_counts", "word_pairs"]
    assert all(a.words <= b.words and a.norm == b.norm for a, b in zip(few, many, strict=False))
    assert many[0].words == len(WORDS) and few[1].words < many[1].words


def test_both_sums_have_an_equal_part_and_fit_into_a_cell(public: Cache) -> None:
    for clients in (100, 10**6, 10**7):
        words, pairs = sums_for(public, clients=clients, rho=EASY)
        assert words.norm * words.unit == pytest.approx(pairs.norm * pairs.unit, rel=0.2 if clients > 10**6 else 0.02)
        for each in (words, pairs):
            each.layout.check_reports(clients)
    with pytest.raises(InputError, match="may sum to"):
        sums_for(public, clients=10**9, rho=EASY)


def test_the_noise_is_that_of_a_run_of_them(public: Cache) -> None:
    """What is said of a cell's noise is what `Guarantee` gives the very sums, in occurrences."""
    found = proposed_sums(public, clients=5_000, rho=0.3)
    norms = [each.norm * each.unit for each in found.sums]
    for each in found.sums:
        released = math.hypot(*norms) / math.sqrt(2 * 0.3) / each.unit
        assert found.stddev[str(each)] == pytest.approx(released, rel=0.02)
        assert 0 < found.believed[str(each)] <= each.cells


def test_a_norm_below_everybodys_costs_no_signal() -> None:
    """Of no cell the signal over the norm grows with the norm, and it stays the same below every client's own."""
    vectors = np.random.default_rng(1).poisson(2.0, (50, 30)).astype(float) * np.arange(1, 51)[:, None]
    own = np.linalg.norm(vectors, axis=1)
    at = [((vectors * np.minimum(1, norm / own)[:, None]).sum(axis=0) / norm) for norm in (1, own.min(), 200, 900)]
    assert np.allclose(at[0], at[1])
    assert all((later <= before + 1e-12).all() for before, later in pairwise(at))


def test_what_cannot_be_planned_is_refused(public: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is clients', and what is chosen by it would tell of it"):
        sums_for(tiny_cache(tmp_path / "private"), clients=9, rho=1.0)
    with pytest.raises(InputError, match="clients=1 says nothing about many"):
        sums_for(public, clients=1, rho=1.0)
    for rho in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="releases nothing or promises nothing"):
            sums_for(public, clients=9, rho=rho)
    monkeypatch.setattr(counts, "LENGTH", 10**6)
    with pytest.raises(InputError, match="has no 1000000 words of one piece"):
        sums_for(public, clients=9, rho=1.0)
