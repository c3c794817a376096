"""One budget spent in two ways, and what a population can hope for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.planning.discovery import DiscoveryPlan, findable, findable_by_each, population_for, user_level
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_shuffling import shuffle_epsilon
from tacit.privacy.local_subset_selection import SubsetNumbers


class TestOneBudgetTwoWays:
    @pytest.mark.parametrize(("epsilon", "contributions", "count"), [(4.0, 3, 0), (4.0, 3, 900), (9.0, 2, 2000)])
    def test_deviations_against_simulation(self, epsilon: float, contributions: int, count: int) -> None:
        users, domain, draws, K = 2_000, 500, 20_000, contributions
        found = user_level(epsilon, K, users, domain, count)
        generator = np.random.default_rng(12)
        whole, shared = SubsetNumbers(domain, epsilon), SubsetNumbers(domain, epsilon / K)
        holders = generator.binomial(count, 1 / K, draws)  # those who happen to send the word
        votes = generator.binomial(holders, whole.p) + generator.binomial(users - holders, whole.q)
        one = K * (votes - users * whole.q) / (whole.p - whole.q)
        votes = generator.binomial(count, shared.p, draws) + generator.binomial(users * K - count, shared.q, draws)
        every = (votes - users * K * shared.q) / (shared.p - shared.q)
        for estimates, deviation in ((one, found.one_word_deviation), (every, found.all_words_deviation)):
            assert estimates.mean() == pytest.approx(count, abs=5 * deviation / math.sqrt(draws))
            assert estimates.std() == pytest.approx(deviation, rel=0.03)
            assert estimates.std() != pytest.approx(1.1 * deviation, rel=0.03)

    def test_rare_words_are_better_served_by_one(self) -> None:
        assert user_level(8.0, 5, 10**6, 10_001, 100.0).better == "one word"

    def test_a_word_that_nearly_everybody_has_by_all(self) -> None:
        assert user_level(8.0, 5, 10**6, 10_001, 9.5e5).better == "all words"

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="contributions=0"):
            user_level(1.0, 0, 10, 10, 1.0)
        with pytest.raises(InputError, match="count=11"):
            user_level(1.0, 1, 10, 10, 11.0)


PLAN = DiscoveryPlan(domain=1001, groups=10, contributions=1, anonymity=Anonymity(k=5, delta=1e-3), central_delta=1e-8)


class TestFindable:
    def test_findable_count_is_found_in_half_of_all_cases(self) -> None:
        made = findable(40_000, 4.0, PLAN)
        assert made.users_per_group == made.reports == 4_000
        numbers, generator, draws = SubsetNumbers(1001, 4.0), np.random.default_rng(2), 40_000
        for count, low, high in ((made.findable_count, 0.45, 0.55), (made.sure_count, 0.995, 1.0), (4.0, 0.0, 2e-3)):
            holders = round(count)
            votes = generator.binomial(holders, numbers.p, draws) + generator.binomial(
                4_000 - holders, numbers.q, draws
            )
            assert low <= (votes >= made.least_votes).mean() <= high

    def test_larger_populations_find_rarer_words_and_hide_better(self) -> None:
        rows = findable_by_each((10**5, 10**6, 10**7), (4.0,), PLAN)
        shares = [row.findable_share for row in rows]
        assert all(share is not None for share in shares)
        assert sorted(shares, reverse=True) == shares  # type: ignore[type-var]
        assert rows[0].central.epsilon_upper > rows[2].central.epsilon_upper
        assert rows[2].to_record()["findable_share"] == shares[2]

    def test_populations_too_small_find_nothing(self) -> None:
        assert findable(500, 0.5, PLAN).findable_share is None
        with pytest.raises(InputError, match="population=9"):
            findable(9, 4.0, PLAN)
        with pytest.raises(InputError, match="k=5"):
            findable(30, 4.0, PLAN)

    def test_the_worse_of_the_first_and_the_largest_question_is_promised(self) -> None:
        """At a local epsilon of 8 it is the first, whose hundred answers hide worse; its attack shows that it is so."""
        made = findable(10**6, 8.0, PLAN).central
        first, largest = (shuffle_epsilon(8.0, 10**5, 1e-8, "subset-selection", domain) for domain in (101, 1001))
        assert made == first and first.epsilon_lower > largest.epsilon_upper

    @pytest.mark.parametrize(("epsilon", "contributions"), [(4.0, 1), (8.0, 60)])
    def test_the_smallest_population_with_a_guarantee(self, epsilon: float, contributions: int) -> None:
        plan = replace(PLAN, contributions=contributions)
        population = population_for(0.315, epsilon, plan)
        assert population % plan.groups == 0
        assert findable(population, epsilon, plan).central.epsilon_upper <= 0.315
        assert findable(int(0.99 * population), epsilon, plan).central.epsilon_upper > 0.315
