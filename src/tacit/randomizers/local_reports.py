"""How much a device reports, and how the report is randomised: device and server use the same settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.randomizers.randomizer import Randomizer

MOST_SUPPORTED = 1 << 26  # answers that all reports of a device support together: a second, a quarter of a gigabyte

Sampler = Literal["random", "greedy"]


@dataclass(frozen=True, kw_only=True)
class LocalReportSettings:
    """How much a device says, and how it is hidden; the device checks these against its own policy.

    Every device that is asked sends exactly `contributions` reports, each through a `local_epsilon` randomizer.
    `greedy` reports what it holds most of, `random` a uniform choice among the different things it holds.
    """

    local_epsilon: Annotated[float, "What each report of a device costs at most (local DP, one word)."]
    contributions: Annotated[int, "K: reports of each user; what is missing is padded."] = 1
    sampler: Annotated[Sampler, "Which K: random (uniform) or greedy (most typed)."] = "random"
    randomizer: Annotated[str, "subset-selection, projective-geometry (short reports) or k-ary (a baseline)."] = (
        "subset-selection"
    )

    def __post_init__(self) -> None:
        from tacit.randomizers.registry import RANDOMIZERS  # Numba comes with it, and options are read without

        if self.contributions < 1:
            raise InputError(f"{self.contributions} contributions a user are none; ask for 1 or more.")
        for given, known in ((self.sampler, get_args(Sampler)), (self.randomizer, RANDOMIZERS)):
            if given not in known:
                raise InputError(f"{given!r} is unknown; it must be one of {', '.join(known)}.")
        self.randomizer_for(2)  # refuses an epsilon that cannot be

    @property
    def user_epsilon(self) -> float:
        """Local, of everything that one user sends: K reports of one epsilon each (basic composition)."""
        return self.contributions * self.local_epsilon

    def randomizer_for(self, domain: int) -> "Randomizer":
        """The local randomizer over so many possible answers."""
        from tacit.randomizers.registry import RANDOMIZERS

        return RANDOMIZERS[self.randomizer](domain, self.local_epsilon)

    def check_effort(self, domain: int) -> None:
        """That a device can draw its reports over so many answers. Raises: InputError."""
        supported = self.contributions * self.randomizer_for(domain).most_supported
        if supported > MOST_SUPPORTED:
            raise InputError(
                f"{self.contributions:,} reports over {domain:,} answers support {supported:,} of them together, and a "
                f"device counts {MOST_SUPPORTED:,}; ask for fewer reports, prefixes or characters."
            )

    def check_no_sum_wraps(self, users: int) -> None:
        """That votes of so many users stay what they are: sums are modulo 2^32. Raises: InputError."""
        if users * self.contributions >= 1 << 32:
            raise InputError(
                f"{users:,} devices that send {self.contributions:,} reports each may give one answer "
                f"{users * self.contributions:,} votes, and sums are counted up to {(1 << 32) - 1:,}; ask fewer in "
                "each layer, or for fewer reports."
            )
