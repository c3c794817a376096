"""What an evaluation of models on devices promises: as it is asked for, and as its run folder says afterwards.

`tacit evaluate` and `tacit personalize` share this, and `tacit account run` reads it. No JAX here: an account must not
wait for it.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tacit.cli.console import console
from tacit.errors import InputError
from tacit.privacy import Participation, gaussian
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.rounding import rounded_up
from tacit.runs import Run
from tacit.statements import Ledger
from tacit.statements.ledger import release_from


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is released and at what price: kind "nothing", "central" (zcdp, epsilon at delta) or "local" (epsilon)."""

    kind: str = "nothing"
    zcdp: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """What is released; without any of the three, nothing."""

    zcdp: Annotated[float | None, typer.Option(help="Release the histograms with noise of this zCDP.")] = None
    epsilon: Annotated[float | None, typer.Option(help="Or of this epsilon at --delta.")] = None
    delta: Annotated[float, typer.Option(help="The delta of epsilon.")] = 1e-6
    local_epsilon: Annotated[
        float | None, typer.Option(help="Or let every device randomise its one report itself, with this epsilon.")
    ] = None

    def promise(self) -> Promise:
        """Raises: InputError for two prices, or one that is none."""
        given = [each for each in (self.zcdp, self.epsilon, self.local_epsilon) if each is not None]
        if len(given) > 1:
            raise InputError("--zcdp, --epsilon and --local-epsilon each say the whole price; give one.")
        if not 0 < self.delta < 1:
            raise InputError(f"--delta {self.delta:g} is not a probability between 0 and 1; give for example 1e-6.")
        if not given:
            return Promise()
        if not (given[0] > 0 and math.isfinite(given[0])):
            raise InputError(f"a price of {given[0]:g} releases nothing or promises nothing; give a number above 0.")
        if self.local_epsilon is not None:
            return Promise(kind="local", epsilon=self.local_epsilon)
        zcdp = given[0] if self.epsilon is None else gaussian.zcdp_for_epsilon(self.epsilon, self.delta)
        return Promise(kind="central", zcdp=zcdp, epsilon=gaussian.epsilon(zcdp, self.delta), delta=self.delta)


def asked_promise(run: Run) -> Promise:
    """What the run was begun with."""
    return Promise(**tomllib.loads(run.settings)["promise"])


def promise_of(run: Run, delta: float | None = None) -> dict[str, Any]:
    """What is released promises to each asked client: by the ledger, or by what its device does.

    delta: left out, the one asked for. Where nothing is released yet, the kind is "nothing".
    """
    asked = asked_promise(run)
    ledger = Ledger(tuple(release_from(each) for row in run.steps() for each in row.releases))
    if asked.kind == "nothing" or (asked.kind == "central" and not ledger.releases):
        return {"kind": "nothing"}
    facts = {"kind": asked.kind, "unit": "client", "adjacency": "zero-out", "key_source": run.metadata.key_source}
    if asked.kind == "local":
        return {**facts, "epsilon": asked.epsilon, "delta": 0.0}
    rounds, clients = run.participations()
    composition = ledger.composition(Participation.realised(run.steps_done, rounds, clients))
    at = asked.delta if delta is None else delta
    return {
        **facts,
        "zcdp": composition.zcdp,
        "epsilon": composition.epsilon(at),
        "delta": at,
        "steps": len(ledger.releases),
        "histograms": [round(each.clip_norm**2) for each in ledger.noised_sums],
        "stddev_of_a_count": [each.clip_norm * each.noise_multiplier for each in ledger.noised_sums],
    }


def say_promise(promise: Mapping[str, Any]) -> None:
    """One line for people of what `promise_of` found; a second where the noise can be taken away."""
    if promise["kind"] == "nothing":
        console.print("NOTHING WAS RELEASED")
        return
    price = f"epsilon {rounded_up(promise['epsilon'])} at delta {promise['delta']:g}"
    console.print(f"RELEASED ({promise['kind']}): {price}, per client")
    if promise["key_source"] != OPERATING_SYSTEM:
        console.print(f"FIXED SEED: randomness came from {promise['key_source']}; who knows it can take the noise away")
