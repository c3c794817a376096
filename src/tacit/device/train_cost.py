"""The guarantee of a plan by its own numbers, and what a device's own participations in it cost.

Nothing that a plan claims is believed: the strategy is made of the numbers in its recipe, the sensitivity follows from
that and from who may come how often, and zCDP from the noise multiplier. A plan whose numbers give no guarantee, or a
weaker one than it claims, is refused. What a device has spent of a run is the guarantee of the rounds that it took part
in, not of all that the plan would let it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tacit.design.families import matrix_kind, strategy_in_numbers
from tacit.device.task_handler import OPERATOR, Refuse
from tacit.errors import AccountingError, InputError, TaskRefused
from tacit.federation.cost import ASK, ROUNDING, Cost, checked_claims
from tacit.networks.training_cost import TrainingCost
from tacit.parsing import parsed_toml
from tacit.privacy import gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Matrix, Strategy
from tacit.protocol.fields import MOST_WORDS
from tacit.protocol.matrix_files import KINDS, check_affordable, matrix_in
from tacit.protocol.messages import MatrixFile, Plan, RoundTask, TrainingPrivacy
from tacit.protocol.train import EncodedSum, TrainDocument, trained_words

if TYPE_CHECKING:
    from tacit.privacy.encoding import Encoding

MOST_ROUNDS = 10_000  # of a plan: the sensitivity of every strategy is computed within seconds
SMALLEST_CLIP_NORM = 1e-30  # of a task: smaller coordinates lose their digits


@dataclass(frozen=True, kw_only=True)
class TrainCost(Cost):
    """Of a plan to train, and what its tasks are held against. Where only a timer bounds participations, zcdp is what
    the plan claims and the device keeps.
    """

    plan: Plan
    recipe: Mapping[str, Any]  # of its TOML
    strategy: Strategy
    inflation: float  # by which encoding may lengthen an update: a factor

    def spent(self, rounds: Sequence[int]) -> float:
        """rho of one device's participations in these different rounds; 0 for none. Never falls with a round more."""
        if not rounds:
            return 0.0
        took_part, privacy = sorted(rounds), promised(self.plan)
        if isinstance(self.strategy, Matrix):  # of which a search would price all patterns like this one
            length = self.inflation * math.sqrt(self.strategy.pattern_squared(took_part, privacy.rounds))
            return gaussian.zcdp(length, privacy.noise_multiplier)
        apart = min((late - early for early, late in pairwise(took_part)), default=privacy.rounds)
        pattern = Participation(rounds=privacy.rounds, min_separation=apart, max_participations=len(took_part))
        return _zcdp(privacy, self.strategy, pattern, self.inflation)

    @property
    def adapts(self) -> bool:
        """Whether its clip norm follows the updates."""
        return "clipping" in self.recipe

    @property
    def loss_bound(self) -> float | None:
        """To which a device's training loss is clipped, as the noise on it is reckoned with; None: it is not asked."""
        said = self.recipe.get("training_loss")
        return None if said is None else _table(self.recipe, "training_loss").get("bound")


def train_matrix(plan: Plan) -> MatrixFile | None:
    """The file of the plan's matrix, once it is known to be one that can be reckoned with; None where it has none.

    Raises: TaskRefused, also for a plan that promises nothing or contradicts itself.
    """
    recipe = _coherent(plan)
    said = promised(plan).matrix
    if said is None:
        return None
    try:
        _check_matrix(plan, said, _table(_table(recipe, "privacy"), "mechanism"))
    except (InputError, AccountingError) as error:
        raise _no_guarantee(plan, error) from error
    return said


def train_cost(plan: Plan, matrix: bytes | None = None) -> TrainCost:
    """What the plan's numbers promise. matrix: the content of `train_matrix`, whose SHA-256 was checked.

    Raises: TaskRefused where that is nothing, or less than the plan claims.
    """
    privacy, recipe = promised(plan), _coherent(plan)
    assert privacy.zcdp is not None  # it is coherent
    said, mechanism = privacy.matrix, _table(_table(recipe, "privacy"), "mechanism")
    participation, bounded = _participation(plan)
    try:
        if said is None:
            strategy = strategy_in_numbers(mechanism, participation)
        else:
            assert matrix is not None  # the caller's to bring
            strategy = matrix_in(said, matrix)
        found = TrainCost(
            zcdp=privacy.zcdp,
            epsilon=gaussian.epsilon(privacy.zcdp, privacy.delta),
            delta=privacy.delta,
            clip_norm=privacy.clip_norm,
            noise_multiplier=privacy.noise_multiplier,
            plan=plan,
            recipe=recipe,
            strategy=strategy,
            inflation=_inflation(plan, recipe),
        )
        worst = participation if bounded else Participation.worst_case(privacy.rounds, privacy.rounds)
        exact = _zcdp(privacy, strategy, worst, found.inflation)
    except (InputError, AccountingError) as error:
        raise _no_guarantee(plan, error) from error
    checked_claims(f"the plan of run {plan.run!r}", found, zcdp=privacy.zcdp, epsilon=privacy.epsilon, exact=exact)
    return found


