"""What a discovery run is asked to do, as one frozen value."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal, get_args

from tacit.errors import InputError, ParticipationError
from tacit.privacy.local_anonymity import MOST_CONTRIBUTORS, Anonymity
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol, check_protocol
from tacit.text.alphabet import Alphabet

DEEPEST = 1_000  # layers; no word is longer

Allocation = Literal["even", "middle"]

# Shares of users by layer, the last for all deeper ones. Early prefixes are shared by many words and stand out with few
# users; late layers have few words left. Measured in docs/results/word-discovery.md; smaller shares at the ends would
# find a little more, but the central guarantee is that of the smallest layer.
MIDDLE = (0.4, 0.6, 1.0, 1.3, 1.5, 1.5, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6, 0.5, 0.4)


@dataclass(frozen=True, kw_only=True)
class DiscoverySettings:
    """Paper 2's Algorithm 2, `passes` times, and a count of what it found.

    Each layer of each pass asks `users_per_layer` users who were never asked before, and keeps `prefixes` answers; a
    word of n characters needs n + 1 <= `depth` layers. `counting_users` more say how often each found word is typed.
    `allocation` even asks as many in each layer; middle (not in the paper) as many in all, but more in layers 4 to 8.
    `seed` makes a simulation repeatable, and then its randomness protects nobody; None asks the operating system.
    `secure_sum` has each group's votes summed by secure aggregation; None: in the clear.
    """

    reports: LocalReportSettings
    users_per_layer: Annotated[int, "Users asked in each layer of each pass; nobody is asked twice."]
    passes: Annotated[int, "Tries built one after another, each without the words found before."] = 1
    prefixes: Annotated[int, "L: the most prefixes kept in a layer."] = 1000
    depth: Annotated[int, "D: layers of a trie; words have at most D-1 characters."] = 15
    alphabet: Alphabet = field(default_factory=Alphabet)
    anonymity: Annotated[
        Anonymity | None,
        "k,delta: what fewer than k users contributed is kept with probability <= delta.",
        "20,1e-3",
    ] = None
    counting_users: int = 0
    allocation: Annotated[Allocation, "Users by layer: even, or middle (as many in all, more in layers 4 to 8)."] = (
        "even"
    )
    resample_users: Annotated[bool, "SIMULATE as many users as needed, each with a random client's text."] = False
    seed: Annotated[int | None, "Fix all randomness of a SIMULATION: whoever knows it can undo the protection."] = None
    secure_sum: SimulatedProtocol | None = None

    def __post_init__(self) -> None:
        check_protocol("secure_sum", self.secure_sum)
        for name in ("users_per_layer", "passes", "prefixes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} must be 1 or more.")
        if not 2 <= self.depth <= DEEPEST:
            raise InputError(
                f"depth={self.depth} must be 2 to {DEEPEST}: one character and the end need 2 layers; paper 2 has 15."
            )
        if self.counting_users < 0:
            raise InputError(f"counting_users={self.counting_users} must be 0 (no counts) or more.")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"seed={self.seed} must be 0 or more.")
        if self.allocation not in get_args(Allocation):
            raise InputError(
                f"allocation {self.allocation!r} is unknown; it is one of {', '.join(get_args(Allocation))}."
            )
        if min(self.users_of_layers) < 1:
            raise InputError(f"users_per_layer={self.users_per_layer} leaves a layer without users; ask for 3 or more.")
        fewest = min(min(self.users_of_layers) * self.reports.contributions, MOST_CONTRIBUTORS)
        if self.anonymity and self.anonymity.k > fewest:
            raise InputError(
                f"k={self.anonymity.k} of the k-anonymity is more than {fewest}, the reports of the smallest layer or "
                "the most that is computed; ask more users in each layer, or a smaller k."
            )
        self.reports.randomizer_for(self.prefixes * self.alphabet.size + 1)  # refuses more answers than it can have

    @property
    def users_of_layers(self) -> tuple[int, ...]:
        """(depth,) users of each layer of a pass; together depth x users_per_layer."""
        shares = [1.0 if self.allocation == "even" else MIDDLE[min(at, len(MIDDLE) - 1)] for at in range(self.depth)]
        ends = [
            round(sum(shares[:at]) / sum(shares) * self.depth * self.users_per_layer) for at in range(self.depth + 1)
        ]
        return tuple(end - begin for begin, end in pairwise(ends))

    @property
    def fewest_users(self) -> int:
        """Of any group."""
        return min(*self.users_of_layers, self.counting_users or max(self.users_of_layers))

    @property
    def groups(self) -> int:
        """How many groups of users there are at most, each asked one question."""
        return self.passes * self.depth + (1 if self.counting_users else 0)

    @property
    def users(self) -> int:
        """How many users are asked in all, once each."""
        return self.passes * self.depth * self.users_per_layer + self.counting_users

    def check_population(self, clients: int) -> None:
        """ParticipationError where so many clients are too few to ask all users once each."""
        if not clients:
            raise ParticipationError(
                "the population has no client, so nobody can be asked; give a source with clients."
            )
        if self.users > clients and not self.resample_users:
            layers = self.passes * self.depth
            raise ParticipationError(
                f"the run asks {self.users:,} users, the population has {clients:,}; {self.users_per_layer:,} in "
                f"each of {self.passes} x {self.depth} layers and {self.counting_users:,} to count, each once: ask "
                f"fewer in each layer (1/{layers} of the population), of fewer layers or passes, or simulate a larger "
                "population of such clients (--resample-users)."
            )
