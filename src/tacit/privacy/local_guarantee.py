"""What local randomizers promise: for one answer, for a user, and centrally.

A user gives `contributions` answers to one question, each randomised on the device. Every question has its own
group of users, so that nothing adds up over questions: parallel composition.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit.errors import InputError
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.local_shuffling import Kind, ShuffleBounds, is_proved, shuffle_epsilon
from tacit.privacy.local_subset_selection import check_local
from tacit.privacy.rounding import rounded_up

Record = dict[str, Any]

# The randomizers whose local epsilon is proved, by name, each with the theorem that bounds it centrally: what
# `SUPPORTS` says of it, or "any", which uses nothing but the epsilon. A line here vouches for the proof, and a
# randomizer without one has no guarantee.
PROVED: dict[str, Kind] = {
    "subset-selection": "subset-selection",  # Ye & Barg 2018, arXiv:1702.00610
    "projective-geometry": "projective-geometry",  # Feldman et al. 2022, arXiv:2203.00194
    "k-ary": "k-ary",  # Warner 1965; Kairouz, Bonawitz & Ramage 2016, arXiv:1602.07387
}

ASSUMPTIONS = {
    "devices": "Each device runs the randomizer as published, with random bits of its own operating system.",
    "disjoint": "Each user is asked one question only: the groups of the layers and passes have nobody in common.",
    "shuffler": "For the central figures only: whoever collects the reports shuffles or sums them, keeps nothing else, "
    "and does not act together with those who see the result. The local figures need nobody's honesty.",
    "others": "For the central figures only: the other users of the group send reports that are randomised, too.",
}
SEEDED = (
    "SIMULATION: the randomness came from a recorded seed. Whoever has the seed can take the noise away; the figures "
    "say what devices with randomness of their own would have promised."
)
RESAMPLED = (
    "SIMULATION: each client's text stood for many users. Nothing is promised to those clients; the figures say what "
    "a population of so many different users would have been promised."
)


@dataclass(frozen=True)
class Group:
    """The users of one question, and how many answers the question has."""

    users: int
    domain: int


@dataclass(frozen=True, kw_only=True)
class LocalGuarantee:
    """The guarantees of a discovery: `groups` of users, one for each question, `contributions` reports a user.

    `central_delta` is where central epsilons are given. `randomness` is "operating system", or a seed's description
    for a simulation, which the statement then says first; so it does where the users were `resampled` from fewer.
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
            raise InputError("a guarantee needs the groups of users that were asked: there is none.")
        for group in self.groups:
            check_local(group.domain, self.item_epsilon)
            if group.users < 1:
                raise InputError(f"a group of {group.users} users cannot be asked: give those of one layer.")
        if self.contributions < 1:
            raise InputError(f"contributions={self.contributions}: a user who is asked gives one answer or more.")

    @property
    def user_epsilon(self) -> float:
        """Local, for all answers of one user: contributions * item_epsilon (basic composition)."""
        return self.contributions * self.item_epsilon

    @cached_property
    def central(self) -> ShuffleBounds:
        """For one answer of one user, (epsilon, central_delta) centrally: the worst of the groups.

        Users of other groups have no part in a group's sum, so the whole promises what its worst group does.
        """
        return self._central(self.central_delta)

    @cached_property
    def central_user_epsilon(self) -> float:
        """For all answers of one user, at central_delta: group privacy of K answers, or K * item_epsilon if less.

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
            case = (self.item_epsilon, reports, delta, self.randomizer, group.domain)
            if worst and is_proved(worst.epsilon_upper, *case):
                continue
            made = shuffle_epsilon(*case)
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
        answers = "one answer" if K == 1 else f"{K} answers"
        smallest = min(group.users for group in self.groups)
        return [
            f"Local, for one answer: epsilon = {rounded_up(self.item_epsilon)}. Each answer is randomised on the "
            "device before it leaves. This holds against everybody, the server included.",
            f"Local, for everything a user answered ({answers}): epsilon = {rounded_up(self.user_epsilon)}.",
            f"Central, for one answer: epsilon = {rounded_up(central.epsilon_upper)} at delta = "
            f"{self.central_delta:g}, against those who see only shuffled or summed reports. Replace-one adjacency; "
            f"proved by: {central.theorem}. An attack shows that no less than "
            f"about {central.epsilon_lower:.3g} can be promised.",
            f"Central, for everything a user answered: epsilon = {rounded_up(self.central_user_epsilon)} at delta = "
            f"{self.central_delta:g}.",
            f"{len(self.groups)} questions were asked, each of its own group of users, {smallest} at the fewest. "
            "Asking more questions of other users weakens nobody's guarantee.",
        ]

    def sentences(self) -> list[str]:
        """The guarantee in plain English, to publish: what makes it a simulation, the figures, what is assumed."""
        return [*self.simulated, *self.promises(), *(f"Assumed: {assumption}" for assumption in ASSUMPTIONS.values())]
