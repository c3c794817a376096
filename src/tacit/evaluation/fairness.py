"""How a model's accuracy is spread over users: quantiles, and the worst decile.

The same for one model or several on the same clients; two models are compared client by client, which is far sharper
than comparing their averages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import InputError
from tacit.evaluation.counts.model_queries import accuracies_of
from tacit.evaluation.intervals import Estimate, as_share, mean_of, quantile_of, share_of, worst_share_of
from tacit.networks.metrics import TOP1, Counts

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A model's top-1 accuracy over clients; every interval is for the population they were drawn from."""

    clients: int
    unmeasured: int  # without a known word, hence without an accuracy
    pooled: float  # over words: who types more counts more
    top3: float  # over words
    cross_entropy: float  # nats a word
    mean: Estimate  # over clients
    quantiles: dict[float, Estimate]
    worst_decile: Estimate  # mean over the tenth of clients with the lowest accuracy


@dataclass(frozen=True, kw_only=True)
class Advantage:
    """What a model changes for the same clients against another: top-1 accuracy, client by client."""

    mean: Estimate
    better: Estimate  # share of clients whose accuracy is higher
    worse: Estimate
    worst_decile: float  # of the one less that of the other; over different clients, so without an interval


def spread_of(clients: Sequence[Counts]) -> Spread:
    """Raises: InputError where fewer than two clients have a word to judge by."""
    accuracies = accuracies_of(clients)
    measured = accuracies[~np.isnan(accuracies)]
    total = sum(clients, Counts())
    if measured.size < 2:
        raise InputError(
            f"{measured.size} of {len(clients)} clients typed a word that the vocabulary knows, and a spread needs "
            "two; take more clients, or a vocabulary of their language."
        )
    return Spread(
        clients=measured.size,
        unmeasured=len(clients) - measured.size,
        pooled=total.value(TOP1),
        top3=total.value("top3_accuracy"),
        cross_entropy=total.value("cross_entropy"),
        mean=as_share(mean_of(measured)),
        quantiles={q: quantile_of(measured, q) for q in QUANTILES},
        worst_decile=as_share(worst_share_of(measured, 0.1)),
    )


def advantage_of(ours: Sequence[Counts], theirs: Sequence[Counts]) -> Advantage:
    """`ours` against `theirs`, entry by entry the same clients. InputError where they cannot be the same."""
    if [each.predicted for each in ours] != [each.predicted for each in theirs]:
        raise InputError("the two models were counted on different words; evaluate both on the same clients.")
    mine, other = accuracies_of(ours), accuracies_of(theirs)
    there = ~np.isnan(mine)
    change = (mine - other)[there]
    return Advantage(
        mean=mean_of(change),
        better=share_of(int(np.sum(change > 0)), change.size),
        worse=share_of(int(np.sum(change < 0)), change.size),
        worst_decile=worst_share_of(mine[there]).value - worst_share_of(other[there]).value,
    )


def shared_vocabulary(digests: Mapping[str, str]) -> None:
    """Raises: InputError naming the first model or cache whose vocabulary differs from the first one's."""
    (first, wanted), *rest = digests.items()
    for name, digest in rest:
        if digest != wanted:
            raise InputError(
                f"{name} has the vocabulary {digest[:12]} and {first} has {wanted[:12]}: the same ids would stand for "
                "different words, or for words of another origin; import the text with the model's own (`tacit data "
                "import --vocabulary MODEL/vocabulary.json`)."
            )
