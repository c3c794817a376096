"""Mechanisms whose trade-off curves are known, and how often a bound lies below what is true."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.privacy.gaussian import epsilon_of_mu

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """`draw` gives n scores without the canary and n with it; `epsilon` at a delta and `mu` are what is true."""

    name: str
    draw: Callable[[np.random.Generator, int], tuple[Scores, Scores]]
    epsilon: Callable[[float], float]
    mu: float

    def __repr__(self) -> str:
        return self.name


def gaussian(mu: float) -> Known:
    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
        return rng.normal(size=n), mu + rng.normal(size=n)

    return Known(f"gaussian of mu {mu:g}", draw, lambda delta: epsilon_of_mu(mu, delta), mu)


def laplace(scale: float) -> Known:
    """A canary of sensitivity 1: delta(epsilon) = 1 - e^((epsilon - 1/scale) / 2)."""
    alpha = np.geomspace(1e-9, 0.5, 100_000)
    # Without: P(X > t) = alpha. With it, t is so far from 1: both tails of the density e^-|x| / 2, in units of scale.
    t = -np.log(2 * alpha) * scale
    beta = np.where(t < 1, np.exp((t - 1) / scale) / 2, 1 - np.exp((1 - t) / scale) / 2)

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
        return rng.laplace(scale=scale, size=n), 1 + rng.laplace(scale=scale, size=n)

    return Known(
        f"laplace of scale {scale:g}",
        draw,
        lambda delta: max(1 / scale + 2 * math.log1p(-delta), 0.0),
        float((-ndtri(alpha) - ndtri(beta)).max()),
    )


def randomized_response(epsilon: float) -> Known:
    """A bit, kept with probability e^epsilon / (1 + e^epsilon) and flipped else."""
    kept = 1 / (1 + math.exp(-epsilon))

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Scores]:
        return (rng.random(n) > kept).astype(float), (rng.random(n) < kept).astype(float)

    def truth(delta: float) -> float:
        return max(math.log((kept - delta) / (1 - kept)), 0.0) if delta < kept else 0.0

    return Known(f"randomized response of {epsilon:g}", draw, truth, float(2 * ndtri(kept)))


MECHANISMS = [gaussian(1.0), gaussian(3.0), laplace(0.5), randomized_response(1.5)]


def coverage_allows(below: NDArray[np.bool_], confidence: float) -> bool:
    """Whether bounds that were below the truth so often may be of this confidence: not three standard errors fewer."""
    return bool(below.mean() >= confidence - three_errors(confidence, len(below)))


def coverage_is(below: NDArray[np.bool_], confidence: float) -> bool:
    """The same of bounds that are exact: not three standard errors more, either."""
    return abs(below.mean() - confidence) <= three_errors(confidence, len(below))


def three_errors(confidence: float, repetitions: int) -> float:
    return 3 * math.sqrt(confidence * (1 - confidence) / repetitions)
