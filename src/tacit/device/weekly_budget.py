"""What a device's participations of the last seven days cost, against what its owner allows for any seven days.

A run counts whole where the device took part in it in that week: what it has cost until now, earlier weeks included.
Where noise is correlated over rounds, the part of one week has no cost of its own that adds up with the others. So k
weeks cost at most k times the limit. What was charged for a loss of state counts in the week of the loss.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.device.policy import FILE as POLICY_FILE
from tacit.errors import TaskRefused
from tacit.federation.cost import ROUNDING

WEEK = 7 * 86400.0  # seconds


def spent_since(costs: Sequence[Mapping[str, Any]], when: float, *, but: str | None = None) -> float:
    """rho of all runs in which the device took part after `when` (Unix seconds), each whole.

    costs: as `DeviceRecord.costs`. but: digest of the plan whose run is left out.
    """
    spent: dict[str, float] = {}
    lately = {each["plan"] for each in costs if each["at"] > when}
    for each in costs:
        plan = each["plan"]
        if plan in lately and plan != but:
            spent[plan] = max(spent.get(plan, 0.0), each["zcdp"])  # of a run with each of its rounds so far
    return math.fsum(spent.values())


def check_week(
    costs: Sequence[Mapping[str, Any]], plan: str, zcdp: float, *, allowed: float, now: float, what: str
) -> None:
    """TaskRefused where a participation now would bring the runs of the last seven days above what is allowed.

    costs: as `DeviceRecord.costs`. plan: digest of the participation's; zcdp: what its run will have cost with it.
    what: for the sentence.
    """
    week = spent_since(costs, now - WEEK, but=plan) + zcdp
    if not week <= allowed * (1 + ROUNDING):
        raise TaskRefused(
            f"{what} would bring the runs of seven days to zCDP {week:.4g}, and budget_zcdp_week={allowed:g}; wait "
            f"until they are longer ago, or raise it in {POLICY_FILE}."
        )
