"""How users are asked: a question to a group of users goes out, the sum of their randomized reports comes back.

`discover` knows no more of the devices than that. Here they are simulated, in two ways that give sums of one law: every
user makes its reports, and they are counted and forgotten (`UsersOneByOne`); or a whole group answers at once
(`AtOnce`), the same in fewer steps, where users are only counted. `SecurelySummed` has some of a group play secure
aggregation on the way. `users[c]` users hold what client c typed, each choosing for itself; their answers are summed as
they are chosen, and the randomizers' votes are drawn from the exact joint law of their sum, so neither users x answers
nor users x domain is ever held.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import Counted
from tacit.compiled import compiled
from tacit.data.unknown_words import TypedWords
from tacit.discovery.device_part import reports, uniforms_from
from tacit.discovery.question import Question
from tacit.discovery.trie import VoteSum
from tacit.errors import InputError
from tacit.federation.collector import Answered
from tacit.federation.report_shape import ReportShape, counts_shape
from tacit.randomizers.device_randomness import device_generator
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.randomizers.simulated_votes import sample_votes
from tacit.secure_aggregation.counts import secure_total
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol

Numbers = NDArray[np.int64]

UNIFORMS_AT_ONCE = 1 << 20  # 8 MiB

# Streams of a seed, apart from one another: the assignment and the devices may have the same seed.
_ORDER, _WHOSE_TEXT, _DEVICES = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class DiscoverQuestion:
    """What a group is asked: users `first_user` .. `first_user + users - 1` of the run, each for all its reports.

    `round` numbers the groups of a run from 0, layer after layer and pass after pass. No user is in two groups. See
    `federation.collector.Question`.
    """

    kind: ClassVar[str] = "discover"
    round: int
    question: Question
    settings: LocalReportSettings
    first_user: int
    users: int

    @property
    def goal(self) -> int:
        """See `federation.collector.Question`."""
        return self.users

    min_reports = goal

    @property
    def reports(self) -> int:
        """Randomized ones, of all users: each sends `settings.contributions` of them."""
        return self.users * self.settings.contributions

    def shape(self) -> ReportShape:
        """See `federation.collector.Question`: of a device's own reports, how many support each answer."""
        domain, most = self.question.domain, self.settings.contributions
        return counts_shape(domain, most=most, together=most * self.settings.randomizer_for(domain).most_supported)

    def answered(self, total: Counted, clients: Numbers | int) -> Answered:
        """See `federation.collector.Question`: votes (domain,)."""
        return Answered(total.values.astype(np.int64), total.reports, clients)

    def check(self, answered: Answered) -> None:
        """See `federation.collector.Question`. Raises: InputError for a sum that no honest reports have."""
        most = answered.reports * self.settings.contributions
        if answered.values.max(initial=0) > most:
            raise InputError(
                f"an answer has {answered.values.max():,} votes of {most:,} reports, so a device sent what is none."
            )


@dataclass(frozen=True, kw_only=True)
class UserGroups:
    """The users of a run, in groups one after another, so that one user's reports are all in one layer.

    Each client of the population is one user, in an order that `assignment` decides. With `resampled` there are as
    many users as are asked for, each with the text of a client drawn anew: a simulation of a larger population that
    looks like this one, for which no guarantee about the real clients follows.
    """

    clients: int
    assignment: int
    resampled: bool = False

    def group(self, begin: int, size: int) -> Numbers:
        """How many of the users begin..begin+size-1 hold each client's text: (clients,), summing to size."""
        if self.resampled:
            generator = np.random.default_rng([self.assignment, _WHOSE_TEXT, begin])
            return generator.multinomial(size, np.full(self.clients, 1 / self.clients)).astype(np.int64)
        order = np.random.default_rng([self.assignment, _ORDER]).permutation(self.clients)
        return np.bincount(order[begin : begin + size], minlength=self.clients).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class SimulatedCollector(ABC):
    """Clients whose text is at hand, asked as devices would be.

    `assignment` decides who is asked in which group. The devices' randomness is the operating system's, or with a
    `seed` that of its own stream for each group: repeatable, and it protects nobody.
    """

    typed: TypedWords
    assignment: int
    resampled: bool = False
    seed: int | None = None

    def init(self) -> Any:
        """See `Collector`: nothing is carried."""
        return ()

    def collect(self, state: Any, question: DiscoverQuestion, *, seed: bytes = b"") -> tuple[Answered, Any]:
        """See `Collector`. seed: not used, for devices draw as `seed` of the collector says."""
        return Answered(self._votes(question), question.users, question.users), state

    @abstractmethod
    def _votes(self, question: DiscoverQuestion) -> Numbers:
        """The votes (domain,) of all the group's reports."""

    def _users(self, question: DiscoverQuestion) -> Numbers:
        groups = UserGroups(clients=self.typed.clients, assignment=self.assignment, resampled=self.resampled)
        return groups.group(question.first_user, question.users)

    def _randomness(self, question: DiscoverQuestion) -> np.random.Generator:
        return device_generator() if self.seed is None else np.random.default_rng([self.seed, _DEVICES, question.round])


class AtOnce(SimulatedCollector):
    """A group answers as one: seconds for ten million users."""

    def _votes(self, question: DiscoverQuestion) -> Numbers:
        """A draw from the joint law of the votes of all reports."""
        return votes_of(
            self.typed, question.question, question.settings, self._users(question), self._randomness(question)
        )


