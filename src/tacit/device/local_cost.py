"""What a plan costs whose reports this device randomises itself: nobody has to be believed for it.

A report's epsilon is that of the randomizer which the device itself runs, by the settings in the plan's recipe; what it
sends in a run costs their sum, and in the one budget of all runs rho = epsilon^2 / 2 (Bun & Steinke 2016,
arXiv:1605.02065, Proposition 1.4).
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.errors import InputError, TaskRefused
from tacit.protocol.messages import LocalPrivacy, Plan
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.records import from_plain

ROUNDING = 1e-9  # relative: figures that two machines computed from the same numbers
ASK = "ask the operator for a plan in order"


@dataclass(frozen=True, kw_only=True)
class LocalPrice:
    """A plan, and what follows from how its reports are randomised."""

    plan: Plan
    reports: LocalReportSettings

    @property
    def local_epsilon(self) -> float:
        """Of everything that this device sends in the run, at delta 0."""
        return self.reports.user_epsilon

    @property
    def zcdp(self) -> float:
        """rho of a whole run, in which it answers once."""
        return self.local_epsilon**2 / 2

    def spent(self, rounds: Sequence[int]) -> float:
        """rho of one device's answers in these different rounds, which add up."""
        return len(set(rounds)) * self.zcdp


def local_price(plan: Plan) -> LocalPrice:
    """Of a plan to discover. Raises: TaskRefused where it claims less than its numbers cost, or asks more than once."""
    privacy, what = plan.privacy, f"the plan of run {plan.run!r}"
    if not isinstance(privacy, LocalPrivacy):
        raise TaskRefused(f"{what} is to {plan.kind}, and what it promises is of another kind; {ASK}.")
    try:
        found = LocalPrice(plan=plan, reports=from_plain(LocalReportSettings, _reports(plan), where=what))
    except InputError as error:
        raise TaskRefused(f"no guarantee follows from the numbers of {what}: {error}") from error
    if found.local_epsilon > privacy.local_epsilon * (1 + ROUNDING):
        raise TaskRefused(
            f"{what} claims local epsilon {privacy.local_epsilon:.6g}, and its own numbers give "
            f"{found.local_epsilon:.6g}; an operator who claims too much is not to be believed."
        )
    if privacy.zcdp is None or found.zcdp > privacy.zcdp * (1 + ROUNDING):
        raise TaskRefused(
            f"{what} claims zCDP {privacy.zcdp}, and its own numbers give {found.zcdp:.6g}; an operator who claims too "
            "much is not to be believed."
        )
    if privacy.max_participations != 1 or plan.separation.rounds != privacy.rounds:
        raise TaskRefused(f"{what} lets a device answer more than once, and each answer costs as much again; {ASK}.")
    return found


def _reports(plan: Plan) -> Mapping[str, Any]:
    """How reports are randomised, as the plan's recipe has it. Raises: InputError."""
    try:
        found = tomllib.loads(plan.recipe).get("reports")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"its recipe is no TOML ({error})") from None
    if not isinstance(found, dict):
        raise InputError("its recipe has no section [reports], so nothing says how a device hides its answers")
    return found
