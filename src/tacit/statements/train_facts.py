"""The facts of a training run's statement, checked for contradictions; as plain values too.

`count_facts.py` has the facts of the other kinds of run. What only the rest of the platform knows (population,
vocabulary, where keys came from) arrives here as plain values.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from tacit.errors import InputError, TacitError
from tacit.privacy.composition import BIT_NORM, Composition, ReleasedSequence
from tacit.privacy.guarantee import OPERATING_SYSTEM, Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.strategy import Record, Strategy, strategy_from_record
from tacit.records import from_plain, json_ready, to_plain
from tacit.statements.audited import Audited
from tacit.statements.contradictions import (
    ASK,
    LARGEST,
    check_came,
    check_clip_norms,
    check_cohort,
    check_decryptors,
    check_kept,
    check_limits,
    check_planned,
    check_seal,
)
from tacit.statements.ledger import CLIP_ESTIMATE, EVERY_ROUND, MODEL_UPDATE, accountable
from tacit.statements.population import PopulationSpent

F = TypeVar("F")

UNITS = {
    "device": (
        "Device level: the guarantee is for everything on one device, however much text that is and whatever it "
        "says. For a user with one device it is user-level; for a device that several users share it is "
        "stronger; for a user with several devices that take part it is weaker, and group privacy gives the "
        "user-level figure."
    ),
    "client": (
        "Client level: the guarantee is for everything one client holds, however much text that is and whatever "
        "it says. A client stands for one device; users with several clients are covered by group privacy only."
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
# What stands in the record of some runs only: of adaptive clipping, a simulation, decryptors, real devices, canaries.
_ABSENT = {
    "clip_norms": (),
    "simulated": None,
    "simulation": "",
    "decryptors": 0,
    "honest_decryptors": 1,
    "separation": None,
    "ended": "",
    "audited": None,
}
# How it was decided that a run ends before its last planned round.
RELEASED, EXACT, BY_HAND = "released", "exact", "by hand"
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
    realised: Guarantee | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What the statement of a run that trains is made from. `planned` is what the model updates promised, `realised`
    the same noise under what happened, None where nothing has happened yet; `also_released` are the sequences beside
    them. `clip_norms`, of a clip norm that follows the updates, are all that were in force, as (round from which it
    held, clip norm); `planned` has the first then and `realised` the last.

    `participations` are the rows of the log, one for each client and round, dropped ones too; `seal`
    is the journal's after the last of these rounds (see `runs.journal`); both are None of a plan. `budget` is
    the state of the population's, where the run names one.
    `released` names what leaves the server; `looked_at` each other use of clients' text, which has no
    guarantee; `public_data` what was used besides. `key_source` is "operating system" or "fixed seed N".
    `verify_command` re-derives the figures from the run itself. Of a planned run, `simulated` is what a simulation,
    described in words by `simulation`, saw its devices do. `decryptors` parties each added noise to the sums of
    updates, in the server's place, any `honest_decryptors` of them together what is accounted; 0: the server did.
    `separation` is what devices without identities kept, each by itself: `participations` are counted then, `realised`
    is the most that a device which kept it can have done, and `population` is the operator's guess. `ended` says by
    what it was decided to end before the last planned round: by released models, by exact numbers, by hand; "" of a run
    that was not. `audited` is of a run with canaries in it. InputError where the facts contradict each other.
    """

    format: ClassVar[str] = "tacit statement 1"

    planned: Guarantee
    realised: Guarantee | None = None
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
    participations: int | None = None
    seal: str | None = None
    budget: PopulationSpent | None = None
    also_released: tuple[SideRelease, ...] = ()
    clip_norms: tuple[tuple[int, float], ...] = ()
    simulated: Participation | None = None
    simulation: str = ""
    decryptors: int = 0
    honest_decryptors: int = 1
    separation: DeviceSeparation | None = None
    ended: str = ""
    audited: Audited | None = None

    def __post_init__(self) -> None:
        choose("unit", self.unit, tuple(UNITS))
        choose("adjacency", self.adjacency, tuple(ADJACENCIES))
        choose("vocabulary_kind", self.vocabulary_kind, VOCABULARIES)
        check_key_source(self.key_source)
        check_probability("delta", self.delta)
        last = self.planned
        if self.clip_norms and self.realised:
            check_clip_norms(self.clip_norms, self.planned, self.realised)
            last = replace(self.planned, clip_norm=self.clip_norms[-1][1])
        sides = [(each.planned, each.realised) for each in self.also_released]
        for planned, realised in [(last, self.realised), *sides]:
            if (realised is None) != (self.realised is None):
                raise InputError("of the sequences some are realised and some only planned; a run does all or none.")
            if realised and planned.with_participation(realised.participation) != realised:
                raise InputError(
                    "planned and realised guarantee differ in more than participation; a run has one strategy, "
                    "one noise multiplier and, where no others are named, one clip norm."
                )
        if self.extrapolation:
            _check_extrapolation(self.extrapolation, self.planned, self.report_goal)
        check_seal(self.seal)
        self._check_participations()
        if self.budget and self.realised_in_all:
            self.budget.check_covers(zcdp=self.realised_in_all.zcdp)
        _check_sides(self.also_released, self.realised)
        check_decryptors(self.decryptors, self.honest_decryptors, self.planned, beside=len(self.also_released))
        self._check_simulation()
        self._check_end()
        self._check_audit()

    def _check_end(self) -> None:
        if not self.ended:
            return
        choose("ended", self.ended, (RELEASED, EXACT, BY_HAND))
        planned = self.planned.participation.rounds
        if self.realised is None or self.realised.participation.rounds >= planned:
            raise InputError(f"ended={self.ended!r} is of a run with fewer than its {planned} planned rounds; {ASK}.")

    def _check_audit(self) -> None:
        if self.audited is None:
            return
        if (joined := self.audited.canaries + self.audited.users) >= self.population:
            raise InputError(f"audited has {joined:,} canaries of {self.population:,} clients, people too; {ASK}.")
        if self.audited.mu_shown is not None and not self.planned.private:
            raise InputError(f"audited.mu_shown={self.audited.mu_shown} is of a run without noise; {ASK}.")

    def _check_participations(self) -> None:
        limits = self.planned.participation
        check_limits(limits)
        if self.separation is not None:
            check_planned(limits, self.separation)
        if self.realised is None or self.participations is None:
            if (self.realised is None) != (self.participations is None):
                raise InputError("participations are counted in the log of a run that was made, and of no other.")
            kept = None if self.simulated is None else limits  # of a plan that was simulated; others may break it
            check_cohort(self.report_goal, self.population, limits.rounds, kept)
            return
        participation = self.realised.participation
        check_cohort(self.report_goal, self.population, limits.rounds, None)  # who came, the log says
        if self.separation is None:
            check_came(participation, self.participations, self.population)
        else:
            check_kept(participation, self.participations, self.separation)
        if participation.rounds > limits.rounds:
            raise InputError(f"{participation.rounds} rounds were released of {limits.rounds} planned; {ASK}.")

    def _check_simulation(self) -> None:
        if self.simulated is None:
            return
        if self.realised:
            raise InputError("what a simulation saw is of a run that was not made; leave it out of one that was.")
        if self.simulated.rounds != self.planned.participation.rounds:
            raise InputError(
                f"the simulation had {self.simulated.rounds} rounds and the plan has "
                f"{self.planned.participation.rounds}; simulate the plan."
            )
        check_came(self.simulated, self.report_goal * self.simulated.rounds, self.population)

    @property
    def planned_in_all(self) -> Composition:
        """What all that is released promises together, as planned."""
        return _together((MODEL_UPDATE, self.planned), *((each.what, each.planned) for each in self.also_released))

    @property
    def realised_in_all(self) -> Composition | None:
        """What all that is released promises together, as it happened; None of a planned run."""
        happened = [(each.what, each.realised) for each in self.also_released if each.realised]
        return _together((MODEL_UPDATE, self.realised), *happened) if self.realised else None

    @property
    def holding(self) -> Composition | None:
        """What holds of a run, of the two: what happened, unless the number of rounds followed from what was released;
        None of a planned run.
        """
        return self.planned_in_all if self.ended in (RELEASED, EXACT) else self.realised_in_all

    def at_larger_cohort(self) -> "TrainingFacts":
        """The extrapolated run, itself extrapolating nothing: every sequence has more noise by the same factor."""
        if self.extrapolation is None:
            raise InputError("these facts extrapolate nothing; give an extrapolation.")
        noise, goal = self.extrapolation.noise_multiplier, self.extrapolation.report_goal
        factor = noise / self.planned.noise_multiplier

        def with_more_noise(guarantee: Guarantee) -> Guarantee:
            return replace(guarantee, noise_multiplier=guarantee.noise_multiplier * factor)

        return replace(
            self,
            planned=replace(self.planned, noise_multiplier=noise),
            realised=replace(self.realised, noise_multiplier=noise) if self.realised else None,
            also_released=tuple(
                SideRelease(
                    what=each.what,
                    planned=with_more_noise(each.planned),
                    realised=with_more_noise(each.realised) if each.realised else None,
                )
                for each in self.also_released
            ),
            report_goal=goal,
            population=-(-self.population * goal // self.report_goal),  # as many more clients, each coming as often
            participations=self.participations and self.participations * goal // self.report_goal,
            extrapolation=None,
        )

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs; a mechanism stands once for planned and realised."""
        sequences = ("planned", "realised", "also_released")
        rest = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in sequences}
        for name, absent in _ABSENT.items():
            if rest[name] == absent:
                del rest[name]
        also = [{"what": each.what, **_sums_record(each.planned, each.realised)} for each in self.also_released]
        extrapolation = rest.pop("extrapolation")
        shared = {"also_released": also, "extrapolation": to_plain(extrapolation)}
        clip_norms = {"clip_norms": to_plain(rest.pop("clip_norms"))} if "clip_norms" in rest else {}
        return {**_sums_record(self.planned, self.realised), **shared, **clip_norms, **to_plain(rest)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TrainingFacts":
        """The facts that `to_record` wrote; InputError or UnknownRelease where they are no such facts."""
        values = dict(record)
        also = values.pop("also_released", ())
        if not isinstance(also, list | tuple):
            raise InputError(f"also_released is {also!r}, and a list was expected.")
        planned, realised = _sums_from(values, "the facts")
        if values.get("clip_norms") and realised:
            realised = replace(realised, clip_norm=_last_of(values["clip_norms"]))
        guarantees = {"planned": planned, "realised": realised, "also_released": tuple(map(_side_from, also))}
        return all_of(cls, {**values, **guarantees}, may_lack=tuple(_ABSENT))


# -- records -----------------------------------------------------------------------------------------------------------


def all_of(kind: type[F], record: Mapping[str, Any], *, may_lack: tuple[str, ...] = ()) -> F:
    """`from_plain`, with no default for what a statement must say."""
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass, which a type variable cannot say
        if field.name not in record and field.name not in may_lack:
            raise InputError(f"the facts lack '{field.name}'; ask for the whole file.")
    return from_plain(kind, record, where="facts")


def _sums_record(planned: Guarantee, realised: Guarantee | None) -> Record:
    """One sequence: the mechanism once, then the planned and the realised participation."""
    mechanism = {
        "strategy": planned.strategy.to_record() if planned.strategy else None,
        "clip_norm": json_ready(planned.clip_norm),  # infinite without a bound
        "noise_multiplier": planned.noise_multiplier,
        "clip_inflation": planned.clip_inflation,
    }
    happened = asdict(realised.participation) if realised else None
    return {"mechanism": mechanism, "planned": asdict(planned.participation), "realised": happened}


@dataclass(frozen=True, kw_only=True)
class _Mechanism:
    """What a sequence's record says of its noise."""

    strategy: Record | None
    clip_norm: float
    noise_multiplier: float
    clip_inflation: float


def _sums_from(values: Record, where: str) -> tuple[Guarantee, Guarantee | None]:
    """(planned, realised) of one sequence, which leave `values`; realised has the clip norm of planned."""
    lacking = [name for name in ("mechanism", "planned", "realised") if name not in values]
    if lacking:
        raise InputError(f"{where} lack '{lacking[0]}'; ask for the whole file.")
    mechanism = from_plain(_Mechanism, values.pop("mechanism"), where="mechanism")
    planned = Guarantee(
        participation=from_plain(Participation, values.pop("planned"), where="planned"),
        strategy=None if mechanism.strategy is None else _strategy_from(mechanism.strategy),
        clip_norm=mechanism.clip_norm,
        noise_multiplier=mechanism.noise_multiplier,
        clip_inflation=mechanism.clip_inflation,
    )
    happened = values.pop("realised")
    if happened is None:
        return planned, None
    return planned, planned.with_participation(from_plain(Participation, happened, where="realised"))


def _strategy_from(record: Record) -> Strategy:
    for name, values in record.items():
        if isinstance(values, list) and not all(_is_number(each) for each in values):
            raise InputError(f"mechanism.strategy.{name} holds what is no number, or none that JSON can carry; {ASK}.")
    try:
        return strategy_from_record(record)
    except TacitError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise InputError(f"mechanism.strategy cannot be read ({error!r}); use the version that wrote it.") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _side_from(record: Any) -> SideRelease:
    if not isinstance(record, Mapping):
        raise InputError(f"also_released holds {record!r}, and a table of values was expected.")
    values = dict(record)
    planned, realised = _sums_from(values, "the sequences in also_released")
    return from_plain(SideRelease, {**values, "planned": planned, "realised": realised}, where="also_released")


def _last_of(held: Any) -> float:
    """The clip norm in force at the end; what else there is wrong with the list, `from_plain` says."""
    try:
        return float(held[-1][1])
    except (TypeError, ValueError, LookupError) as error:
        raise InputError(f"clip_norms is {held!r}, and a list of (round, clip norm) was expected.") from error


# -- checks ------------------------------------------------------------------------------------------------------------


def _together(*sequences: tuple[str, Guarantee]) -> Composition:
    return Composition(tuple(ReleasedSequence(what=what, guarantee=guarantee) for what, guarantee in sequences))


def choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r} is none of {', '.join(known)}; choose one of them.")


