"""Plans whose mechanism is a matrix, number by number: a device prices it itself, and refuses what is not in order."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.device.matrix_plans import APART, GOOD, NOISE, ROUNDS, plan_with
from tests.support.device.operator import HOUR, NOON, Operator, once
from tests.support.privacy.every_pattern import participations
from tests.support.privacy.random_matrices import random_banded, random_dense

from tacit.data import Cache
from tacit.device.policy import Policy
from tacit.device.train_cost import TrainCost, train_cost, train_matrix
from tacit.errors import InputError, TaskRefused
from tacit.privacy import Guarantee, Participation
from tacit.privacy.gaussian import epsilon
from tacit.privacy.strategy import Banded, Dense, Matrix
from tacit.protocol.bodies import sha256
from tacit.protocol.matrix_files import LARGEST, check_affordable, matrix_in
from tacit.protocol.messages import MatrixFile, Plan, Separation
from tacit.protocol.served_bodies import matrix_body, matrix_file


def cost_with(plan: Plan, matrix: Matrix) -> TrainCost:
    said, content = matrix_file(matrix)
    assert train_matrix(plan) == said
    return train_cost(plan, content)


# -- the price ---------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    limits=participations(14),
    bands=st.integers(0, 14),
    seed=st.integers(0, 10**6),
    noise=st.floats(0.5, 20.0),
    least=st.sampled_from([-1.0, 0.0]),
)
def test_the_device_finds_the_cost_that_the_accountant_has(
    limits: Participation, bands: int, seed: int, noise: float, least: float
) -> None:
    rounds = limits.rounds
    several = random_banded(rounds, min(bands, rounds), seed, least) if bands else None
    matrix = several or random_dense(rounds, seed, least)
    promised = Guarantee(participation=limits, strategy=matrix, clip_norm=0.2, noise_multiplier=noise)
    if promised.epsilon(1e-6) >= 1e50:
        return
    plan = plan_with("ab" * 32, matrix, limits, noise)
    found = cost_with(plan, matrix)
    assert found.zcdp == promised.zcdp and found.epsilon == pytest.approx(epsilon(promised.zcdp, 1e-6))
    for less in ({"zcdp": promised.zcdp * (1 - 1e-6)}, {"epsilon": promised.epsilon(1e-6) * (1 - 1e-6)}):
        with pytest.raises(TaskRefused, match="an operator who claims too much"):
            cost_with(plan_with("ab" * 32, matrix, limits, noise, **less), matrix)
    # What it came in costs what the columns of those rounds say, and never more than the whole run.
    draw, came = np.random.default_rng(seed), list[int]()
    while (at := (came[-1] + limits.min_separation if came else 0) + int(draw.integers(0, 3))) < rounds:
        if len(came) == limits.max_participations:
            break
        came.append(at)
    dense, spent = matrix.dense(rounds), 0.0
    for count in range(len(came) + 1):
        columns = dense[:, came[:count]]
        slow = sum(abs(float(one @ other)) for one in columns.T for other in columns.T) / (2 * noise**2)
        now = found.spent(came[:count])
        assert now == pytest.approx(slow) and spent <= now * (1 + 1e-12) and now <= found.zcdp * (1 + 1e-9)
        spent = now


def test_by_a_timer_alone_a_device_pays_for_its_own_rounds(words: str) -> None:
    """Whoever may come in any round has no worst case beforehand; bands overlap as they may."""
    matrix = random_banded(ROUNDS, 20, 3, 0.0)
    timer = Separation(rounds=None, timer_seconds=3600.0, clock="start")
    plan = plan_with(words, matrix, max_participations=None).model_copy(update={"separation": timer})
    found, dense = cost_with(plan, matrix), matrix.dense(ROUNDS)
    for came in ([3], [3, 4], [3, 4, 30]):
        assert found.spent(came) == pytest.approx(float(dense[:, came].sum(axis=1) @ dense[:, came].sum(axis=1)) / 72)
    with pytest.raises(TaskRefused, match="its own numbers give"):
        dear = plan.privacy.model_copy(update={"zcdp": found.spent([0]) / 10})
        cost_with(plan.model_copy(update={"privacy": dear}), matrix)


# -- what is refused ---------------------------------------------------------------------------------------------------


def changed(matrix: Matrix, at: tuple[int, int], value: float) -> tuple[MatrixFile, bytes]:
    """A file with another number in it, that says who it is."""
    numbers = matrix.values.copy()
    numbers[at] = value
    body = matrix_body(numbers)
    said = matrix_file(matrix)[0]
    name = sha256(body)
    return said.model_copy(update={"sha256": name, "path": f"/v1/models/{name}", "bytes": len(body)}), body


FULL = random_dense(ROUNDS, 7, 0.0)
ONE_MORE = random_banded(ROUNDS + 1, 2 * APART, 7, 0.0)
BAD_MATRICES: dict[str, tuple[str, Matrix, tuple[MatrixFile, bytes]]] = {
    "with a larger number than was reckoned with": ("its own numbers give", GOOD, changed(GOOD, (20, 1), 9.0)),
    "with a number that is none": ("its number [20, 1] is nan", GOOD, changed(GOOD, (20, 1), math.nan)),
    "with an infinite number": ("its number [3, 0] is inf", GOOD, changed(GOOD, (3, 0), math.inf)),
    "whose squares are infinite": ("up to 1e+100", GOOD, changed(GOOD, (20, 1), -2e100)),
    "whose diagonal is zero": ("columns[4, 0] is 0", GOOD, changed(GOOD, (4, 0), 0.0)),
    "that reaches below its last row": ("reach below row 39", GOOD, changed(GOOD, (39, 1), 0.1)),
    "with noise of later rounds": ("above its diagonal", FULL, changed(FULL, (3, 4), 0.1)),
    "for a round more": ("is for 41 rounds, and the plan has 40", GOOD, matrix_file(ONE_MORE)),
    "for a round fewer": ("is for 39 rounds", GOOD, matrix_file(random_banded(39, APART, 7, 0.0))),
    "of another kind": ("names a dense matrix, and its mechanism 'banded' is a banded one", GOOD, matrix_file(FULL)),
    "of another shape than its file": (
        "is not one tensor",
        GOOD,
        (matrix_file(GOOD)[0].model_copy(update={"bands": APART}), matrix_file(GOOD)[1]),
    ),
    "that is a model": (
        "is not one tensor",
        GOOD,
        (matrix_file(GOOD)[0], matrix_file(GOOD)[1].replace(b"matrix", b"update")),
    ),
}


@pytest.mark.parametrize("name", BAD_MATRICES)
def test_a_plan_with_a_matrix(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, reckoned, (said, body) = BAD_MATRICES[name]
    said = said.model_copy(update={"sha256": sha256(body), "path": f"/v1/models/{sha256(body)}"})
    plan = plan_with(words, reckoned, matrix=said)
    operator.files[said.sha256] = body
    operator.assign(plan, operator.task(plan, 0))
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "refused" and why in turn.says and turn.says.endswith("."), turn.says
    assert not operator.received and len(operator.given_back) == 1


def test_a_matrix_that_is_not_the_plans(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    """One number was changed on its way: its SHA-256 is another."""
    plan = plan_with(words, GOOD)
    operator.files[matrix_file(GOOD)[0].sha256] = changed(GOOD, (20, 1), 0.5)[1]
    operator.assign(plan, operator.task(plan, 0))
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "unanswered" and "the matrix that came is not" in turn.says
    assert not operator.received


def other_mechanism(words: str, name: str) -> Plan:
    plan = plan_with(words, GOOD, mechanism=name)
    return plan.model_copy(update={"recipe": plan.recipe.replace('"banded"', f'"{name}"')})


NO_MATRIX: dict[str, tuple[str, Callable[[str], Plan]]] = {
    "no matrix at all": ("is not there in numbers", lambda words: plan_with(words, GOOD, matrix=None)),
    "a mechanism that needs none": ("'blt-b400' needs none", lambda words: other_mechanism(words, "blt-b400")),
    "code of anybody's": (
        "is code of somebody's own",
        lambda words: other_mechanism(words, "antigravity:MECHANISM"),
    ),
    "more bands than devices take": (
        "has 4,194,320 numbers, and devices take 4,194,304",
        lambda words: plan_with(words, GOOD, matrix=matrix_file(GOOD)[0].model_copy(update={"bands": 104858})),
    ),
}


@pytest.mark.parametrize("name", NO_MATRIX)
def test_a_plan_with(name: str, operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    why, made = NO_MATRIX[name]
    plan = made(words)
    operator.assign(plan, operator.task(plan, 0))
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "refused" and why in turn.says, turn.says
    assert not [each for each in operator.asked if each.url.path.startswith("/v1/models/")], "fetched for nothing"


def test_what_is_reckoned_with_is_bounded() -> None:
    """Before anything is fetched: in numbers, and in what a search may cost."""
    check_affordable(Banded, 10_000, 400, Participation.worst_case(10_000, 200))
    check_affordable(Dense, 2_048, 2_048, Participation.worst_case(2_048, 2_048))
    check_affordable(Dense, 1_024, 1_024, Participation.worst_case(1_024, 1))
    for kind, rounds, bands, apart, why in (
        (Dense, 2_049, 2_049, 2_049, "devices take 4,194,304"),
        (Banded, 10_000, 420, 300, "devices take 4,194,304"),
        (Dense, 1_025, 1_025, 300, "devices search for up to 1,024 rounds"),
        (Banded, 10_000, 401, 200, "let bands be at most twice the separation"),
    ):
        with pytest.raises(InputError, match=why):
            check_affordable(kind, rounds, bands, Participation.worst_case(rounds, apart))


def test_the_owner_bounds_what_is_fetched(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = plan_with(words, GOOD)
    operator.assign(plan, operator.task(plan, 0))
    turn = once(operator, cache.path, tmp_path, policy=Policy(largest_model_mb=0.001))
    assert turn.what == "refused" and "has a matrix of 0.00327 MB, above largest_model_mb=0.001" in turn.says
    assert not [each for each in operator.asked if each.url.path.startswith("/v1/models/")]


# -- taking part -------------------------------------------------------------------------------------------------------


def test_a_file_is_the_matrix() -> None:
    for matrix in (GOOD, FULL, Banded(np.full((3, 1), LARGEST))):
        said, body = matrix_file(matrix)
        assert matrix_in(said, body) == matrix and said.bytes == len(body)


def test_a_device_takes_part_and_fetches_the_matrix_each_time(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = plan_with(words, GOOD)
    said, body = matrix_file(GOOD)
    operator.files[said.sha256] = body
    spent = []
    for round in (2, 7, 31):
        operator.assign(plan, operator.task(plan, round))
        turn = once(operator, cache.path, tmp_path, now=NOON + 2 * round * HOUR)
        assert turn.what == "reported", turn.says
        spent.append(turn.spent)
    assert sum(each.url.path.endswith(said.sha256) for each in operator.asked) == 3
    columns = GOOD.dense(ROUNDS)[:, [2, 7, 31]]
    exact = [float(np.square(columns[:, :many].sum(axis=1)).sum()) / (2 * NOISE**2) for many in (1, 2, 3)]
    assert spent == pytest.approx(exact)  # its numbers are not negative: all push the same way
