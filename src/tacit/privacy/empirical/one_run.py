"""Many canaries in one run, each in or out by a fair coin: how many coins an auditor may guess, and what more shows.

Of `canaries` the auditor guesses `guesses`, chosen by what was released, and `correct` are right. A promise bounds how
probable so many are; the bound below is the promise that makes them no less probable than 1 - confidence. The number
of guesses is settled beforehand, and the coins are independent of all else.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtr, ndtri

from tacit.errors import InputError
from tacit.privacy.empirical.samples import check_delta, error_of, sample

Curve = Callable[[float], float]
"""The inverse of 1 - f, f the trade-off curve: the least P(event) without the canary, where with it it is so much."""


def correct_guesses(scores: ArrayLike, included: ArrayLike, *, inside: int, outside: int) -> int:
    """How many coins are right where the `inside` highest scores are guessed in, and the `outside` lowest out.

    scores: (m,), higher where a canary is likelier to be in; included: (m,) bool, the coins. Of ties the later is taken
    for the higher, which no coin has a part in.
    """
    values = sample("scores", scores, finite=False)
    coins = np.asarray(included)
    if coins.dtype != bool or coins.shape != values.shape:
        raise InputError(f"included is {coins.dtype} {coins.shape}; give a bool for each of the {len(values)} scores.")
    _check_counts(0, inside + outside, len(values))
    if min(inside, outside) < 0:
        raise InputError(f"inside={inside}, outside={outside} are no numbers of guesses; give 0 or more of each.")
    order = np.argsort(values, kind="stable")
    return int(coins[order[len(values) - inside :]].sum() + (~coins[order[:outside]]).sum())


def epsilon_by_guesses(correct: int, guesses: int, canaries: int, delta: float, *, confidence: float = 0.95) -> float:
    """A lower bound on epsilon at `delta` of add-or-remove adjacency, from guesses about one run.

    The bound is where the chance of so many, by `chance_by_binomial`, is 1 - confidence. Raises: InputError for counts
    that cannot be.
    """
    check_delta(delta)
    error = error_of(confidence)
    _check_counts(correct, guesses, canaries)

    return _largest(lambda epsilon: chance_by_binomial(correct, guesses, canaries, epsilon, delta) <= error)


def mu_by_guesses(correct: int, guesses: int, canaries: int, *, confidence: float = 0.95) -> float:
    """A lower bound on the mu of Gaussian differential privacy, from guesses about one run (arXiv:2410.22235).

    The bound is where the chance of so many, by `chance_by_curve`, is 1 - confidence. It stays well below mu however
    many canaries there are (0.34 of 1 for 6,915 of 10,000): what is promised to each canary alone allows that a rare
    event gives all of them away, which scores of independent runs would show not to happen.
    """
    error = error_of(confidence)
    _check_counts(correct, guesses, canaries)
    return _largest(lambda mu: _impossible(correct, guesses, canaries, curve_of_mu(mu), error))


def chance_by_binomial(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """How probable v = `correct` right guesses or more are under (epsilon, delta)-DP, at most.

    With B binomial of the r guesses and e^epsilon / (1 + e^epsilon), of m canaries:
        P(B >= v) + m delta max_{1 <= s <= v} P(B >= v) P(B < s) / (s P(B = s)).
    With p_s as in `chance_by_curve`, s p_s = e^epsilon (r - s + 1) p_(s-1) + x_s, where the x_s above 0 add up to m
    delta at most, for every set of s. Without x, the tail is at most B's. An x_s gives x_s / s to p_s, and multiples
    of it above by B's ratios: a whole of x_s P(B >= s) / (s P(B = s)), which the rest must leave; s > v gives less
    than s = v. At delta = 0 this is the tail of arXiv:2305.08846, Theorem 5.2. Above, the factor in its Appendix D is
    larger where tails are small, and too small for one right of three at (0, 0.1): a test beats it.
    """
    if correct == 0:
        return 1.0
    right = np.arange(guesses + 1)
    rate, binomial = -math.log1p(math.exp(-epsilon)), gammaln(guesses + 1) - gammaln(right + 1)
    log_law = binomial - gammaln(guesses - right + 1) + guesses * rate - epsilon * (guesses - right)
    log_tail = float(np.logaddexp.reduce(log_law[correct:]))
    fewer = np.logaddexp.accumulate(log_law[:correct])  # of 1 to `correct`
    steepest = log_tail + float((fewer - np.log(right[1 : correct + 1]) - log_law[1 : correct + 1]).max())
    return min(math.exp(log_tail) + canaries * delta * math.exp(min(steepest, 700.0)), 1.0)


def chance_by_curve(correct: int, guesses: int, canaries: int, curve: Curve) -> float:
    """How probable `correct` right guesses or more are under a trade-off curve, at most (arXiv:2410.22235).

    Of m canaries, r guesses, let p_j be the probability of j right ones. Flipping the coin of one canary that is
    guessed right makes it wrong and leaves the others: summed over canaries and averaged over coins, by concavity,
        sum_T j p_j / m <= (1 - f)( sum_T (r - j + 1) p_(j-1) / m )    for every set T of counts.
    `_impossible` takes for T all counts from one on. It gives the tail a probability, and each p_j below, from v - 1
    down, the least that this allows. Any other p with such a tail has at least that much in all (by induction: what it
    has more of wrong guesses it has more of right ones, at the ratio t : r - t at least), so if all exceeds 1, the tail
    is less probable.
    """
    _check_counts(correct, guesses, canaries)
    low, high = 0.0, 1.0
    while high - low > 1e-9 * high and high > 1e-300:
        middle = (low + high) / 2
        low, high = (low, middle) if _impossible(correct, guesses, canaries, curve, middle) else (middle, high)
    return high


def curve_of_mu(mu: float) -> Curve:
    """Of mu-GDP: Phi(Phi^-1(a) - mu)."""
    return lambda with_it: float(ndtr(ndtri(with_it) - mu))


def curve_of_epsilon(epsilon: float, delta: float) -> Curve:
    """Of (epsilon, delta)-DP: the larger of e^-epsilon (a - delta) and 1 - delta - e^epsilon (1 - a), at least 0."""
    grows, falls = math.exp(epsilon), math.exp(-epsilon)
    return lambda with_it: max(falls * (with_it - delta), 1 - delta - grows * (1 - with_it), 0.0)


def _impossible(correct: int, guesses: int, canaries: int, curve: Curve, chance: float) -> bool:
    """Whether no p of `chance_by_curve` has a tail of probability `chance`."""
    whole = guesses / canaries
    right, wrong = chance * correct / canaries, chance * (guesses - correct) / canaries
    for more in range(correct - 1, -1, -1):
        needed = curve(min(right, 1.0))
        if needed <= wrong:  # and so it stays: neither grows any more
            break
        right += more / (guesses - more) * (needed - wrong)
        wrong = needed
        if right + wrong > whole:
            return True
    return right + wrong > whole


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest number that is refuted, where all smaller ones are; 0 where none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
        if high > 500:
            return low
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _check_counts(correct: int, guesses: int, canaries: int) -> None:
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InputError(
            f"{correct} right of {guesses} guesses about {canaries} canaries cannot be; "
            "right ones are at most the guesses, guesses at least 1 and at most the canaries."
        )
