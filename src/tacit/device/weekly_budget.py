"""What a device's participations of the last seven days cost, against what its owner allows for any seven days.

A run counts whole where the device took part in it in that week: what it has cost until now, earlier weeks included.
Where noise is correlated over rounds, the part of one week has no cost of its own that adds up with the others. So k
weeks cost at most k times the limit.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.device.policy import FILE as POLICY_FILE
from tacit.errors import TaskRefused
from tacit.federation.cost import ROUNDING

WEEK = 7 * 86400.0  # seconds


def spent_since(parts: Sequence[Mapping[str, Any]], when: float, *, but: tuple[str, str] | None = None) -> float:
    """rho of all runs in which the device took part after `when` (Unix seconds), each whole.

    parts: as `DeviceRecord.participations`. but: (population, run) that is left out.
    """
    costs: dict[tuple[str, str], float] = {}
    lately = {(each["population"], each["run"]) for each in parts if each["at"] > when}
    for each in parts:
        run = (each["population"], each["run"])
        if run in lately and run != but:
            costs[run] = max(costs.get(run, 0.0), each["zcdp"])  # of a run with each of its rounds so far
    return math.fsum(costs.values())


def check_week(
    parts: Sequence[Mapping[str, Any]], run: tuple[str, str], zcdp: float, *, allowed: float, now: float, what: str
) -> None:
    """TaskRefused where a participation now would bring the runs of the last seven days above what is allowed.

    run: (population, run) of the participation; zcdp: what that run will have cost with it. what: for the sentence.
    """
    week = spent_since(parts, now - WEEK, but=run) + zcdp
    if not week <= allowed * (1 + ROUNDING):
        raise TaskRefused(
            f"{what} would bring the runs of seven days to zCDP {week:.4g}, and budget_zcdp_week={allowed:g}; wait "
            f"until they are longer ago, or raise it in {POLICY_FILE}."
        )
