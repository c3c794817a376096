"""Guesses about one run: the chance of so many against the best mechanism there is, found by linear programming."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import bdtrc
from tests.privacy.empirical.mechanisms import coverage_allows

from tacit.errors import InputError
from tacit.privacy import gaussian
from tacit.privacy.empirical.one_run import (
    chance_by_binomial,
    chance_by_curve,
    correct_guesses,
    curve_of_epsilon,
    curve_of_mu,
    epsilon_by_guesses,
    mu_by_guesses,
)

Promise = tuple[tuple[float, float], ...]
# Each promise is (epsilon, delta) at once for several: the last ones nearly mu-GDP, and a little weaker.
PROMISES: list[Promise] = [
    ((0.0, 0.1),),
    ((1.0, 0.0),),
    ((0.5, 0.05),),
    tuple((epsilon, gaussian.delta(epsilon, 1.0)) for epsilon in np.linspace(0, 4, 9)),
]
SMALL = [(1, 1), (1, 2), (2, 2), *(pytest.param(each, 3, marks=pytest.mark.long) for each in (1, 2, 3))]


def best_chance(correct: int, guesses: int, canaries: int, promise: Promise) -> float:
    """The largest probability of `correct` right guesses that a mechanism with the promise allows.

    A mechanism and its auditor are together the probabilities of each answer (in, out or silent for each canary, the
    silent ones so many) for each of the coins: a linear program.
    """
    coins = list(itertools.product((0, 1), repeat=canaries))
    answers = [
        each for each in itertools.product((0, 1, None), repeat=canaries) if each.count(None) == canaries - guesses
    ]
    pairs = [
        (a, b)
        for a in range(len(coins))
        for b in range(len(coins))
        if sum(x != y for x, y in zip(coins[a], coins[b], strict=True)) == 1
    ]
    number, own = len(answers), len(coins) * len(answers)
    excesses = len(pairs) * len(promise)
    rows, bounds = [], []
    for index, ((a, b), (epsilon, delta)) in enumerate(itertools.product(pairs, promise)):
        excess = own + index * number
        for k in range(number):  # P(k | a) - e^epsilon P(k | b) <= excess
            row = np.zeros(own + excesses * number)
            row[a * number + k], row[b * number + k], row[excess + k] = 1, -math.exp(epsilon), -1
            rows.append(row)
            bounds.append(0.0)
        row = np.zeros(own + excesses * number)
        row[excess : excess + number] = 1
        rows.append(row)
        bounds.append(delta)
    gain = np.zeros(own + excesses * number)
    for a, k in itertools.product(range(len(coins)), range(number)):
        gain[a * number + k] = sum(x == y for x, y in zip(coins[a], answers[k], strict=True)) >= correct
    sums = np.zeros((len(coins), own + excesses * number))
    for a in range(len(coins)):
        sums[a, a * number : (a + 1) * number] = 1
    found = linprog(-gain / len(coins), A_ub=np.array(rows), b_ub=bounds, A_eq=sums, b_eq=np.ones(len(coins)))
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("promise", PROMISES, ids=["all or nothing", "pure", "both", "gaussian"])
@pytest.mark.parametrize(("guesses", "canaries"), SMALL)
def test_no_mechanism_beats_the_bounds(promise: Promise, guesses: int, canaries: int) -> None:
    curves = [curve_of_epsilon(*each) for each in promise]
    for correct in range(1, guesses + 1):
        best = best_chance(correct, guesses, canaries, promise)
        by_curve = chance_by_curve(correct, guesses, canaries, lambda with_it: max(curve(with_it) for curve in curves))
        assert best <= by_curve * (1 + 1e-7)
        assert best <= min(chance_by_binomial(correct, guesses, canaries, *each) for each in promise) * (1 + 1e-7)
        if guesses == canaries == 1:  # one coin: the definition itself
            assert by_curve == pytest.approx(best, rel=1e-6)


def test_a_bound_that_leaves_delta_out_is_beaten() -> None:
    """So the comparison with the best mechanism has power."""
    assert best_chance(2, 2, 2, ((0.5, 0.05),)) > 1.02 * chance_by_binomial(2, 2, 2, 0.5, 0.0)


def test_of_pure_privacy_randomized_response_is_the_worst() -> None:
    for correct, guesses in (60, 100), (9, 9), (700, 1000):
        epsilon = epsilon_by_guesses(correct, guesses, 2000, 0.0)
        assert bdtrc(correct - 1, guesses, 1 / (1 + math.exp(-epsilon))) == pytest.approx(0.05, rel=1e-6)
    assert epsilon_by_guesses(50, 100, 100, 0.0) == 0


def of_the_paper(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The chance by arXiv:2305.08846, Theorem 5.2, as its Appendix D computes it, a probability at a time."""
    rate = 1 / (1 + math.exp(-epsilon))

    def at(number: int) -> float:
        return math.comb(guesses, number) * rate**number * (1 - rate) ** (guesses - number)

    steepest, collected = 0.0, 0.0
    for below in range(1, correct + 1):
        collected += at(correct - below)
        steepest = max(steepest, collected / below)
    return min(sum(at(number) for number in range(correct, guesses + 1)) + 2 * canaries * delta * steepest, 1.0)


