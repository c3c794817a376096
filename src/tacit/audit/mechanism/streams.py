"""The shipped noise as an auditor plays it: the stream of a strategy, round by round, as training adds it to its sums.

Of trees the accountant counts every complete node as released, and training releases less: the noise of most nodes is
never drawn (plain), or only as part of an estimate (variance-reduced). Both are audited: the sums as they are, against
a claim that they cannot reach; and the same sums with all other nodes beside, drawn from the keys of the same rounds.
"""

import hashlib
from dataclasses import dataclass, replace

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.audit.mechanism import linear
from tacit.audit.mechanism.case import Case, Known, Numbers, Release, Sums, of_release
from tacit.audit.mechanism.patterns import worst_pattern
from tacit.errors import InputError
from tacit.mechanisms import stream_for
from tacit.mechanisms.keys import KEY_BYTES
from tacit.mechanisms.seeds import SeedVector
from tacit.privacy import Guarantee
from tacit.privacy.strategy import Strategy, Tree

Released = NDArray[np.float32]
LONGEST = 4096  # rounds whose matrix is held: 0.13 GB
SUMS = "sees the noised sum of every round; chooses in which rounds the client comes, and what it sends"
NODES = "sees the noised sum of every round and every complete node of the tree; chooses when the client comes"


def key_of(seed: int) -> bytes:
    """The noise key of a seed: equal arguments, equal bytes."""
    return hashlib.sha256(f"tacit audit {seed}".encode()).digest()[:KEY_BYTES]


@dataclass(frozen=True)
class NoisedSums:
    """What training releases of the sums: each with its round's noise."""

    guarantee: Guarantee
    purpose: str = "model update"

    def __call__(self, contributions: Sums, seed: int) -> Released:
        """See `Release`."""
        stream, key, released = stream_for(_noise(self.guarantee)), key_of(seed), np.empty_like(contributions)
        state = stream.init(contributions.shape[1])
        for round, total in enumerate(contributions):
            noised, state = stream.add_noise(
                state, jax.device_put(total), stddev=self.guarantee.seed_stddev, key=key, purpose=self.purpose
            )
            released[round] = noised
        return released


@dataclass(frozen=True)
class EveryNode:
    """The same of a tree, and after each sum the nodes that the round completes below its largest."""

    guarantee: Guarantee

    def __call__(self, contributions: Sums, seed: int) -> Released:
        """See `Release`."""
        stream, key, rows = stream_for(_noise(self.guarantee)), key_of(seed), []
        stddev, runs = self.guarantee.seed_stddev, contributions.shape[1]
        state = stream.init(runs)
        for round, total in enumerate(contributions):
            of_round = stream.round_keys(state, total, stddev=stddev, key=key, purpose="model update")[0]
            noised, state = stream.add_noise(
                state, jax.device_put(total), stddev=stddev, key=key, purpose="model update"
            )
            rows.append(np.asarray(noised))
            for level in range(stream.seeds_in(round) - 1):
                below = contributions[round + 1 - (1 << level) : round + 1].sum(axis=0)
                rows.append((below + stddev * SeedVector(of_round.seeds, level).draw(runs)).astype(np.float32))
        return np.array(rows)


def case_of_sums(
    subject: str,
    guarantee: Guarantee,
    release: Release | None = None,
    *,
    more: int = 0,
    claim: float | None = None,
    threat_model: str = SUMS,
) -> Case:
    """The noised sums of a guarantee.

    release: of whom; None: tacit's own. more: rows that it releases after those of the rounds. claim: the mu promised;
    None: that of the guarantee. Raises: InputError for a guarantee without noise, or of more rounds than a matrix is
    held for.
    """
    found = linear.of_sums(_noise(guarantee), _few(guarantee))
    case = _case(subject, guarantee, found, release or NoisedSums(guarantee), threat_model)
    assert case.known is not None
    known = replace(case.known, weights=np.pad(case.known.weights, (0, more)))
    return replace(case, rows=case.rows + more, known=known, claim=guarantee.mu if claim is None else claim)


def case_of_every_node(subject: str, guarantee: Guarantee) -> Case:
    """The same of a tree, with every complete node. Raises: InputError as `case_of_sums`, and where there is none."""
    strategy = _noise(guarantee)
    if not isinstance(strategy, Tree):
        raise InputError(f"a {strategy.kind} strategy has no nodes; give that of a tree.")
    return _case(subject, guarantee, linear.of_every_node(strategy, _few(guarantee)), EveryNode(guarantee), NODES)


def _case(subject: str, guarantee: Guarantee, found: linear.Linear, release: Release, threat_model: str) -> Case:
    participation = guarantee.participation
    pattern = worst_pattern(found.gram, participation)
    canary = np.zeros(participation.rounds)
    canary[list(pattern)] = guarantee.clip_norm * guarantee.clip_inflation
    weights, moved = found.told_by(canary)
    stddev = guarantee.seed_stddev
    return Case(
        subject=subject,
        claim=guarantee.mu,
        rows=len(found.signal),
        play=of_release(release, canary),
        threat_model=threat_model,
        known=Known(weights=weights / stddev, moved=moved / stddev),
        figures={"pattern": list(pattern), "attainable": moved / stddev},
    )


def matrix_of(guarantee: Guarantee) -> Numbers:
    """X (rounds, rounds), by which a pattern of rounds is worth what it is: see `patterns`. Raises: InputError."""
    return linear.of_sums(_noise(guarantee), _few(guarantee)).gram


def _noise(guarantee: Guarantee) -> Strategy:
    if guarantee.strategy is None:
        raise InputError(
            "without noise nothing is promised, and an audit of it would show what a sum shows of each client: all of "
            "it. Give a noise multiplier above 0."
        )
    return guarantee.strategy


def _few(guarantee: Guarantee) -> int:
    rounds = guarantee.participation.rounds
    if rounds > LONGEST:
        raise InputError(
            f"{rounds:,} rounds are more than an audit holds the matrix of; audit the same mechanism and limits with "
            f"{LONGEST:,} or fewer."
        )
    return rounds
