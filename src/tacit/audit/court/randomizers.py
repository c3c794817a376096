"""Faults of what is randomized at once: a bit that is not, a sum in floats, filters that add too little or nothing."""

import math

import numpy as np

from tacit.audit.court.exhibit import Draw, Exhibit, Scores, Version

BITS, FLIP = 4, 0.25
FAR, PEOPLE = 2.0**50, 1024
WEIGHTS, GAMMA, FILTER_EPSILON = 2000, 1e-5, 0.1
LOCAL_EPSILON, LOCAL_DELTA = 1.0, 1e-5


def _bit_vector(randomized: int) -> Version:
    """Randomized response on one-hot vectors of BITS bits, of which the first `randomized` are flipped with FLIP.

    The canary's bit is the last one, somebody else's the first. Two bits differ, so epsilon is twice that of one.
    """

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        bits = np.zeros((runs, BITS), dtype=bool)
        bits[:, BITS - 1 if present else 0] = True
        bits[:, :randomized] ^= generator.random((runs, randomized)) < FLIP
        return bits[:, BITS - 1].astype(float) - bits[:, 0]

    return Version(2 * math.log((1 - FLIP) / FLIP), draw)


def _deviations(*, shifted: bool) -> Version:
    """Laplace noise at epsilon 1 on a sum of squared deviations of numbers from FAR to FAR + 1, one of them replaced.

    Of exact sums that moves by at most 1 - 1/n. The mean of numbers this large is rounded to a quarter, and moves all
    deviations; `shifted` takes FAR away first, which is exact.
    """

    def sum_of_squares(numbers: Scores) -> float:
        near = numbers - FAR if shifted else numbers
        return float(np.square(near - _pairwise(near) / len(near)).sum())

    numbers = np.full(PEOPLE, FAR + 0.25)
    sums = [sum_of_squares(numbers), sum_of_squares(np.concatenate([[FAR + 0.5], numbers[1:]]))]

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        return np.asarray(sums[present] + generator.laplace(scale=1 - 1 / PEOPLE, size=runs))

    return Version(1.0, draw)


def _pairwise(numbers: Scores) -> float:
    """Their sum, halves first: as floats are best added, and the rounding here is known."""
    while len(numbers) > 1:
        numbers = numbers[::2] + numbers[1::2]
    return float(numbers[0])


def _sparse(*, per_weight: float) -> Draw:
    """Weights of a client that all are GAMMA or all -GAMMA, each noised at the epsilon `per_weight` and clipped.

    Those above a threshold are released; of these clients that is any, so all WEIGHTS are.
    """

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        noise: Scores = generator.laplace(scale=2 * GAMMA / per_weight, size=(runs, WEIGHTS))
        return np.asarray(np.clip((GAMMA if present else -GAMMA) + noise, -GAMMA, GAMMA).mean(axis=1) / GAMMA)

    return draw


def _local(*, noisy: bool) -> Version:
    """A weight at one end of the clip range or the other, truncated, and noised or not: what a filter lets out.

    The Gaussian noise is for LOCAL_EPSILON at LOCAL_DELTA by the classical bound (Dwork & Roth, Theorem A.1).
    """
    deviation = 2 * math.sqrt(2 * math.log(1.25 / LOCAL_DELTA)) / LOCAL_EPSILON

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        truncated = np.clip(np.full(runs, 3.0 if present else -3.0), -1, 1)
        return np.asarray(truncated + noisy * deviation * generator.standard_normal(runs))

    return Version(LOCAL_EPSILON, draw)


REPORT_SEEN = "what one device or client sends is seen"
FLIP_THREAD = "https://github.com/londonaicentre/FLIP/issues/1145"
RANDOMIZERS = (
    Exhibit(
        number=4,
        name="OpenDP: the last bit of a randomized vector is not randomized",
        source="https://github.com/opendp/opendp/pull/2708",
        threat_model=REPORT_SEEN,
        measure="epsilon",
        law="any",
        delta=0.0,
        broken=_bit_vector(BITS - 1),
        mended=_bit_vector(BITS),
    ),
    Exhibit(
        number=5,
        name="OpenDP: squared deviations from a mean that floats round",
        source="https://github.com/opendp/opendp/issues/2923",
        threat_model="one noisy sum of squared deviations is seen; one of the numbers is replaced",
        measure="epsilon",
        law="any",
        delta=0.0,
        broken=_deviations(shifted=False),
        mended=_deviations(shifted=True),
    ),
    Exhibit(
        number=9,
        name="NVFlare: a sparse vector filter's epsilon is that of one weight",
        source=FLIP_THREAD,
        threat_model=REPORT_SEEN,
        measure="epsilon",
        law="any",
        delta=0.0,
        broken=Version(FILTER_EPSILON, _sparse(per_weight=FILTER_EPSILON)),
        mended=Version(FILTER_EPSILON, _sparse(per_weight=FILTER_EPSILON / WEIGHTS)),
        runs=1000,
    ),
    Exhibit(
        number=9,
        name="NVFlare: a percentile filter adds no noise",
        source=FLIP_THREAD,
        threat_model=REPORT_SEEN,
        measure="epsilon",
        law="any",
        delta=LOCAL_DELTA,
        broken=_local(noisy=False),
        mended=_local(noisy=True),
    ),
)
