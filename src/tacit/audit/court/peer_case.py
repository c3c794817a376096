"""What a peer's script says of one promise: the claim, and the scores or the true value that it is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from tacit.audit.court.exhibit import Law, Scores
from tacit.audit.finding import Measure
from tacit.errors import InputError
from tacit.privacy import gaussian
from tacit.privacy.empirical.samples import sample


@dataclass(frozen=True, kw_only=True)
class PeerCase:
    """One promise of a peer's. absent, present: (n,), of the laws that have scores; value: of the law "exact".

    known: where the peer's own thread says that the promise is broken; empty where nobody does.
    """

    peer: str
    package: str
    subject: str
    threat_model: str
    measure: Measure
    law: Law
    claim: float
    delta: float | None
    absent: Scores
    present: Scores
    value: float
    known: str


def peer_case(peer: str, package: str, said: Mapping[str, Any], known: Mapping[str, str]) -> PeerCase:
    """A case of a script's answer, checked. Its `claim` is null where nothing is promised.

    Instead of scores an account's case has the `mu` of the Gaussian mechanism it is of; the true epsilon is ours.

    Raises: InputError where something is missing or is no number.
    """
    try:
        measure, law, delta = said["measure"], said["law"], said.get("delta")
        if measure not in get_args(Measure) or law not in get_args(Law):
            raise InputError(f"a case of the peer {peer} has the measure {measure!r} and the law {law!r}.")
        nothing = np.zeros(0)
        return PeerCase(
            peer=peer,
            package=package,
            subject=str(said["subject"]),
            threat_model=str(said["threat_model"]),
            measure=measure,
            law=law,
            claim=float("inf") if said["claim"] is None else float(said["claim"]),
            delta=None if delta is None else float(delta),
            absent=sample("absent", said["absent"]) if law in ("any", "normal") else nothing,
            present=nothing if law == "exact" else sample("present", said["present"]),
            value=gaussian.epsilon_of_mu(float(said["mu"]), float(said["delta"])) if law == "exact" else 0.0,
            known=known.get(said["case"], ""),
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"a case of the peer {peer} cannot be read ({error!r}); its script and package disagree."
        ) from error
