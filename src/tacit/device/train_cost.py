"""What a plan promises by its own numbers, and what a device's own participations in it cost.

Nothing that a plan claims is believed: the strategy is made of the numbers in its recipe, the sensitivity follows from
that and from who may come how often, and zCDP from the noise multiplier. A plan whose numbers give no guarantee, or a
weaker one than it claims, is refused. What a device has spent of a run is the guarantee of the rounds that it took part
in, not of all that the plan would let it.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tacit.design.from_record import matrix_kind, strategy_in_numbers
from tacit.device.task_handler import Fetch
from tacit.errors import AccountingError, InputError, TaskRefused
from tacit.privacy import gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Matrix, Strategy
from tacit.protocol.matrix_files import KINDS, check_affordable, matrix_in
from tacit.protocol.messages import Plan, TrainingPrivacy

MOST_ROUNDS = 10_000  # of a plan: the sensitivity of every strategy is computed within seconds
ROUNDING = 1e-9  # relative: figures that two machines computed from the same numbers
ASK = "ask the operator for a plan in order"


@dataclass(frozen=True, kw_only=True)
class Priced:
    """A plan, and what follows from its numbers."""

    plan: Plan
    recipe: Mapping[str, Any]  # of its TOML
    strategy: Strategy
    inflation: float  # by which encoding may lengthen an update: a factor
    zcdp: float  # of a whole run; where only a timer bounds participations, what the plan claims and the device keeps

    @property
    def epsilon(self) -> float:
        """At the plan's delta."""
        return gaussian.epsilon(self.zcdp, self.privacy.delta)

    @property
    def adapts(self) -> bool:
        """Whether its clip norm follows the updates."""
        return "clipping" in self.recipe

    @property
    def loss_bound(self) -> float | None:
        """To which a device's training loss is clipped, as the noise on it is reckoned with; None: it is not asked."""
        said = self.recipe.get("training_loss")
        return None if said is None else _table(self.recipe, "training_loss").get("bound")

    def spent(self, rounds: Sequence[int]) -> float:
        """rho of one device's participations in these different rounds; 0 for none. Never falls with a round more."""
        if not rounds:
            return 0.0
        came = sorted(rounds)
        if isinstance(self.strategy, Matrix):  # of which a search would price all patterns like this one
            length = self.inflation * math.sqrt(self.strategy.pattern_squared(came, self.rounds))
            return gaussian.zcdp(length, self.privacy.noise_multiplier)
        apart = min((late - early for early, late in pairwise(came)), default=self.rounds)
        return self._zcdp(Participation(rounds=self.rounds, min_separation=apart, max_participations=len(came)))

    @property
    def privacy(self) -> TrainingPrivacy:
        """What its plan claims."""
        return promised(self.plan)

    @property
    def rounds(self) -> int:
        """Of the whole run."""
        return self.plan.privacy.rounds

    def _zcdp(self, participation: Participation) -> float:
        privacy = self.privacy
        return Guarantee(
            participation=participation,
            strategy=self.strategy,
            clip_norm=privacy.clip_norm,
            noise_multiplier=privacy.noise_multiplier,
            clip_inflation=self.inflation,
        ).zcdp


def priced(plan: Plan, fetch: Fetch) -> Priced:
    """The plan and what its numbers promise. fetch: gets the file of a matrix, whose SHA-256 it has checked.

    Raises: TaskRefused where that is nothing, or less than it claims; what `fetch` does.
    """
    privacy, recipe = promised(plan), _recipe(plan)
    if privacy.zcdp is None or privacy.epsilon is None or not privacy.noise_multiplier:
        raise TaskRefused(f"the plan of run {plan.run!r} adds no noise and so promises nothing; {ASK}.")
    if "seed" in _table(recipe, "run"):
        raise TaskRefused(
            f"the plan of run {plan.run!r} tells everybody the seed of its noise (run.seed), and whoever has it takes "
            f"the noise away; {ASK}."
        )
    if privacy.rounds > MOST_ROUNDS:
        raise TaskRefused(f"the plan has {privacy.rounds:,} rounds, and a device reckons with {MOST_ROUNDS:,}; {ASK}.")
    _agrees(plan, recipe)
    participation, bounded = _participation(plan)
    try:
        strategy = _strategy(plan, _table(_table(recipe, "privacy"), "mechanism"), participation, bounded, fetch)
        found = Priced(
            plan=plan,
            recipe=recipe,
            strategy=strategy,
            inflation=_inflation(plan, recipe),
            zcdp=privacy.zcdp,
        )
        exact = found._zcdp(participation if bounded else Participation.worst_case(privacy.rounds, privacy.rounds))
    except (InputError, AccountingError) as error:
        raise TaskRefused(f"no guarantee follows from the numbers of the plan of run {plan.run!r}: {error}") from error
    if not exact <= privacy.zcdp * (1 + ROUNDING):
        raise TaskRefused(
            f"the plan of run {plan.run!r} claims zCDP {privacy.zcdp:.6g}, and its own numbers give {exact:.6g}; "
            "an operator who claims too much is not to be believed."
        )
    if found.epsilon > privacy.epsilon * (1 + ROUNDING):
        raise TaskRefused(
            f"the plan of run {plan.run!r} claims epsilon {privacy.epsilon:.6g} at delta {privacy.delta:g}, and its "
            f"zCDP gives {found.epsilon:.6g}; an operator who claims too much is not to be believed."
        )
    return found