@given(st.data(), st.floats(0, 4), st.floats(0, 1e-2))
@settings(max_examples=60, deadline=None)
def test_the_paper_shows_no_more_where_tails_are_small(data: st.DataObject, epsilon: float, delta: float) -> None:
    guesses = data.draw(st.integers(1, 40))
    correct, canaries = data.draw(st.integers(0, guesses)), guesses + data.draw(st.integers(0, 50))
    papers = of_the_paper(correct, guesses, canaries, epsilon, delta)
    ours = chance_by_binomial(correct, guesses, canaries, epsilon, delta)
    if delta == 0:
        assert ours == pytest.approx(papers, rel=1e-9)
    elif papers <= 0.5:  # all that a confidence asks for
        assert ours <= papers * (1 + 1e-9)


def test_a_mechanism_that_beats_the_papers_factor() -> None:
    """Of three canaries it names each answer alike but the one that is wrong of all, less often by 0.0875.

    For neighbours the probabilities of an answer differ by 0.0875 * 8 / 7 = 0.1 at most, once each way: it is
    (0, 0.1)-DP. One or more are right with 0.875 + 0.0875, and by the paper's formula with 0.95 at most.
    """
    coins = np.array(list(itertools.product((0, 1), repeat=3)))
    law = np.where((coins[:, None] == 1 - coins[None]).all(axis=2), 1 / 8 - 0.0875, 1 / 8 + 0.0875 / 7)
    assert law.sum(axis=1) == pytest.approx(1)
    neighbours = (coins[:, None] != coins[None]).sum(axis=2) == 1
    distances = np.abs(law[:, None] - law[None]).sum(axis=2) / 2
    assert distances[neighbours] == pytest.approx(0.1)
    any_right = law[(coins[:, None] == coins[None]).any(axis=2)].sum() / 8
    assert any_right == pytest.approx(0.9625)
    assert of_the_paper(1, 3, 3, 0.0, 0.1) == pytest.approx(0.95)
    assert chance_by_binomial(1, 3, 3, 0.0, 0.1) == pytest.approx(0.9625, rel=1e-9)


@given(st.data(), st.floats(0, 4), st.floats(0, 4), st.floats(0, 0.1))
@settings(max_examples=60, deadline=None)
def test_a_weaker_promise_and_fewer_right_are_more_probable(
    data: st.DataObject, one: float, other: float, delta: float
) -> None:
    """Without which the largest refuted epsilon would not be a bound."""
    guesses = data.draw(st.integers(1, 60))
    correct, canaries = data.draw(st.integers(1, guesses)), guesses + data.draw(st.integers(0, 60))
    low, high = sorted((one, other))
    strict = chance_by_binomial(correct, guesses, canaries, low, delta)
    assert strict <= chance_by_binomial(correct, guesses, canaries, high, delta) * (1 + 1e-9) or strict > 0.5
    assert strict <= chance_by_binomial(correct - 1, guesses, canaries, low, delta) * (1 + 1e-9) or strict > 0.5


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_more_right_guesses_show_more(data: st.DataObject) -> None:
    guesses = data.draw(st.integers(2, 60))
    correct, canaries = data.draw(st.integers(0, guesses - 1)), guesses + data.draw(st.integers(0, 60))
    assert mu_by_guesses(correct, guesses, canaries) <= mu_by_guesses(correct + 1, guesses, canaries)
    for delta in (0.0, 1e-3):
        few, many = (epsilon_by_guesses(each, guesses, canaries, delta) for each in (correct, correct + 1))
        assert few <= many
        assert epsilon_by_guesses(correct, guesses, canaries, delta, confidence=0.99) <= few
        assert epsilon_by_guesses(correct, guesses, canaries, 0.01) <= few


