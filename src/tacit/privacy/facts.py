"""The facts that a privacy statement is made from, checked against each other.

What only the rest of the platform knows (population, vocabulary, where keys came from) arrives here as plain
values.
"""

import re
from dataclasses import dataclass

from tacit.errors import InputError
from tacit.privacy.guarantee import Guarantee

OPERATING_SYSTEM = "operating system"
UNITS = {
    "device": "Device level: the guarantee is for everything on one device, however much text that is and "
    "whatever it says. "
    "For a person with one device it is user-level; for a device that several people share it is stronger; "
    "for a person "
    "with several devices that take part it is weaker, and group privacy gives the user-level figure.",
    "client": "Client level: the guarantee is for everything one client holds, however much text that is "
    "and whatever it "
    "says. A client stands for one device; people with several clients are covered by group privacy only.",
}
ADJACENCIES = {
    "zero-out": "Zero-out (arXiv:2103.00039): two data sets are neighbours if one has the contributions of "
    "one client, in "
    "every round it takes part in, replaced by zeros. A special form of add-or-remove that keeps the number "
    "of records.",
}
VOCABULARIES = ("public", "word list", "private")
ROUNDED_MULTIPLIERS = 0.02  # papers print 0.54 at 500 reports for 7, not 7.02, at 6,500


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """The same run at a larger cohort: the noise multiplier grows with the report goal, the noise of the mean
    stays.
    """

    report_goal: int
    noise_multiplier: float

    @classmethod
    def scaled(cls, guarantee: Guarantee, *, report_goal: int, to: int) -> "Extrapolation":
        """From a run of `report_goal` reports a round to `to` reports at the same noise on the mean."""
        return cls(report_goal=to, noise_multiplier=guarantee.noise_multiplier * to / report_goal)


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """What a statement is made from. `planned` is what was promised, `realised` the same noise under what
    happened.

    `released` names what leaves the server; `looked_at` each other use of clients' text, which has no
    guarantee; `public_data` what was used besides. `key_source` is "operating system" or "fixed seed N".
    `verify_command` re-derives the figures from the run itself. InputError where the facts contradict each
    other.
    """

    planned: Guarantee
    realised: Guarantee
    delta: float
    population: int
    report_goal: int
    cohort_rule: str
    vocabulary_kind: str
    vocabulary_description: str
    released: str
    looked_at: tuple[str, ...]
    verify_command: str
    public_data: tuple[str, ...] = ()
    key_source: str = OPERATING_SYSTEM
    unit: str = "device"
    adjacency: str = "zero-out"
    aggregation: str = "simulated in the clear"
    extrapolation: Extrapolation | None = None

    def __post_init__(self) -> None:
        _choose("unit", self.unit, tuple(UNITS))
        _choose("adjacency", self.adjacency, tuple(ADJACENCIES))
        _choose("vocabulary_kind", self.vocabulary_kind, VOCABULARIES)
        if self.key_source != OPERATING_SYSTEM and not re.fullmatch(r"fixed seed -?\d+", self.key_source):
            raise InputError(f"key_source={self.key_source!r}; say {OPERATING_SYSTEM!r} or 'fixed seed N'.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not a probability between 0 and 1; give for example 1e-10.")
        if self.planned.with_participation(self.realised.participation) != self.realised:
            raise InputError(
                "planned and realised guarantee differ in more than participation; a run has one strategy, "
                "one clip norm "
                "and one noise multiplier."
            )
        if self.extrapolation:
            _check_extrapolation(self.extrapolation, self.planned, self.report_goal)


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r} is none of {', '.join(known)}; choose one of them.")


def _check_extrapolation(larger: Extrapolation, guarantee: Guarantee, report_goal: int) -> None:
    if not guarantee.private:
        raise InputError("a run without noise has nothing to extrapolate; leave the extrapolation out.")
    scaled = guarantee.noise_multiplier * larger.report_goal / report_goal
    if larger.report_goal <= report_goal or abs(larger.noise_multiplier / scaled - 1) > ROUNDED_MULTIPLIERS:
        raise InputError(
            f"{larger.report_goal} reports with noise multiplier {larger.noise_multiplier:g} are not this "
            "run at a larger "
            f"cohort; give more than {report_goal} reports, and noise multiplier {scaled:.6g} to keep the "
            "noise of the mean."
        )
