"""The privacy cost of a plan whose reports this device randomises itself: it trusts nobody.

A report's epsilon is that of the randomizer which the device itself runs, by the settings in the plan's recipe; what it
sends in a run costs their sum, and in the one budget of all runs rho = epsilon^2 / 2 (Bun & Steinke 2016,
arXiv:1605.02065, Proposition 1.4).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import InputError, TaskRefused
from tacit.federation.cost import ASK, Cost, checked_claims
from tacit.protocol.messages import LocalPrivacy, Plan
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.records import from_plain


@dataclass(frozen=True, kw_only=True)
class LocalCost(Cost):
    """Of a plan to discover: the device answers once, and its local epsilon is of all that it sends then."""

    reports: LocalReportSettings  # how it hides its answers


def local_cost(plan: Plan) -> LocalCost:
    """Of a plan to discover. Raises: TaskRefused where it claims less than its numbers cost, or asks more than once."""
    privacy, what = plan.privacy, f"the plan of run {plan.run!r}"
    if not isinstance(privacy, LocalPrivacy):
        raise TaskRefused(f"{what} is to {plan.kind}, and what it promises is of another kind; {ASK}.")
    try:
        reports = from_plain(LocalReportSettings, _reports(plan), where=what)
    except InputError as error:
        raise TaskRefused(f"no guarantee follows from the numbers of {what}: {error}") from error
    epsilon = reports.user_epsilon
    found = LocalCost(zcdp=epsilon**2 / 2, local_epsilon=epsilon, reports=reports)
    checked_claims(what, found, zcdp=privacy.zcdp, local_epsilon=privacy.local_epsilon)
    if privacy.max_participations != 1 or plan.separation.rounds != privacy.rounds:
        raise TaskRefused(f"{what} lets a device answer more than once, and each answer costs as much again; {ASK}.")
    return replace(found, local_epsilon=privacy.local_epsilon)  # what an owner accepts, a plan may come to in full


def _reports(plan: Plan) -> Mapping[str, Any]:
    """How reports are randomised, as the plan's recipe has it. Raises: InputError."""
    try:
        found = tomllib.loads(plan.recipe).get("reports")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"its recipe is no TOML ({error})") from None
    if not isinstance(found, dict):
        raise InputError("its recipe has no section [reports], so nothing says how a device hides its answers")
    return found
