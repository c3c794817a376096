"""Anonymity by keeping the L most voted, without a threshold: why the platform has thresholds."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import InputError
from tacit.privacy.local_anonymity import MARGIN, _at_least, _check, rare_votes_tail
from tacit.privacy.local_subset_selection import SubsetNumbers

FloatArray = npt.NDArray[np.float64]


def top_l_anonymity(domain: int, local_epsilon: float, reports: int, prefixes: int, k: int) -> float:
    """An upper bound on the probability that a string of fewer than k contributors is among the `prefixes` kept.

    Subset Selection, the L most voted of `domain` kept. Lemma 1 of paper 2: at most Pr[Y >= T], Y the votes as in
    `rare_votes_tail`, T the L-th largest frequency among `reports` uniform subsets of size - 2 out of domain - 1
    values. Here Pr[Y >= t] + Pr[T < t] for the best t; the second term by Chernoff's bound over the values, which
    holds because their frequencies are negatively associated (Joag-Dev & Proschan 1983). 1 where sizes are below 3.
    """
    numbers = SubsetNumbers(domain, local_epsilon)
    _check(numbers.p, numbers.q, reports, k)
    if not 1 <= prefixes <= domain:
        raise InputError(f"prefixes={prefixes} is not between 1 and the domain {domain}: give how many are kept.")
    others, size = domain - 1, numbers.size - 2
    if size < 1 or prefixes > others:
        return 1.0
    share = size / others
    mean, deviation = reports * share, math.sqrt(reports * share * (1 - share))
    near = np.unique(np.clip(np.rint(mean + np.linspace(-4, 8, 400) * deviation), 1, reports + 1))
    reached = _at_least(near, reports, share)
    fewer = fewer_than(prefixes, others, reached)
    # Few of these thresholds can be the best: those where T stays above with probability near 1, but hardly.
    candidates = np.concatenate([near[fewer <= 1e-18][-1:], near[(fewer < 1) & (fewer > 1e-18)]])
    least = [rare_votes_tail(numbers.p, numbers.q, reports, k, int(t)) for t in candidates]
    lost = [float(fewer[near == t][0]) for t in candidates]
    return min([1.0, *(a + b for a, b in zip(least, lost, strict=True))])


def fewer_than(wanted: int, values: int, chance: FloatArray) -> FloatArray:
    """An upper bound on Pr[fewer than `wanted` of the values], each with that chance: exp(-values KL), or 1."""
    share = (wanted - 1) / values
    inside = np.clip(chance, 1e-300, 1 - 1e-16)
    divergence = special.rel_entr(share, inside) + special.rel_entr(1 - share, 1 - inside)
    return np.where(inside > share, np.minimum(np.exp(-values * divergence) * (1 + MARGIN), 1.0), 1.0)
