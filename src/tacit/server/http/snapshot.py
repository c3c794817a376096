"""What a worker knows between two looks into the store: the open rounds, and which devices may take part in them.

Whether a check-in may be given a task is known from here; for one that is not, no database is asked.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tacit.errors import StoreError
from tacit.federation.kinds import FEDERATED
from tacit.federation.report_shape import ReportShape
from tacit.parsing import parsed_toml
from tacit.protocol.messages import CheckIn, Plan, RoundTask, Signed, SignedPlan, TrainingPrivacy
from tacit.protocol.served_bodies import most_bytes
from tacit.server.store.assignments import OpenRound, open_rounds, signed_plan
from tacit.server.store.round_states import OPEN, all_runs
from tacit.server.store.store import Store


@dataclass
class Current:
    """A round, with what follows from its task."""

    row: OpenRound
    task: RoundTask
    shape: ReportShape  # of its reports
    most_bytes: int  # no report is longer
    left: int  # places that this worker may still ask the store for; a check-in beyond them is not worth a transaction

    @property
    def gives(self) -> bool:
        """Whether a device may be given its task, as far as is known here."""
        return self.row.gives and self.left > 0

    @property
    def is_full(self) -> bool:
        """Whether it had all its reports when it was last looked at."""
        return self.row.received + self.row.counted >= self.row.goal


class Snapshot:
    """The open rounds of a store, as they were `refresh`ed last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[str, str] = {}  # signed, of the runs that are known, by digest
        self.rounds: dict[str, Current] = {}
        self._giving: dict[str, list[Current]] = {}
        self.sizes: dict[
            str, int
        ] = {}  # of populations with runs that are not over: devices, as recipes guess; 0: none
        self.taken = -float("inf")  # when, by the store's clock

    def refresh(self) -> None:
        """Look into the store. Raises: StoreError, and what was known before stays."""
        runs = [each for each in all_runs(self._store) if each.state == OPEN]
        self._plans = {each.plan_digest: self._plan(each.plan_digest) for each in runs}
        self.rounds = {row.task: self._current(row) for row in open_rounds(self._store)}
        giving: dict[str, list[Current]] = {}
        for each in self.rounds.values():
            giving.setdefault(each.row.population, []).append(each)
        self._giving, sizes = giving, dict[str, int]()
        for run in runs:
            sizes[run.population] = max(_devices(self._plans[run.plan_digest]), sizes.get(run.population, 0))
        self.sizes = sizes
        self.taken = self._store.now()

    def work(self, check_in: CheckIn) -> Current | None:
        """A round that gives this device its task, drawn uniformly from those that do; None where none does."""
        found = self._giving.get(check_in.population)
        if not found:
            return None
        fitting = [each for each in found if each.gives and _can(check_in, each.task.kind)]
        return random.choice(fitting) if fitting else None

    def models(self) -> Iterable[str]:
        """The digests of what devices may fetch: models of rounds in progress, strategy matrices of runs."""
        models = {each.row.model_digest for each in self.rounds.values()}
        return models | {found for plan in self._plans.values() if (found := _matrix(plan)) is not None}

    def _current(self, row: OpenRound) -> Current:
        task = _parsed(row.signed_task)
        return Current(row, task, task.asks.shape(), most_bytes(task), row.most - row.assigned)

    def _plan(self, digest: str) -> str:
        found = self._plans.get(digest) or signed_plan(self._store, digest)
        if found is None:
            raise StoreError(f"the store has a run with the plan {digest} and not the plan; it was damaged.")
        return found


def _can(check_in: CheckIn, kind: str) -> bool:
    """Whether a device can do tasks of a kind: one that says a later version can do this one."""
    return check_in.versions.get(kind, 0) >= FEDERATED[kind].version


@lru_cache(maxsize=100)
def _devices(plan: str) -> int:
    """How many there are of the population that a signed plan is for, as its recipe says; 0 where it does not."""
    recipe = parsed_toml(SignedPlan.from_json(plan).read(Plan).recipe)
    found = recipe.get("deployment", {}).get("devices", 0)
    return found if isinstance(found, int) else 0


@lru_cache(maxsize=100)
def _matrix(plan: str) -> str | None:
    """The digest of the strategy matrix that a signed plan names."""
    privacy = SignedPlan.from_json(plan).read(Plan).privacy
    return privacy.matrix.sha256 if isinstance(privacy, TrainingPrivacy) and privacy.matrix is not None else None


@lru_cache(maxsize=100)
def _parsed(signed_task: str) -> RoundTask:
    return Signed.from_json(signed_task).read(RoundTask)
