"""What local randomizers promise once reports are shuffled, and to how many users and words they are of use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.planning.discovery import DiscoveryPlan, Outlook, UserLevel, outlooks, user_level
from tacit.privacy.local_shuffling import Kind, ShuffleBounds, shuffle_epsilon


@dataclass(frozen=True, kw_only=True)
class ShuffleAccount:
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
            "epsilon_upper": self.bounds.epsilon_upper,
            "epsilon_lower": self.bounds.epsilon_lower,
            "theorem": self.bounds.theorem,
            "local_epsilon": self.local_epsilon,
            "reports": self.reports,
            "delta": self.delta,
            "randomizer": self.randomizer,
            "domain": self.domain,
        }


@dataclass(frozen=True)
class Outlooks:
    """What populations can hope for, each at each local epsilon."""

    rows: tuple[Outlook, ...]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account populations --json` prints."""
        return {"rows": [row.to_record() for row in self.rows]}


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


def account_populations(populations: Sequence[int], local_epsilons: Sequence[float], plan: DiscoveryPlan) -> Outlooks:
    """What each population can find at each local epsilon, and what it is promised centrally. Raises: InputError."""
    return Outlooks(tuple(outlooks(populations, local_epsilons, plan)))


def account_user(user_epsilon: float, contributions: int, *, users: int, domain: int, count: float = 0.0) -> UserLevel:
    """One of K words at the whole epsilon, or all K at epsilon / K: which estimates better. Raises: InputError."""
    return user_level(user_epsilon, contributions, users, domain, count)
