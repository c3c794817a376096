"""Rounds of real devices, for any question: a round is opened in the store, waited for, closed, its sum given.

Everything that matters is in the store: a process that is killed at any point, and started again, goes on with the
attempt that it finds, and a sum that was bound is given again to the bit. An attempt that failed is repeated with other
devices, with the same content and the same question.
"""

import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tacit.aggregation import Counted
from tacit.errors import InputError, RoundAborted, RunError, TrainingError
from tacit.federation.collector import Answered, Question
from tacit.jobs.devices import RealDevices
from tacit.plurals import quantity
from tacit.protocol.bodies import sha256
from tacit.protocol.contributed_noise import noise_margin, noise_of_one
from tacit.protocol.fields import QuestionDocument
from tacit.protocol.messages import Content, Plan, RoundTask, Signed, SignedPlan, TrainingPrivacy
from tacit.protocol.one_message_shape import settings_of
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import read_sum, sum_body
from tacit.protocol.signing import digest
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.server.rounds.one_message_rounds import (
    DecryptorTransport,
    NoiseRequests,
    NotYet,
    OneMessageOpening,
    SeriesSigned,
    answers_of_contributors,
    check_decryptors,
)
from tacit.server.rounds.round_progress import Reminders, lacks_reports, missing_reports, stands_at
from tacit.server.rounds.who_could_come import devices_seen, needed, waits_in_vain
from tacit.server.store import assignments, round_states
from tacit.server.store.blobs import BlobStore, model_name, total_name
from tacit.server.store.heartbeat import Silence
from tacit.server.store.round_states import Attempt, Lease, NewRound, Total
from tacit.server.store.store import Store
from tacit.server.sums.one_message_reports import new_round
from tacit.server.sums.round_blobs import remove_blobs, sweep
from tacit.server.sums.round_sums import NoSum, summed

log = logging.getLogger("tacit.server")
WORDS = 1 << 32  # of which a sum of whole numbers is a residue
OWN_TO_AN_ATTEMPT = {"attempt", "task", "sealed", "opens", "deadline"}


@dataclass(frozen=True, kw_only=True)
class RoundTimes:
    """How long a round waits for what, in seconds, and how many devices it asks."""

    over_selection: float = 1.3  # devices that are given the task, to one report that is wanted
    selecting: float = 3600.0  # for devices to come; with fewer than the goal the attempt is given up then
    reporting: float = 900.0  # after that, for the last reports
    closing: float = 30.0  # for workers to write what they hold
    pause: float = 120.0  # from a round's release to the next one's opening, and between two attempts
    opening: float = 600.0  # for a quorum of decryptors to open a sealed sum
    silence: float = 15.0  # a worker of which nothing was seen for so long is dead
    poll: float = 0.5  # between two looks into the store
    attempts: int = 100  # at a round, in one process, before it gives up and says why


class ServedRun(NamedTuple):
    """What a collector needs to know of its run before it can ask anybody."""

    plan: Plan
    signed_plan: SignedPlan
    lease: Lease


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A round whose sum is wanted: its task, and the conditions on its sum."""

    task: RoundTask  # but for what is an attempt's own
    content: bytes  # what it begins with
    goal: int  # reports: no sum of more
    min_reports: int  # no sum of fewer is bound: a round that does not reach it is given up
    check: Callable[[Any, Total], None]  # that a sum can be used. Raises: InputError, TrainingError


class Summed(NamedTuple):
    """A round's bound sum."""

    values: Any  # (length,) float32, or uint32 modulo 2^32
    total: Total
    participants: int  # devices that were given the task, in all attempts but those whose sealed sum stayed closed


