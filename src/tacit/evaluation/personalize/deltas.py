"""What personalization changed for each client, as arrays: the exact numbers, which only a simulation may look at.

A positive change is a gain, of every metric: accuracy won, nats saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.metrics import METRICS, TOP1, Counts, changing

if TYPE_CHECKING:  # JAX would come with it
    from tacit.evaluation.personalize.outcomes import ClientOutcome, Paired, PartComparison

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Discordant pairs of each client and strategy, (n, strategies): words that only one of two models had right."""

    gained: IntArray  # only the personalised model
    lost: IntArray  # only the global model

    @classmethod
    def from_comparisons(cls, comparisons: "Sequence[PartComparison]") -> Self:
        """From the devices' paired counts."""
        paired = [[each for each in comparison.paired] for comparison in comparisons]
        return cls(gained=_whole(paired, "only_personalised"), lost=_whole(paired, "only_baseline"))


@dataclass(frozen=True, kw_only=True)
class Deltas:
    """n clients under the global model and what each of S ways to fine-tune changed for them."""

    clients: IntArray  # (n,) their numbers
    tokens: IntArray  # (n,) in the part that was trained on
    baseline: dict[str, FloatArray]  # metric -> (n,) of the global model on the test part
    change: dict[str, FloatArray]  # metric -> (n, S), gains positive; that of the cross-entropy -inf where diverged
    diverged: NDArray[np.bool_]  # (n, S)
    test: Pairs
    gate: Pairs | None  # None without a gate part
    gate_baseline: FloatArray | None  # (n,) top-1 accuracy of the global model there; nan without a known word
    unmeasured: int  # clients left out here because no word of their test part is in the vocabulary

    @classmethod
    def from_outcomes(cls, outcomes: "Sequence[ClientOutcome]") -> Self:
        """Raises: InputError where no client has a word to judge by, or only some have a gate part."""
        kept = [each for each in outcomes if each.test.baseline.predicted]
        if not kept:
            raise InputError(
                f"none of the {len(outcomes)} clients has a test word that is in the vocabulary, so nothing was "
                "measured; take clients with more text, or another split."
            )
        gates = [each.gate for each in kept if each.gate is not None]
        if len(gates) not in (0, len(kept)):
            raise InputError(f"{len(gates)} of {len(kept)} clients have a gate part; evaluate all by one split.")
        tests = [each.test for each in kept]
        return cls(
            clients=np.array([each.client for each in kept], np.int64),
            tokens=np.array([each.train_tokens for each in kept], np.int64),
            baseline={metric: np.array([each.baseline.value(metric) for each in tests]) for metric in changing()},
            change={
                metric: np.array([[_change(each.baseline, own, metric) for own in each.personalised] for each in tests])
                for metric in changing()
            },
            diverged=np.array([each.diverged for each in kept], np.bool_),
            test=Pairs.from_comparisons(tests),
            gate=Pairs.from_comparisons(gates) if gates else None,
            gate_baseline=np.array([each.baseline.value(TOP1) for each in gates]) if gates else None,
            unmeasured=len(outcomes) - len(kept),
        )

    def __len__(self) -> int:
        return len(self.clients)

    def of_clients(self, chosen: NDArray[Any]) -> "Deltas":
        """The same for some rows: a mask or row numbers."""
        return Deltas(
            clients=self.clients[chosen],
            tokens=self.tokens[chosen],
            baseline={metric: values[chosen] for metric, values in self.baseline.items()},
            change={metric: values[chosen] for metric, values in self.change.items()},
            diverged=self.diverged[chosen],
            test=_rows(self.test, chosen),
            gate=self.gate and _rows(self.gate, chosen),
            gate_baseline=None if self.gate_baseline is None else self.gate_baseline[chosen],
            unmeasured=0,
        )


def _change(baseline: Counts, own: Counts, metric: str) -> float:
    """One division, so that a change of 2 in 100 is the very number 0.02 and falls on the right side of a cut."""
    return float(METRICS[metric].gain(baseline.sums[metric], own.sums[metric])) / float(baseline.over(metric))


def _whole(paired: "Sequence[Sequence[Paired]]", name: str) -> IntArray:
    return np.array([[getattr(each, name) for each in row] for row in paired], np.int64)


def _rows(pairs: Pairs, chosen: NDArray[Any]) -> Pairs:
    return Pairs(gained=pairs.gained[chosen], lost=pairs.lost[chosen])
