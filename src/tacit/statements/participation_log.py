"""How often anybody can have taken part, by a run's log: measured where it names clients, else by the devices' rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.measured_participation import realised_participation
from tacit.privacy.participation import Participation
from tacit.privacy.separation import DeviceSeparation
from tacit.runs import Run
from tacit.runs.metadata import DeploymentUsed


@dataclass(frozen=True)
class LoggedClients:
    """Who took part in which round, so that the separation and the count that happened are measured."""

    round_of: NDArray[np.int64]  # (participations,)
    client_of: NDArray[np.int64]

    @property
    def participations(self) -> int:
        """Of all rounds together."""
        return int(self.client_of.size)

    def counts(self, rounds: int) -> NDArray[np.int64]:
        """(rounds,) how many took part in each."""
        return np.bincount(self.round_of, minlength=rounds)[:rounds].astype(np.int64)

    def realised(self, rounds: int) -> Participation:
        """What happened in a run of `rounds` rounds. Raises: as `realised_participation`."""
        return realised_participation(rounds, self.round_of, self.client_of)

    def prefix(self, rounds: int) -> Participation:
        """The same of the first `rounds` rounds of more, for many prefixes of one log."""
        separations, counts = self._prefixes
        at = min(rounds, len(separations)) - 1  # a round at the end may have no participants
        return Participation(
            rounds=rounds,
            min_separation=int(min(separations[at], rounds)) if at >= 0 else rounds,
            max_participations=int(counts[at]) if at >= 0 else 1,
        )

    @cached_property
    def _prefixes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Smallest separation and largest count within the rounds 0..t, for every t: each (rounds in the log,).

        The separation is huge as long as nobody came twice.
        """
        released = int(self.round_of.max(initial=-1)) + 1
        separations = np.full(released, np.iinfo(np.int64).max, np.int64)
        counts = np.ones(released, np.int64)
        order = np.lexsort((self.round_of, self.client_of))
        when, who = self.round_of[order], self.client_of[order]
        begins = np.flatnonzero(np.diff(who, prepend=-1))  # clients are numbered from 0
        participations = np.diff(np.concatenate((begins, [who.size])))
        nth = np.arange(who.size) - np.repeat(begins, participations) + 1  # a client's first, second, ... participation
        np.maximum.at(counts, when, nth)
        again = np.flatnonzero(nth > 1)
        np.minimum.at(separations, when[again], when[again] - when[again - 1])
        return np.minimum.accumulate(separations), np.maximum.accumulate(counts)


@dataclass(frozen=True)
class CountedDevices:
    """How many took part in each round, when it finished, and what each of them kept by itself."""

    count_of: NDArray[np.int64]  # (rounds,)
    finished: Sequence[float]  # (rounds,) Unix seconds
    began: float  # before the first round was opened
    separation: DeviceSeparation

    @property
    def participations(self) -> int:
        """Of all rounds together."""
        return int(self.count_of.sum())

    def counts(self, rounds: int) -> NDArray[np.int64]:
        """(rounds,) how many took part in each."""
        return self.count_of[:rounds]

    def realised(self, rounds: int) -> Participation:
        """The most that a device which keeps the separation can have done in the first `rounds` rounds."""
        return self.separation.realised(self.finished[:rounds], began=self.began)

    prefix = realised


ParticipationLog: TypeAlias = LoggedClients | CountedDevices


def separation_of(run: Run) -> DeviceSeparation | None:
    """What the devices of a run keep by themselves; None where its log says who took part."""
    used: DeploymentUsed | None = getattr(run.metadata, "deployment", None)
    if used is None:
        return None
    return DeviceSeparation(rounds=used.rounds, timer_seconds=used.timer_seconds, most=used.most)


def log_of(run: Run, rounds: int) -> ParticipationLog:
    """Of the first `rounds` rounds. Raises: RunError where it is not the log that was written."""
    separation = separation_of(run)
    if separation is None:
        round_of, client_of = run.participations()
        seen = round_of < rounds
        return LoggedClients(round_of[seen], client_of[seen])
    finished = [finished for step, finished, _ in run.times() if step < rounds]
    return CountedDevices(run.counts()[:rounds], finished, run.metadata.created, separation)
