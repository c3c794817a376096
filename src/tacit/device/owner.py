"""What a device did, for its owner: what left it, to whom, what that cost and what is left; and what the owner may do.

    STATE/device.db            the record, which is read with its journal and never written here
    STATE/paused               while this file is there, the device takes part in nothing

What was spent is never forgotten: a device that forgot it would spend it again.
"""

import math
import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

from tacit.device.eligibility import PAUSED
from tacit.device.policy import FILE as POLICY_FILE
from tacit.device.policy import Policy
from tacit.device.record import FILE as RECORD
from tacit.device.record import RECORD_FORM, DeviceRecord, opened, read_only
from tacit.device.state_file import copied
from tacit.device.weekly_budget import WEEK, spent_since
from tacit.errors import DeviceError, InputError, of_type
from tacit.federation.kinds import FEDERATED
from tacit.files import PathLike, as_path, write_whole
from tacit.plurals import quantity
from tacit.protocol.log_proofs import leaf_of, root_of


@dataclass(frozen=True, kw_only=True)
class RunOnDevice:
    """One run in which the device took part: how often, what left it each time, and what all of it cost."""

    operator: str  # public key of the operator, as it was then
    population: str
    run: str
    plan: str  # SHA-256 of the plan that it was given
    kind: str
    leaves: str  # in each round, in words
    summed: str  # how: plain (the operator sees each report), encoded, sealed
    rounds: tuple[int, ...]
    received: int  # of them, for which the operator signed
    first: float  # Unix seconds
    last: float
    zcdp: float


@dataclass(frozen=True, kw_only=True)
class KeptLog:
    """What is kept of an operator's log."""

    operator: str  # its public key
    size: int  # entries
    root: str  # of their tree, in hexadecimal digits: who saw the same log has the same


@dataclass(frozen=True, kw_only=True)
class DeviceStatus:
    """A device as its record has it, and what its owner allows."""

    state: str
    paused: bool
    operators: tuple[str, ...]  # public keys of all that are pinned, in the order in which they were first
    runs: tuple[RunOnDevice, ...]
    plans: int  # that are kept, of these runs and of others
    logs: tuple[KeptLog, ...]  # of the operators that showed one
    since: float | None  # from when on the record is the whole truth; None: always
    lost_zcdp: float  # charged, within `spent_zcdp`, for what the record may lack
    spent_zcdp: float  # of all operators' runs
    budget_zcdp: float
    week_zcdp: float  # of the runs of the last seven days, each whole
    budget_zcdp_week: float | None  # None: the policy limits no week
    forgotten: str = ""  # what was forgotten just now

    @property
    def left_zcdp(self) -> float:
        """What the device may still spend, in all and by its week."""
        week = math.inf if self.budget_zcdp_week is None else self.budget_zcdp_week - self.week_zcdp
        ever = math.inf if self.budget_zcdp == math.inf else self.budget_zcdp - self.spent_zcdp
        return max(min(ever, week), 0.0)

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
            "logs": [dict(vars(each)) for each in self.logs],
            "since": self.since,
            "lost_zcdp": self.lost_zcdp,
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
        lines += [f"operator: {key}" for key in self.operators or ["none is pinned yet"]]
        if not self.runs:
            lines.append("Nothing left this device yet.")
        for each in self.runs:
            times = quantity(len(each.rounds), "time")
            lines.append(
                f"{each.run} of {each.population}, by {each.operator[:16]}... ({each.kind}): {times} {each.leaves}, "
                f"{SEEN[each.summed]}; {each.received} received; {_day(each.first)} to {_day(each.last)}; zCDP "
                f"{each.zcdp:.4g}; plan {each.plan}"
            )
        lines.append(
            f"spent: zCDP {self.spent_zcdp:.4g} of {self.budget_zcdp:g} in all, {self.week_zcdp:.4g}"
            + ("" if self.budget_zcdp_week is None else f" of {self.budget_zcdp_week:g}")
            + f" by the runs of the last seven days; {self.left_zcdp:.4g} is left"
        )
        if self.since is not None:
            lines.append(
                f"The record may lack what was before {_day(self.since)}: it and its journal were new, or copies, "
                f"then. So zCDP {self.lost_zcdp:.4g} of what is spent stands for that; to allow more, raise "
                f"budget_zcdp in {POLICY_FILE}."
            )
        lines.append(PROMISE)
        lines.append(f"kept: {self.plans} plans")
        lines += [f"kept: {each.size} entries of the log of {each.operator}, of root {each.root}" for each in self.logs]
        return "\n".join(lines)


