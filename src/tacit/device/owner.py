"""What a device did, for its owner: what left it, to whom, what that cost and what is left; and what the owner may do.

    STATE/device.db            the record, which is read and never written here
    STATE/paused               while this file is there, the device takes part in nothing

What was spent is never forgotten: a device that forgot it would spend it again.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

from tacit.device.eligibility import PAUSED
from tacit.device.policy import FILE as POLICY_FILE
from tacit.device.policy import Policy
from tacit.device.record import FILE as RECORD
from tacit.device.record import opened, read_only
from tacit.device.weekly_budget import WEEK, spent_since
from tacit.errors import DeviceError, InputError, of_type
from tacit.federation.kinds import FEDERATED
from tacit.files import PathLike, as_path, write_whole
from tacit.protocol.log_proofs import leaf_of, root_of
from tacit.protocol.messages import Plan


@dataclass(frozen=True, kw_only=True)
class RunOnDevice:
    """One run in which the device took part: how often, what left it each time, and what all of it cost."""

    population: str
    run: str
    kind: str
    leaves: str  # in each round, in words
    summed: str  # how: plain (the operator sees each report), encoded, sealed
    rounds: tuple[int, ...]
    received: int  # of them, for which the operator signed
    first: float  # Unix seconds
    last: float
    zcdp: float


@dataclass(frozen=True, kw_only=True)
class DeviceStatus:
    """A device as its record has it, and what its owner allows."""

    state: str
    paused: bool
    operators: tuple[str, ...]  # public keys that were pinned, the present one last
    runs: tuple[RunOnDevice, ...]
    plans: int  # that are kept, of these runs and of others
    log_size: int  # entries that are kept of the operator's log
    log_root: str  # of their tree, in hexadecimal digits: who saw the same log has the same
    since: float | None  # from when on the record is the whole truth; None: always
    spent_zcdp: float
    budget_zcdp: float
    week_zcdp: float  # of the runs of the last seven days, each whole
    budget_zcdp_week: float | None  # None: the policy limits no week
    forgotten: str = ""  # what was forgotten just now

    @property
    def left_zcdp(self) -> float:
        """What the device may still spend, in all and by its week."""
        week = math.inf if self.budget_zcdp_week is None else self.budget_zcdp_week - self.week_zcdp
        return max(min(self.budget_zcdp - self.spent_zcdp, week), 0.0)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit device --show --json` prints."""
        return {
            "schema": "tacit.device_status",
            "version": 1,
            "state": self.state,
            "paused": self.paused,
            "operators": list(self.operators),
            "runs": [{**vars(each), "rounds": list(each.rounds)} for each in self.runs],
            "plans": self.plans,
            "log_size": self.log_size,
            "log_root": self.log_root,
            "since": self.since,
            "spent_zcdp": self.spent_zcdp,
            "budget_zcdp": self.budget_zcdp,
            "week_zcdp": self.week_zcdp,
            "budget_zcdp_week": self.budget_zcdp_week,
            "left_zcdp": self.left_zcdp,
            "forgotten": self.forgotten,
        }

    def __str__(self) -> str:
        """For people: a paragraph, a line for each run, what is left."""
        lines = [self.forgotten] if self.forgotten else []
        if self.paused:
            lines.append("PAUSED: the device takes part in nothing; `tacit device --state STATE --resume` ends that.")
        lines.append(f"operator: {self.operators[-1] if self.operators else 'none is pinned yet'}")
        if not self.runs:
            lines.append("Nothing left this device yet.")
        for each in self.runs:
            times = f"{len(each.rounds)} time{'s' if len(each.rounds) > 1 else ''}"
            lines.append(
                f"{each.run} of {each.population} ({each.kind}): {times} {each.leaves}, {SEEN[each.summed]}; "
                f"{each.received} received; {_day(each.first)} to {_day(each.last)}; zCDP {each.zcdp:.4g}"
            )
        lines.append(
            f"spent: zCDP {self.spent_zcdp:.4g} of {self.budget_zcdp:g} in all, {self.week_zcdp:.4g}"
            + ("" if self.budget_zcdp_week is None else f" of {self.budget_zcdp_week:g}")
            + f" by the runs of the last seven days; {self.left_zcdp:.4g} is left"
        )
        if self.since is not None:
            lines.append(f"The record may lack what was before {_day(self.since)}: it was new, or a copy, then.")
        lines.append(
            f"kept: {self.plans} plans, {self.log_size} entries of the operator's log, of root {self.log_root}"
        )
        return "\n".join(lines)