class ServedRounds:
    """Real devices as a `Collector` for any question: rounds of one run, one after another."""

    broadcasts = True  # what is asked leaves this machine: the ledger row first

    def __init__(
        self,
        store: Store,
        blobs: BlobStore,
        key: OperatorKey,
        *,
        document: Callable[[Any], tuple[QuestionDocument, bytes]],
        devices: RealDevices | None = None,
        times: RoundTimes = RoundTimes(),
        decryptors: Sequence[DecryptorTransport] = (),
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """key: signs the tasks. document: a question as devices get it, and the content that its round begins with.
        devices: of a run that asks each device once. decryptors: of sealed sums, in the order of the plan. wait: for so
        many seconds, between two looks into the store.
        """
        self._document, self._devices = document, devices
        self._decryptors = decryptors
        self._store, self._blobs, self._key, self._times, self._wait = store, blobs, key, times, wait
        self._silence = Silence(times.silence)
        self._served: ServedRun | None = None
        self._rests_until = -float("inf")
        self._told = ""  # the attempt that was said to wait in vain
        self._reminders = Reminders()

    @property
    def devices(self) -> RealDevices:
        """The devices of a run that asks each once. Raises: RunError for a training, whose recipe describes its
        devices.
        """
        if self._devices is None:
            raise RunError("this collector asks the devices of a recipe; it trains, and does nothing else.")
        return self._devices

    def init(self) -> Any:
        """Nothing is carried from round to round: who may take part when, each device knows."""
        return ()

    def collect(self, state: Any, question: Question, *, seed: bytes) -> tuple[Answered, Any]:
        """See Collector. seed: not used, for devices draw from their operating systems. Raises: what `sum_of` does;
        InputError, TrainingError for what no real device can be asked.
        """
        document, content = self._document(question)
        task = self._task(question.round, content, document)
        wanted = Wanted(
            task=task,
            content=content,
            goal=question.goal,
            min_reports=max(question.goal, question.min_reports),  # a round that does not reach its goal is given up
            check=lambda values, total: self._check(question, task, values, total),
        )
        values, total, participants = self.sum_of(wanted)
        return _answered(question, self._unwrapped(task, values), total, participants), state

    def _check(self, question: Question, task: RoundTask, values: Any, total: Total) -> None:
        """That a sum can be used. Raises: InputError, TrainingError."""
        room = self._noise_in_counts(task)
        if not room:
            question.check(_answered(question, values, total, total.reports))
            return
        most = (task.asks.shape().largest or 0) * total.reports + room
        if (found := int(self._unwrapped(task, values).max())) > most:
            raise InputError(f"a cell of the sum holds {found:,}, and reports and noise give {most:,} at most.")

    def _unwrapped(self, task: RoundTask, values: Any) -> Any:
        """Counts with decryptors' noise in them, which may be below 0, as whole numbers (cells,); else the values."""
        room = self._noise_in_counts(task)
        return (values.astype(np.int64) + room) % WORDS - room if room else values

    def _noise_in_counts(self, task: RoundTask) -> int:
        """The largest magnitude of all decryptors' noise in a cell of a sum of counts; 0 where there is none."""
        plan = self._now_serving.plan
        return 0 if noise_of_one(plan, task) is None else len(plan.aggregation.contributors) * noise_margin(plan, task)

    def serve(self, signed: SignedPlan, lease: Lease) -> None:
        """Work for the run of this plan, which is in the store, under this lease. Raises: RunError."""
        plan = signed.read(Plan)
        if len(plan.aggregation.keepers) != len(self._decryptors):
            raise RunError(
                f"the plan of run '{plan.run}' names {len(plan.aggregation.keepers)} decryptors, and "
                f"{len(self._decryptors)} "
                "are known here; give the collector those of the plan."
            )
        self._served = ServedRun(plan, signed, lease)
        sweep(self._store, self._blobs, round_states.attempts(self._store, plan.run))  # whoever was killed left some

    def sum_of(self, wanted: Wanted) -> Summed:
        """The bound sum of the round, which is opened if it has none.

        Raises: LeaseLost where another coordinator took over; RunError where the store is ahead of the run folder, or
        its sum is of another task; StoreError where store or blobs cannot be used; TrainingError where no attempt gave
        a sum.
        """
        attempt = self._found(wanted.task)
        if attempt is not None:
            log.info("goes on with '%s': %s", attempt.run, stands_at(attempt, self._store.now()))
        for _ in range(self._times.attempts):
            if attempt is None:
                attempt = self._opened(wanted)
            if self._played(attempt, wanted) == round_states.CLOSED:
                return self._total(attempt.task)
            attempt, self._rests_until = None, self._store.now() + self._times.pause
        causes = [each.why or "" for each in self._attempts(wanted.task.round)]
        raise TrainingError(
            f"round {wanted.task.round}: none of {quantity(self._times.attempts, 'attempt')} gave a sum; nothing was "
            f"released. The last one: {causes[-1]} See whether devices come, and whether their reports can be used; "
            "then run the same command again."
        )

    def released(self, round: int) -> None:
        """The round's ledger row is on disk: its sum is not needed any more. Raises: LeaseLost; StoreError."""
        for attempt in self._attempts(round):
            if round_states.release(self._store, self._lease, attempt.task):
                self._rests_until = self._store.now() + self._times.pause
                log.info("round %d of '%s' is released", round, attempt.run)
        for over in self._attempts(round) + self._attempts(round - 1):  # of that before, what came after its end
            remove_blobs(self._store, self._blobs, over)

    # -- what is asked -----------------------------------------------------------------------------------------------

    @property
    def _lease(self) -> Lease:
        return self._now_serving.lease

    @property
    def _now_serving(self) -> ServedRun:
        if self._served is None:
            raise RunError("this collector serves no run yet; `tacit serve` starts it.")
        return self._served

    def _attempts(self, round: int) -> list[Attempt]:
        return [each for each in round_states.attempts(self._store, self._lease.run) if each.round == round]

    def _task(self, round: int, content: bytes, question: QuestionDocument) -> RoundTask:
        """The task of a round without the fields that each attempt sets. content: what the round begins with."""
        served, name = self._now_serving, sha256(content)
        return RoundTask(
            run=served.plan.run,
            plan=digest(served.signed_plan.document),
            round=round,
            attempt=0,
            task="0" * 32,
            content=Content(sha256=name, bytes=len(content), path=f"/v1/models/{name}"),
            asks=question,
            sealed=None,
            opens=0.0,
            deadline=1.0,
        )

    def _found(self, task: RoundTask) -> Attempt | None:
        """The attempt at the round that is not over, or was closed. Raises: RunError."""
        found = None
        for each in round_states.attempts(self._store, self._lease.run):
            if each.state == round_states.ABANDONED or (
                each.state == round_states.RELEASED and each.round < task.round
            ):
                continue
            if each.round < task.round:
                self._settle(each)
            elif each.round > task.round or each.state == round_states.RELEASED:
                raise RunError(
                    f"the store says that round {each.round} of the run '{each.run}' is {each.state}, and the run "
                    f"folder has only the {task.round} rounds before round {task.round}: it was restored from an "
                    "older copy. Restore the latest one; rounds released twice, of other devices the second time, "
                    "would be counted once."
                )
            elif _matter(each) == task.model_dump(exclude=OWN_TO_AN_ATTEMPT):
                found = each
            elif not round_states.abandon(
                self._store, self._lease, each.task, "the run folder asks for something else."
            ):
                raise RunError(
                    f"round {each.round} of the run '{each.run}' has a sum already, of devices that began with another "
                    "model or other settings: the run folder is not the one that asked for it. Restore that, or begin "
                    "a new run."
                )
        return found

    def _settle(self, earlier: Attempt) -> None:
        """A round that is in the run folder is over, whatever the store says: it may be an older copy."""
        if not round_states.release(self._store, self._lease, earlier.task):
            round_states.abandon(
                self._store, self._lease, earlier.task, "its round was released before this store knew it."
            )

    def _opened(self, wanted: Wanted) -> Attempt:
        """A new attempt, after the pause."""
        task = wanted.task
        while 0 < (rest := self._rests_until - self._store.now()) <= self._times.pause:  # or the clock was set back
            self._wait(rest)
        before = self._attempts(task.round)
        attempt = 1 + max((each.attempt for each in before), default=-1)
        named = task.model_copy(update={"attempt": attempt, "task": secrets.token_hex(16)})
        sealed = self._sealed(named, wanted, series=max(map(_series, before), default=0))
        opened = self._timed(named, sealed)
        closes = opened.deadline - self._times.reporting
        self._blobs.put(model_name(task.content.sha256), wanted.content)
        new = NewRound(
            task=opened.task,
            round=task.round,
            attempt=opened.attempt,
            signed_task=self._key.signed(opened).to_json(),
            model_digest=task.content.sha256,
            goal=wanted.goal,
            least=wanted.min_reports,
            most=math.ceil(wanted.goal * self._times.over_selection),
            closes_selecting=closes,
            deadline=opened.deadline,
        )
        log.info("round %d of '%s' opens, attempt %d", new.round, self._lease.run, new.attempt)
        return round_states.open_round(self._store, self._lease, new)

    def _timed(self, task: RoundTask, sealed: OneMessageRound | None) -> RoundTask:
        """An attempt that opens now."""
        now = self._store.now()
        own = {
            "sealed": None if sealed is None else sealed.to_bytes().hex(),
            "opens": now,
            "deadline": now + self._times.selecting + self._times.reporting,
        }
        return task.model_copy(update=own)

    # -- how it goes on ----------------------------------------------------------------------------------------------

    def _played(self, attempt: Attempt, wanted: Wanted) -> str:
        """Wait and move the attempt on, until it is closed or abandoned: which of the two."""
        with self._opening(attempt) as opening:
            return self._played_with(attempt, wanted, opening)

    def _played_with(self, attempt: Attempt, wanted: Wanted, opening: OneMessageOpening | None) -> str:
        """opening: of a sealed round's sum."""
        closing_since = None
        while True:
            found, now = round_states.attempt_of(self._store, attempt.task), self._store.now()
            if found.state in round_states.TAKING:
                self._take(found, now, wanted, opening)
            elif found.state == round_states.CLOSING:
                closing_since = now if closing_since is None else closing_since
                late = not closing_since <= now < closing_since + self._times.closing
                if late or not assignments.held(self._store, found.task):
                    round_states.begin_summing(self._store, self._lease, found.task)
                    continue
            elif found.state == round_states.SUMMING:
                self._bind(found, wanted, opening)
                continue
            elif found.state == round_states.ABANDONED:
                remove_blobs(self._store, self._blobs, found)
                log.warning("round %d of '%s' is abandoned: %s", found.round, found.run, found.why)
                return found.state
            else:
                return found.state
            if round_states.attempt_of(self._store, attempt.task).state == found.state:
                self._wait(self._times.poll)

    def _take(self, found: Attempt, now: float, wanted: Wanted, opening: OneMessageOpening | None) -> None:
        """A round that takes reports: ends its selection, gives up dead workers, closes it."""
        self._keep_content(found, wanted)
        self._say_that_it_waits(found, now)
        checked = True
        if opening is not None and (found.counted > opening.reports or not opening.checked):
            checked = False
            with suppress(NotYet):  # it is tried again, and at the end it has to be
                opening.add_new(self._lease)
                opening.check_new(self._lease)
                found = round_states.attempt_of(self._store, found.task)
                checked = found.counted == opening.reports and opening.checked
        if now < found.opened:
            self._abandon(found, "the clock was set back behind its opening.")
            return
        if (
            found.state == round_states.SELECTING and now >= found.closes_selecting
        ):  # until then a place may be given back
            if found.assigned < found.least:
                came = quantity(found.assigned, "device")
                self._abandon(found, f"{came} came while it was open, of {found.least} that it needs.")
                return
            round_states.end_selecting(self._store, self._lease, found.task)
        held = assignments.held(self._store, found.task)
        for worker in self._silence.of(assignments.last_seen(self._store, held) if held else {}, now):
            lost = assignments.give_up(self._store, found.task, worker)
            log.warning("a worker was silent for %g s; lost with it: %s", self._times.silence, quantity(lost, "report"))
        enough = found.received + found.counted >= found.goal and min(held.values(), default=2) >= assignments.FEWEST
        answered = found.received + found.counted + found.lost
        full = found.state == round_states.REPORTING or found.assigned >= found.most
        nobody_left = full and answered >= found.assigned
        if (checked and (enough or nobody_left)) or now >= found.deadline:
            round_states.begin_closing(self._store, self._lease, found.task)

    def _say_that_it_waits(self, found: Attempt, now: float) -> None:
        """Where those who come are too few, at once and once of each attempt; where they are enough and reports are
        missing, now and then.
        """
        if lacks_reports(found) and self._reminders.is_due(found.task, now):
            log.info("round %d of '%s' %s", found.round, found.run, missing_reports(found, now))
        if found.state != round_states.SELECTING or found.task == self._told or found.assigned >= found.least:
            return
        plan = self._now_serving.plan
        why = waits_in_vain(
            came=found.assigned,
            least=found.least,
            waited=now - found.opened,
            seen=devices_seen(self._store, plan.population),
            separation=plan.separation.rounds,
            needs=needed(found.goal, plan.separation.rounds or 1, _rounds_of(plan)),
        )
        if why is not None:
            self._told = found.task
            log.warning("round %d of '%s' %s", found.round, found.run, why)

    def _keep_content(self, found: Attempt, wanted: Wanted) -> None:
        """Another run that began with the same may have removed it."""
        if self._blobs.size(model_name(found.model_digest)) is None:
            self._blobs.put(model_name(found.model_digest), wanted.content)

    def _abandon(self, found: Attempt, why: str) -> None:
        round_states.abandon(self._store, self._lease, found.task, why)

    # -- sealed ------------------------------------------------------------------------------------------------------

    def _sealed(self, task: RoundTask, wanted: Wanted, *, series: int) -> OneMessageRound | None:
        """The settings of an attempt that a quorum of decryptors takes, and each that adds noise.

        None where reports are not sealed.

        series: of the attempts before, which goes on as long as decryptors may yet open one of its sums: devices take
        part in each of its attempts for the price of one. Where too many decryptors have signed a set, the next series
        begins, for devices that were in none before. Waits for decryptors as long as for devices. Raises: TrainingError
        where too many refuse, or too few answer.
        """
        plan = self._now_serving.plan
        if plan.aggregation.kind != "sealed":
            return None
        private, sizes = self._key.round_key(task.task), {"least": wanted.min_reports, "most": wanted.goal}
        patience, since, last = self._times.selecting, self._store.now(), series
        while True:
            settings = new_round(plan, task, series=last, private=private, **sizes)
            try:
                check_decryptors(self._decryptors, settings)
                if settings.contributors:
                    noise, signed = self._noise(), self._key.signed(self._timed(task, settings))
                    answers_of_contributors(noise.among(self._decryptors), noise.request(signed, give=False), settings)
                return settings
            except SeriesSigned as error:
                log.warning("round %d of '%s' begins anew with other devices: %s", task.round, plan.run, error)
                if (last := last + 1) > series + self._times.attempts:
                    raise TrainingError(
                        f"round {task.round} is not opened: of every series of attempts {error}"
                    ) from None
            except RoundAborted as error:
                raise TrainingError(f"round {task.round} is not opened: {error}") from None
            except NotYet as error:
                if not since <= self._store.now() < since + patience:
                    raise TrainingError(
                        f"round {task.round} is not opened: in {patience / 60:g} minutes {error} Nothing was asked of "
                        "devices. See that the decryptors run, and can be reached from here; then run the same command "
                        "again."
                    ) from None
                log.warning("round %d of '%s' is not opened yet: %s", task.round, plan.run, error)
                self._wait(max(self._times.pause, self._times.poll))

    @contextmanager
    def _opening(self, attempt: Attempt) -> Iterator[OneMessageOpening | None]:
        """How its sum is opened; None where reports are not sealed, or it has its sum."""
        signed = Signed.from_json(attempt.signed_task)
        sealed = signed.read(RoundTask).sealed
        if sealed is None or attempt.state not in round_states.UNBOUND:
            yield None
            return
        private, settings = self._key.round_key(attempt.task), settings_of(sealed)
        opening = OneMessageOpening(
            self._store,
            self._blobs,
            self._decryptors,
            task=attempt.task,
            settings=settings,
            private=private,
            noise=self._noise(),
            signed_task=signed,
            noised=attempt.state == round_states.SUMMING,
        )
        with closing(opening):
            yield opening

    def _noise(self) -> NoiseRequests:
        return NoiseRequests(self._blobs, self._now_serving.signed_plan)

    # -- its sum -----------------------------------------------------------------------------------------------------

    def _bind(self, found: Attempt, wanted: Wanted, opening: OneMessageOpening | None) -> None:
        """Add the partial sums up, or have decryptors open the sum, and bind the total; or abandon the attempt where
        there is none to be bound. Where there may be one later it waits a little; with noise in it, for however long.
        """
        try:
            if opening is not None:
                opening.add_new(self._lease)
                opening.check_new(self._lease, last=True)
                found = round_states.attempt_of(self._store, found.task)
            self._bind_now(found, wanted, opening)
        except NotYet as error:
            assert opening is not None  # nobody else says it
            now = self._store.now()
            opening.since = now if opening.since is None else opening.since
            late = not opening.since <= now < opening.since + self._times.opening
            if late and not opening.noised:
                self._abandon(found, f"its sum could not be opened: {error}")
                return
            log.warning("round %d of '%s': %s", found.round, found.run, error)
            self._wait(max(self._times.pause, self._times.poll) if late else self._times.poll)

    def _bind_now(self, found: Attempt, wanted: Wanted, opening: OneMessageOpening | None) -> None:
        """Raises: NotYet."""
        if found.counted < found.least:
            self._abandon(
                found,
                f"{quantity(found.counted, 'report')} came of {quantity(found.assigned, 'device')}, of {found.least} "
                f"that it needs ({quantity(found.lost, 'report')} could not be used, or went with a worker).",
            )
            return
        try:
            if opening is None:
                values, total = summed(self._blobs, found, round_states.partial_sums(self._store, found.task))
            else:
                values = opening.opened()
                total = Total(sha256(sum_body(values)), opening.reports, None, None)
            wanted.check(values, total)
        except (NoSum, InputError, RoundAborted, TrainingError) as error:
            self._abandon(found, f"its sum cannot be used: {error}")
            if opening is not None and opening.noised:
                raise TrainingError(
                    f"round {found.round}: its sum cannot be used, and decryptors gave their noise for it, which they "
                    f"give for no other attempt: {error} The run ends with the round before; begin another for more."
                ) from error
            return
        self._blobs.put(total_name(found.task, total.digest), sum_body(values))
        round_states.bind(self._store, self._lease, found.task, total)

    def _total(self, name: str) -> Summed:
        """The bound sum. Raises: StoreError where its blob is gone or another."""
        found = round_states.attempt_of(self._store, name)
        assert found.total_digest is not None and found.reports is not None  # of what is closed
        body = self._blobs.get(total_name(name, found.total_digest), digest=found.total_digest)
        task, total = _task_of(found), Total(found.total_digest, found.reports, found.short_updates, found.losses)
        # Of the attempts of a series at most the last was opened: whoever was in those before took part in none.
        once = task.sealed is not None and self._now_serving.plan.privacy.kind != "local"
        opened = {(_series(each) if once else each.attempt): each for each in self._attempts(found.round)}
        participants = sum(each.assigned for each in opened.values())
        return Summed(read_sum(body, task), total, max(participants, total.reports))


def _rounds_of(plan: Plan) -> int:
    """Of a training; of whatever asks each device once, one."""
    return plan.privacy.rounds if isinstance(plan.privacy, TrainingPrivacy) else 1


def _answered(question: Question, values: Any, total: Total, participants: int) -> Answered:
    """What a bound sum says. came: devices that were given the task; those with no report are dropped."""
    return question.answered(Counted(values, total.reports, total.short_updates, total.losses), participants)


def _series(attempt: Attempt) -> int:
    """Of a sealed round's attempts; 0 where reports are not sealed."""
    sealed = _task_of(attempt).sealed
    return 0 if sealed is None else settings_of(sealed).series


def _matter(attempt: Attempt) -> dict[str, Any]:
    """What an attempt is about, whichever of the round it is."""
    return _task_of(attempt).model_dump(exclude=OWN_TO_AN_ATTEMPT)


def _task_of(attempt: Attempt) -> RoundTask:
    return Signed.from_json(attempt.signed_task).read(RoundTask)
