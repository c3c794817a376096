"""The graph is that of the paper, and its bounds are what simulation and other software's tails say."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from tacit.errors import InputError
from tacit.secure_aggregation.graph import ALL_PAIRS, GraphPlan, graph_plan, neighbours


def chances(plan: GraphPlan) -> tuple[float, float]:
    """(chance that the graph is unsafe, chance that the round fails), as `graph_plan` bounds them, by SciPy's tails."""
    n, gone, bad = plan.clients, plan.dropped, plan.corrupted
    surrounded = (n - bad) * hypergeom.sf(plan.threshold - 1, n - 1, bad, plan.degree)
    parted = float(n)
    for step in range(plan.degree // 2):  # so many neighbours in the ring, all gone or corrupted
        parted *= max(0, bad + gone - step) / (n - step)
    failed = (n - gone) * hypergeom.cdf(plan.threshold - 1, n - 1, n - 1 - gone, plan.degree)
    failed += gone * hypergeom.cdf(plan.threshold - 1, n - 1, min(n - 1, n - gone), plan.degree)
    return surrounded + parted, failed


@pytest.mark.parametrize("clients", [65, 66, 100, 200, 1000, 6500, 100_000])
@pytest.mark.parametrize("dropout", [0, 50, 100, 200])
@pytest.mark.parametrize("corruption", [0, 100, 200])
def test_plans_keep_their_bounds_and_no_smaller_degree_does(clients: int, dropout: int, corruption: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    unsafe, failed = chances(plan)
    assert unsafe <= 2.0**-40 * (1 + 1e-6) and failed <= 2.0**-30 * (1 + 1e-6)
    smaller = plan.degree - 2
    for threshold in range(1, smaller + 1):
        other = GraphPlan(clients, plan.dropped, plan.corrupted, smaller, threshold)
        unsafe, failed = chances(other)
        assert unsafe > 2.0**-40 * (1 - 1e-6) or failed > 2.0**-30 * (1 - 1e-6)


@pytest.mark.parametrize(
    ("clients", "dropout", "corruption", "degree", "threshold"),
    [
        (1000, 50, 100, 42, 25),
        (1000, 100, 100, 52, 28),
        (1000, 200, 100, 74, 33),
        (6500, 50, 100, 46, 28),
        (6500, 100, 100, 58, 31),
        (6500, 200, 100, 86, 38),
        (100_000, 100, 200, 94, 57),
    ],
)
def test_plans_are_those_of_the_page(clients: int, dropout: int, corruption: int, degree: int, threshold: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    assert (plan.degree, plan.threshold) == (degree, threshold)


def test_one_threshold_less_and_one_more_at_1000_clients() -> None:
    """Of 50 neighbours with a threshold of 27, which other programs choose: the round fails with 2^-29.8 then."""
    unsafe, failed = chances(GraphPlan(1000, 100, 100, 50, 27))
    assert unsafe < 2.0**-40 and 2.0**-30 < failed < 2.0**-29.5


@given(clients=st.integers(2, ALL_PAIRS), dropout=st.integers(0, 999), corruption=st.integers(0, 300))
def test_small_cohorts_are_all_pairs(clients: int, dropout: int, corruption: int) -> None:
    plan = graph_plan(clients, dropout=dropout, corruption=corruption)
    assert plan.degree == clients - 1 and plan.threshold == plan.quorum - 1
    assert 1 <= plan.threshold <= plan.degree
    if clients >= plan.corrupted + 2:
        assert plan.threshold > plan.corrupted or clients < 3
    for client, others in enumerate(neighbours(plan, bytes(32))):
        assert others == [each for each in range(clients) if each != client]


@given(clients=st.integers(2, 2000), corruption=st.integers(0, 300))
def test_no_two_sets_get_a_quorum_each(clients: int, corruption: int) -> None:
    plan = GraphPlan(clients, 0, -(-clients * corruption // 1000), 2, 1)
    honest = clients - plan.corrupted
    assert 2 * plan.quorum > honest + 2 * plan.corrupted
    assert 2 * (plan.quorum - 1) <= honest + 2 * plan.corrupted  # and no smaller quorum would do


@given(clients=st.integers(ALL_PAIRS + 1, 300), seed=st.binary(min_size=32, max_size=32))
def test_a_graph_is_regular_and_everybody_agrees_on_it(clients: int, seed: bytes) -> None:
    plan = graph_plan(clients, dropout=100, corruption=100)
    near = neighbours(plan, seed)
    assert [len(set(each)) for each in near] == [plan.degree] * clients
    assert all(client not in others and others == sorted(others) for client, others in enumerate(near))
    assert all(client in near[other] for client, others in enumerate(near) for other in others)
    assert near == neighbours(plan, seed)


def test_orders_are_random() -> None:
    """Each pair is joined with chance k / (n - 1), whichever two they are."""
    plan, chance = graph_plan(65, dropout=0, corruption=50), random.Random(1)
    rounds = 2000
    joined = [0] * 65
    for _ in range(rounds):
        for other in neighbours(plan, chance.randbytes(32))[7]:
            joined[other] += 1
    expected = rounds * plan.degree / 64
    deviation = (expected * (1 - plan.degree / 64)) ** 0.5
    assert joined[7] == 0
    assert all(abs(count - expected) < 4.5 * deviation for client, count in enumerate(joined) if client != 7)


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
