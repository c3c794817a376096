"""The guarantee of local randomizers once reports are shuffled, and how many users and words they serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.errors import InputError
from tacit.jobs.result import JobResult
from tacit.planning.discovery import (
    DiscoveryPlan,
    Findable,
    UserLevel,
    findable,
    findable_by_each,
    population_for,
    user_level,
)
from tacit.privacy.local_shuffling import Kind, ShuffleBounds, shuffle_epsilon
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Paragraph, Table

NOTE = (
    "For one report changed, against those who see only the shuffled reports or their sum. Below the lower figure the "
    "promise would be false; above the upper one it is proved."
)
USER_NOTE = "Standard deviations of the estimated number of users, exact, Subset Selection:"
POPULATIONS_NOTE = (
    "Found: the fewest holders in one group with which a string is kept in half of all cases, and their share of the "
    "contributions. Central: for one answer, proved."
)


@dataclass(frozen=True, kw_only=True)
class ShuffleAccount(JobResult):
    """What was asked, and the bounds on the central epsilon that follow."""

    bounds: ShuffleBounds
    local_epsilon: float
    reports: int
    delta: float
    randomizer: Kind
    domain: int | None

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account shuffle --json` prints."""
        return {
            "schema": "tacit.account.shuffle",
            "version": 1,
            "epsilon_upper": self.bounds.epsilon_upper,
            "epsilon_lower": self.bounds.epsilon_lower,
            "theorem": self.bounds.theorem,
            "local_epsilon": self.local_epsilon,
            "reports": self.reports,
            "delta": self.delta,
            "randomizer": self.randomizer,
            "domain": self.domain,
        }

    def blocks(self) -> list[Block]:
        """What people read of it."""
        figures = {
            "central epsilon, proved": rounded_up(self.bounds.epsilon_upper),
            "no less than": f"{self.bounds.epsilon_lower:.4g}",
            "delta": f"{self.delta:g}",
            "theorem": self.bounds.theorem,
        }
        return [Table(tuple(figures.items())), Paragraph(NOTE)]


@dataclass(frozen=True)
class PopulationsAccount(JobResult):
    """What populations can hope for, each at each local epsilon."""

    rows: tuple[Findable, ...]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account populations --json` prints."""
        return {"schema": "tacit.account.populations", "version": 1, "rows": [row.to_record() for row in self.rows]}

    def blocks(self) -> list[Block]:
        """What people read of it."""
        rows = tuple(
            (
                f"{row.population:,}",
                f"{row.local_epsilon:g}",
                f"{row.users_per_group:,}",
                "nothing" if row.findable_share is None else f"{row.findable_count:,.0f}",
                "-" if row.findable_share is None else f"{row.findable_share:.2g}",
                rounded_up(row.central.epsilon_upper, 3),
            )
            for row in self.rows
        )
        head = ("population", "local epsilon", "users a group", "found from", "share", "central epsilon")
        return [Table(rows, head), Paragraph(POPULATIONS_NOTE)]


@dataclass(frozen=True)
class UserAccount(JobResult):
    """One of K words at the whole epsilon beside all K at epsilon / K."""

    level: UserLevel

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account user --json` prints."""
        return {"schema": "tacit.account.user", "version": 1, **self.level.to_record()}

    def blocks(self) -> list[Block]:
        """What people read of it."""
        K, epsilon = self.level.contributions, self.level.user_epsilon
        rows = (
            (f"one of {K} words, epsilon {epsilon:g}", f"{self.level.one_word_deviation:.4g}"),
            (f"all {K} words, epsilon {epsilon / K:g} each", f"{self.level.all_words_deviation:.4g}"),
        )
        return [Table(rows), Paragraph(f"{USER_NOTE} take {self.level.better}.")]


def account_shuffle(
    local_epsilon: float,
    reports: int,
    *,
    delta: float = 1e-10,
    randomizer: Kind = "subset-selection",
    domain: int | None = None,
) -> ShuffleAccount:
    """From a local to a central guarantee: upper and lower bounds, valid ones only. Raises: InputError."""
    return ShuffleAccount(
        bounds=shuffle_epsilon(local_epsilon, reports, delta, randomizer, domain),
        local_epsilon=local_epsilon,
        reports=reports,
        delta=delta,
        randomizer=randomizer,
        domain=domain,
    )


def account_populations(
    populations: Sequence[int],
    local_epsilons: Sequence[float],
    plan: DiscoveryPlan,
    *,
    central_epsilon: float | None = None,
) -> PopulationsAccount:
    """What each population can find at each local epsilon, and what it is promised centrally. Raises: InputError.

    With a central epsilon the smallest population at each local epsilon that is promised so much, not `populations`.
    """
    for name, given in (("populations", populations), ("local_epsilons", local_epsilons)):
        if not len(given):
            raise InputError(f"{name} names none, so there is nothing to say; give one at least, or leave it out.")
    if central_epsilon is None:
        return PopulationsAccount(tuple(findable_by_each(populations, local_epsilons, plan)))
    sizes = [(population_for(central_epsilon, epsilon, plan), epsilon) for epsilon in local_epsilons]
    return PopulationsAccount(tuple(findable(population, epsilon, plan) for population, epsilon in sizes))


def account_user(
    user_epsilon: float, contributions: int, *, users: int, domain: int, count: float = 0.0
) -> UserAccount:
    """One of K words at the whole epsilon, or all K at epsilon / K: which estimates better. Raises: InputError."""
    return UserAccount(user_level(user_epsilon, contributions, users, domain, count))
