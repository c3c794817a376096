"""What local randomizers promise: for one answer, for a person, and centrally; and to how many people they are of use.

A person gives `contributions` answers to one question, each randomised on the device. Every question has its own
group of people, so that nothing adds up over questions: parallel composition.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity, absolute_threshold
from tacit.privacy.local_shuffling import Kind, ShuffleBounds, holds_too, shuffle_epsilon
from tacit.privacy.local_subset_selection import SubsetNumbers, check_local, estimate_variance
from tacit.privacy.rounding import rounded_up
from tacit.statements.facts import OPERATING_SYSTEM

Record = dict[str, Any]

SURE = 3.0  # standard deviations above the threshold: kept in one layer with probability 0.9987

ASSUMPTIONS = {
    "devices": "Each device runs the randomizer as published, with random bits of its own operating system.",
    "disjoint": "Each person is asked one question only: the groups of the layers and passes have nobody in common.",
    "shuffler": "For the central figures only: whoever collects the reports shuffles or sums them, keeps nothing else, "
    "and does not act together with those who see the result. The local figures need nobody's honesty.",
    "others": "For the central figures only: the other people of the group send reports that are randomised, too.",
}
SEEDED = (
    "SIMULATION: the randomness came from a recorded seed. Whoever has the seed can take the noise away; the figures "
    "say what devices with randomness of their own would have promised."
)
RESAMPLED = (
    "SIMULATION: each client's text stood for many people. Nothing is promised to those clients; the figures say what "
    "a population of so many different people would have been promised."
)


@dataclass(frozen=True)
class Group:
    """The people of one question, and how many answers the question has."""

    users: int
    domain: int


@dataclass(frozen=True, kw_only=True)
class LocalGuarantee:
    """The guarantees of a campaign: `groups` of people, one for each question, `contributions` reports a person.

    `central_delta` is where central epsilons are given. `randomness` is "operating system", or a seed's description
    for a simulation, which the statement then says first; so it does where the people were `resampled` from fewer.
    `randomizer` "any" uses no property but the local epsilon.
    """

    item_epsilon: float
    contributions: int
    groups: tuple[Group, ...]
    central_delta: float
    randomizer: Kind = "subset-selection"
    randomness: str = OPERATING_SYSTEM
    resampled: bool = False

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("a guarantee needs the groups of people that were asked: there is none.")
        for group in self.groups:
            check_local(group.domain, self.item_epsilon)
            if group.users < 1:
                raise InputError(f"a group of {group.users} people cannot be asked: give those of one layer.")
        if self.contributions < 1:
            raise InputError(f"contributions={self.contributions}: a person who is asked gives one answer or more.")

    @property
    def user_epsilon(self) -> float:
        """Local, for all answers of one person: contributions * item_epsilon (basic composition)."""
        return self.contributions * self.item_epsilon

    @cached_property
    def central(self) -> ShuffleBounds:
        """For one answer of one person, (epsilon, central_delta) centrally: the worst of the groups.

        People of other groups have no part in a group's sum, so the campaign promises what its worst group does.
        """
        return self._central(self.central_delta)

    @cached_property
    def central_user_epsilon(self) -> float:
        """For all answers of one person, at central_delta: group privacy of K answers, or K * item_epsilon if less.

        (epsilon, d) for one gives (K epsilon, d (e^(K epsilon) - 1) / (e^epsilon - 1)) for K; d is chosen so that
        this is at most central_delta. Source: Dwork & Roth 2014, Theorem 2.2 and its approximate form.
        """
        K = self.contributions
        if K == 1:
            return min(self.central.epsilon_upper, self.user_epsilon)
        delta = self.central_delta / K
        while delta > 1e-300:
            epsilon = self._central(delta).epsilon_upper
            if K * epsilon >= self.user_epsilon:
                break
            # (e^(K eps) - 1) / (e^eps - 1) = sum of e^(i eps), i < K.
            factor = K if epsilon == 0 else math.expm1(K * epsilon) / math.expm1(epsilon)
            if delta * factor <= self.central_delta:
                return K * epsilon
            delta = min(self.central_delta / factor * 0.9, delta / 2)
        return self.user_epsilon

    def _central(self, delta: float) -> ShuffleBounds:
        worst: ShuffleBounds | None = None
        for group in sorted(set(self.groups), key=lambda group: (group.users, group.domain)):
            reports = group.users * self.contributions
            if worst and holds_too(worst, self.item_epsilon, reports, delta, self._domain(group)):
                continue
            made = shuffle_epsilon(self.item_epsilon, reports, delta, self.randomizer, group.domain)
            worst = made if worst is None or made.epsilon_upper > worst.epsilon_upper else worst
        assert worst is not None  # there is a group
        return worst

    def to_record(self) -> Record:
        """Plain values for JSON, with the sentences: everything that follows from the settings."""
        smallest = min(group.users for group in self.groups)
        return {
            "randomizer": self.randomizer,
            "contributions": self.contributions,
            "groups": len(self.groups),
            "smallest_group": smallest,
            "reports_of_smallest_group": smallest * self.contributions,
            "local_epsilon_item": self.item_epsilon,
            "local_epsilon_user": self.user_epsilon,
            "central_delta": self.central_delta,
            "central_epsilon_item": self.central.epsilon_upper,
            "central_epsilon_item_lower": self.central.epsilon_lower,
            "central_epsilon_user": self.central_user_epsilon,
            "theorem": self.central.theorem,
            "randomness": self.randomness,
            "resampled": self.resampled,
            "assumptions": dict(ASSUMPTIONS),
            "statement": self.sentences(),
        }

    @property
    def simulated(self) -> list[str]:
        """Why those whose text was used are not promised this, a sentence for each reason; empty where they are."""
        seeded = [] if self.randomness == OPERATING_SYSTEM else [f"{SEEDED} Source of randomness: {self.randomness}."]
        return seeded + ([RESAMPLED] if self.resampled else [])

    def promises(self) -> list[str]:
        """The figures as sentences, rounded up."""
        K, central = self.contributions, self.central
        asked = "one answer" if K == 1 else f"{K} answers"
        smallest = min(group.users for group in self.groups)
        return [
            f"Local, for one answer: epsilon = {rounded_up(self.item_epsilon)}. Each answer is randomised on the "
            "device before it leaves. This holds against everybody, the server included.",
            f"Local, for everything a person answered ({asked}): epsilon = {rounded_up(self.user_epsilon)}.",
            f"Central, for one answer: epsilon = {rounded_up(central.epsilon_upper)} at delta = "
            f"{self.central_delta:g}, against those who see only shuffled or summed reports. Replace-one adjacency; "
            f"proved by: {central.theorem}. An attack shows that no less than "
            f"about {central.epsilon_lower:.3g} can be promised.",
            f"Central, for everything a person answered: epsilon = {rounded_up(self.central_user_epsilon)} at delta = "
            f"{self.central_delta:g}.",
            f"{len(self.groups)} questions were asked, each of its own group of people, {smallest} at the fewest. "
            "Asking more questions of other people weakens nobody's guarantee.",
        ]

    def sentences(self) -> list[str]:
        """The guarantee in plain English, to publish: what makes it a simulation, the figures, what is assumed."""
        return [*self.simulated, *self.promises(), *(f"Assumed: {assumption}" for assumption in ASSUMPTIONS.values())]

    def _domain(self, group: Group) -> int | None:
        return group.domain if self.randomizer == "subset-selection" else None


@dataclass(frozen=True, kw_only=True)
class UserLevel:
    """One person's whole budget, spent in two ways; deviations are of the estimated number of contributions."""

    user_epsilon: float
    contributions: int
    one_word_deviation: float
    all_words_deviation: float

    @property
    def better(self) -> str:
        """ "one word" or "all words": the smaller deviation."""
        return "one word" if self.one_word_deviation <= self.all_words_deviation else "all words"

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {**asdict(self), "better": self.better}


