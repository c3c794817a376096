"""Accuracy over devices: every held-out client counts its own words, and the counts are added up."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.errors import InputError
from tacit.evaluation.held_out import HeldOut, count_group
from tacit.networks.language_model import LanguageModel, Parameters
from tacit.networks.metrics import METRICS, TOP1, Counts

PUBLIC_ORDER = 20_191_022  # of clients: the date of paper 5
GROUP = 8  # clients counted in one compiled call


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Counts of each client and over all of them; which targets count is said in `keyboard.metrics`."""

    total: Counts
    clients: tuple[Counts, ...]

    def metrics(self) -> dict[str, float]:
        """What a run folder records: averages over words (micro) and the quartiles of accuracy over clients.

        Raises: InputError when no word could have been predicted.
        """
        if not self.total.predicted:
            raise InputError(
                f"none of the {self.total.words} words of the held-out clients is in the vocabulary, so there is no "
                "accuracy; import their text with a vocabulary that knows their language."
            )
        accuracies = [c.value(TOP1) for c in self.clients if c.predicted]
        low, middle, high = np.quantile(accuracies, [0.25, 0.5, 0.75])
        return {
            **{name: self.total.value(name) for name in METRICS},
            "words": float(self.total.words),
            "clients": float(len(self.clients)),
            "client_accuracy_q25": float(low),
            "client_accuracy_q50": float(middle),
            "client_accuracy_q75": float(high),
        }


def first_shuffled(clients: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """The first `many` of `clients` in a public random order; all of them for 0.

    Anybody can draw the order again, so that the choice of who is asked says nothing about anyone.
    """
    order: NDArray[np.int64] = np.random.default_rng(PUBLIC_ORDER).permutation(clients)
    return order[: many or len(order)]


def evaluate(
    network: LanguageModel, parameters: Parameters, held_out: HeldOut, *, cores: Cores, at_once: int = GROUP
) -> Evaluation:
    """Count how well a network with these parameters predicts the held-out clients, so many in one compiled call."""
    clients = len(held_out.sentences)
    missing = -clients % at_once
    sentences = np.concatenate([held_out.sentences, np.zeros((missing, *held_out.sentences.shape[1:]), np.int32)])
    there = {device: jax.device_put(parameters, device) for device in cores.devices}

    counted = count_group(network, tuple(METRICS))

    def one_group(device: Any, start: int) -> Counts:
        return counted(there[device], jax.device_put(sentences[start : start + at_once], device))  # type: ignore[no-any-return]

    groups = cores.map(one_group, list(range(0, len(sentences), at_once)))
    host = [jax.tree.map(np.asarray, group) for group in groups]
    each = [jax.tree.map(itemgetter(i), group).host() for group in host for i in range(at_once)][:clients]
    return Evaluation(total=sum(each, Counts()), clients=tuple(each))
