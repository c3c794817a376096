"""What an audit says in the statement of the run that it made: how many canaries took part, and what they showed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InputError, RunError
from tacit.privacy.empirical.samples import error_of
from tacit.records import from_plain
from tacit.runs import Run
from tacit.statements.contradictions import ASK, check_count

AUDIT, SCORES = "audit", "canary scores"  # the notes of a run with canaries in it
SEES = {"all": "all released models", "last": "the last model alone"}


@dataclass(frozen=True, kw_only=True)
class Audited:
    """Of a run with canaries in it. mu_shown: at least so much, with the confidence; None before it is known.

    canaries: with gradients, by coins; users: of random sentences. sees: what the bound was made from, "all" or "last".
    """

    canaries: int
    users: int
    sees: str
    confidence: float
    tacit: str
    command: str
    mu_shown: float | None = None

    def __post_init__(self) -> None:
        for name in ("canaries", "users"):
            check_count(f"audited.{name}", getattr(self, name), minimum=0)
        if self.canaries + self.users < 1 or self.sees not in SEES:
            raise InputError(f"audited has canaries={self.canaries}, users={self.users}, sees={self.sees!r}; {ASK}.")
        error_of(self.confidence)
        if self.mu_shown is not None and not self.canaries:
            raise InputError(f"audited.mu_shown={self.mu_shown} was shown by no canaries; {ASK}.")
        if self.mu_shown is not None and not 0 <= self.mu_shown < math.inf:
            raise InputError(f"audited.mu_shown={self.mu_shown} is no lower bound; {ASK}.")

    def sentence(self, mu: float) -> str:
        """What was shown, beside the claim; nothing is promised by it."""
        if not self.canaries:
            return (
                f"{self.users:,} users with random sentences took part: how well the model knows these says "
                f"`{self.command}` of tacit {self.tacit}, which bounds no mu."
            )
        if self.mu_shown is None:
            return f"An audit by `{self.command}` (tacit {self.tacit}) has found nothing yet."
        return (
            f"Audited: mu is at least {self.mu_shown:.4g} with confidence {self.confidence:g}, by {self.canaries:,} "
            f"canaries in the view of {SEES[self.sees]}, against {mu:.4g} as planned "
            f"({'REFUTED' if self.mu_shown > mu else 'not refuted'}), by `{self.command}` of tacit {self.tacit}. A "
            "lower bound is no estimate, and the bound assumes that canaries' directions are uniform on a sphere and "
            "that scores are normal."
        )


def audited(run: Run) -> Audited | None:
    """From the notes of the run, the bound computed again from its scores; None of a run without canaries."""
    noted = run.notes.get(AUDIT)
    if noted is None:
        return None
    found = from_plain(Audited, noted, error=RunError, where=f"the audit in '{run.path}'")
    scores = run.notes.get(SCORES)
    if scores is None or not found.canaries:
        return found
    return Audited(**{**noted, "mu_shown": mu_shown(scores, found.sees, found.confidence)})


def mu_shown(noted: Mapping[str, Any], sees: str, confidence: float) -> float:
    """The lower bound of noted scores: by the cosines of the groups that were in, divided by the size of a group."""
    from tacit.privacy.empirical.normal_scores import mu_of_cosines  # SciPy comes with it

    included, dimension = np.array(noted["included"], bool), int(noted["dimension"])
    cosines = np.array(noted[sees], float)[included] / math.sqrt(dimension)
    return mu_of_cosines(cosines, dimension, confidence=confidence).lower / int(noted["alike"])
