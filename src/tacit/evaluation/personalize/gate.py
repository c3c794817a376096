"""Whether a device should use its personalised model, and which: what it does by a policy.

The gate looks at text that was neither trained on nor tested on. Of its words, those that exactly one of the two
models had right decide: were neither model better, each such word would be a fair coin, so the exact one-sided sign
test (McNemar's, with the binomial tail) gives the chance of at least so many gains. A device accepts where that is at
most the gate's level: 0.5 means "more gains than losses", smaller means "surely better", 1 accepts everything. A model
whose fine-tuning diverged shows itself without any text, so a gate of any level below 1 rejects it.

Words of one text are not independent coins, so a level is a tuning knob, not a promised error rate; what it does to
users is measured, on users that did not choose it (`policies`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.cells import Buckets
from tacit.evaluation.personalize.deltas import Deltas, FloatArray, IntArray, Pairs
from tacit.networks.metrics import TOP1

OPEN = 1.0  # the level of no gate
LEVELS = (OPEN, 0.5, 0.2, 0.05)


@dataclass(frozen=True, kw_only=True)
class GateRule:
    """Fine-tune by this strategy (its place in the grid) and accept at this level."""

    strategy: int
    level: float = OPEN

    def __post_init__(self) -> None:
        if not 0 < self.level <= 1:
            raise InputError(f"gate level {self.level:g} must be in (0, 1]: 0.5 accepts what is better at all.")


@dataclass(frozen=True, kw_only=True)
class GatePolicy:
    """One rule for each bucket of train tokens, which a device knows of itself; None keeps the global model."""

    name: str
    buckets: Buckets
    rules: tuple[GateRule | None, ...]

    def __post_init__(self) -> None:
        if len(self.rules) != len(self.buckets):
            raise InputError(f"{len(self.rules)} rules for {len(self.buckets)} buckets; give one each.")

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        rules = [rule and {"strategy": rule.strategy, "level": rule.level} for rule in self.rules]
        return {"name": self.name, "cuts": list(self.buckets.cuts), "rules": rules}


def chance_of_gains(pairs: Pairs) -> FloatArray:
    """P[at least so many gains] if neither model were better, for each client and strategy; 1 without any pair."""
    from scipy import stats  # a policy is read without it

    tail = stats.binom.sf(pairs.gained - 1, pairs.gained + pairs.lost, 0.5)
    return np.asarray(tail, np.float64)


def accepted(deltas: Deltas, level: float) -> NDArray[np.bool_]:
    """Which clients' devices accept which strategies (n, S). InputError where a gate is asked for but has no text."""
    if level >= OPEN:
        return np.ones(deltas.diverged.shape, np.bool_)
    if deltas.gate is None:
        raise InputError(f"a gate of level {level:g} needs text of its own; split with a share for the gate.")
    return (chance_of_gains(deltas.gate) <= level) & ~deltas.diverged


def deployed_change(deltas: Deltas, rule: GateRule) -> FloatArray:
    """The change of top-1 accuracy (n,) if everybody followed the rule; 0 where the device rejects."""
    return np.where(accepted(deltas, rule.level)[:, rule.strategy], deltas.change[TOP1][:, rule.strategy], 0.0)


def followed(policy: GatePolicy, deltas: Deltas) -> tuple[NDArray[np.bool_], IntArray]:
    """Who deploys (n,), and by which strategy (n,), -1 where the bucket has no rule."""
    deploys = np.zeros(len(deltas), np.bool_)
    strategy = np.full(len(deltas), -1, np.int64)
    bucket = policy.buckets.of(deltas.tokens)
    for number, rule in enumerate(policy.rules):
        if rule is not None:
            mine = bucket == number
            strategy[mine] = rule.strategy
            deploys[mine] = accepted(deltas, rule.level)[mine, rule.strategy]
    return deploys, strategy


def policy_change(policy: GatePolicy, deltas: Deltas) -> FloatArray:
    """The change of top-1 accuracy (n,) under a policy."""
    deploys, strategy = followed(policy, deltas)
    own = deltas.change[TOP1][np.arange(len(deltas)), strategy]
    return np.where(deploys, own, 0.0)
