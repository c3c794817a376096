"""Faults of accounts and of an auditor: the mechanism does what it should, and what is said of it is wrong."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from tacit.audit.court.correlated import release
from tacit.audit.court.exhibit import Exhibit, Scores, Version
from tacit.privacy import gaussian
from tacit.privacy.empirical.error_rates import mu_shown, rate_at_most

NULL_SCORES, AUDIT_ERROR = 50, 0.05
SIGMA, COUNT_SIGMA = 1.0, 0.6
SAMPLED = 0.5
WITHIN_ROUNDING = tuple(1 + units * 2.0**-52 for units in range(1, 9))
ORDERS = (*WITHIN_ROUNDING, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
MU, TINY_DELTA = 0.1, 1e-18


def _audits(*, signed: bool) -> Version:
    """How often an auditor says "more than nothing" of scores that no canary moved; it promises AUDIT_ERROR.

    It takes the best of all thresholds, by Clopper-Pearson bounds on both rates. Not `signed`, it reads the absolute
    value of a mu that is negative, as bounds on the rates of a useless test always make it.
    """

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        without, within = generator.standard_normal((2, runs, NULL_SCORES))
        order = np.argsort(np.concatenate([without, within], axis=1), axis=1)
        missed = np.cumsum(order >= NULL_SCORES, axis=1)
        above = NULL_SCORES - np.cumsum(order < NULL_SCORES, axis=1)
        error = AUDIT_ERROR / (2 * 2 * NULL_SCORES)
        fpr, fnr = rate_at_most(above, NULL_SCORES, error), rate_at_most(missed, NULL_SCORES, error)
        mu = mu_shown(fpr, fnr) if signed else np.abs(ndtri(fpr) + ndtri(fnr))
        return np.asarray(mu.max(axis=1) > 0, dtype=np.float64)

    return Version(AUDIT_ERROR, draw)


def _adaptive(*, accounted: float) -> Version:
    """A clipped sum and the noisy share of clients below the clip norm, each centred at 1/2 as in arXiv:1905.03871.

    The sum's noise is raised so that both together cost as one release at SIGMA; the claim is 1 / `accounted`.
    """
    moves = np.array([1.0, 0.5])
    return Version(1 / accounted, release(moves, np.diag([RAISED, COUNT_SIGMA])))


RAISED = (SIGMA**-2 - (2 * COUNT_SIGMA) ** -2) ** -0.5


def _renyi(order: float) -> float:
    """The Renyi divergence of the Gaussian of noise multiplier 1, sampled with SAMPLED, by the rule of trapezoids.

    Near order 1 both sums are the same within rounding, so that their logarithm over order - 1 is nothing but rounding.
    """
    at = np.linspace(-12.0, 24.0, 7201)
    ratio = 1 - SAMPLED + SAMPLED * np.exp(at - 0.5)
    density = np.exp(-at * at / 2)
    return math.log(float(np.sum(density * ratio**order)) / float(np.sum(density * ratio))) / (order - 1)


def _claimed_epsilon(delta: float, *, floor: float) -> float:
    """Epsilon from the divergences at ORDERS: 0 where one is so small that delta alone covers the total variation.

    That is right of a divergence at least that of order 1, which grows with the order (Bretagnolle-Huber). `floor`
    leaves out orders this near 1, of which rounding makes a divergence of any size.
    """
    best = math.inf
    for order in ORDERS:
        if order - 1 < floor:
            continue
        divergence = _renyi(order)
        if delta**2 + math.expm1(-divergence) > 0:
            return 0.0
        best = min(best, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
    return best


def _sampled(claim: float) -> Version:
    """The Gaussian mechanism at noise multiplier 1 whose one client takes part with the probability SAMPLED."""

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        return np.asarray(generator.standard_normal(runs) + present * (generator.random(runs) < SAMPLED))

    return Version(claim, draw)


def _tabulated(*, from_above: bool) -> Version:
    """Epsilon at TINY_DELTA of a Gaussian mechanism, from its privacy loss on a grid.

    From below, a tail is 1 less a cumulative sum, hence a multiple of 1e-16, and nothing where it should be 1e-18.
    """
    at = np.arange(-2.0, 2.0, 1e-4)
    loss = _mass(at, MU**2 / 2), _mass(at, -(MU**2) / 2)
    if from_above:
        tails = [np.cumsum(mass[::-1])[::-1] for mass in loss]
    else:
        tails = [1 - np.cumsum(mass) / mass.sum() for mass in loss]
    enough = tails[0] - np.exp(at) * tails[1] <= TINY_DELTA
    true = np.array([gaussian.epsilon_of_mu(MU, TINY_DELTA)])
    first = np.flatnonzero(enough & (at >= 0))
    return Version(float(at[first[0]]) if len(first) else math.inf, lambda present, runs, generator: true)


def _mass(at: Scores, mean: float) -> NDArray[np.float64]:
    """Of N(mean, MU^2) in each cell of the grid, from whichever tail is the smaller."""
    low, high = (at - mean) / MU, (at + 1e-4 - mean) / MU
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


ACCOUNTS = (
    Exhibit(
        number=2,
        name="jax-privacy: an auditor that finds leaks in null scores",
        source="https://github.com/google-deepmind/jax_privacy/pull/270",
        threat_model="an auditor is given scores of one law with and without the canary",
        measure="rate",
        law="rate",
        broken=_audits(signed=False),
        mended=_audits(signed=True),
        runs=400,
    ),
    Exhibit(
        number=3,
        name="Opacus: adaptive clipping accounted at the raised noise",
        source="https://github.com/meta-pytorch/opacus/pull/807",
        threat_model="the noisy gradient and the noisy share that moves the clip norm are both seen",
        measure="mu",
        law="normal",
        broken=_adaptive(accounted=RAISED),
        mended=_adaptive(accounted=SIGMA),
    ),
    Exhibit(
        number=7,
        name="TF-Privacy: epsilon 0 from a Renyi order within rounding of 1",
        source="https://github.com/tensorflow/privacy/issues/166",
        threat_model="one sampled noisy sum is seen, and whether the canary was drawn is not",
        measure="epsilon",
        law="any",
        delta=1e-3,
        broken=_sampled(_claimed_epsilon(1e-3, floor=0.0)),
        mended=_sampled(_claimed_epsilon(1e-3, floor=1e-6)),
    ),
    Exhibit(
        number=8,
        name="prv_accountant: a delta below the rounding of a sum",
        source="https://github.com/microsoft/prv_accountant/issues/17",
        threat_model="one noisy sum is seen; its exact curve is known, as nobody samples an event of 1e-18",
        measure="epsilon",
        law="exact",
        delta=TINY_DELTA,
        broken=_tabulated(from_above=False),
        mended=_tabulated(from_above=True),
        runs=1,
    ),
)
