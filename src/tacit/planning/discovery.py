"""What a population can find at which local epsilon, computed before any client reports.

Clients give `contributions` answers to one question, each randomised on the device; every question has its own group
of clients.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity, absolute_threshold
from tacit.privacy.local_guarantee import Group, LocalGuarantee
from tacit.privacy.local_shuffling import ShuffleBounds, fewest_reports
from tacit.privacy.local_subset_selection import SubsetNumbers, estimate_variance

Record = dict[str, Any]

CONFIDENCE = 3.0  # standard deviations above the threshold: kept in one layer with probability 0.9987


@dataclass(frozen=True, kw_only=True)
class UserLevel:
    """One user's whole budget, spent in two ways; deviations are of the estimated number of contributions."""

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
    """Each user sends one of K words at the whole epsilon, or all K at epsilon / K: which estimates better.

    Both promise `user_epsilon` for everything a user typed. Exact standard deviations, Subset Selection, for a word
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
class Findable:
    """What a population can hope for at one local epsilon.

    Counts are of users in one group: with `findable_count` holders a string is kept in half of all cases, with
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
class DiscoveryPlan:
    """How any population would be asked: Subset Selection over `domain`, everybody in one of `groups` groups.

    `first_domain` is that of a trie's first layer, the characters and nothing: fewer answers hide worse, so that it is
    the first layer that decides what is promised centrally. `anonymity` is that of one group: what fewer than k of its
    users typed is kept with that probability at most.
    """

    domain: int
    groups: int
    contributions: int
    anonymity: Anonymity
    central_delta: float
    first_domain: int = 101

    @property
    def domains(self) -> tuple[int, int]:
        """The two questions that the central guarantee is bounded for, the worse of which counts."""
        return min(self.first_domain, self.domain), self.domain


def findable(population: int, local_epsilon: float, plan: DiscoveryPlan) -> Findable:
    """The smallest count that a population of this size can find, and the central guarantee that it gets.

    The threshold is the absolute one; the rest are the exact mean and standard deviation of the votes.
    InputError for a population with fewer users than groups, or groups of fewer than k reports.
    """
    users = population // plan.groups
    if users < 1:
        raise InputError(f"population={population} has fewer users than {plan.groups} groups: ask fewer.")
    numbers = SubsetNumbers(plan.domain, local_epsilon)
    reports = users * plan.contributions
    anonymity = plan.anonymity
    least = absolute_threshold(numbers.p, numbers.q, reports, anonymity.k, anonymity.delta)
    gap = numbers.p - numbers.q
    count = (least - reports * numbers.q) / gap
    spread = estimate_variance(numbers.p, numbers.q, reports, min(max(count, 0.0), reports))
    guarantee = LocalGuarantee(
        item_epsilon=local_epsilon,
        contributions=plan.contributions,
        groups=tuple(Group(users, domain) for domain in plan.domains),
        central_delta=plan.central_delta,
    )
    return Findable(
        population=population,
        local_epsilon=local_epsilon,
        users_per_group=users,
        reports=reports,
        least_votes=least,
        findable_count=count,
        sure_count=count + CONFIDENCE * math.sqrt(spread),
        central=guarantee.central,
    )


def population_for(central_epsilon: float, local_epsilon: float, plan: DiscoveryPlan) -> int:
    """The fewest people whose first and whose largest question are proved to be (central_epsilon, central_delta).

    For one answer of one user, against those who see sums. InputError where no population is large enough.
    """
    reports = max(
        fewest_reports(central_epsilon, local_epsilon, plan.central_delta, "subset-selection", domain)
        for domain in plan.domains
    )
    return plan.groups * math.ceil(reports / plan.contributions)


def findable_by_each(populations: Iterable[int], epsilons: Iterable[float], plan: DiscoveryPlan) -> list[Findable]:
    """`findable` for every population at every local epsilon."""
    listed = list(epsilons)
    return [findable(population, epsilon, plan) for population in populations for epsilon in listed]
