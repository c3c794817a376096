"""What converts sensitivity and noise into rho-zCDP, mu-GDP and (epsilon, delta), and back. All exact.

Adding noise of standard deviation `noise_multiplier` to something of L2 sensitivity `sensitivity` (both in
clip norms) is mu-GDP with mu = sensitivity / noise_multiplier, hence rho-zCDP with rho = mu^2 / 2. Adaptive
rounds of a strategy matrix are one such mechanism (arXiv:2202.08312).
"""

import math
from collections.abc import Callable

from tacit.errors import AccountingError, InputError
from tacit.privacy.roots import root_between

HOPELESS = -1e4  # stands for log(0), which a root finder cannot take a secant through
FAR = -37.0  # below, erfc comes near the smallest numbers there are, and eight terms of the series are enough


def zcdp(sensitivity: float, noise_multiplier: float) -> float:
    """rho = sensitivity^2 / (2 noise_multiplier^2), infinite without noise.

    Source: arXiv:1605.02065, Proposition 1.6.
    """
    _check(sensitivity >= 0, f"sensitivity={sensitivity} is not a norm; give a number of at least 0.")
    _check(noise_multiplier >= 0, f"noise_multiplier={noise_multiplier} is negative; give one above 0.")
    if sensitivity == 0:
        return 0.0
    if noise_multiplier == 0:
        return math.inf
    ratio = sensitivity / noise_multiplier
    return ratio * ratio / 2  # of next to no noise infinite; a power would raise


def delta(epsilon: float, mu: float) -> float:
    """The smallest delta of a mu-GDP mechanism at `epsilon`.

    `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)` (arXiv:1805.06530, Theorem 8), by logarithms.
    """
    _check_epsilon(epsilon)
    _check(mu >= 0, f"mu={mu} is negative; give a number of at least 0.")
    if mu == 0 or math.isinf(mu):
        return 0.0 if mu == 0 else 1.0
    return math.exp(_log_delta(epsilon, mu))


def epsilon(zcdp: float, delta: float) -> float:
    """The smallest epsilon at `delta` of a Gaussian mechanism that is `zcdp`-zCDP; exact, not zCDP's generic
    bound.

    0 where delta alone covers the mechanism, infinite for infinite zcdp. Tighter than the RDP conversion of
    the tree colab (8.526 against its 8.90).
    """
    _check(zcdp >= 0, f"zcdp={zcdp} is negative; give a number of at least 0.")
    _check_delta(delta)
    if zcdp == 0 or math.isinf(zcdp):
        return zcdp
    mu, target = math.sqrt(2 * zcdp), math.log(delta)
    if _log_delta(0.0, mu) <= target:
        return 0.0
    # zCDP's generic conversion (arXiv:1605.02065, Proposition 1.3) lies above the exact value.
    above = zcdp + 2 * math.sqrt(-zcdp * target)
    return _root(lambda value: _log_delta(value, mu) - target, 0.0, above)


def zcdp_for_epsilon(epsilon: float, delta: float) -> float:
    """The largest zCDP of a Gaussian mechanism that is (epsilon, delta)-DP: the inverse of `epsilon`."""
    _check_epsilon(epsilon)
    _check_delta(delta)
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        return _log_delta(epsilon, math.exp(log_mu)) - target

    low = high = 0.0
    while excess(low) > 0:
        low -= 1.0
    while excess(high) <= 0:
        high += 1.0
    return math.exp(2 * _root(excess, low, high)) / 2


def noise_multiplier_for(zcdp: float, sensitivity: float) -> float:
    """The noise multiplier that makes a mechanism of this sensitivity exactly `zcdp`-zCDP."""
    _check(
        0 < zcdp < math.inf,
        f"zcdp={zcdp} asks for infinite noise or for none; give a finite number above 0, or no strategy at all.",
    )
    _check(0 < sensitivity < math.inf, f"sensitivity={sensitivity} must be finite and above 0.")
    return sensitivity / math.sqrt(2 * zcdp)


def log_normal_cdf(x: float) -> float:
    """log Phi(x): the logarithm of the probability that a standard normal number is at most x.

    Right to a few units of its last place for x below 2; above, where Phi is nearly 1, the error is that of Phi(-x). It
    is what `scipy.special.log_ndtr` says (a test compares both with 60 digits), of which loading takes 0.3 seconds.
    Far below 0 by the asymptotic series of Mills' ratio (Abramowitz & Stegun 26.2.12).
    """
    if x > -1:
        return math.log1p(-math.erfc(x * math.sqrt(0.5)) / 2)
    if x > FAR:
        return math.log(math.erfc(-x * math.sqrt(0.5)) / 2)
    series = 1.0
    for odd in (15, 13, 11, 9, 7, 5, 3, 1):
        series = 1 - odd * series / x**2
    return -(x**2) / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log(series)


def _log_delta(epsilon: float, mu: float) -> float:
    """log delta for finite mu > 0; the two terms are subtracted without ever leaving the logarithm."""
    gain = log_normal_cdf(mu / 2 - epsilon / mu)
    loss = epsilon + log_normal_cdf(-mu / 2 - epsilon / mu)
    return gain + math.log(-math.expm1(loss - gain)) if loss < gain else HOPELESS


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    root = root_between(function, low, high)
    if root is None:
        raise AccountingError(f"no conversion found between {low:g} and {high:g}; the values are out of reach.")
    return root


def _check(holds: bool, complaint: str) -> None:
    if not holds:
        raise InputError(complaint)


def _check_epsilon(epsilon: float) -> None:
    _check(0 <= epsilon < math.inf, f"epsilon={epsilon} is not a finite number of at least 0; give one.")


def _check_delta(delta: float) -> None:
    _check(0 < delta < 1, f"delta={delta} is not a probability between 0 and 1; give for example 1e-10.")
