"""From local to central: what is promised when reports arrive shuffled, so that nobody knows whose is whose.

Upper bounds are theorems for the randomizer they are claimed for. Beside them stand lower bounds, by an attack that
works: between the two lies the truth. docs/shuffling.md explains both, and why the bound of 2023 is not used.

| here | meaning |
|---|---|
| E = e^eps0 | the local guarantee: no report is more than E times likelier under one value than under another |
| e = e^eps | the central guarantee at delta |
| n | shuffled reports, the protected one included |
| S(k; T) | Pr[Bin(T, 1/2) >= k] |
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import AccountingError, InputError
from tacit.privacy.local_subset_selection import LARGEST_DOMAIN
from tacit.privacy.local_supports import SUPPORTS, Supports

FloatArray = npt.NDArray[np.float64]
Kind = Literal["subset-selection", "projective-geometry", "k-ary", "unary", "rappor", "any"]
DeltaAt = Callable[[float], float]

CLONES = "hiding among the clones, any randomizer (Feldman, McMillan & Talwar 2021, Theorem 3.2)"
BLANKET = "privacy blanket of {} (Balle, Bell, Gascon & Nissim 2019, Lemma 5.3)"
TITLES = {
    "subset-selection": "Subset Selection",
    "projective-geometry": "Projective Geometry Response",
    "k-ary": "k-ary randomised response",
    "unary": "optimised unary encoding",
    "rappor": "basic one-time RAPPOR",
}
UNSHUFFLED = "the local guarantee itself; shuffling so few reports is not proved to add anything"

MOST_REPORTS = 10**10
LARGEST_LOCAL_EPSILON = 30.0
BLOCKS = 240  # a binomial number is known to so many intervals of it; more blocks change the fifth digit
REACH = 10.0  # standard deviations; what lies beyond is one block, bounded like the others
CLOSE = 1e-5  # relative; how near the crossing is looked for, always from the safe side
# SciPy's incomplete beta function was within 5e-12 of 40-digit sums at T = 1e8; this margin is on the safe side.
MARGIN = 1e-10
# Probabilities at which the unfavourable sum S of the blanket is bounded below, besides a thousandth of delta.
LEVELS = (1e-7, 1e-4, 1e-2, 0.2)


@dataclass(frozen=True)
class ShuffleBounds:
    """What n shuffled reports promise centrally at delta: epsilon_lower <= the best provable epsilon <= epsilon_upper.

    `epsilon_upper` is proved for every data set, by `theorem`. `epsilon_lower`: at any smaller epsilon there is a
    data set (for "any": and a randomizer of this local epsilon) for which the promise is false.
    """

    epsilon_upper: float
    epsilon_lower: float
    theorem: str


def shuffle_epsilon(
    local_epsilon: float, reports: int, delta: float, randomizer: Kind = "subset-selection", domain: int | None = None
) -> ShuffleBounds:
    """Bounds on the central epsilon at delta of `reports` shuffled reports, one changed (replace-one adjacency).

    For a randomizer of `SUPPORTS` over `domain` values, or for any randomizer with this local guarantee. All reports
    are by one randomizer over one domain. Milliseconds to tenths of a second, whatever the number of reports.
    InputError for numbers that cannot be, AccountingError for a randomizer without a theorem.
    """
    _check(local_epsilon, reports, delta, randomizer, domain)
    upper, theorem = _least(clones_delta(local_epsilon, reports), delta, local_epsilon), CLONES
    if upper >= local_epsilon:
        upper, theorem = local_epsilon, UNSHUFFLED
    if domain is None or randomizer == "any":
        attack = attack_delta(three_values(local_epsilon), reports)
    else:
        supports = SUPPORTS[randomizer](domain, local_epsilon)
        least = _least(blanket_delta(supports, reports, delta), delta, upper)
        if least < upper:
            upper, theorem = least, BLANKET.format(TITLES[randomizer])
        attack = attack_on_supports(supports, reports)
    return ShuffleBounds(upper, _most(attack, delta, upper), theorem)


def is_proved(
    epsilon: float, local_epsilon: float, reports: int, delta: float, randomizer: Kind, domain: int | None
) -> bool:
    """Whether a central (epsilon, delta) is proved for so many reports; the arguments are as in `shuffle_epsilon`.

    Much quicker than finding the least such epsilon, when many questions have nearly the same.
    """
    _check(local_epsilon, reports, delta, randomizer, domain)
    if epsilon >= local_epsilon or clones_delta(local_epsilon, reports)(epsilon) <= delta:
        return True
    if domain is None or randomizer == "any":
        return False
    return blanket_delta(SUPPORTS[randomizer](domain, local_epsilon), reports, delta)(epsilon) <= delta


def fewest_reports(
    epsilon: float, local_epsilon: float, delta: float, randomizer: Kind = "subset-selection", domain: int | None = None
) -> int:
    """So many reports that `shuffle_epsilon` of them is at most epsilon, and not of a thousandth fewer; by bisection.

    InputError where MOST_REPORTS are not enough.
    """
    if not epsilon > 0:
        raise InputError(f"a central epsilon of {epsilon:g} is promised by no sum: ask for one above 0.")
    low, high, least = 0, MOST_REPORTS, epsilon * (1 - CLOSE)  # `shuffle_epsilon` may stop so much above the least
    if not is_proved(least, local_epsilon, high, delta, randomizer, domain):
        raise InputError(
            f"not even {high:,} reports of local epsilon {local_epsilon:g} are proved to be ({epsilon:g}, {delta:g})-"
            "private centrally: ask for a smaller local epsilon, or promise less."
        )
    while high - low > 1:
        middle = (low + high) // 2
        if is_proved(least, local_epsilon, middle, delta, randomizer, domain):
            high = middle
        else:
            low = middle
    return high


def clones_delta(local_epsilon: float, reports: int) -> DeltaAt:
    """An upper bound on delta as a function of epsilon, for any randomizer with this local guarantee.

    Hockey-stick divergence between (A + D, C - A + 1 - D) and (A + 1 - D, C - A + D), where C ~ Bin(n - 1, 1/E),
    A ~ Bin(C, 1/2), D ~ Bernoulli(E / (E + 1)). Given C it is (E - e)/(E + 1) S(k - 1; C) - (e E - 1)/(E + 1) S(k; C),
    k the least whole number above (C + 1)(e E - 1) / ((E - 1)(e + 1)). One more clone is one more fair coin, which
    anybody could add, so it falls in C: on a block of C the value at its least C is an upper bound.
    Source: Feldman, McMillan & Talwar 2021, arXiv:2012.12803, Theorem 3.2 (with adaptive and different randomizers).
    """
    E = math.exp(local_epsilon)
    first, _, mass = _blocks(reports - 1, 1 / E)

    def delta_at(epsilon: float) -> float:
        e = math.exp(epsilon)
        k = np.floor((first + 1) * (e * E - 1) / ((E - 1) * (e + 1))) + 1
        gain = (E - e) / (E + 1) * _tail(k - 1, first) * (1 + MARGIN)
        return _total(mass, gain - (e * E - 1) / (E + 1) * _tail(k, first) * (1 - MARGIN))

    return delta_at


def blanket_delta(supports: Supports, reports: int, delta: float) -> DeltaAt:
    """An upper bound on delta as a function of epsilon, for a randomizer of two levels.

    (1/n) E[((E - e) a + (1 - e E) b - (e - 1) S)_+], S = E B + D, with (a, b, B, D, rest) multinomial over n reports:
    a, b support one of the two values in question, B both, D neither, the rest are outside the blanket. Given T = a + b
    and S, with alpha = (E - 1)(e + 1) and shift = (e E - 1) T + (e - 1) S, it is
    alpha T/2 S(k - 1; T - 1) - shift S(k; T), k the least whole number above shift / alpha.

    Blocks of T: Jensen's inequality moves T to the block's largest, for (E + 1)/2 less of S a step. S falls in T and
    helps, so it is replaced by lower values that it keeps with known probabilities (Chernoff's bound).
    `delta` only sets the smallest of these probabilities; the bound holds for all.
    Source: Balle, Bell, Gascon & Nissim 2019, arXiv:1903.02837, Lemma 5.3.
    """
    E, n = math.exp(supports.epsilon), reports
    one, both, neither = (supports.share * part for part in (supports.alone, supports.both, supports.neither))
    first, last, mass = _blocks(n, 2 * one)
    levels = np.array(sorted({1e-3 * delta, *(level for level in LEVELS if level > 1e-3 * delta)}))
    weights = np.diff(np.append(levels, 1.0), prepend=0.0)
    sums = np.concatenate([np.zeros((1, last.size)), _sum_at_least(E, both, neither, 1 - 2 * one, n - last, levels)])
    sums = sums - (E + 1) / 2 * (last - first)  # (levels, blocks)

    def delta_at(epsilon: float) -> float:
        e = math.exp(epsilon)
        alpha = (E - 1) * (e + 1)
        shift = (e * E - 1) * last + (e - 1) * sums
        k = np.floor(shift / alpha) + 1
        gain = alpha * last / 2 * _tail(k - 1, last - 1) * (1 + MARGIN)
        return _total(mass, weights @ np.maximum(gain - shift * _tail(k, last) * (1 - MARGIN), 0)) / n

    return delta_at


def _sum_at_least(
    E: float, both: float, neither: float, rest: float, terms: FloatArray, levels: FloatArray
) -> FloatArray:
    """(levels, blocks) values that a sum of independent terms falls below with at most each probability.

    A term is E with probability both/rest, 1 with neither/rest, else 0. For every theta > 0, Pr[S <= s] is at most
    exp(theta s) M(-theta)^terms; the best theta of a few is taken.
    """
    b, a = both / rest, neither / rest
    wanted = np.log(levels)[:, None, None]
    near = np.sqrt(-2 * wanted / np.maximum(terms[:, None] * (E * E * b + a), 1e-300))
    theta = near * np.geomspace(0.3, 3, 12)
    cumulant = np.log1p(b * np.expm1(-theta * E) + a * np.expm1(-theta))
    return np.asarray(np.max((wanted - terms[:, None] * cumulant) / theta, axis=2).clip(min=0), np.float64)


@dataclass(frozen=True)
class Attack:
    """How likely a report speaks for the first or the second of two values.

    Everybody else holds a third value, and speaks for either with probability `other`. The protected report speaks
    for its own with probability `own`, for the other of the two with `wrong`, and for none or both otherwise.
    """

    own: float
    wrong: float
    other: float


def three_values(local_epsilon: float) -> Attack:
    """Randomised response over three values: the worst case known to us of any randomizer with that guarantee."""
    E = math.exp(local_epsilon)
    return Attack(E / (E + 2), 1 / (E + 2), 1 / (E + 2))


def attack_on_supports(supports: Supports, reports: int) -> DeltaAt:
    """A lower bound on delta as a function of epsilon, for a randomizer of two levels: the better of two attacks.

    The second looks only at reports that do not support the third value, which all others hold: half of theirs, or
    more, are gone.
    """
    E, share = math.exp(supports.epsilon), supports.share
    own, wrong = share * E * supports.alone, share * supports.alone
    if not supports.lone + supports.joined:
        return _attack_on_two_values(own, wrong, reports)
    candidates = [attack_delta(Attack(own, wrong, share * (supports.lone + E * supports.joined)), reports)]
    if lone := share * supports.lone:
        candidates.append(attack_delta(Attack(E * lone, lone, lone), reports))
    return lambda epsilon: max(delta_at(epsilon) for delta_at in candidates)


def attack_delta(attack: Attack, reports: int) -> DeltaAt:
    """A lower bound on delta as a function of epsilon: Pr[test] - e Pr'[test] for one test.

    The test sees how many reports speak for each of the two values, fills the sum up to the end m of its block with
    fair coins (which can only hide), and asks whether k or more are for the first; k as the likelihood ratio says.
    """
    u, n = attack.other, reports
    first, last, mass = _blocks(n - 1, 2 * u)
    filled = last + 1
    # The block of totals m has C + 1 = m when the protected report speaks for one of the two, C = m otherwise.
    without = np.diff(_below(np.append(first + 1, n), n - 1, 2 * u), prepend=0.0)
    without = np.maximum(without[1:] * (1 + MARGIN), 0) + MARGIN * mass
    neutral = 1 - attack.own - attack.wrong

    def delta_at(epsilon: float) -> float:
        e = math.exp(epsilon)
        gain, loss = attack.own - e * attack.wrong, e * attack.own - attack.wrong
        drag = (e - 1) * neutral * u * np.maximum(n - filled, 0) / max(1 - 2 * u, 1e-300)
        k = np.clip(np.floor((loss * filled + drag) / (gain + loss)) + 1, 0, filled + 1)
        told = gain * _tail(k - 1, last) * (1 - MARGIN) - loss * _tail(k, last) * (1 + MARGIN)
        untold = (e - 1) * neutral * without * _tail(k, filled) * (1 + MARGIN)
        return float(np.maximum(mass * told * (1 - MARGIN) - untold, 0).sum())

    return delta_at


def _attack_on_two_values(own: float, wrong: float, reports: int) -> DeltaAt:
    """Two values: all others hold the first; a test of how many reports speak for the second.

    A report of the second speaks for it with probability `own`, one of the first with `wrong`.
    """
    n = reports - 1
    deviation = math.sqrt(n * wrong * (1 - wrong))
    k = np.unique(np.clip(np.rint(n * wrong + np.linspace(-REACH, REACH, 2000) * deviation), 0, n + 1))
    at_least, one_less = 1 - _below(k, n, wrong), 1 - _below(k - 1, n, wrong)

    def delta_at(epsilon: float) -> float:
        second = own * one_less + (1 - own) * at_least
        first = wrong * one_less + (1 - wrong) * at_least
        e = math.exp(epsilon)
        return float(max(np.max(second - e * first), np.max((1 - first) - e * (1 - second))) - MARGIN)

    return delta_at


def _check(local_epsilon: float, reports: int, delta: float, randomizer: str, domain: int | None) -> None:
    if not 0 < local_epsilon <= LARGEST_LOCAL_EPSILON:
        raise InputError(
            f"local_epsilon={local_epsilon:g} is not above 0 and at most {LARGEST_LOCAL_EPSILON:g}: give the epsilon "
            "that each report is randomised with."
        )
    if not 1 <= reports <= MOST_REPORTS:
        raise InputError(f"reports={reports} is not between 1 and {MOST_REPORTS}: give how many are shuffled together.")
    if not 0 < delta < 1:
        raise InputError(f"delta={delta:g} is not between 0 and 1: take one far below 1/reports, such as 1e-10.")
    if randomizer not in (*SUPPORTS, "any"):
        raise AccountingError(
            f"no shuffling theorem is known here for {randomizer!r}: take any, or one of {', '.join(SUPPORTS)}."
        )
    if randomizer != "any" and (domain is None or not 2 <= domain <= LARGEST_DOMAIN):
        raise InputError(f"domain={domain} is not between 2 and 2**31: the bound of {randomizer} needs its domain.")


def _least(delta_at: DeltaAt, delta: float, limit: float) -> float:
    """The least epsilon at which an upper bound of delta is at most delta, or at most CLOSE of it more; or limit."""
    return _crossing(delta_at, delta, limit)[1]


def _most(delta_at: DeltaAt, delta: float, limit: float) -> float:
    """The largest epsilon at which a lower bound of delta is above delta, or at most CLOSE of it less; or limit."""
    return _crossing(delta_at, delta, limit)[0]


def _crossing(delta_at: DeltaAt, delta: float, limit: float) -> tuple[float, float]:
    """low, high with delta_at(low) > delta >= delta_at(high), as near as CLOSE; both the limit if none is below it.

    False position in log epsilon and log delta; an end that stays loses weight (Anderson & Björck 1973), and each step
    goes a little past the zero, so that it moves next. A bisection where three steps did not halve what is left.
    """

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), 1e-300) / delta)

    if delta_at(0.0) <= delta:
        return 0.0, 0.0
    high, at_high = limit, excess(limit)
    if at_high > 0:
        return high, high
    low, at_low = high / 2, excess(high / 2)
    while at_low <= 0:
        high, at_high = low, at_low
        low, at_low = low / 8, excess(low / 8)
    widths, past = [math.inf] * 3, 0.0
    while (width := math.log(high / low)) > CLOSE:
        share = at_low / max(at_low - at_high, 1e-300) + past * CLOSE / 3 / width
        if width > widths[-3] / 2:
            share = 0.5
        middle = low * math.exp(min(max(share, 0.01 * CLOSE / width), 1 - 1e-3) * width)
        widths.append(width)
        found = excess(middle)
        if found > 0:
            at_high *= _kept_weight(found / at_low) if past > 0 else 1.0
            low, at_low, past = middle, found, 1.0
        else:
            at_low *= _kept_weight(found / at_high) if past < 0 and at_high < 0 else 1.0
            high, at_high, past = middle, found, -1.0
    return low, high


def _kept_weight(ratio: float) -> float:
    """What the end that stays keeps of its weight, when the other end's value shrank to this ratio."""
    return 1 - ratio if ratio < 1 else 0.5


def _blocks(trials: int, probability: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A binomial number in blocks: least and largest number of each, and an upper bound on its probability."""
    mean, deviation = trials * probability, math.sqrt(trials * probability * (1 - probability))
    place = np.linspace(-1, 1, BLOCKS)
    # Twice as dense in the middle; rare events have a longer tail than their standard deviation says (Bernstein).
    inner = mean + (REACH * deviation + np.where(place > 0, REACH**2 / 3, 1)) * (place + place**3) / 2
    edges = np.unique(np.clip(np.append(np.floor(inner), [0, trials + 1]), 0, trials + 1))
    below = np.diff(_below(edges, trials, probability))
    above = -np.diff(_from(edges, trials, probability))
    return edges[:-1], edges[1:] - 1, np.where(edges[1:] <= mean, below, above) * (1 + MARGIN)


def _below(number: FloatArray, trials: int, probability: float) -> FloatArray:
    """Pr[Bin(trials, probability) < number]."""
    from scipy import special  # loading it takes as long as most accounts, which need none of it

    inside = np.clip(number, 1, max(trials, 1))
    value = special.betainc(trials - inside + 1, inside, 1 - probability)
    return np.where(number <= 0, 0.0, np.where(number > trials, 1.0, value))


def _from(number: FloatArray, trials: int, probability: float) -> FloatArray:
    """Pr[Bin(trials, probability) >= number]."""
    from scipy import special  # loading it takes as long as most accounts, which need none of it

    inside = np.clip(number, 1, max(trials, 1))
    value = special.betainc(inside, trials - inside + 1, probability)
    return np.where(number <= 0, 1.0, np.where(number > trials, 0.0, value))


def _tail(k: FloatArray, coins: FloatArray) -> FloatArray:
    """S(k; T) = Pr[Bin(T, 1/2) >= k], relative error below MARGIN."""
    from scipy import special  # loading it takes as long as most accounts, which need none of it

    inside = np.clip(k, 1, np.maximum(coins, 1))
    value = special.betainc(inside, np.maximum(coins, 1) - inside + 1, 0.5)
    return np.where(k <= 0, 1.0, np.where(k > coins, 0.0, value))


def _total(mass: FloatArray, values: FloatArray) -> float:
    return float(mass @ np.maximum(values, 0))