SEEN = {
    "plain": "which the operator could read",
    "encoded": "which the operator could read, as integers",
    "sealed": "of which the operator sees sums alone",
}


def device_status(state: PathLike, *, pause: bool | None = None, forget: bool = False) -> DeviceStatus:
    """What a device did, by the record in its folder; it may run meanwhile.

    pause: take part in nothing from now on (True), or again (False). forget: remove the plans of runs in which it
    never took part; no device may run in that folder then. What was spent stays. Raises: InputError
    where there is no device; DeviceError where its record cannot be read, or it runs and is to forget.
    """
    of_type("pause", pause, bool, NoneType)
    of_type("forget", forget, bool)
    place = as_path("state", state)
    if not (place / RECORD).is_file():
        raise InputError(f"--state '{place}' has no {RECORD}, so no device has been there; give the folder of one.")
    if pause is not None:
        _pause(place, pause)
    forgotten = _forget(place) if forget else ""
    policy, now = Policy.load(place / POLICY_FILE), time.time()
    with read_only(place) as record:
        parts, plans = record.participations(), record.kept_plans()
        return DeviceStatus(
            state=str(place),
            paused=(place / PAUSED).exists(),
            operators=record.operators,
            runs=_runs(parts, plans),
            plans=len(plans),
            log_size=len(record.log),
            log_root=root_of(map(leaf_of, record.log)).hex(),
            since=record.since,
            spent_zcdp=record.spent(),
            budget_zcdp=policy.budget_zcdp,
            week_zcdp=spent_since(parts, now - WEEK),
            budget_zcdp_week=None if policy.budget_zcdp_week == math.inf else policy.budget_zcdp_week,
            forgotten=forgotten,
        )


def _pause(place: Path, pause: bool) -> None:
    try:
        if pause:
            write_whole(place / PAUSED, b"")
        else:
            (place / PAUSED).unlink(missing_ok=True)
    except OSError as error:
        raise DeviceError(
            f"'{place / PAUSED}' cannot be changed ({error.strerror}); give the right to write."
        ) from error


def _forget(place: Path) -> str:
    """Remove what may be forgotten; what that was, in a sentence."""
    with opened(place, now=time.time()) as record:
        plans = record.forget_plans()
    return (
        f"Forgotten: {plans} plans of runs in which the device never took part. What it took part in and what that "
        "cost stays: a device that forgot it would spend it again. What left the device is with others and cannot be "
        "called back."
    )


def _runs(parts: list[dict[str, Any]], plans: Mapping[tuple[str, str], Plan]) -> tuple[RunOnDevice, ...]:
    """Participations by their runs, in the order of the first."""
    found = []
    for population, run in dict.fromkeys((each["population"], each["run"]) for each in parts):
        own = [each for each in parts if (each["population"], each["run"]) == (population, run)]
        plan = plans[population, run]
        found.append(
            RunOnDevice(
                population=population,
                run=run,
                kind=plan.kind,
                leaves=FEDERATED[plan.kind].leaves,
                summed=plan.aggregation.kind,
                rounds=tuple(sorted(each["round"] for each in own)),
                received=sum(each["received"] for each in own),
                first=min(each["at"] for each in own),
                last=max(each["at"] for each in own),
                zcdp=max(each["zcdp"] for each in own),
            )
        )
    return tuple(found)


def _day(when: float) -> str:
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d}"