class UsersOneByOne(SimulatedCollector):
    """Every user makes its own reports, as on a device; they are counted as they come, and forgotten."""

    def _votes(self, question: DiscoverQuestion) -> Numbers:
        """The sum of the reports of each user in turn."""
        randomizer = question.settings.randomizer_for(question.question.domain)
        sums, generator = VoteSum(randomizer), self._randomness(question)
        total = sums.zero()
        users = self._users(question)
        for client in np.flatnonzero(users):
            typed = self.typed.of(int(client))
            for _ in range(users[client]):
                total = sums.add(total, reports(typed, question.question, question.settings, generator))
        return sums.finish(total).votes


@dataclass(frozen=True, kw_only=True)
class SecurelySummed(SimulatedCollector):
    """The first devices of a group make their reports and play secure aggregation; the others answer as one.

    What a device sends is how often its own reports support each answer, so a sum of them says as much as all reports.
    """

    secure: SimulatedProtocol = field(default_factory=SimulatedProtocol)

    def _votes(self, question: DiscoverQuestion) -> Numbers:
        """The sum of all users' votes modulo 2^b, which is their plain sum. Raises: InputError for a group of two."""
        users, generator = self._users(question), self._randomness(question)
        before = np.cumsum(users) - users
        playing = np.clip(self.secure.devices - before, 0, users)
        randomizer = question.settings.randomizer_for(question.question.domain)
        devices = [
            randomizer.votes(reports(self.typed.of(int(client)), question.question, question.settings, generator))
            for client in np.repeat(np.arange(users.size), playing)
        ]
        others = votes_of(self.typed, question.question, question.settings, users - playing, generator)
        each = question.settings.contributions
        return secure_total(self.secure, devices, others, most=max(1, question.reports), each=each)


def votes_of(
    typed: TypedWords, question: Question, settings: LocalReportSettings, users: Numbers, generator: np.random.Generator
) -> Numbers:
    """The summed votes (domain,) of so many users of each client (clients,), in law those of their `reports`."""
    holders = holders_of(typed, question, settings, users, generator)
    return sample_votes(settings.randomizer_for(question.domain), holders, generator)


def holders_of(
    typed: TypedWords, question: Question, settings: LocalReportSettings, users: Numbers, generator: np.random.Generator
) -> Numbers:
    """How many of the users' reports hold each answer before randomization: (domain,), summing to users x K.

    Equal, under the same uniform numbers, to counting `device.answers` of every user: clients in order, K
    numbers for each user who holds more than K things and samples at random.
    """
    answers = np.fromiter((question.answer_of(word) for word in typed.words), np.int64, len(typed.words))
    held = answers[typed.word_of]
    holders = np.zeros(question.domain, np.int64)
    most = int(np.diff(typed.offsets).max(initial=0))
    place = np.zeros(2, np.int64)
    wanted, left = settings.contributions, int(users.sum())
    while place[0] < typed.clients:
        rows = min(left, max(1, UNIFORMS_AT_ONCE // wanted)) if settings.sampler == "random" else 0
        uniforms = uniforms_from(generator, rows * wanted).reshape(rows, wanted)
        _choose_all(
            typed.offsets,
            held,
            typed.counts,
            users,
            question.merges,
            settings.sampler == "greedy",
            wanted,
            uniforms,
            place,
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            holders,
        )
    return holders


@compiled
def _choose_all(
    offsets: Numbers,
    answers: Numbers,
    counts: NDArray[np.int32],
    users: Numbers,
    merges: bool,
    greedy: bool,
    wanted: int,
    uniforms: NDArray[np.float64],
    place: Numbers,
    held: Numbers,
    weights: Numbers,
    holders: Numbers,
) -> None:
    """Goes on at `place` (client, users done) until clients or rows of uniforms end; adds to `holders`.

    Words are sorted, so those with one prefix are neighbours: merging compares with the last thing held.
    """
    used = 0
    for client in range(place[0], users.size):
        if users[client] == 0:
            continue
        things = 0
        for pair in range(offsets[client], offsets[client + 1]):
            answer = answers[pair]
            if answer < 0:
                continue
            if merges and things > 0 and held[things - 1] == answer:
                weights[things - 1] += counts[pair]
            else:
                held[things], weights[things] = answer, counts[pair]
                things += 1
        if things <= wanted:
            for thing in range(things):
                holders[held[thing]] += users[client]
            holders[-1] += users[client] * (wanted - things)
        elif greedy:
            for thing in np.argsort(-weights[:things], kind="mergesort")[:wanted]:
                holders[held[thing]] += users[client]
        else:
            for user in range(place[1], users[client]):
                if used == len(uniforms):
                    place[0], place[1] = client, user
                    return
                row = uniforms[used]
                used += 1
                for step in range(wanted):
                    other = step + int(row[step] * (things - step))
                    held[step], held[other] = held[other], held[step]
                    holders[held[step]] += 1
                for step in range(wanted - 1, -1, -1):  # back in order, for the next user
                    other = step + int(row[step] * (things - step))
                    held[step], held[other] = held[other], held[step]
        place[1] = 0
    place[0] = users.size
