"""Policies of the gate, chosen on some users by what is counted of them, and judged on others: the server's side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.evaluation.counts.cells import Buckets
from tacit.evaluation.counts.histograms import Histogram, representatives
from tacit.evaluation.intervals import Estimate, mean_of, share_of
from tacit.evaluation.personalize.deltas import Deltas, FloatArray, Pairs
from tacit.evaluation.personalize.gate import OPEN, GatePolicy, GateRule, chance_of_gains, followed, policy_change
from tacit.networks.metrics import TOP1

HARM_LEVEL = 0.05  # level at which harm on the test part counts as more than chance


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