PROMISE = (
    "These limits hold over all operators, and after record or journal were lost, but not after both were put back "
    "together with their disk (a snapshot): nothing on the device tells that from what was."
)
SEEN = {
    "plain": "which the operator could read",
    "encoded": "which the operator could read, as integers",
    "sealed": "of which the operator sees sums alone",
}


def device_status(
    state: PathLike, *, journal: PathLike | None = None, pause: bool | None = None, forget: bool = False
) -> DeviceStatus:
    """What a device did, by the record in its folder and its journal; it may run meanwhile.

    state: the device's folder. journal: its folder, where the device runs with another than `run_device` chooses.
    pause: take part in nothing from now on (True), or again (False). forget: remove the plans of runs in which it never
    took part; no device may run in that folder then. What was spent stays. Raises: InputError where there is no device;
    DeviceError where its record cannot be read, or it runs and is to forget.
    """
    of_type("pause", pause, bool, NoneType)
    of_type("forget", forget, bool)
    place, second = as_path("state", state), None if journal is None else as_path("journal", journal)
    if not (place / RECORD).is_file():
        raise InputError(f"--state '{place}' has no {RECORD}, so no device has been there; give the folder of one.")
    if pause is not None:
        _pause(place, pause)
    policy, now = Policy.load(place / POLICY_FILE), time.time()
    forgotten = _forget(place, second, policy, now) if forget else ""
    with read_only(place, second, now=now, budget_zcdp=policy.budget_zcdp) as record:
        return _status(place, record, policy, now, forgotten)


def status_of_copy(state: Path, database: sqlite3.Connection, *, now: float) -> DeviceStatus:
    """The same by a copy of the record alone, for who may neither lock the folder nor look beside it: what only the
    journal has, of a device that was killed between both or whose folder was put back, is not in it.

    Raises: DeviceError where the copy is no record of this version; InputError of a policy.
    """
    record = DeviceRecord(state, copied(database, RECORD_FORM))
    return _status(state, record, Policy.load(state / POLICY_FILE), now, "")


def _status(state: Path, record: DeviceRecord, policy: Policy, now: float, forgotten: str) -> DeviceStatus:
    return DeviceStatus(
        state=str(state),
        paused=(state / PAUSED).exists(),
        operators=record.operators,
        runs=_runs(record.participations()),
        plans=record.plans(),
        logs=tuple(
            KeptLog(operator=key, size=len(entries), root=root_of(map(leaf_of, entries)).hex())
            for key, entries in record.logs
        ),
        since=record.since,
        lost_zcdp=math.fsum(each.zcdp for each in record.losses),
        spent_zcdp=record.spent(),
        budget_zcdp=policy.budget_zcdp,
        week_zcdp=spent_since(record.costs(), now - WEEK),
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


def _forget(place: Path, journal: Path | None, policy: Policy, now: float) -> str:
    """Remove what may be forgotten; what that was, in a sentence."""
    with opened(place, journal, now=now, budget_zcdp=policy.budget_zcdp) as record:
        record.hold_all()
        plans = record.forget_plans()
    return (
        f"Forgotten: {plans} plans of runs in which the device never took part. What it took part in and what that "
        "cost stays: a device that forgot it would spend it again. What left the device is with others and cannot be "
        "called back."
    )


def _runs(parts: list[dict[str, Any]]) -> tuple[RunOnDevice, ...]:
    """Participations by their runs, in the order of the first."""
    found = []
    for plan in dict.fromkeys(each["plan"] for each in parts):
        own = [each for each in parts if each["plan"] == plan]
        found.append(
            RunOnDevice(
                **{name: own[0][name] for name in ("operator", "population", "run", "plan", "kind", "summed")},
                leaves=FEDERATED[own[0]["kind"]].leaves,
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
