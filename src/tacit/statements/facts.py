"""The facts that a privacy statement is made from, checked against each other; as plain values, too.

What only the rest of the platform knows (population, vocabulary, where keys came from) arrives here as plain
values.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tacit.errors import InputError, TacitError
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, strategy_from_record
from tacit.statements.ledger import MODEL_UPDATE, starts_afresh

OPERATING_SYSTEM = "operating system"
UNITS = {
    "device": (
        "Device level: the guarantee is for everything on one device, however much text that is and whatever it "
        "says. For a person with one device it is user-level; for a device that several people share it is "
        "stronger; for a person with several devices that take part it is weaker, and group privacy gives the "
        "user-level figure."
    ),
    "client": (
        "Client level: the guarantee is for everything one client holds, however much text that is and whatever "
        "it says. A client stands for one device; people with several clients are covered by group privacy only."
    ),
}
ADJACENCIES = {
    "zero-out": (
        "Zero-out (arXiv:2103.00039): two data sets are neighbours if one has the contributions of one client, in "
        "every round it takes part in, replaced by zeros. A special form of add-or-remove that keeps the number "
        "of records."
    ),
}
VOCABULARIES = ("public", "word list", "discovered", "private")
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
class SideRelease:
    """A sequence released beside the model updates: clip estimates, histograms; as planned and as it happened."""

    what: str
    planned: Guarantee
    realised: Guarantee


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """What a statement is made from. `planned` is what the model updates promised, `realised` the same noise
    under what happened; `also_released` are the sequences beside them. `clip_norms`, of a clip norm that follows the
    updates, are all that were in force, as (round from which it held, clip norm); `planned` has the first then and
    `realised` the last.

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
    also_released: tuple[SideRelease, ...] = ()
    clip_norms: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        _choose("unit", self.unit, tuple(UNITS))
        _choose("adjacency", self.adjacency, tuple(ADJACENCIES))
        _choose("vocabulary_kind", self.vocabulary_kind, VOCABULARIES)
        if self.key_source != OPERATING_SYSTEM and not re.fullmatch(r"fixed seed -?\d+", self.key_source):
            raise InputError(f"key_source={self.key_source!r}; say {OPERATING_SYSTEM!r} or 'fixed seed N'.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not a probability between 0 and 1; give for example 1e-10.")
        last = self.planned
        if self.clip_norms:
            _check_clip_norms(self.clip_norms, self.planned, self.realised)
            last = replace(self.planned, clip_norm=self.clip_norms[-1][1])
        sides = [(each.planned, each.realised) for each in self.also_released]
        for planned, realised in [(last, self.realised), *sides]:
            if planned.with_participation(realised.participation) != realised:
                raise InputError(
                    "planned and realised guarantee differ in more than participation; a run has one strategy, "
                    "one noise multiplier and, where no others are named, one clip norm."
                )
        if self.extrapolation:
            _check_extrapolation(self.extrapolation, self.planned, self.report_goal)

    @property
    def planned_in_all(self) -> Composition:
        """What all that is released promises together, as planned."""
        return _together((MODEL_UPDATE, self.planned), *((each.what, each.planned) for each in self.also_released))

    @property
    def realised_in_all(self) -> Composition:
        """What all that is released promises together, as it happened."""
        return _together((MODEL_UPDATE, self.realised), *((each.what, each.realised) for each in self.also_released))

    def at_larger_cohort(self) -> "StatementFacts":
        """The extrapolated run, itself extrapolating nothing: every sequence has more noise by the same factor."""
        if self.extrapolation is None:
            raise InputError("these facts extrapolate nothing; give an extrapolation.")
        noise = self.extrapolation.noise_multiplier
        factor = noise / self.planned.noise_multiplier

        def louder(guarantee: Guarantee) -> Guarantee:
            return replace(guarantee, noise_multiplier=guarantee.noise_multiplier * factor)

        return replace(
            self,
            planned=replace(self.planned, noise_multiplier=noise),
            realised=replace(self.realised, noise_multiplier=noise),
            also_released=tuple(
                replace(each, planned=louder(each.planned), realised=louder(each.realised))
                for each in self.also_released
            ),
            report_goal=self.extrapolation.report_goal,
            extrapolation=None,
        )

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs."""
        plain = {name: getattr(self, name) for name in PLAIN}
        return {
            "mechanism": _mechanism_record(self.planned),
            "planned": asdict(self.planned.participation),
            "realised": asdict(self.realised.participation),
            "also_released": [
                {
                    "what": each.what,
                    "mechanism": _mechanism_record(each.planned),
                    "planned": asdict(each.planned.participation),
                    "realised": asdict(each.realised.participation),
                }
                for each in self.also_released
            ],
            "extrapolation": asdict(self.extrapolation) if self.extrapolation else None,
            **({"clip_norms": [list(each) for each in self.clip_norms]} if self.clip_norms else {}),
            **{name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "StatementFacts":
        """The facts that `to_record` wrote; InputError or UnknownRelease where they are no such facts."""
        known = {*PLAIN, "mechanism", "planned", "realised", "also_released", "extrapolation"}
        found = record.keys() - {"clip_norms"}  # of adaptive clipping alone
        if found != known:
            odd = ", ".join(sorted(found ^ known))
            raise InputError(f"the facts have too few or too many keys ({odd}); use the version that wrote them.")
        try:
            planned, realised = _guarantees(record)
            held = tuple((_plain("clip_norms", at, int), float(norm)) for at, norm in record.get("clip_norms", ()))
            if held:
                realised = replace(realised, clip_norm=held[-1][1])
            larger = record["extrapolation"]
            return cls(
                planned=planned,
                realised=realised,
                also_released=tuple(_side_release(each) for each in record["also_released"]),
                extrapolation=None if larger is None else Extrapolation(**larger),
                clip_norms=held,
                **{name: _plain(name, record[name]) for name in PLAIN},
            )
        except TacitError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise InputError(f"the facts cannot be read ({error!r}); use the version that wrote them.") from error


# What is a number, a text or a list of texts.
PLAIN = {field.name: field.type for field in fields(StatementFacts) if field.type in (str, int, float, tuple[str, ...])}


def _together(*sequences: tuple[str, Guarantee]) -> Composition:
    return Composition(tuple(ReleasedSequence(what=what, guarantee=guarantee) for what, guarantee in sequences))


def _mechanism_record(guarantee: Guarantee) -> Record:
    clip_norm = guarantee.clip_norm
    return {
        "strategy": guarantee.strategy.to_record() if guarantee.strategy else None,
        "clip_norm": "inf" if math.isinf(clip_norm) else clip_norm,
        "noise_multiplier": guarantee.noise_multiplier,
        "clip_inflation": guarantee.clip_inflation,
    }


def _guarantees(record: Mapping[str, Any]) -> tuple[Guarantee, Guarantee]:
    """(planned, realised) of one sequence."""
    mechanism = dict(record["mechanism"])
    strategy = mechanism.pop("strategy")
    planned = Guarantee(
        participation=Participation(**record["planned"]),
        strategy=None if strategy is None else strategy_from_record(strategy),
        **{name: float(value) for name, value in mechanism.items()},  # "inf" included
    )
    return planned, planned.with_participation(Participation(**record["realised"]))


def _side_release(record: Mapping[str, Any]) -> SideRelease:
    planned, realised = _guarantees(record)
    return SideRelease(what=_plain("what", record["what"], str), planned=planned, realised=realised)


def _plain(name: str, value: Any, kind: Any = None) -> Any:
    """`value` as the field `name` has it; InputError where it is of another kind."""
    kind = PLAIN[name] if kind is None else kind
    if kind == tuple[str, ...]:
        good, value = isinstance(value, list) and all(isinstance(each, str) for each in value), tuple(value)
    elif kind is float and type(value) is int:
        good, value = True, float(value)
    else:
        good = type(value) is kind
    if not good:
        raise InputError(f"{name}={value!r} is of the wrong kind; use the version that wrote it.")
    return value


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r} is none of {', '.join(known)}; choose one of them.")


def _check_clip_norms(held: tuple[tuple[int, float], ...], planned: Guarantee, realised: Guarantee) -> None:
    """InputError unless they begin with the planned one and change only where `Ledger.composition` allows it."""
    begins = [at for at, _ in held]
    if held[0] != (0, planned.clip_norm):
        raise InputError(
            f"clip_norms begin with {held[0]}, and the run began with clip norm {planned.clip_norm}; begin with that."
        )
    if begins != sorted(set(begins)) or begins[-1] >= realised.participation.rounds:
        raise InputError(
            f"clip_norms hold from the rounds {begins}, which are not increasing rounds of the "
            f"{realised.participation.rounds} released; name each once."
        )
    early = [at for at in begins[1:] if not starts_afresh(planned.strategy, at)]
    if early:
        raise InputError(
            f"clip_norms change in round {early[0]}, where the noise does not start afresh, and the rounds before and "
            "after have no guarantee together; a clip norm changes at a restart only."
        )


def _check_extrapolation(larger: Extrapolation, guarantee: Guarantee, report_goal: int) -> None:
    if not guarantee.private:
        raise InputError("a run without noise has nothing to extrapolate; leave the extrapolation out.")
    scaled = guarantee.noise_multiplier * larger.report_goal / report_goal
    if larger.report_goal <= report_goal or abs(larger.noise_multiplier / scaled - 1) > ROUNDED_MULTIPLIERS:
        raise InputError(
            f"{larger.report_goal} reports with noise multiplier {larger.noise_multiplier:g} are not this run at a "
            f"larger cohort; give more than {report_goal} reports, and noise multiplier {scaled:.6g} to keep the "
            "noise of the mean."
        )
