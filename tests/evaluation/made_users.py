"""Made-up reports of devices whose truth is known: what tests of the server's part of personalization run on."""

import numpy as np
from tests.support.keyboard.counting import counted

from tacit.evaluation.personalize.outcomes import ClientOutcome, Paired, PartComparison
from tacit.networks.metrics import TOP1, Counts


def comparison(draw: np.random.Generator, *, words: int, accuracy: float, shifts: tuple[float, ...]) -> PartComparison:
    """`words` words that the global model gets right with probability `accuracy`, and each strategy with `shift` more.

    A tenth of the words changes sides by chance, evenly, before the shift.
    """
    right = int(draw.binomial(words, accuracy))
    personalised, pairs = [], []
    for shift in shifts:
        lost = int(draw.binomial(right, min(0.1 + max(-shift, 0.0), 1.0)))
        gained = int(draw.binomial(words - right, min(0.1 * accuracy / (1 - accuracy) + max(shift, 0.0), 1.0)))
        pairs.append(Paired(right - lost, lost, gained, words - right - gained))
        hits = right - lost + gained
        personalised.append(_counts(words, hits))
    return PartComparison(baseline=_counts(words, right), personalised=tuple(personalised), paired=tuple(pairs))


def made_users(
    clients: int,
    shifts: tuple[float, ...] = (0.03, 0.0, -0.05),
    *,
    seed: int = 1,
    gate: bool = True,
    spread: float = 0.03,
) -> list[ClientOutcome]:
    """Reports of `clients` devices whose strategies change accuracy by about `shifts`, differently for everybody."""
    draw = np.random.default_rng(seed)
    found = []
    for client in range(clients):
        accuracy = float(draw.uniform(0.05, 0.3))
        own = tuple(float(shift + spread * draw.standard_normal()) for shift in shifts)
        words = int(draw.integers(100, 900))
        found.append(
            ClientOutcome(
                client=client,
                train_tokens=4 * words,
                test=comparison(draw, words=words, accuracy=accuracy, shifts=own),
                gate=comparison(draw, words=words // 2 + 1, accuracy=accuracy, shifts=own) if gate else None,
                tokens_seen=(4 * words,) * len(shifts),
                training_loss=(5.0,) * len(shifts),
                diverged=(False,) * len(shifts),
            )
        )
    return found


def diverged(outcome: ClientOutcome) -> ClientOutcome:
    """The same device if no fine-tuning had stayed finite."""
    from dataclasses import replace

    def lost(part: PartComparison) -> PartComparison:
        right, words = int(part.baseline.sums[TOP1]), int(part.baseline.predicted)
        broken = counted(words=words, predicted=words, nats=float("inf"))
        pair = Paired(0, right, 0, words - right)
        return PartComparison(
            baseline=part.baseline, personalised=(broken,) * len(part.paired), paired=(pair,) * len(part.paired)
        )

    gate = None if outcome.gate is None else lost(outcome.gate)
    return replace(outcome, test=lost(outcome.test), gate=gate, diverged=(True,) * len(outcome.diverged))


def _counts(words: int, hits: int) -> Counts:
    return counted(words=words, predicted=words, top1=hits, top3=min(words, 2 * hits), nats=6.0 * words)
