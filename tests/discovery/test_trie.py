"""One layer grows: the answers with most votes, ended words apart, noise that is no word dropped."""

from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.discovery.question import PrefixQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.discovery.trie import VoteSum, grow
from tacit.text.alphabet import END, Alphabet

ABC = Alphabet("abc")
SECOND = PrefixQuestion(prefixes=("a", "c"), alphabet=ABC, depth=4, found=frozenset({"c"}))
#                  aa ab ac a. ca cb cc c. null
VOTES = np.array([5, 0, 9, 7, 1, 5, 2, 8, 99])


def test_prefixes_and_words_come_by_falling_votes() -> None:
    grown = grow(SECOND, VOTES, limit=20)
    assert dict(zip(grown.prefixes, grown.prefix_votes, strict=True)) == {"ac": 9, "aa": 5, "cb": 5, "cc": 2, "ca": 1}
    assert grown.prefixes == ("ac", "aa", "cb", "cc", "ca")  # no vote, no prefix; equal votes in the question's order
    assert (grown.words, grown.word_votes) == (("a",), (7,))  # "c" was found before


def test_the_limit_counts_null_and_ties_do_not_pass_it() -> None:
    grown = grow(SECOND, VOTES, limit=5)
    assert (grown.prefixes, grown.words) == (("ac", "aa"), ("a",))


def test_known_words_the_empty_word_and_too_few_votes_are_dropped() -> None:
    grown = grow(SECOND, VOTES, limit=20, least_votes=6, known={"a"})
    assert (grown.prefixes, grown.words) == (("ac",), ())
    first = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=4)
    assert grow(first, np.array([1, 1, 1, 9, 1]), limit=9).words == ()


@given(st.lists(st.integers(0, 9), min_size=9, max_size=9), st.integers(1, 12), st.integers(0, 9))
def test_what_is_kept_is_what_algorithm_2_keeps_less_ties(votes: list[int], limit: int, least: int) -> None:
    """Each answer kept has at least the votes of the limit-th; each left out has at most those of any kept."""
    grown = grow(
        PrefixQuestion(prefixes=("a", "c"), alphabet=ABC, depth=4), np.array(votes), limit=limit, least_votes=least
    )
    kept = {*grown.prefixes, *(word + END for word in grown.words)}
    tau = sorted(votes, reverse=True)[min(limit, 9) - 1]
    texts = [SECOND.text_of(answer) for answer in range(8)]
    for text, count in zip(texts, votes, strict=False):
        if text in kept:
            assert count >= max(tau, least, 1)
        elif count > tau:
            assert count < max(least, 1)
    assert len(kept) <= limit


def test_reports_are_summed_and_forgotten() -> None:
    randomizer = LocalReportSettings(local_epsilon=3.0).randomizer_for(9)
    generator = np.random.default_rng(0)
    parts = [randomizer.encode(np.arange(9), generator) for _ in range(3)]
    sums = VoteSum(randomizer)
    total = sums.finish(reduce(sums.add, parts, sums.zero()))
    assert total.reports == 27
    assert total.votes.tolist() == randomizer.votes(np.concatenate(parts)).tolist()
