"""How many canaries join a run, what they do, and what the auditor sees."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Literal, get_args

from tacit.errors import InputError, of_type
from tacit.privacy.empirical.samples import error_of

See = Literal["all", "last"]
MOST = 1_000_000  # canaries: more than any run has clients


@dataclass(frozen=True, kw_only=True)
class CanarySettings:
    """What the auditor puts into a run.

    Each group of `alike` canaries sends one random direction of full norm, or nothing, by a fair coin. mu-GDP promises
    a group of k no more than k mu (Dong, Roth & Su, arXiv:1905.02383, group privacy), so that scores of groups, divided
    by k, bound mu: the noise on the bound falls with k (Jagielski et al., arXiv:2006.07709, poison with k copies too).
    """

    canaries: Annotated[int, "Clients that send a random direction of full norm, or by a coin nothing."] = 500
    alike: Annotated[int, "So many of them share direction and coin; the bound is divided by it."] = 10
    sentences: Annotated[int, "Random sentences for each number of repeats and of users; 0: none."] = 2
    repeats: Annotated[tuple[int, ...], "How often such a user has the sentence.", "1,4,16"] = (1, 4, 16)
    users: Annotated[tuple[int, ...], "How many users have the same sentence.", "1,4,16"] = (1, 4, 16)
    see: Annotated[See, "What the auditor sees: all released models, or the last alone."] = "all"
    confidence: Annotated[float, "Of each bound by itself."] = 0.95

    def __post_init__(self) -> None:
        for name, least in {"canaries": 0, "alike": 1, "sentences": 0}.items():
            value = getattr(self, name)
            of_type(name, value, int)
            if not least <= value <= MOST:
                raise InputError(f"{name}={value} must be at least {least} and at most {MOST:,}.")
        for name in ("repeats", "users"):
            values = getattr(self, name)
            if not values or not all(isinstance(each, int) and 1 <= each <= 1000 for each in values):
                raise InputError(f"{name}={values} must be numbers from 1 to 1,000; give for example 1,4,16.")
        if self.see not in get_args(See):
            raise InputError(f"see='{self.see}' is unknown; an auditor sees all released models, or the last.")
        error_of(self.confidence)
        if self.canaries % self.alike:
            raise InputError(
                f"{self.canaries} canaries are no whole number of groups of alike={self.alike}; "
                f"give {max(self.canaries // self.alike, 1) * self.alike}."
            )
        if not self.canaries and not self.sentences:
            raise InputError("canaries=0 and sentences=0 leave nothing to look for; give some of either.")

    @property
    def groups(self) -> int:
        """Directions, and coins."""
        return self.canaries // self.alike

    @property
    def sentence_users(self) -> int:
        """Users who have a random sentence."""
        return self.sentences * len(self.repeats) * sum(self.users)

    def check_enough(self, mu: float) -> None:
        """Refuse canaries that could not even show that a run leaks twice what it claims, as with half its noise.

        With half of n canaries in, groups of k, the bound's margin is z / sqrt(n k / 2), which must be below the claim.
        Guesses need as many coins as make chance rare, and the scores' deviation some of either side.
        Raises: InputError naming the number.
        """
        z = NormalDist().inv_cdf(self.confidence)
        rare = math.ceil(math.log2(1 / error_of(self.confidence)))
        coins = max(math.ceil(2 * (z / (mu * self.alike)) ** 2), 2 * rare)
        if self.groups < coins:
            raise InputError(
                f"{self.canaries} canaries, {self.alike} alike, are too few to show with confidence "
                f"{self.confidence:g} that a run leaks twice its mu of {mu:.3g}; give at least {coins * self.alike:,}."
            )
