"""Approximate k-anonymity: exact tails, Lemma 1 against simulations of what it speaks of, and of the algorithm."""

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.top_l import fewer_than, top_l_anonymity

from tacit.errors import InputError
from tacit.privacy.local_anonymity import absolute_threshold, rare_votes_tail
from tacit.privacy.local_subset_selection import SubsetNumbers

KNOWN: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "local_dp.json").read_text())


def slow_tail(p: float, q: float, reports: int, k: int, votes: int) -> float:
    """Every number of supporters among the k - 1 and among the others, with 40 digits."""
    with mpmath.workdps(40):

        def term(number: int, trials: int, chance: float) -> Any:
            chosen = mpmath.binomial(trials, number)
            return chosen * mpmath.mpf(chance) ** number * (1 - mpmath.mpf(chance)) ** (trials - number)

        own = [term(number, k - 1, p) for number in range(k)]
        others = [term(number, reports - k + 1, q) for number in range(reports - k + 2)]
        return float(
            sum(a * b for i, a in enumerate(own) for j, b in enumerate(others) if i + j >= votes) or mpmath.mpf(0)
        )


class TestThreshold:
    @given(
        reports=st.integers(1, 40),
        share=st.floats(0, 1),
        p=st.floats(0.05, 1),
        ratio=st.floats(0, 0.99),
        part=st.floats(0, 1.1),
    )
    @settings(max_examples=100, deadline=None)
    def test_tail(self, reports: int, share: float, p: float, ratio: float, part: float) -> None:
        k, votes, q = 1 + int(share * (reports - 1)), int(part * reports), p * ratio
        found, exact = rare_votes_tail(p, q, reports, k, votes), slow_tail(p, q, reports, k, votes)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-6) + 1e-300

    @given(
        reports=st.integers(1, 30),
        share=st.floats(0, 1),
        q=st.floats(0.001, 0.4),
        power=st.floats(-12, -0.1),
    )
    @settings(max_examples=60, deadline=None)
    def test_is_the_smallest_that_keeps_the_promise(self, reports: int, share: float, q: float, power: float) -> None:
        k, p, delta = 1 + int(share * (reports - 1)), 0.5, 10**power
        found = absolute_threshold(p, q, reports, k, delta)
        assert slow_tail(p, q, reports, k, found) <= delta
        assert found == 0 or slow_tail(p, q, reports, k, found - 1) > delta * (1 - 1e-6)

    @pytest.mark.parametrize("k", [1, 50, 200_000])
    def test_large_numbers_against_simulation(self, k: int) -> None:
        """Ten million reports, accepted at the threshold for 1 percent, refused for one vote in a thousand less."""
        numbers, reports, draws = SubsetNumbers(100_001, 6.0), 10**7, 200_000
        generator = np.random.default_rng(6)
        votes = generator.binomial(k - 1, numbers.p, draws) + generator.binomial(reports - k + 1, numbers.q, draws)
        threshold = absolute_threshold(numbers.p, numbers.q, reports, k, 0.01)
        kept = (votes >= threshold).mean()
        assert abs(kept - 0.01) < 5 * math.sqrt(0.01 / draws)
        assert (votes >= threshold - threshold // 200).mean() > 0.01 + 5 * math.sqrt(0.01 / draws)

    def test_nothing_reaches_more_votes_than_reports(self) -> None:
        assert absolute_threshold(1.0, 0.2, 10, 10, 1e-9) == 11

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            ((0.5, 0.1, 10, 0, 0.1), "k=0"),
            ((0.5, 0.1, 10, 11, 0.1), "k=11"),
            ((0.5, 0.1, 0, 1, 0.1), "reports=0"),
            ((0.1, 0.5, 10, 2, 0.1), "p=0.1, q=0.5"),
            ((0.5, 0.1, 10, 2, 0.0), "delta=0"),
            ((0.5, 0.1, 10, 2, 1.0), "delta=1"),
        ],
        ids=repr,
    )
    def test_bad_input(self, arguments: tuple[float, float, int, int, float], named: str) -> None:
        with pytest.raises(InputError, match=named):
            absolute_threshold(*arguments)


class TestLemma1:
    @pytest.mark.parametrize("row", KNOWN["k_anonymity"], ids=lambda row: f"{row['eps']}-{row['N']}-{row['k']}")
    def test_golden_values(self, row: dict[str, Any]) -> None:
        """Their T is a grid's value that is practically never fallen below; ours the best of all, with its price."""
        found = top_l_anonymity(row["d"], float(row["eps"]), row["N"], row["L"], row["k"])
        assert found <= row["delta_w2"] * 1.5 + 1e-9
        assert found >= row["delta_w2"] * 0.75

    @pytest.mark.parametrize(("domain", "epsilon", "reports", "prefixes", "k"), [(400, 2.0, 900, 20, 4)])
    def test_against_simulation(self, domain: int, epsilon: float, reports: int, prefixes: int, k: int) -> None:
        """At least Pr[Y >= T] as the lemma has it, which is at least what the algorithm itself does."""
        numbers, draws = SubsetNumbers(domain, epsilon), 120
        generator = np.random.default_rng(7)
        bound = top_l_anonymity(domain, epsilon, reports, prefixes, k)
        kept_by_lemma, kept_by_algorithm = 0.0, 0
        for _ in range(draws):
            of_others = _frequencies(domain - 1, numbers.size - 2, reports, generator)
            threshold = int(np.sort(of_others)[-prefixes])
            kept_by_lemma += rare_votes_tail(numbers.p, numbers.q, reports, k, threshold) / draws
            kept_by_algorithm += _is_kept(numbers, reports, prefixes, k, generator)
        assert kept_by_lemma <= bound < 2 * kept_by_lemma
        assert kept_by_algorithm / draws <= bound + 4 * math.sqrt(bound / draws)
        # A bound for ten times fewer kept prefixes would be wrong.
        assert top_l_anonymity(domain, epsilon, reports, prefixes // 10, k) < kept_by_lemma

    def test_many_thresholds_many_values(self) -> None:
        """Chernoff's bound on how many values reach a threshold, against independent values, its hardest case."""
        generator = np.random.default_rng(1)
        reached = generator.binomial(500, 0.04, 200_000)
        for wanted in (8, 12, 16):
            assert (reached < wanted).mean() <= fewer_than(wanted, 500, np.array([0.04]))[0]
        assert fewer_than(25, 500, np.array([0.04]))[0] == 1.0

    def test_small_subsets_promise_nothing(self) -> None:
        assert top_l_anonymity(100, 10.0, 1000, 5, 3) == 1.0

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="prefixes=0"):
            top_l_anonymity(100, 1.0, 1000, 0, 3)


def _frequencies(values: int, size: int, reports: int, generator: np.random.Generator) -> Any:
    order = np.argsort(generator.random((reports, values)), axis=1)[:, :size]
    return np.bincount(order.ravel(), minlength=values)


def _is_kept(numbers: SubsetNumbers, reports: int, prefixes: int, k: int, generator: np.random.Generator) -> bool:
    """Subset Selection written out: value 0 has k - 1 holders, all others hold the last value."""
    own = np.where(np.arange(reports) < k - 1, 0, numbers.domain - 1)
    named = generator.random(reports) < numbers.p
    draws = generator.random((reports, numbers.domain))
    draws[np.arange(reports), own] = np.where(named, -1.0, 2.0)
    chosen = np.argsort(draws, axis=1)[:, : numbers.size]
    votes = np.bincount(chosen.ravel(), minlength=numbers.domain)
    return bool(votes[0] >= np.sort(votes)[-prefixes])
