"""What is audited by name: the mechanisms of the catalogue and the parts of a round, each as a small run."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tacit.audit.mechanism.again import RESUMED, TWICE, OneKeyTwice, Resumed
from tacit.audit.mechanism.case import Case
from tacit.audit.mechanism.rounds import Canary, case_of_rounds, plan_of
from tacit.audit.mechanism.secure import case_of_decryptors, case_of_encoding
from tacit.audit.mechanism.streams import SUMS, case_of_every_node, case_of_sums
from tacit.design.catalogue import MECHANISMS, mechanism_named
from tacit.design.parameters import TreeParameters
from tacit.errors import InputError
from tacit.privacy import Guarantee
from tacit.privacy.delta import LARGEST
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Independent, Strategy, Tree
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.private_loss import PrivateLoss

if TYPE_CHECKING:
    from tacit.recipe import Recipe

LIMITS = Participation(rounds=60, min_separation=7, max_participations=5)
ONCE = Participation(rounds=60, min_separation=60, max_participations=1)
FEW = Participation(rounds=12, min_separation=4, max_participations=3)
SUMS_OF_NODES = f"{SUMS}; the claim counts nodes that no sum shows, and cannot be reached"
RESTARTED = TreeParameters(restarts=(20, 37))
ZCDP = 4.5  # mu = 3, at which so many runs tell one percent; another noise multiplier only scales what is released


def cases_of(name: str) -> Sequence[Case]:
    """The cases of a mechanism or of a part of a round, by its name. Raises: InputError where there is none."""
    return PARTS[name]() if name in PARTS else _of_mechanism(name)


def all_cases() -> list[Case]:
    """Of every mechanism of the catalogue, in its order, then of every part of a round."""
    return [case for name in (*MECHANISMS, *PARTS) for case in cases_of(name)]


def _of_mechanism(name: str) -> list[Case]:
    try:
        mechanism = mechanism_named(name)
    except InputError as error:
        raise InputError(f"{error} Or a part of a round: {', '.join(PARTS)}; or a recipe.") from None
    # The dense design is one for clients that come once.
    limits = ONCE if name == "dense" else LIMITS
    found = _cases(name, mechanism.strategy(limits), limits)
    if mechanism.parameters is TreeParameters:
        found += _cases(f"{name}, restarted", mechanism.strategy(limits, parameters=RESTARTED), limits)
    return found


def _cases(subject: str, strategy: Strategy, limits: Participation) -> list[Case]:
    guarantee = Guarantee.for_zcdp(ZCDP, participation=limits, strategy=strategy, clip_norm=1.0)
    if isinstance(strategy, Tree):
        sums = case_of_sums(f"{subject}, its sums alone", guarantee, threat_model=SUMS_OF_NODES)
        return [case_of_every_node(subject, guarantee), sums]
    return [case_of_sums(subject, guarantee)]


def promise(strategy: Strategy, limits: Participation = FEW) -> Guarantee:
    """At which the parts of a round are audited."""
    return Guarantee.for_zcdp(ZCDP, participation=limits, strategy=strategy, clip_norm=0.7)


def _clipping() -> list[Case]:
    plan = plan_of(promise(PUBLISHED_BLT["b400"]))
    return [
        case_of_rounds("clipping", plan),
        case_of_rounds("clipping, not finite", plan, canary=Canary(update=(math.nan, 1.0))),
    ]


def _adaptive() -> list[Case]:
    return [
        case_of_rounds("adaptive-clipping", plan_of(promise(Independent()), clipping=AdaptiveClipping(initial=0.3)))
    ]


def _training_loss() -> list[Case]:
    return [case_of_rounds("training-loss", plan_of(promise(PUBLISHED_BLT["b400"]), loss=PrivateLoss(stddev=2.0)))]


def _encoding() -> list[Case]:
    return [case_of_encoding("encoding", promise(PUBLISHED_BLT["b400"]), inflation=1.05)]


def _decryptors() -> list[Case]:
    guarantee = promise(PUBLISHED_BLT["b400"])
    return [
        case_of_decryptors("decryptors, 1 of 2 honest", guarantee, decryptors=2, honest=1),
        case_of_decryptors("decryptors, 2 of 3 honest", guarantee, decryptors=3, honest=2),
    ]


def _again() -> list[Case]:
    alone, carried = promise(Independent()), promise(PUBLISHED_BLT["b400"])
    return [
        case_of_sums("resume", alone, Resumed(alone), more=1, threat_model=RESUMED),
        case_of_sums("one key twice", carried, OneKeyTwice(carried), more=FEW.rounds, threat_model=TWICE),
    ]


PARTS: Mapping[str, Callable[[], Sequence[Case]]] = {
    "clipping": _clipping,
    "adaptive-clipping": _adaptive,
    "training-loss": _training_loss,
    "encoding": _encoding,
    "decryptors": _decryptors,
    "noise-again": _again,
}
"""What a round does beside the noise of one mechanism, by name."""


def cases_of_recipe(recipe: "Recipe") -> list[Case]:
    """What a recipe's run releases: its updates, and each sequence beside them, at the largest delta if it names none.

    Raises: InputError without noise.
    """
    plan = recipe.with_delta(recipe.privacy.delta or LARGEST).plan(recipe.matrix())
    subject, updates = f"{recipe.name}: updates", plan.updates
    if plan.decryptors:
        parties = {"decryptors": plan.decryptors, "honest": plan.honest_decryptors}
        return [case_of_decryptors(subject, updates, **parties)]
    beside = [case_of_sums(f"{recipe.name}: {what}", each) for what, each in plan.beside.items()]
    return [case_of_sums(subject, updates), *beside]
