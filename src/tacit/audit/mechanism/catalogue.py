"""The mechanisms of the catalogue as cases: small runs of each, at one guarantee."""

from typing import TYPE_CHECKING

from tacit.audit.mechanism.case import Case
from tacit.audit.mechanism.streams import case_of_every_node, case_of_sums
from tacit.design.catalogue import MECHANISMS, mechanism_named
from tacit.design.parameters import TreeParameters
from tacit.privacy import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy, Tree

if TYPE_CHECKING:
    from tacit.recipe import Recipe

LIMITS = Participation(rounds=60, min_separation=7, max_participations=5)
ONCE = Participation(rounds=60, min_separation=60, max_participations=1)
RESTARTED = TreeParameters(restarts=(20, 37))
ZCDP = 4.5  # mu = 3, at which so many runs tell one percent; another noise multiplier only scales what is released


def cases_of(name: str) -> list[Case]:
    """The cases of a mechanism, by its name. Raises: InputError where there is none of that name."""
    mechanism = mechanism_named(name)
    # The dense design is one for clients that come once.
    limits = ONCE if name == "dense" else LIMITS
    found = _cases(name, mechanism.strategy(limits), limits)
    if mechanism.parameters is TreeParameters:
        found += _cases(f"{name}, restarted", mechanism.strategy(limits, parameters=RESTARTED), limits)
    return found


def all_cases() -> list[Case]:
    """Of every mechanism of the catalogue, in its order."""
    return [case for name in MECHANISMS for case in cases_of(name)]


def _cases(subject: str, strategy: Strategy, limits: Participation) -> list[Case]:
    guarantee = Guarantee.for_zcdp(ZCDP, participation=limits, strategy=strategy, clip_norm=1.0)
    found = [case_of_sums(subject, guarantee)]
    if isinstance(strategy, Tree):
        found.append(case_of_every_node(f"{subject}, every node", guarantee))
    return found


def cases_of_recipe(recipe: "Recipe") -> list[Case]:
    """What a recipe's run releases: its updates, and each sequence beside them. Raises: InputError without noise."""
    plan = recipe.plan(recipe.matrix())
    return [case_of_sums(f"{recipe.name}: {what}", each) for what, each in {"updates": plan.updates, **plan.beside}.items()]
