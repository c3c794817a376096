"""Scores of canaries, and lower bounds on mu from them.

A score is the cosine between what was seen, a vector v, and a group's direction, times the square root of the
dimension. Directions are uniform on the sphere and known to nobody but the auditor, so that whatever v holds beside the
canaries (noise, everybody's updates), a group that is out has a score of N(0, 1), nearly: of d coordinates to within
1/d. One that is in has N(m, 1), nearly, with m at most k mu for groups of k. Scores of different groups are as good as
independent, since random directions are as good as orthogonal (Andrew et al., arXiv:2302.03098; arXiv:2606.12733).

Before that v is bounded, coordinate by coordinate: where people's updates dwarf the noise, v says little of canaries.
No function of what was released can show more than was promised, so that the bounds stay what they are.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.audit.one_run.canaries import projections
from tacit.privacy.empirical.normal_scores import MuBound, mu_of_cosines, mu_of_normal_samples
from tacit.privacy.empirical.one_run import correct_guesses, mu_by_guesses

BOUND = 2.0  # deviations; of the median absolute value, which a few large coordinates leave as it is
NORMAL_MEDIAN = 0.6745  # of the absolute value of a standard normal number
GUESSED = 3  # of the groups, one in so many is guessed in, and as many out; settled before any score is seen

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What an auditor who saw some of a run has of each group: its score, whether it was in, and the dimension."""

    scores: Scores
    included: NDArray[np.bool_]
    dimension: int
    alike: int

    def known_directions(self, confidence: float) -> MuBound:
        """From groups that were in: assumes uniform directions and Gaussian noise, and knows what the others score."""
        return self._each(mu_of_cosines(self._cosines, self.dimension, confidence=confidence))

    def in_against_out(self, confidence: float) -> MuBound:
        """From those in and out: assumes normal scores of one deviation, which it measures; nothing of directions."""
        absent, present = self.scores[~self.included], self.scores[self.included]
        return self._each(mu_of_normal_samples(absent, present, confidence=confidence))

    def guesses(self, confidence: float) -> tuple[float, int, int]:
        """(lower bound, right ones, guesses): assumes fair coins and nothing else (arXiv:2410.22235)."""
        many = len(self.scores) // GUESSED
        right = correct_guesses(self.scores, self.included, inside=many, outside=many)
        lower = mu_by_guesses(right, 2 * many, len(self.scores), confidence=confidence)
        return lower / self.alike, right, 2 * many

    @property
    def _cosines(self) -> Scores:
        cosines: Scores = self.scores[self.included] / math.sqrt(self.dimension)
        return cosines

    def _each(self, bound: MuBound) -> MuBound:
        """Of one canary, from a group's (group privacy of Gaussian differential privacy)."""
        return MuBound(bound.estimate / self.alike, bound.lower / self.alike)


def scores(seed: int, vectors: NDArray[np.float32], which: NDArray[np.int64]) -> Scores:
    """Of each group, (groups,). vectors: (n, d) of what was seen; which: each group's. seed: of the directions."""
    held = np.array([bounded(vector) for vector in vectors])
    norms = np.linalg.norm(held, axis=1).astype(np.float64)
    cosines: Scores = projections(seed, held, which) / norms[which]
    return cosines * math.sqrt(vectors.shape[1])


def bounded(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each coordinate held within BOUND deviations, as most coordinates have them."""
    most = BOUND * float(np.median(np.abs(vector))) / NORMAL_MEDIAN
    return np.clip(vector, -most, most) if most else vector