@given(st.integers(5, 60), st.floats(0, 3), st.floats(1e-5, 1e-2))
@settings(max_examples=25, deadline=None)
def test_a_mechanism_that_keeps_mu_keeps_its_epsilon(guesses: int, mu: float, epsilon: float) -> None:
    """The curve of mu-GDP lies within that of any (epsilon, delta) of it, and so does the chance."""
    weaker = curve_of_epsilon(epsilon, gaussian.delta(epsilon, mu) if mu else 0.0)
    for correct in (guesses // 2, guesses):
        strict, loose = (chance_by_curve(correct, guesses, 2 * guesses, each) for each in (curve_of_mu(mu), weaker))
        assert strict <= loose * (1 + 1e-6)


@pytest.mark.parametrize("repetitions", [100, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("mu", "canaries", "each_way"), [(1.0, 200, 100), (2.0, 200, 20), (0.0, 100, 50)])
def test_bounds_from_runs_lie_below_the_truth(mu: float, canaries: int, each_way: int, repetitions: int) -> None:
    rng = np.random.default_rng(1)
    correct = []
    for _ in range(repetitions):
        coins = rng.random(canaries) < 0.5
        scores = rng.normal(size=canaries) + mu * coins
        correct.append(correct_guesses(scores, coins, inside=each_way, outside=each_way))
    counts, times = np.unique(correct, return_counts=True)
    guesses, true = 2 * each_way, gaussian.epsilon_of_mu(mu, 1e-3)
    mus = np.array([mu_by_guesses(int(each), guesses, canaries) for each in counts])
    epsilons = np.array([epsilon_by_guesses(int(each), guesses, canaries, 1e-3) for each in counts])
    assert coverage_allows(np.repeat(mus <= mu, times), 0.95)
    assert coverage_allows(np.repeat(epsilons <= true, times), 0.95)
    if mu == 0:
        assert np.repeat(mus > 0, times).mean() <= 0.05
    else:
        assert np.repeat(mus, times).mean() > 0.25 * mu


def test_a_run_with_far_too_little_noise_is_found() -> None:
    """Of 1,000 canaries a mechanism of mu = 0.5 lets nobody guess as many as one of mu = 2 does."""
    rng = np.random.default_rng(3)
    coins = rng.random(1000) < 0.5
    noise = rng.normal(size=1000)
    found = [
        mu_by_guesses(correct_guesses(noise + mu * coins, coins, inside=500, outside=500), 1000, 1000)
        for mu in (0.5, 2)
    ]
    assert found[0] < 0.5 < found[1]


@pytest.mark.parametrize("repetitions", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_randomized_response_meets_its_bound(repetitions: int) -> None:
    rng, guesses, epsilon = np.random.default_rng(2), 400, 1.0
    correct = rng.binomial(guesses, 1 / (1 + math.exp(-epsilon)), size=repetitions)
    least = next(count for count in range(guesses) if epsilon_by_guesses(count, guesses, guesses, 0.0) > epsilon)
    assert coverage_allows(correct < least, 0.95)
    too_sure = next(
        count for count in range(guesses) if epsilon_by_guesses(count, guesses, guesses, 0.0, confidence=0.7) > epsilon
    )
    assert not coverage_allows(correct < too_sure, 0.95)


def test_three_ways_to_bound_the_same_guesses() -> None:
    """Of 300 guesses about 10,000 canaries, 290 right, at delta = 1e-3 the paper's bound shows nothing."""
    assert of_the_paper(290, 300, 10_000, 0.0, 1e-3) > 0.05
    epsilon = epsilon_by_guesses(290, 300, 10_000, 1e-3)
    assert epsilon == pytest.approx(2.244, abs=1e-3)
    assert chance_by_curve(290, 300, 10_000, curve_of_epsilon(epsilon, 1e-3)) > 0.05  # sets from one count on, alone
    by_mu = gaussian.epsilon_of_mu(mu_by_guesses(290, 300, 10_000), 1e-3)
    assert by_mu == pytest.approx(2.639, abs=1e-3)  # if the mechanism is Gaussian


def test_what_underflows_is_still_a_chance() -> None:
    """2,000 right of 2,000: the tail is 2^-2000, and delta alone gives canaries * delta / guesses."""
    assert chance_by_binomial(2000, 2000, 2000, 0.0, 1e-3) == pytest.approx(1e-3, rel=1e-6)


def test_guesses_are_counted() -> None:
    coins = np.array([True, False, True, False])
    assert correct_guesses([4.0, 1.0, 3.0, 2.0], coins, inside=2, outside=2) == 4
    assert correct_guesses([4.0, 1.0, 3.0, 2.0], ~coins, inside=2, outside=2) == 0
    assert correct_guesses([4.0, 1.0, 3.0, 2.0], coins, inside=1, outside=0) == 1
    assert correct_guesses([0.0] * 4, coins, inside=2, outside=2) == 2  # the later two are guessed in


def test_bad_input_is_refused() -> None:
    for correct, guesses, canaries in (2, 1, 3), (1, 3, 2), (0, 0, 3), (-1, 2, 3):
        for call in (
            lambda counts: epsilon_by_guesses(*counts, 0.0),
            lambda counts: mu_by_guesses(*counts),
            lambda counts: chance_by_curve(*counts, curve_of_mu(1.0)),
        ):
            with pytest.raises(InputError, match=f"{correct} right of {guesses} guesses about {canaries} canaries"):
                call((correct, guesses, canaries))
    with pytest.raises(InputError, match="delta=1"):
        epsilon_by_guesses(1, 2, 3, 1)
    with pytest.raises(InputError, match="confidence=1"):
        mu_by_guesses(1, 2, 3, confidence=1)
    with pytest.raises(InputError, match="included is int"):
        correct_guesses([1.0, 2.0], [0, 1], inside=1, outside=1)
    with pytest.raises(InputError, match="cannot be"):
        correct_guesses([1.0, 2.0], [False, True], inside=2, outside=1)
    with pytest.raises(InputError, match="inside=-1, outside=2"):
        correct_guesses([1.0, 2.0], [False, True], inside=-1, outside=2)