def user_level(user_epsilon: float, contributions: int, users: int, domain: int, count: float) -> UserLevel:
    """Each person sends one of K words at the whole epsilon, or all K at epsilon / K: which estimates better.

    Both promise `user_epsilon` for everything a person typed. Exact standard deviations, Subset Selection, for a word
    that `count` of the `users` have among their K different words. One of K, drawn uniformly: a report supports the
    word with probability q + (p - q)/K or q, and the estimate is multiplied by K.
    """
    K = contributions
    if K < 1 or not 0 <= count <= users:
        raise InputError(f"contributions={K}, count={count:g} of {users} users: give K >= 1 and 0 <= count <= users.")
    whole, shared = SubsetNumbers(domain, user_epsilon), SubsetNumbers(domain, user_epsilon / K)
    chance = whole.q + (whole.p - whole.q) / K
    spread = count * chance * (1 - chance) + (users - count) * whole.q * (1 - whole.q)
    return UserLevel(
        user_epsilon=user_epsilon,
        contributions=K,
        one_word_deviation=K * math.sqrt(spread) / (whole.p - whole.q),
        all_words_deviation=math.sqrt(shared.variance(users * K, count)),
    )


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a population can hope for at one local epsilon.

    Counts are of people in one group: with `findable_count` holders a string is kept in half of all cases, with
    `sure_count` in 99.8 percent, of one layer; `findable_share` is the former per report.
    """

    population: int
    local_epsilon: float
    users_per_group: int
    reports: int
    least_votes: int
    findable_count: float
    sure_count: float
    central: ShuffleBounds

    @property
    def findable_share(self) -> float | None:
        """The share of all contributions that a string needs to be found; None where even everybody's is too few."""
        return self.findable_count / self.reports if self.findable_count <= self.reports else None

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "population": self.population,
            "local_epsilon": self.local_epsilon,
            "users_per_group": self.users_per_group,
            "reports": self.reports,
            "least_votes": self.least_votes,
            "findable_count": self.findable_count,
            "sure_count": self.sure_count,
            "findable_share": self.findable_share,
            "epsilon_upper": self.central.epsilon_upper,
            "epsilon_lower": self.central.epsilon_lower,
        }


