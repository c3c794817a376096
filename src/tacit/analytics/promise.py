"""What a campaign promises: to each word typed, to each user, and to what few users typed.

Layers share no user, so what one person risks is one layer's cost, whatever the depth and the number of passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit.analytics.campaign import Campaign
from tacit.privacy.rounding import rounded_up
from tacit.privacy.shuffling import Kind, ShuffleBounds, shuffle_epsilon


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The guarantees of a real campaign with these settings. `central` is the weakest over all questions asked."""

    campaign: Campaign
    delta: float
    central: ShuffleBounds

    @property
    def item_epsilon(self) -> float:
        """Local DP of one word typed, swapped for another, whoever looks at the user's reports (Theorem 1)."""
        return self.campaign.terms.local_epsilon

    @property
    def user_epsilon(self) -> float:
        """Local DP of everything a user typed: K reports compose."""
        return self.campaign.terms.local_epsilon * self.campaign.terms.contributions

    @property
    def simulated(self) -> tuple[str, ...]:
        """Why the clients whose text was used are not promised this; empty where they are."""
        fixed = () if self.campaign.seed is None else (f"the seed {self.campaign.seed} fixes all randomness",)
        drawn = ("each client's text stands for many users",) if self.campaign.resample_users else ()
        return fixed + drawn

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON, the lines for people among them."""
        anonymity = self.campaign.anonymity
        return {
            "item_level_local_epsilon": self.item_epsilon,
            "user_level_local_epsilon": self.user_epsilon,
            "item_level_central": {
                "epsilon": self.central.epsilon_upper,
                "delta": self.delta,
                "epsilon_is_at_least": self.central.epsilon_lower,
                "theorem": self.central.theorem,
            },
            "anonymity": {"k": anonymity.k, "delta": anonymity.delta} if anonymity else None,
            "simulated": list(self.simulated),
            "lines": self.lines(),
        }

    def lines(self) -> list[str]:
        """The guarantees as sentences."""
        anonymity, terms = self.campaign.anonymity, self.campaign.terms
        said = [
            f"local      epsilon {rounded_up(self.item_epsilon)} for each word typed, {rounded_up(self.user_epsilon)} "
            f"for all that a user typed ({terms.contributions} reports each)",
            f"central    epsilon {rounded_up(self.central.epsilon_upper)} at delta {self.delta:g} for each word typed, "
            f"if nobody sees reports before they are summed ({self.central.theorem})",
            "anonymity  none was asked for: rare words can be output"
            if anonymity is None
            else f"anonymity  a given string of fewer than {anonymity.k} contributors is output with probability at "
            f"most {anonymity.delta:g}",
        ]
        if self.simulated:
            said.append(f"SIMULATION: of a real campaign so set up; {' and '.join(self.simulated)}.")
        return said


def promise_of(campaign: Campaign, questions: Iterable[tuple[int, int]], *, delta: float) -> Promise:
    """The promise of a campaign that asked these questions: (users, possible answers) of each layer and the count.

    Central figures hold for one word typed by one user: its question's N = users x K reports are summed, the shuffle's
    theorem takes their number and domain, and the worst question counts. Raises: InputError for a delta outside (0, 1).
    """
    terms = campaign.terms
    kind: Kind = "subset-selection" if terms.randomizer == "subset-selection" else "any"
    bounds = [
        shuffle_epsilon(terms.local_epsilon, users * terms.contributions, delta, kind, domain)
        for users, domain in sorted(set(questions))
    ]
    return Promise(campaign=campaign, delta=delta, central=max(bounds, key=lambda bound: bound.epsilon_upper))
