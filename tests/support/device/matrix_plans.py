"""Plans whose mechanism is a matrix, number by number."""

from typing import Any

from tests.support.device.operator import a_plan, recipe_text
from tests.support.privacy.random_matrices import random_banded

from tacit.privacy import Guarantee, Participation
from tacit.privacy.strategy import Matrix
from tacit.protocol.messages import Plan, Separation
from tacit.protocol.served_bodies import matrix_file

ROUNDS, APART, NOISE = 40, 5, 6.0
GOOD = random_banded(ROUNDS, 2 * APART, 7, 0.0)
COMES = Participation.worst_case(ROUNDS, APART)


def said_by(matrix: Matrix, limits: Participation = COMES, noise: float = NOISE) -> dict[str, Any]:
    """What a plan claims of a run with this matrix."""
    promised = Guarantee(participation=limits, strategy=matrix, clip_norm=0.2, noise_multiplier=noise)
    return {"guarantee": promised, "mechanism": matrix.kind, "matrix": matrix_file(matrix)[0], "rounds": limits.rounds}


def plan_with(words: str, given: Matrix, limits: Participation = COMES, noise: float = NOISE, **claims: Any) -> Plan:
    rounds = {"rounds": limits.rounds, "report_goal": 6, "min_separation": limits.min_separation}
    text = recipe_text(rounds=rounds).replace("blt-b400", given.kind)
    return a_plan(
        words,
        text=text,
        privacy=said_by(given, limits, noise) | claims,
        separation=Separation(rounds=limits.min_separation, timer_seconds=None, clock="start"),
    )
