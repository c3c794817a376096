"""Any steps of two coordinators and two workers on one store."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import select
from tests.server.slow_rounds import SlowRound, SlowStore
from tests.support.server.stores import RUN, Clock, new_round, quick_folder, sqlite_store, with_run

from tacit.errors import InputError, LeaseLost, RunError, StoreError
from tacit.server.store import schema
from tacit.server.store.assignments import (
    Assigned,
    Flushed,
    ShownToken,
    assign_all,
    flush,
    give_back,
    give_up,
    held,
    receive,
    receive_nothing,
)
from tacit.server.store.round_states import (
    RELEASED,
    UNBOUND,
    Lease,
    Total,
    abandon,
    attempt_of,
    attempts,
    begin_closing,
    begin_summing,
    bind,
    end_selecting,
    open_round,
    partial_sums,
    release,
    take_lease,
)
from tacit.server.store.store import Store

WORKERS, OWNERS = ("a" * 32, "b" * 32), ("1" * 32, "2" * 32)
NOBODYS = Lease(RUN, "3" * 32, 1)
BODIES, DIGESTS = ("cc" * 32, "dd" * 32), ("aa" * 32, "bb" * 32)
TOKENS = ("0e" * 32, "1e" * 32, "2e" * 32, "3e" * 32)

# One rule draws them all: hypothesis leaves whole rules out of most examples, and a round needs every kind of step.
STEPS = (
    *(["goes_on"] * 8 + ["devices_report"] * 6 + ["assigns"] * 2 + ["receives"] * 2 + ["flushes"] * 2),
    *["takes_lease", "time_passes", "opens", "ends_selecting", "closes", "sums", "binds", "releases", "abandons"],
    *["gives_up", "gives_back", "restarts"],
)


class Rounds(RuleBasedStateMachine):
    """Two coordinators and two workers on one store, beside the twin."""

    def __init__(self) -> None:
        super().__init__()
        self.place = quick_folder()
        self.folder = self.place.__enter__()
        self.clock, self.twin = Clock(), SlowStore()
        self.store = self.opened()
        self.tasks: list[str] = []
        self.names: list[str] = []  # of the last task's assignments
        self.totals: dict[str, str] = {}
        self.leases: list[Lease] = [NOBODYS]  # all that were ever had

    def opened(self) -> Store:
        return sqlite_store(self.folder, self.clock)

    def teardown(self) -> None:
        self.store.close()
        self.place.__exit__(None, None, None)

    @initialize()
    def begin(self) -> None:
        lease = with_run(self.store, seconds=30)
        self.twin.now = self.clock.now
        self.twin.take_lease(lease.owner, 30)
        self.leases.append(lease)

    @rule(step=st.sampled_from(STEPS), data=st.data())
    def step(self, step: str, data: st.DataObject) -> None:
        if self.tasks or step in ("goes_on", "opens", "takes_lease", "time_passes", "restarts"):
            getattr(self, step)(data.draw)

    # -- coordinators ------------------------------------------------------------------------------------------------

    def goes_on(self, draw: Callable[..., int]) -> None:
        """What a coordinator would do now."""
        found = self.twin.rounds[self.task] if self.tasks else None
        if found is None or found.state in ("released", "abandoned"):
            return self.opens(draw)
        if found.state in ("selecting", "reporting"):
            return self.closes(draw) if found.counted >= found.least else None
        if found.state == "closing":
            return self.sums(draw)
        if found.state == "summing":
            return self.binds(draw) if found.counted >= found.least or draw(st.booleans()) else self.abandons(draw)
        return self.releases(draw)

    def takes_lease(self, draw: Callable[..., str]) -> None:
        owner, seconds = draw(st.sampled_from(OWNERS)), draw(st.sampled_from([10, 100]))
        self.twin.now = self.clock.now
        lease = take_lease(self.store, RUN, seconds=float(seconds), owner=owner)
        assert (lease and lease.term) == self.twin.take_lease(owner, float(seconds))
        if lease:
            self.leases.append(lease)

    def time_passes(self, draw: Callable[..., float]) -> None:
        self.clock.now += draw(st.sampled_from([5.0, 50.0, 50.0, -20.0, -10_000.0]))

    def opens(self, draw: Callable[..., int]) -> None:
        done = sum(each.state == "released" for each in self.twin.rounds.values())
        round, goal = (
            max(0, done + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))),
            draw(st.sampled_from([2, 3, 4, 5, 6, 19])),
        )
        new = new_round(round, len(self.tasks), goal=goal, least=goal - draw(st.integers(0, 1)), most=goal + 2)
        twin = SlowRound(round, len(self.tasks), goal, new.least, goal + 2)
        known = len(self.twin.rounds)
        self.moved(
            draw,
            lambda lease: open_round(self.store, lease, new).state == "selecting",
            lambda: self.twin.open(new.task, twin) or None,
        )
        if len(self.twin.rounds) > known:
            self.tasks.append(new.task)
            self.names = []

    def ends_selecting(self, draw: Callable[..., int]) -> None:
        self.moved(
            draw,
            lambda lease: end_selecting(self.store, lease, self.task),
            lambda: self.twin.move(self.task, ("selecting",), "reporting"),
        )

    def closes(self, draw: Callable[..., int]) -> None:
        self.moved(
            draw,
            lambda lease: begin_closing(self.store, lease, self.task),
            lambda: self.twin.move(self.task, ("selecting", "reporting"), "closing"),
        )

    def sums(self, draw: Callable[..., int]) -> None:
        self.moved(
            draw,
            lambda lease: begin_summing(self.store, lease, self.task),
            lambda: self.twin.begin_summing(self.task),
        )

    def binds(self, draw: Callable[..., int]) -> None:
        digest = str(draw(st.sampled_from(DIGESTS)))
        reports = self.twin.rounds[self.task].counted + draw(st.sampled_from([0, 0, 0, 0, -1, 1]))
        self.moved(
            draw,
            lambda lease: bind(self.store, lease, self.task, Total(digest, reports, None, None)),
            lambda: self.twin.bind(self.task, digest, reports),
        )

    def releases(self, draw: Callable[..., int]) -> None:
        self.moved(
            draw,
            lambda lease: release(self.store, lease, self.task),
            lambda: self.twin.end(self.task, ("closed",), "released"),
        )

    def abandons(self, draw: Callable[..., int]) -> None:
        self.moved(
            draw,
            lambda lease: abandon(self.store, lease, self.task, "a test"),
            lambda: self.twin.end(self.task, UNBOUND, "abandoned"),
        )

    @property
    def task(self) -> str:
        return self.tasks[-1]

    def moved(self, draw: Callable[..., object], act: Callable[[Lease], bool], twin: Callable[[], bool | None]) -> None:
        """A step of a coordinator, in both; mostly of the one with the lease, else it is refused and changes nothing.

        twin: None where the step is an error.
        """
        lease = self.leases[-1] if draw(st.sampled_from([True] * 7 + [False])) else draw(st.sampled_from(self.leases))
        assert isinstance(lease, Lease)
        if not self.twin.holds(lease.owner, lease.term):
            with pytest.raises(LeaseLost):
                act(lease)
        elif (wanted := twin()) is None:
            with pytest.raises(RunError):
                act(lease)
        else:
            assert act(lease) == wanted

    # -- workers -----------------------------------------------------------------------------------------------------

    def devices_report(self, draw: Callable[..., str]) -> None:
        """Two or three devices come, report to one worker, and mostly it flushes."""
        worker = draw(st.sampled_from(WORKERS))
        known = len(self.names)
        self.assigns(draw, int(draw(st.integers(2, 3))))
        for name in self.names[known:]:
            self.receives(draw, name, worker)
        if draw(st.booleans()):
            self.flushes(draw, worker)

    def assigns(self, draw: Callable[..., Any], devices: int = 0) -> None:
        """In one transaction what the twin gives one after another."""
        devices = devices or draw(st.integers(1, 4))
        shown = [draw(st.sampled_from([None] * 4 + [ShownToken(token, 0) for token in TOKENS])) for _ in range(devices)]
        for each, token in zip(assign_all(self.store, self.task, shown), shown, strict=True):
            wanted = self.twin.assign(self.task, token and token.hash)
            if wanted is None:
                assert isinstance(each, Assigned)
                self.twin.assigned(self.task, each.id)
                self.names.append(each.id)
            else:
                assert each is wanted

    def receives(self, draw: Callable[..., str], name: str = "", worker: str = "") -> None:
        worker = worker or draw(st.sampled_from(WORKERS))
        name = name or draw(st.sampled_from([*self.names, "f" * 32]))
        body = draw(st.sampled_from([BODIES[0], *BODIES]))
        usable = draw(st.sampled_from([True] * 7 + [False]))
        act = receive if usable else receive_nothing
        found = act(self.store, name, task=self.task, worker=worker, body_digest=body)
        assert found is self.twin.receive(self.task, name, worker, body, usable)

    def gives_back(self, draw: Callable[..., str]) -> None:
        name = draw(st.sampled_from([*self.names, "f" * 32]))
        assert give_back(self.store, name, task=self.task) == self.twin.give_back(self.task, name)

    def flushes(self, draw: Callable[..., str], worker: str = "") -> None:
        worker = worker or draw(st.sampled_from(WORKERS))
        of = draw(st.sampled_from([worker] * 3 + [*WORKERS]))
        generation, reports = self.twin.rounds[self.task].partials.get(worker, (-1, 0))
        generation += int(draw(st.sampled_from([1, 1, 1, 1, 0, 2])))
        new = self.twin.rounds[self.task].having("received", of)
        if draw(st.sampled_from([True] * 3 + [False])) is False:  # reports that were counted or lost before
            new = [name for name in self.names if name in self.twin.rounds[self.task].assignments][:3]
        sum = Flushed(self.task, worker, generation, "partials/x", "ee" * 32, reports + len(new), new)
        if self.twin.flush(self.task, worker, generation, sum.reports, new):
            assert (flush(self.store, sum) is None) == (generation == 0)
        else:
            with pytest.raises((InputError, StoreError)):
                flush(self.store, sum)

    def gives_up(self, draw: Callable[..., str]) -> None:
        worker = draw(st.sampled_from(WORKERS))
        assert give_up(self.store, self.task, worker) == self.twin.give_up(self.task, worker)

    def restarts(self, draw: Callable[..., str]) -> None:
        """All processes die, and others open the store."""
        self.store.close()
        self.store = self.opened()

    # -- what holds always -------------------------------------------------------------------------------------------

    @invariant()
    def same_as_the_twin(self) -> None:
        if not self.tasks:
            return
        twin, found = self.twin.rounds[self.task], attempt_of(self.store, self.task)
        assert (found.state, found.assigned, found.lost) == (twin.state, twin.assigned, twin.lost)
        assert (found.counted, found.total_digest, found.reports) == (twin.counted, twin.total, twin.reports)
        if twin.assignments:
            assert found.received == twin.received
        partials = {each.worker: (each.generation, each.reports) for each in partial_sums(self.store, self.task)}
        assert partials == twin.partials
        with self.store.reading() as connection:
            assert set(connection.execute(select(schema.tokens.c.hash)).scalars()) == self.twin.redeemed
        assert held(self.store, self.task) == Counter(twin.assignments[n].worker for n in twin.having("received"))

    @invariant()
    def no_sum_below_its_least_and_none_twice(self) -> None:
        found = attempts(self.store, RUN)
        for each in found:
            assert each.received + each.counted <= each.goal and each.assigned <= each.most
            if each.total_digest is not None:
                assert each.reports is not None and each.reports >= each.least
                assert self.totals.setdefault(each.task, each.total_digest) == each.total_digest
            assert each.task not in self.totals or each.total_digest is not None
        summed = [each.round for each in found if each.task in self.totals]
        assert len(set(summed)) == len(summed)

    @invariant()
    def rounds_that_ended_name_nobody(self) -> None:
        rows = select(schema.assignments.c.id).join(schema.rounds)
        with self.store.reading() as connection:
            assert not connection.execute(rows.where(schema.rounds.c.state.in_([RELEASED, "abandoned"]))).all()
