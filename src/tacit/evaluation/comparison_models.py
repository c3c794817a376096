"""How a model and its baselines did on the same clients, as a run keeps it: client by client.

Their difference is taken client by client too, which is far sharper than comparing two averages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.metrics import TOP1

if TYPE_CHECKING:  # Numba and SciPy would come with it
    from tacit.evaluation.intervals import Estimate

MODEL, START, FIRST_WORDS = "model", "start", "first words"
TRIGRAM = "trigram"  # of public text: what older runs have in the place of the rungs of `ladder.py`, which follow
PUBLIC_NGRAM, PUBLIC_NETWORK, FREE = "public n-gram", "public network", "best free model"
CLIENTS, BOTH = "clients' n-gram", "clients' and public n-gram"
BOTH_AND_NETWORK, WITH_NGRAM = "clients' and public n-gram, public network", " + public n-gram"
WITHOUT_PRIVACY = (CLIENTS, BOTH, BOTH_AND_NETWORK)
DIGITS = 4  # of a client's sum of nats; the other sums are whole


def said_mixture(weights: Mapping[str, float]) -> str:
    """What a mixture is made of, each part with its weight: `public n-gram 44%, public network 56%`; a part alone."""
    if len(weights) == 1:
        return next(iter(weights))
    return ", ".join(f"{name} {share:.0%}" for name, share in weights.items())


@dataclass(frozen=True, kw_only=True)
class ComparisonModels:
    """Sums of a few comparison models over the counted words of each client, (clients,) each."""

    predicted: tuple[float, ...]  # words that count for accuracy: those of the vocabulary
    sums: Mapping[str, Mapping[str, tuple[float, ...]]]  # by comparison model, then by metric

    def __post_init__(self) -> None:
        clients = {len(sums) for of in self.sums.values() for sums in of.values()}
        if clients - {len(self.predicted)}:
            raise InputError(f"sums of {sorted(clients)} clients beside {len(self.predicted)}; count the same ones.")

    def value(self, comparison_model: str, metric: str) -> float | None:
        """The metric over words; None where it was not counted, or there was no word."""
        sums = self.sums.get(comparison_model, {}).get(metric)
        whole = sum(self.predicted)
        return None if sums is None or not whole else sum(sums) / whole

    def estimate(self, comparison_model: str, metric: str) -> "Estimate | None":
        """The same with its 95% interval over clients; None where there is none."""
        sums = self._array(comparison_model, metric)
        return None if sums is None else self._ratio(sums)

    def gain(self, comparison_model: str, over: str, metric: str) -> "Estimate | None":
        """The metric of one less that of the other, over the same words, with the interval of the difference."""
        ours, theirs = self._array(comparison_model, metric), self._array(over, metric)
        return None if ours is None or theirs is None else self._ratio(ours - theirs)

    def gain_of(self, other: "ComparisonModels", metric: str = TOP1) -> "Estimate | None":
        """The metric of another run's model less that of these, as `gain`; None where it counted other words."""
        ours, theirs = other._array(MODEL, metric), self._array(MODEL, metric)
        same = other.predicted == self.predicted
        return None if ours is None or theirs is None or not same else self._ratio(ours - theirs)

    def _array(self, comparison_model: str, metric: str) -> NDArray[np.float64] | None:
        sums = self.sums.get(comparison_model, {}).get(metric)
        return None if sums is None else np.array(sums, np.float64)

    def _ratio(self, sums: NDArray[np.float64]) -> "Estimate | None":
        from tacit.evaluation.intervals import ratio_of_means  # SciPy comes with it

        if len(sums) < 2 or not sum(self.predicted):
            return None
        return ratio_of_means(sums, np.array(self.predicted, np.float64))