def check_key_source(said: str) -> None:
    if said != OPERATING_SYSTEM and not re.fullmatch(r"fixed seed -?\d+", said):
        raise InputError(f"key_source={said!r}; say {OPERATING_SYSTEM!r} or 'fixed seed N'.")


def check_probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"{name}={value} is not a probability between 0 and 1; give for example 1e-10.")


def _check_sides(sides: tuple[SideRelease, ...], realised: Guarantee | None) -> None:
    """InputError unless each sequence beside the updates has a name of its own that can be accounted, and fits them."""
    names = [MODEL_UPDATE, *(each.what for each in sides)]
    if len(set(names)) < len(names):
        raise InputError(f"of the sequences {names} one stands there twice; {ASK}.")
    for each in sides:
        if not accountable(each.what):
            raise InputError(f"also_released has {each.what!r}, which no theorem is known of; {ASK}.")
        if each.what == CLIP_ESTIMATE and each.planned.clip_norm != BIT_NORM:
            raise InputError(f"a bit minus 1/2 has norm {BIT_NORM}, not {each.planned.clip_norm:g}; {ASK}.")
        check_limits(each.planned.participation)
        if realised is None or each.realised is None:
            continue
        check_limits(each.realised.participation)
        came, own = realised.participation, each.realised.participation
        if own.rounds > came.rounds or (each.what in EVERY_ROUND and own != came):
            raise InputError(f"{each.what!r} was released with {own}, beside model updates with {came}; {ASK}.")


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
