"""Who may come how often: the assumption under which every sensitivity is computed.

Two conventions exist for the distance between two participations of one client, and both have a name here:
`min_separation` is the difference b of the round numbers (arXiv:2408.08868, Definition of (k, b)-participation),
`rounds_between` is the number of rounds strictly between (the papers' tables and the tree colab call it MinS), so
`min_separation = rounds_between + 1`.
"""

import operator
from dataclasses import dataclass

from tacit.errors import AccountingError, InputError

MOST = 10_000_000  # rounds: one a second for four months


def whole(name: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`; InputError otherwise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name}={value!r} is not a whole number; give a whole number of at least {least}.")
    number = operator.index(value)
    if number < least:
        raise InputError(f"{name}={number} is below {least}; give a whole number of at least {least}.")
    return number


@dataclass(frozen=True, kw_only=True)
class Participation:
    """One client takes part in at most `max_participations` of `rounds` rounds, any two of them at least
    `min_separation` rounds apart (rounds i < j of one client satisfy j - i >= min_separation).

    Raises InputError where a number is not whole or below 1.
    """

    rounds: int
    min_separation: int
    max_participations: int

    def __post_init__(self) -> None:
        for name in ("rounds", "min_separation", "max_participations"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))

    def of_a_run(self) -> "Participation":
        """Itself. Raises: InputError above MOST: the formulas bear any number, but not every strategy's arrays do."""
        for name in ("rounds", "min_separation", "max_participations"):
            if (number := getattr(self, name)) > MOST:
                raise InputError(f"{name}={number} is more than any run has; give at most {MOST:,}.")
        return self

    @classmethod
    def worst_case(cls, rounds: int, min_separation: int) -> "Participation":
        """As often as the separation lets anyone come: ceil(rounds / min_separation) times."""
        rounds, min_separation = whole("rounds", rounds, 1), whole("min_separation", min_separation, 1)
        most = -(-rounds // min_separation)
        return cls(rounds=rounds, min_separation=min_separation, max_participations=most)

    @classmethod
    def from_rounds_between(
        cls, *, rounds: int, rounds_between: int, max_participations: int | None = None
    ) -> "Participation":
        """From the papers' MinS: `rounds_between` rounds lie strictly between two participations of a client.

        Without `max_participations`, as often as that allows.
        """
        separation = whole("rounds_between", rounds_between, 0) + 1
        if max_participations is None:
            return cls.worst_case(rounds=rounds, min_separation=separation)
        return cls(rounds=rounds, min_separation=separation, max_participations=max_participations)

    @property
    def rounds_between(self) -> int:
        """The papers' MinS: rounds strictly between two participations of one client."""
        return self.min_separation - 1

    @property
    def effective(self) -> "Participation":
        """The same set of participation patterns with `max_participations` no larger than the separation allows."""
        most = min(self.max_participations, -(-self.rounds // self.min_separation))
        return Participation(rounds=self.rounds, min_separation=self.min_separation, max_participations=most)

    def first(self, rounds: int) -> "Participation":
        """What the same promise says of the first `rounds` rounds alone; AccountingError beyond its own rounds."""
        rounds = whole("rounds", rounds, 1)
        if rounds > self.rounds:
            raise AccountingError(
                f"rounds={rounds} lie beyond the {self.rounds} rounds that this participation speaks of; "
                f"account with a Participation(rounds={rounds}, ...)."
            )
        return Participation(
            rounds=rounds, min_separation=self.min_separation, max_participations=self.max_participations
        )