def promised(plan: Plan) -> TrainingPrivacy:
    """What a plan to train promises. Raises: TaskRefused for the promise of another kind."""
    if plan.kind != "train" or not isinstance(plan.privacy, TrainingPrivacy):
        raise TaskRefused(
            f"the plan of run {plan.run!r} is to {plan.kind}, and what it promises is of another kind; {ASK}."
        )
    return plan.privacy


def _strategy(
    plan: Plan, mechanism: Mapping[str, Any], participation: Participation, bounded: bool, fetch: Fetch
) -> Strategy:
    """That of the recipe's numbers, or the matrix that the plan names, once it is known to be one that can be reckoned
    with. Raises: InputError.
    """
    said = promised(plan).matrix
    if said is None:
        return strategy_in_numbers(mechanism, participation)
    kind = matrix_kind(mechanism)
    if kind is not KINDS[said.kind]:
        asked = "needs none" if kind is None else f"is a {kind.kind} one"
        raise InputError(f"it names a {said.kind} matrix, and its mechanism {mechanism.get('name')!r} {asked}; {ASK}.")
    rounds = plan.privacy.rounds
    if said.rounds != rounds:
        raise InputError(f"its matrix is for {said.rounds:,} rounds, and the plan has {rounds:,}; {ASK}.")
    once = Participation.worst_case(rounds, rounds)  # by a timer alone, only a device's own rounds are priced
    check_affordable(kind, rounds, said.bands, participation if bounded else once)
    return matrix_in(said, fetch(said))


def _participation(plan: Plan) -> tuple[Participation, bool]:
    """The most that the plan lets a device take part, and whether that is known before: by round index it is.

    By a timer alone it is not: the device then stops where its own participations reach what the plan claims.
    """
    rounds, privacy = plan.privacy.rounds, plan.privacy
    apart = min(plan.separation.rounds or 1, rounds)
    most = privacy.max_participations
    if plan.separation.rounds is None and most is None:
        return Participation(rounds=rounds, min_separation=1, max_participations=rounds), False
    if most is None:
        return Participation.worst_case(rounds, apart), True
    return Participation(rounds=rounds, min_separation=apart, max_participations=min(most, rounds)).effective, True


def _inflation(plan: Plan, recipe: Mapping[str, Any]) -> float:
    """By which factor encoding may lengthen an update; the recipe's, or its default. Nothing is encoded: 1."""
    if plan.aggregation.kind == "plain":
        return 1.0
    from tacit.privacy.encoding import MOST

    said = _table(recipe, "aggregation").get("inflation", MOST)
    if not isinstance(said, float | int) or isinstance(said, bool):
        raise InputError(f"aggregation.inflation={said!r} is no factor.")
    return float(said)


def _agrees(plan: Plan, recipe: Mapping[str, Any]) -> None:
    """That the recipe is of the same run as the numbers beside it. Raises: TaskRefused."""
    rounds, privacy = _table(recipe, "rounds"), _table(recipe, "privacy")
    encoded = plan.aggregation.kind != "plain"
    pairs = [
        ("rounds.rounds", rounds.get("rounds"), plan.privacy.rounds),
        ("rounds.report_goal", rounds.get("report_goal"), plan.privacy.report_goal),
        ("privacy.mechanism.name", _table(privacy, "mechanism").get("name"), promised(plan).mechanism),
        ("[aggregation]", "aggregation" in recipe, encoded),
    ]
    for name, said, listed in pairs:
        if said != listed:
            raise TaskRefused(
                f"the plan of run {plan.run!r} contradicts its own recipe: {name} is {said!r} there, and {listed!r} in "
                f"what it promises; {ASK}."
            )


def _recipe(plan: Plan) -> Mapping[str, Any]:
    try:
        return tomllib.loads(plan.recipe)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TaskRefused(f"the recipe in the plan of run {plan.run!r} is no TOML ({error}); {ASK}.") from None


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name, {})
    return found if isinstance(found, dict) else {}
