"""What devices answered about personalization, exact or released, and the policies that are chosen by it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.evaluation.counts.histograms import Histogram, merged
from tacit.evaluation.counts.queries import EVERYBODY, Queries, baseline_name, change_name, policy_name, rule_name
from tacit.evaluation.personalize.gate import OPEN, GatePolicy, GateRule
from tacit.evaluation.personalize.policies import design
from tacit.networks.metrics import TOP1


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The histograms of all groups of clients, exact or released, put together."""

    queries: Queries
    steps: tuple[Mapping[str, Histogram], ...]  # one mapping per group; the groups share no client
    policies: tuple[GatePolicy, ...]  # chosen by the first step's answers, judged by the second's

    @property
    def baseline(self) -> Histogram:
        """The global model's accuracy over everybody, by the first metric."""
        return self._everybody(baseline_name(self.queries.metric))

    def change(self, metric: str, strategy: str, which: str) -> Histogram:
        """A strategy's change of a metric over everybody, by the slices of a kind."""
        return self._everybody(change_name(metric, strategy, which))

    def change_of_all(self, metric: str, strategy: str) -> Histogram:
        """The same in one slice: of the kinds asked for, the average with the least noise."""
        kinds = self.queries.slices or (EVERYBODY,)
        return merged([self.change(metric, strategy, which) for which in kinds])

    def policy(self, name: str) -> Histogram:
        """What a policy changes for the clients that did not design it."""
        return self.steps[-1][policy_name(name)]

    def _everybody(self, name: str) -> Histogram:
        first, *rest = (step[name] for step in self.steps)
        for other in rest:
            first = first + other
        return first


def policies_of(queries: Queries, answers: Mapping[str, Histogram], harm_weight: float) -> tuple[GatePolicy, ...]:
    """The best policies by the design clients' answers; see `policies.design`."""
    candidates = {
        GateRule(strategy=column, level=level): answers[
            change_name(TOP1, strategy, "tokens") if level >= OPEN else rule_name(strategy, level)
        ]
        for level in queries.levels
        for column, strategy in enumerate(queries.strategies)
    }
    return design(candidates, buckets=queries.tokens, harm_weight=harm_weight, gated=queries.gated)
