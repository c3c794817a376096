"""Whether a device should use its personalised model, and which: policies, chosen on some users, judged on others.

The gate looks at text that was neither trained on nor tested on. Of its words, those that exactly one of the two
models had right decide: were neither model better, each such word would be a fair coin, so the exact one-sided sign
test (McNemar's, with the binomial tail) gives the chance of at least so many gains. A device accepts where that is at
most the gate's level: 0.5 means "more gains than losses", smaller means "surely better", 1 accepts everything. A model
whose fine-tuning diverged shows itself without any text, so a gate of any level below 1 rejects it.

Words of one text are not independent coins, so a level is a tuning knob, not a promised error rate; what it does to
users is measured, on users that did not choose it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Buckets, Histogram, representatives
from tacit.evaluation.intervals import Estimate, mean_of, share_of
from tacit.evaluation.personalize.deltas import Deltas, FloatArray, IntArray, Pairs
from tacit.networks.metrics import TOP1

OPEN = 1.0  # the level of no gate
LEVELS = (OPEN, 0.5, 0.2, 0.05)
HARM_LEVEL = 0.05  # level at which harm on the test part counts as more than chance


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


@dataclass(frozen=True, kw_only=True)
class PolicyOutcome:
    """What a policy does to users: exact numbers over n of them, with 95% intervals (`intervals`).

    The oracle of the gate knows the test part and deploys the policy's own models just where they gain; that of the
    grid picks each user's best strategy, or none. Both choose on what judges them, so nobody can reach them and the
    regret is an upper bound.
    """

    name: str
    users: int
    deployed: Estimate
    gain: Estimate  # mean change of top-1 accuracy; a user without a deployed model has 0
    harmed: Estimate  # share of users whose accuracy fell
    harmed_much: Estimate  # by more than 0.02
    harmed_surely: Estimate  # fell, and the sign test on the test part says so at 5%
    harm: Estimate  # mean loss over all users, gains counted as 0
    regret_to_gate_oracle: Estimate
    regret_to_grid_oracle: Estimate


def chance_of_gains(pairs: Pairs) -> FloatArray:
    """P[at least so many gains] if neither model were better, for each client and strategy; 1 without any pair."""
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


def judged(policy: GatePolicy, deltas: Deltas) -> PolicyOutcome:
    """What the policy does to these users; judge only users on whom it was not chosen."""
    deploys, strategy = followed(policy, deltas)
    rows = np.arange(len(deltas))
    own = np.where(strategy >= 0, deltas.change[TOP1][rows, strategy], 0.0)
    change = np.where(deploys, own, 0.0)
    losses = Pairs(gained=deltas.test.lost, lost=deltas.test.gained)
    surely = deploys & (change < 0) & (chance_of_gains(losses)[rows, strategy] <= HARM_LEVEL)
    best = np.maximum(deltas.change[TOP1].max(axis=1), 0.0)
    users = len(deltas)
    return PolicyOutcome(
        name=policy.name,
        users=users,
        deployed=share_of(int(deploys.sum()), users),
        gain=mean_of(change),
        harmed=share_of(int(np.sum(change < 0)), users),
        harmed_much=share_of(int(np.sum(change < -0.02)), users),
        harmed_surely=share_of(int(surely.sum()), users),
        harm=mean_of(np.maximum(-change, 0.0)),
        regret_to_gate_oracle=mean_of(np.maximum(own, 0.0) - change),
        regret_to_grid_oracle=mean_of(best - change),
    )


class Worth(NamedTuple):
    """Sum over each slice's clients of gain - harm_weight * loss, and its variance by sampling and noise (slices,)."""

    utility: FloatArray
    variance: FloatArray


def worth_of(histogram: Histogram, harm_weight: float) -> Worth:
    """What deployed changes are worth to each slice, from their histogram, by the bins' representatives.

    The sampling part of the variance is that of a sum of so many independent clients, at most. Raises: InputError where
    the bins do not hold 0 apart from gains (`Buckets.with_unchanged_apart`): a gate makes many zeros.
    """
    bins = histogram.cells.bins
    if 0.0 not in bins.cuts or bins != bins.with_unchanged_apart():
        raise InputError("users whose model is the same must have a bin of their own; cut the changes at 0 and above.")
    values = representatives(bins)
    values[bins.of([0.0])] = 0.0
    weights = np.where(values < 0, harm_weight * values, values)
    sampling = np.maximum(histogram.counts, 0.0) @ weights**2
    return Worth(histogram.counts @ weights, sampling + histogram.variance @ weights**2)


def design(
    candidates: Mapping[GateRule, Histogram], *, buckets: Buckets, harm_weight: float, gated: bool
) -> tuple[GatePolicy, ...]:
    """The best policies of four kinds, from the design users' histograms of deployed changes sliced by train tokens.

    One strategy for all, without and with a gate; one rule per bucket, without and with a gate. Best is the largest sum
    of gain - harm_weight * loss. A bucket has a rule of its own only where that leads by more than a standard deviation
    of sampling and noise (those of the two taken as independent, though the clients are the same: too large, which is
    careful); else that of all buckets, or the global model where even that rule does not lead it so. Of noised
    histograms all this is post-processing, so it costs nothing. Ties go to the candidate named first.
    """
    worth = {rule: worth_of(histogram, harm_weight) for rule, histogram in candidates.items()}
    free = {rule: each for rule, each in worth.items() if rule.level >= OPEN}
    found = [_one_rule("one strategy", free, buckets), _rule_per_bucket("strategy by tokens", free, buckets)]
    if gated:
        barred = {rule: each for rule, each in worth.items() if rule.level < OPEN}
        found.insert(1, _one_rule("one strategy, gate", barred, buckets))
        found.append(_rule_per_bucket("strategy by tokens, gate", worth, buckets))
    return tuple(found)


def _one_rule(name: str, worth: Mapping[GateRule, Worth], buckets: Buckets) -> GatePolicy:
    best = max(worth, key=lambda rule: float(worth[rule].utility.sum()))
    return GatePolicy(name=name, buckets=buckets, rules=(best,) * len(buckets))


def _rule_per_bucket(name: str, worth: Mapping[GateRule, Worth], buckets: Buckets) -> GatePolicy:
    everywhere = max(worth, key=lambda rule: float(worth[rule].utility.sum()))
    whole = worth[everywhere]
    common = everywhere if whole.utility.sum() > whole.variance.sum() ** 0.5 else None
    nothing = Worth(np.zeros(len(buckets)), np.zeros(len(buckets)))
    rules: list[GateRule | None] = []
    for bucket in range(len(buckets)):

        def lead(rule: GateRule | None, other: GateRule | None, at: int = bucket) -> float:
            """How many standard deviations one is worth more than another in this bucket."""
            ours, theirs = (nothing if each is None else worth[each] for each in (rule, other))
            spread = float(ours.variance[at] + theirs.variance[at]) ** 0.5
            return float(ours.utility[at] - theirs.utility[at]) / spread if spread else 0.0

        best = max(worth, key=lambda rule: float(worth[rule].utility[bucket]))
        own: GateRule | None = best if worth[best].utility[bucket] > 0 else None
        rules.append(own if lead(own, common) > 1 else common)
    return GatePolicy(name=name, buckets=buckets, rules=tuple(rules))


def difference(policy: GatePolicy, other: GatePolicy, deltas: Deltas) -> Estimate:
    """Mean change under `policy` less that under `other`, by the same users: a paired interval."""
    return mean_of(policy_change(policy, deltas) - policy_change(other, deltas))