def planned_updates(cost: TrainCost) -> Guarantee:
    """What the plan's updates promise, and with it the noise of a round. Raises: AccountingError, InputError."""
    privacy = promised(cost.plan)
    return _guarantee(privacy, cost.strategy, _participation(cost.plan)[0], cost.inflation)


def planned_encoding(cost: TrainCost, parameters: int) -> "Encoding":
    """How the plan has updates of so many parameters encoded, without room for noise. Raises: InputError."""
    from tacit.privacy.encoding import SIGMAS
    from tacit.privacy.encoding_choice import encoding_within

    privacy, sigmas = promised(cost.plan), _table(cost.recipe, "aggregation").get("sigmas", SIGMAS)
    return encoding_within(
        parameters, privacy.clip_norm, privacy.report_goal, inflation=cost.inflation, sigmas=float(sigmas)
    )


def check_train_task(cost: TrainCost, task: RoundTask, refuse: Refuse) -> None:
    """That an update is clipped, encoded and asked about as the plan reckons with. Raises: TaskRefused."""
    question = task.question(TrainDocument)
    if question.clip_norm > promised(cost.plan).clip_norm and not cost.adapts:
        planned = promised(cost.plan).clip_norm
        refuse(f"clips at {question.clip_norm:g}, and its plan at {planned:g}", way_out=OPERATOR)
    if (question.clip_estimate is not None) != cost.adapts:
        refuse("asks for a bit on the update's length, and its plan does not, or the other way", way_out=OPERATOR)
    if (words := trained_words(question.client)) > MOST_WORDS:
        refuse(f"trains on {words:,} words, padding counted, above {MOST_WORDS:,}", way_out=OPERATOR)
    if question.clip_norm < SMALLEST_CLIP_NORM:
        refuse(f"clips at {question.clip_norm:g}, which float32 does not resolve", way_out=OPERATOR)
    if (question.loss_bound is not None) != ("training_loss" in cost.recipe):
        refuse("asks for the training loss, and its plan does not, or the other way", way_out=OPERATOR)
    if question.loss_bound != cost.loss_bound:
        refuse(f"clips the training loss at {question.loss_bound}, and its plan at {cost.loss_bound}", way_out=OPERATOR)
    if question.encoded is not None:
        _check_encoding(cost, question.encoded, question.clip_norm, refuse)


def training_cost(task: RoundTask, vocabulary: int) -> TrainingCost:
    """What a task takes of the machine. vocabulary: ids of the device's text."""
    question = task.question(TrainDocument)
    asked = question.client
    return TrainingCost.estimate(
        epochs=asked.epochs,
        batch_size=asked.batch_size,
        sentences=asked.sentences,
        words=asked.words,
        vocabulary=vocabulary,
        parameters=question.parameters,
    )


def _check_encoding(cost: TrainCost, encoded: EncodedSum, clip_norm: float, refuse: Refuse) -> None:
    """That an encoded update goes into a sum as large as the plan's, lengthened by no more than was reckoned with."""
    said = cost.plan.aggregation
    if encoded.threshold < said.threshold:
        refuse(f"opens sums of {encoded.threshold}, and its plan of {said.threshold}", way_out=OPERATOR)
    if encoded.clip_norm != clip_norm:
        refuse(f"clips at {clip_norm:g} and encodes for {encoded.clip_norm:g}", way_out=OPERATOR)
    try:
        inflation = encoded.encoding().inflation
    except InputError as error:
        refuse(f"has no encoding: {error}", way_out=OPERATOR)
    if said.contributors:
        _check_integers(cost, encoded, refuse)
    if inflation > cost.inflation * (1 + ROUNDING):
        refuse(
            f"lengthens updates by the factor {inflation:.6g} where its plan reckons with {cost.inflation:.6g}",
            way_out=OPERATOR,
        )


