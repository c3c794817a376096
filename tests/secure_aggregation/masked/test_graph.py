"""Chances of the graph: the plan's bounds against SciPy's tails, and against the best that an adversary does."""

import math
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from scipy.stats import hypergeom

from tacit.errors import InputError
from tacit.secure_aggregation.masked.graph import ALL_PAIRS, GraphPlan, chosen, graph_plan, is_safe


def parted(plan: GraphPlan) -> float:
    """log2 of the sum over s of C(h, s) T(s)^s, by SciPy's tails: that some group of at most half can be opened."""
    honest = plan.clients - plan.corrupted
    sizes = np.arange(1, max(1, honest // 2) + 1)
    tails = np.log(hypergeom.sf(plan.threshold - 1, plan.clients - 1, plan.corrupted + sizes - 1, plan.degree) + 1e-300)
    groups = gammaln(honest + 1) - gammaln(sizes + 1) - gammaln(honest - sizes + 1)
    return float(logsumexp(groups + sizes * tails)) / math.log(2)


def failed(plan: GraphPlan) -> float:
    """log2 of the chance that somebody keeps fewer than `threshold` of whom it chose, as `graph_plan` bounds it."""
    n, gone = plan.clients, plan.dropped
    some = (n - gone) * hypergeom.cdf(plan.threshold - 1, n - 1, n - 1 - gone, plan.degree)
    some += gone * hypergeom.cdf(plan.threshold - 1, n - 1, min(n - 1, n - gone), plan.degree)
    return math.log2(some) if some else -math.inf


@pytest.mark.parametrize("clients", [65, 66, 100, 200, 300, 1000, pytest.param(6500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("dropout", [0, 100, 200])
@pytest.mark.parametrize("corruption", [0, 100, 200])
def test_plans_keep_their_bounds_and_none_much_smaller_does(clients: int, dropout: int, corruption: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    assert parted(plan) <= -40 and failed(plan) <= -20 + 1e-6
    assert parted(replace(plan, corrupted=plan.corrupted // 2)) <= -40 >= parted(replace(plan, corrupted=0))
    assert plan.threshold == plan.degree or failed(replace(plan, threshold=plan.threshold + 1)) > -20 - 1e-6
    smaller = int(0.8 * plan.degree) - 1  # whole numbers, and bounds on the terms of the sum, cost less than a fifth
    others = (replace(plan, degree=smaller, threshold=threshold) for threshold in range(smaller, 0, -1))
    largest = next((other for other in others if failed(other) <= -20), None)
    assert largest is None or parted(largest) > -40


@pytest.mark.long
def test_the_largest_cohort_keeps_its_bounds() -> None:
    plan = graph_plan(100_000, dropout=100, corruption=100)
    assert parted(plan) <= -40 and failed(plan) <= -20 + 1e-6


@given(
    clients=st.integers(65, 600),
    corrupted=st.floats(0, 0.4),
    degree=st.floats(0.02, 1),
    threshold=st.floats(0.01, 1),
)
def test_what_is_called_safe_is(clients: int, corrupted: float, degree: float, threshold: float) -> None:
    drawn = max(1, int(degree * (clients - 1)))
    plan = GraphPlan(clients, 0, int(corrupted * clients), drawn, max(1, math.ceil(threshold * drawn)))
    assert parted(plan) <= -40 or not is_safe(plan)


def test_a_plan_is_not_searched_for_beyond_what_a_device_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 clients of whom 30% vanish and 39.5% collude took over half a minute, of every device that was invited."""
    found = graph_plan(400, dropout=100, corruption=100)
    monkeypatch.setattr("tacit.secure_aggregation.masked.graph.MOST_DEGREE", found.degree)
    assert graph_plan.__wrapped__(400, dropout=100, corruption=100) == found
    monkeypatch.setattr("tacit.secure_aggregation.masked.graph.MOST_DEGREE", found.degree - 1)
    with pytest.raises(InputError, match="no graph is safe"):
        graph_plan.__wrapped__(400, dropout=100, corruption=100)


@pytest.mark.parametrize(
    ("clients", "dropout", "corruption", "degree", "threshold"),
    [
        (100, 100, 100, 32, 22),
        (1000, 50, 100, 40, 27),
        (1000, 100, 100, 58, 36),
        (1000, 200, 100, 133, 79),
        (6500, 100, 100, 65, 40),
        (100_000, 100, 100, 75, 46),
    ],
)
def test_plans_are_those_of_the_page(clients: int, dropout: int, corruption: int, degree: int, threshold: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    assert (plan.degree, plan.threshold) == (degree, threshold)


def can_be_opened(plan: GraphPlan, choices: list[set[int]]) -> bool:
    """Whether any group of at most half of the honest could be: the adversary's best choice, by trying all of them.

    The first `plan.corrupted` clients are corrupted; `choices` are those of the others.
    """
    honest = range(plan.corrupted, plan.clients)
    bad = set(range(plan.corrupted))
    return any(
        all(len(choices[each - plan.corrupted] & (bad | set(group))) >= plan.threshold for each in group)
        for size in range(1, max(1, len(honest) // 2) + 1)
        for group in combinations(honest, size)
    )


@pytest.mark.parametrize(("clients", "corrupted", "degree", "threshold"), [(10, 2, 6, 5), (11, 3, 4, 4), (11, 4, 6, 6)])
def test_the_best_that_an_adversary_does_stays_below_the_bound(
    clients: int, corrupted: int, degree: int, threshold: int
) -> None:
    """Graphs so weak that it can be counted how often they fail; a threshold less fails more often than the bound."""
    plan, trials = GraphPlan(clients, 0, corrupted, degree, threshold), 600
    weaker = GraphPlan(clients, 0, corrupted, degree, threshold - 1)
    bound, found, of_weaker = 2 ** parted(plan), 0, 0
    draw = random.Random(clients)
    for _ in range(trials):
        choices = [set(chosen(plan, each, draw.randbytes(32))) for each in range(corrupted, clients)]
        found += can_be_opened(plan, choices)
        of_weaker += can_be_opened(weaker, choices)
    assert bound < 0.5 and found / trials < bound + 4 * math.sqrt(bound / trials)
    assert of_weaker / trials > bound + 4 * math.sqrt(bound / trials)


@given(clients=st.integers(2, ALL_PAIRS), dropout=st.integers(0, 999), corruption=st.integers(0, 300))
def test_small_cohorts_are_all_pairs(clients: int, dropout: int, corruption: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    assert plan.degree == clients - 1 and plan.threshold == plan.quorum - 1
    assert 1 <= plan.threshold <= plan.degree
    if clients >= plan.corrupted + 2:
        assert plan.threshold > plan.corrupted or clients < 3
    for client in range(clients):
        assert chosen(plan, client, bytes(32)) == [each for each in range(clients) if each != client]


@given(clients=st.integers(2, 2000), corruption=st.integers(0, 300))
def test_no_two_sets_get_a_quorum_each(clients: int, corruption: int) -> None:
    plan = GraphPlan(clients, 0, -(-clients * corruption // 1000), 2, 1)
    honest = clients - plan.corrupted
    assert 2 * plan.quorum > honest + 2 * plan.corrupted
    assert 2 * (plan.quorum - 1) <= honest + 2 * plan.corrupted  # and no smaller quorum would do


@given(clients=st.integers(ALL_PAIRS + 1, 300), choice=st.binary(min_size=32, max_size=32), client=st.integers(0, 64))
def test_a_choice_is_of_as_many_others_and_everybody_agrees_on_it(clients: int, choice: bytes, client: int) -> None:
    plan = graph_plan(clients, dropout=100, corruption=100)
    near = chosen(plan, client, choice)
    assert len(near) == plan.degree and near == sorted(set(near) - {client}) == chosen(plan, client, choice)
    assert near[0] >= 0 and near[-1] < clients


def test_choices_are_random() -> None:
    """Each other is chosen with chance k / (n - 1), whichever it is, and each pair of them with k (k - 1) / ...."""
    plan, draw = graph_plan(65, dropout=0, corruption=50), random.Random(1)
    rounds = 4000
    found, pairs = np.zeros(65), 0
    for _ in range(rounds):
        near = chosen(plan, 7, draw.randbytes(32))
        found[near] += 1
        pairs += 3 in near and 50 in near
    chance = plan.degree / 64
    assert found[7] == 0
    spread = math.sqrt(rounds * chance * (1 - chance))
    assert (np.abs(np.delete(found, 7) - rounds * chance) < 4.5 * spread).all()
    both = chance * (plan.degree - 1) / 63
    assert abs(pairs - rounds * both) < 4.5 * math.sqrt(rounds * both)


def test_a_client_masks_with_as_many_as_the_plan_says_on_average() -> None:
    plan, draw = graph_plan(200, dropout=100, corruption=100), random.Random(1)
    choices = [set(chosen(plan, client, draw.randbytes(32))) for client in range(200)]
    near = [
        len(mine | {other for other in range(200) if client in choices[other]}) for client, mine in enumerate(choices)
    ]
    assert abs(sum(near) / 200 - plan.mean_neighbours) < 1


@pytest.mark.parametrize(
    ("clients", "dropout", "corruption", "said"),
    [
        (1, 0, 0, "2 to 100,000"),
        (100_001, 0, 0, "2 to 100,000"),
        (10, 1000, 0, "thousandths"),
        (10, 0, -1, "thousandths"),
        (100, 500, 500, "no graph is safe"),
        (10, 0, 999, "no graph is safe"),
    ],
)
def test_what_cannot_be_planned_is_refused(clients: int, dropout: int, corruption: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        graph_plan(clients, dropout=dropout, corruption=corruption)