@dataclass(frozen=True, kw_only=True)
class Campaigning:
    """How any population would be asked: Subset Selection over `domain`, everybody in one of `groups` groups.

    `anonymity` is that of one group: what fewer than k of its people typed is kept with that probability at most.
    """

    domain: int
    groups: int
    contributions: int
    anonymity: Anonymity
    central_delta: float


def outlook(population: int, local_epsilon: float, campaigning: Campaigning) -> Outlook:
    """The smallest count that a population of this size can find, and the central guarantee that it gets.

    The threshold is the absolute one; the rest are the exact mean and standard deviation of the votes.
    InputError for a population with fewer people than groups, or groups of fewer than k reports.
    """
    users = population // campaigning.groups
    if users < 1:
        raise InputError(f"population={population} has fewer people than {campaigning.groups} groups: ask fewer.")
    numbers = SubsetNumbers(campaigning.domain, local_epsilon)
    reports = users * campaigning.contributions
    asked = campaigning.anonymity
    least = absolute_threshold(numbers.p, numbers.q, reports, asked.k, asked.delta)
    gap = numbers.p - numbers.q
    findable = (least - reports * numbers.q) / gap
    spread = estimate_variance(numbers.p, numbers.q, reports, min(max(findable, 0.0), reports))
    guarantee = LocalGuarantee(
        item_epsilon=local_epsilon,
        contributions=campaigning.contributions,
        groups=(Group(users, campaigning.domain),),
        central_delta=campaigning.central_delta,
    )
    return Outlook(
        population=population,
        local_epsilon=local_epsilon,
        users_per_group=users,
        reports=reports,
        least_votes=least,
        findable_count=findable,
        sure_count=findable + SURE * math.sqrt(spread),
        central=guarantee.central,
    )


def outlooks(populations: Iterable[int], epsilons: Iterable[float], campaigning: Campaigning) -> list[Outlook]:
    """`outlook` for every population at every local epsilon."""
    listed = list(epsilons)
    return [outlook(population, epsilon, campaigning) for population in populations for epsilon in listed]