def _check_integers(cost: TrainCost, encoded: EncodedSum, refuse: Refuse) -> None:
    """That an encoded update is no longer than what contributors make noise for. Raises: TaskRefused."""
    try:
        planned = planned_encoding(cost, encoded.parameters).with_clip_norm(encoded.clip_norm)
    except InputError as error:
        raise _no_guarantee(cost.plan, error) from error
    found = encoded.encoding()
    if found.dimension != planned.dimension or found.longest_squared > planned.longest_squared:
        refuse("makes other integers of updates than its plan, for which contributors make noise", way_out=OPERATOR)


def _coherent(plan: Plan) -> Mapping[str, Any]:
    """The recipe of a plan that promises something and agrees with itself. Raises: TaskRefused."""
    privacy, recipe = promised(plan), _recipe(plan)
    if privacy.zcdp is None or privacy.epsilon is None or not privacy.noise_multiplier:
        raise TaskRefused(f"the plan of run {plan.run!r} adds no noise and so promises nothing; {ASK}.")
    _check_contributors(plan, recipe)
    if "seed" in _table(recipe, "run"):
        raise TaskRefused(
            f"the plan of run {plan.run!r} tells everybody the seed of its noise (run.seed), and whoever has it takes "
            f"the noise away; {ASK}."
        )
    if privacy.rounds > MOST_ROUNDS:
        raise TaskRefused(f"the plan has {privacy.rounds:,} rounds, and a device reckons with {MOST_ROUNDS:,}; {ASK}.")
    _agrees(plan, recipe)
    return recipe


def _check_contributors(plan: Plan, recipe: Mapping[str, Any]) -> None:
    """Of decryptors' noise: all that is in a sum is noised by it. Raises: TaskRefused."""
    said = plan.aggregation
    beside = next((name for name in ("clipping", "training_loss") if name in recipe), None)
    if said.contributors and beside is not None:
        raise TaskRefused(
            f"the plan of run {plan.run!r} has contributors of noise, and [{beside}] releases sums without it; {ASK}."
        )


def _no_guarantee(plan: Plan, error: Exception) -> TaskRefused:
    return TaskRefused(f"no guarantee follows from the numbers of the plan of run {plan.run!r}: {error}")


def _zcdp(privacy: TrainingPrivacy, strategy: Strategy, participation: Participation, inflation: float) -> float:
    return _guarantee(privacy, strategy, participation, inflation).zcdp


def _guarantee(
    privacy: TrainingPrivacy, strategy: Strategy, participation: Participation, inflation: float
) -> Guarantee:
    return Guarantee(
        participation=participation,
        strategy=strategy,
        clip_norm=privacy.clip_norm,
        noise_multiplier=privacy.noise_multiplier,
        clip_inflation=inflation,
    )


def promised(plan: Plan) -> TrainingPrivacy:
    """What a plan to train promises. Raises: TaskRefused for the promise of another kind."""
    if plan.kind != "train" or not isinstance(plan.privacy, TrainingPrivacy):
        raise TaskRefused(
            f"the plan of run {plan.run!r} is to {plan.kind}, and what it promises is of another kind; {ASK}."
        )
    return plan.privacy


def _check_matrix(plan: Plan, said: MatrixFile, mechanism: Mapping[str, Any]) -> None:
    """That a matrix is the mechanism's, for the plan's rounds, and affordable. Raises: InputError."""
    kind, rounds = matrix_kind(mechanism), plan.privacy.rounds
    if kind is not KINDS[said.kind]:
        difference = "needs none" if kind is None else f"is a {kind.kind} one"
        raise InputError(
            f"it names a {said.kind} matrix, and its mechanism {mechanism.get('name')!r} {difference}; {ASK}."
        )
    if said.rounds != rounds:
        raise InputError(f"its matrix is for {said.rounds:,} rounds, and the plan has {rounds:,}; {ASK}.")
    participation, bounded = _participation(plan)
    once = Participation.worst_case(rounds, rounds)  # by a timer alone, only a device's own rounds are priced
    check_affordable(kind, rounds, said.bands, participation if bounded else once)


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
        return parsed_toml(plan.recipe)
    except ValueError as error:
        raise TaskRefused(f"the recipe in the plan of run {plan.run!r} is no TOML ({error}); {ASK}.") from None


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name, {})
    return found if isinstance(found, dict) else {}
