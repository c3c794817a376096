"""What converts sensitivity and noise into rho-zCDP, mu-GDP and (epsilon, delta), and back. All exact.

Adding noise of standard deviation `noise_multiplier` to something of L2 sensitivity `sensitivity` (both in
clip norms) is mu-GDP with mu = sensitivity / noise_multiplier, hence rho-zCDP with rho = mu^2 / 2. Adaptive
rounds of a strategy matrix are one such mechanism (arXiv:2202.08312).
"""

import math
from collections.abc import Callable

from tacit.errors import AccountingError, InputError
from tacit.privacy.roots import root_between

FAR = -37.0  # below, erfc comes near the smallest numbers there are, and eight terms of the series are enough
SMALL = 1.0  # a mu up to which a difference of Mills' ratios is integrated, and not subtracted
NEAR = 2.0  # below, Mills' ratio is what erfc says, and above its continued fraction
CERTAIN = -40.0  # a standard normal number is below -CERTAIN but for 1e-350
# Gauss-Legendre, 10 nodes on [-1, 1] (Abramowitz & Stegun, table 25.4): each with its weight, and its mirror image.
NODES = (
    (0.1488743389816312, 0.2955242247147529),
    (0.4333953941292472, 0.2692667193099963),
    (0.6794095682990244, 0.2190863625159820),
    (0.8650633666889845, 0.1494513491505806),
    (0.9739065285171717, 0.0666713443086881),
)
LOG_ROOT_TAU = math.log(2 * math.pi) / 2


def mu(sensitivity: float, noise_multiplier: float) -> float:
    """The mu of Gaussian differential privacy, sensitivity / noise_multiplier; infinite without noise."""
    _check(sensitivity >= 0, f"sensitivity={sensitivity} is not a norm; give a number of at least 0.")
    _check(noise_multiplier >= 0, f"noise_multiplier={noise_multiplier} is negative; give one above 0.")
    if sensitivity == 0:
        return 0.0
    return math.inf if noise_multiplier == 0 else sensitivity / noise_multiplier


def zcdp(sensitivity: float, noise_multiplier: float) -> float:
    """rho = mu^2 / 2, infinite without noise. Source: arXiv:1605.02065, Proposition 1.6."""
    ratio = mu(sensitivity, noise_multiplier)
    return ratio * ratio / 2  # of next to no noise infinite; a power would raise


def delta(epsilon: float, mu: float) -> float:
    """The smallest delta of a mu-GDP mechanism at `epsilon`.

    `Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)` (arXiv:1805.06530, Theorem 8), by logarithms.
    """
    _check_epsilon(epsilon)
    _check(mu >= 0, f"mu={mu} is negative; give a number of at least 0.")
    if mu == 0 or math.isinf(mu):
        return 0.0 if mu == 0 else 1.0
    return math.exp(_log_delta(epsilon / mu - mu / 2, mu))


def epsilon(zcdp: float, delta: float) -> float:
    """The smallest epsilon at `delta` of a Gaussian mechanism that is `zcdp`-zCDP: see `epsilon_of_mu`."""
    _check(zcdp >= 0, f"zcdp={zcdp} is negative; give a number of at least 0.")
    return epsilon_of_mu(math.sqrt(2 * zcdp), delta)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon at `delta` of a mu-GDP mechanism; exact, not zCDP's generic bound.

    0 where delta alone covers the mechanism, infinite for infinite mu. Right to 1e-11 of itself for mu from
    1e-290 to 1e8 and delta from 1e-300 on (a test compares with 30 digits more than cancel); of a mu below 1e-154 the
    zCDP would be 0. Tighter than the RDP conversion of the tree colab (8.526 against its 8.90).
    """
    _check(mu >= 0, f"mu={mu} is negative; give a number of at least 0.")
    _check_delta(delta)
    if mu == 0 or math.isinf(mu):
        return mu
    target = math.log(delta)
    if _log_delta(-mu / 2, mu) <= target:
        return 0.0
    # delta < Phi(-u) <= e^(-u^2/2), and it is as good as 1 at CERTAIN.
    low, high = max(-mu / 2, CERTAIN), math.sqrt(-2 * target)
    return mu * (_root(lambda u: _log_delta(u, mu) - target, low, high) + mu / 2)


def zcdp_for_epsilon(epsilon: float, delta: float) -> float:
    """The largest zCDP of a Gaussian mechanism that is (epsilon, delta)-DP: the inverse of `epsilon`."""
    _check_epsilon(epsilon)
    _check_delta(delta)
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        return _log_delta(epsilon / mu - mu / 2, mu) - target

    above = 0.0
    while excess(above) > 0:
        above -= 1.0
    while excess(above) <= 0:
        above += 1.0
    return math.exp(2 * _root(excess, above - 1.0, above)) / 2


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


def _log_delta(u: float, mu: float) -> float:
    """log delta for finite mu > 0 at epsilon = mu (u + mu/2).

    With v = u + mu the two terms are Phi(-u) and phi(u) M(v), M Mills' ratio Phi(-x) / phi(x), because
    e^epsilon phi(v) = phi(u). So no large numbers are subtracted. Where mu is small, or small beside u, the terms are
    nearly equal: there M(u) - M(v) is integrated, by M'(x) = x M(x) - 1.
    """
    log_phi = -u * u / 2 - LOG_ROOT_TAU
    if mu > max(SMALL, u / 2):
        gain = _log_mills(u) if u > 0 else log_normal_cdf(-u) - log_phi
        return log_phi + gain + math.log(-math.expm1(_log_mills(u + mu) - gain))
    middle, half = u + mu / 2, mu / 2
    falls = sum(
        weight * (_mills_falls(middle - half * node) + _mills_falls(middle + half * node)) for node, weight in NODES
    )
    return log_phi + math.log(half) + math.log(falls) if falls > 0 else -math.inf


def _log_mills(x: float) -> float:
    """log of Mills' ratio, for x > 0."""
    if x < NEAR:
        return log_normal_cdf(-x) + x**2 / 2 + LOG_ROOT_TAU
    return -math.log(x + 1 / _fraction(x))


def _mills_falls(x: float) -> float:
    """-M'(x) = 1 - x M(x) of Mills' ratio M, for x > -1; above 0."""
    if x < NEAR:
        return 1 - x * math.sqrt(math.pi / 2) * math.exp(x**2 / 2) * math.erfc(x * math.sqrt(0.5))
    return 1 / (1 + x * _fraction(x))


def _fraction(x: float) -> float:
    """x + 2/(x + 3/(x + ...)), for x >= NEAR: M(x) = 1/(x + 1/fraction) (Abramowitz & Stegun 26.2.14).

    As many levels as make the last digits right, which grows as 1/x^2.
    """
    found = x
    for level in range(round(400 / x / x) + 25, 1, -1):
        found = x + level / found
    return found


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
