"""Whether adaptive clipping has failed, or noise has drowned a model: from what was measured, and what to do about it.

Paper 1 (arXiv:2305.18465, section 2.1) saw a run with a large report goal that "experiences catastrophic failure and
makes no progress in the first 1000 rounds": noise in proportion to a clip norm that is too large destroys the model,
whose updates then say nothing about the right clip norm. The rules here are rules of thumb for one verdict in words;
nothing of a run depends on them. The losses are means over a cohort and vary, so windows of rounds are compared, and a
difference counts only beyond several times what they vary by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST = 20  # rounds before anything is said
PATIENCE = 100  # rounds with a clip norm of the right size in which a run must have made progress
RISE = 0.1  # share by which the loss must be above its best to count as risen; a pre-trained model's first dip is less
COLLAPSED = 1 / 20  # of the largest estimate so far: clip norms of working runs fall as the model learns, but less
GROWN = 1.5  # times the estimate where the loss was best

ADVICE = (
    "begin a new run with a smaller clipping.initial, try a smaller report goal first, or fix privacy.clip_norm at an "
    "estimate of such a run (docs/accounting.md says why)"
)


@dataclass(frozen=True, kw_only=True)
class ClippingFailure:
    """`name` is "clip norm exploding", "clip norm collapsing" or "no progress"; `meaning` says what was seen."""

    name: str
    meaning: str

    @property
    def advice(self) -> str:
        """What was seen, and the ways out."""
        return f"{self.meaning}; {ADVICE}."


def clipping_failure(measures: Sequence[Mapping[str, float]]) -> ClippingFailure | None:
    """What is wrong with a run whose rounds measured this; None where nothing is, or the clip norm is fixed.

    measures: of each round from 0 on, "loss", "clipped" (share), "clip_norm" (in force) and "clip_estimate" (after it).
    """
    if len(measures) < SHORTEST or "clip_estimate" not in measures[-1]:
        return None
    loss, active, estimate = (
        np.array([each[name] for each in measures]) for name in ("loss", "clip_norm", "clip_estimate")
    )
    window = max(SHORTEST // 2, len(loss) // 20)
    best, best_at = _best(loss, window)
    last = loss[-window:]
    risen = not last.mean() <= best + max(RISE * best, 6 * float(last.std()))  # so that NaN has risen
    if not risen and not _stuck(loss, active, estimate, window):
        return None
    seen = (
        f"after {len(loss):,} rounds the training loss is {last.mean():.3g} (it was {loss[0]:.3g} at first and "
        f"{best:.3g} at best), the clip norm in force is {active[-1]:.3g}, its estimate {estimate[-1]:.3g}, and "
        f"{measures[-1]['clipped']:.0%} of the updates are clipped"
    )
    if risen and estimate[-1] > GROWN * estimate[best_at]:
        return ClippingFailure(name="clip norm exploding", meaning=f"the clip norm grows with the loss: {seen}")
    if estimate[-1] < COLLAPSED * max(estimate.max(), active.max()):
        return ClippingFailure(name="clip norm collapsing", meaning=f"the clip norm fell without progress: {seen}")
    return ClippingFailure(name="no progress", meaning=f"the model does not learn: {seen}")


def _best(loss: NDArray[np.float64], window: int) -> tuple[float, int]:
    """The smallest mean loss of a window of rounds, or that of the first model, and the last round of it."""
    means = np.convolve(loss, np.ones(window) / window, mode="valid")
    at = int(np.nanargmin(means)) if np.isfinite(means).any() else 0
    return (float(means[at]), at + window - 1) if means[at] < loss[0] else (float(loss[0]), 0)


def _stuck(loss: NDArray[np.float64], active: NDArray[np.float64], estimate: NDArray[np.float64], window: int) -> bool:
    """Whether the loss has never clearly come down although the clip norm had the size of the updates for long enough.

    Down from its worst window, not from its first: a pre-trained model gets worse in its first rounds, and may need
    hundreds to be as good again, while it learns all the time.
    """
    if np.count_nonzero(active >= estimate / 2) < PATIENCE:
        return False
    means = np.convolve(loss, np.ones(window) / window, mode="valid")
    worst, last = float(means.max()), loss[-window:]
    error = float(np.sqrt(2 * last.var() / window))  # of a difference of two windows; one was chosen, so four of it
    return not worst - last.mean() > max(0.01 * worst, 4 * error)


# -- a model that gets worse -------------------------------------------------------------------------------------------

MARGIN = 0.05  # share by which a loss must be above another to count as worse: evaluations of few clients vary


@dataclass(frozen=True, kw_only=True)
class Worse:
    """A model that does worse than the one it began as; `drowned`: worse than one that knows nothing, too."""

    rounds: int
    loss: float  # nats a word, of validation clients
    start: float  # the same before the first round
    knows_nothing: float  # the loss of equal chances for all words
    diverged: bool

    @property
    def name(self) -> str:
        """As a label has it, in lower case."""
        return "noise dominates" if self.diverged else "worse than its start"

    @property
    def meaning(self) -> str:
        """What was seen, and the ways out."""
        seen = (
            f"after {self.rounds:,} rounds the model loses {self.loss:.3g} nats a word on validation clients, "
            f"{self.start:.3g} before the first"
        )
        if not self.diverged:
            return f"{seen}; a pre-trained model may need a hundred rounds to be as good again, others should not."
        return (
            f"{seen}, and one that knows nothing {self.knows_nothing:.3g}: noise has drowned it, or it diverges; stop "
            "it, and take less noise (docs/which-epsilon.md) or a lower server.learning_rate."
        )


def worse_than_start(losses: Mapping[int, float], vocabulary: int) -> Worse | None:
    """Whether the last of these models does worse than the first; None where it does not, or there is but one.

    losses: cross-entropy on validation clients by rounds done, nats a word. vocabulary: ids of the model.
    """
    if 0 not in losses or len(losses) < 2:
        return None
    rounds, start, nothing = max(losses), losses[0], float(np.log(vocabulary))
    if losses[rounds] <= start * (1 + MARGIN):
        return None
    diverged = losses[rounds] > max(start, nothing) * (1 + MARGIN)
    return Worse(rounds=rounds, loss=losses[rounds], start=start, knows_nothing=nothing, diverged=diverged)
