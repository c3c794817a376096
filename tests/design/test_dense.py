"""The dense optimum against a search that knows nothing, and TreeAgg-Full against the paper."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.conftest import REPOSITORY

from tacit.design.banded import design_banded
from tacit.design.dense import design_dense, full_tree, full_tree_losses
from tacit.design.losses import losses, prefix_errors
from tacit.design.workload import PREFIX, Workload
from tacit.errors import AccountingError, InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Tree
from tacit.progress import Advanced, Event

GOLDEN = json.loads((REPOSITORY / "tests" / "golden" / "mechanisms.json").read_text())


def once(rounds: int) -> Participation:
    return Participation(rounds=rounds, min_separation=rounds, max_participations=1)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_no_triangle_with_unit_columns_does_better(rounds: int) -> None:
    rows, columns = np.tril_indices(rounds)
    sums = np.tril(np.ones((rounds, rounds)))

    def error(entries: np.ndarray) -> float:
        matrix = np.zeros((rounds, rounds))
        matrix[rows, columns] = entries
        matrix /= np.linalg.norm(matrix, axis=0)
        return float(((sums @ np.linalg.inv(matrix)) ** 2).sum() / rounds)

    found = minimize(error, np.eye(rounds)[rows, columns] + 0.1, method="BFGS", options={"gtol": 1e-7})
    assert losses(design_dense(once(rounds)), once(rounds)).rms_loss == pytest.approx(found.fun**0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("rounds", "workload"),
    [(10, PREFIX), (64, PREFIX), (200, PREFIX), (48, Workload(momentum=0.9, cooldown=0.3))],
)
def test_dense_is_the_limit_of_banded(rounds: int, workload: Workload) -> None:
    dense, banded = (
        losses(it, once(rounds), workload).rms_loss
        for it in (
            design_dense(once(rounds), workload=workload),
            design_banded(once(rounds), bands=rounds, workload=workload),
        )
    )
    assert dense <= banded * (1 + 1e-7)
    assert banded <= dense * (1 + 1e-4)


def test_search_proves_its_gap() -> None:
    events: list[Event] = []
    chosen = design_dense(once(50), progress=events.append)
    told = [each.figures["gap"] for each in events if isinstance(each, Advanced)]
    np.testing.assert_allclose(np.linalg.norm(chosen.matrix, axis=0), 1.0, rtol=1e-12)
    assert told == sorted(told, reverse=True)
    assert 0 <= told[-1] < 1e-7


def test_optimum_for_several_participations_is_not_claimed() -> None:
    with pytest.raises(InputError, match="max_participations=2"):
        design_dense(Participation(rounds=10, min_separation=5, max_participations=2))
    with pytest.raises(AccountingError):
        design_dense(once(10)).dense(11)


@given(st.integers(1, 40))
def test_full_tree_has_the_gram_matrix_of_the_nodes_and_their_best_decoder(rounds: int) -> None:
    nodes, triangle = Tree().dense(rounds), full_tree(rounds).matrix
    np.testing.assert_allclose(triangle.T @ triangle, nodes.T @ nodes, atol=1e-10)
    decoder = np.tril(np.ones((rounds, rounds))) @ np.linalg.pinv(nodes)
    rows = (decoder**2).sum(axis=1)
    assert prefix_errors(full_tree(rounds), rounds) == pytest.approx((rows.max() ** 0.5, rows.mean() ** 0.5), rel=1e-9)


def test_full_tree_has_the_losses_of_the_paper() -> None:
    found = full_tree_losses(Participation(rounds=2052, min_separation=342, max_participations=6))
    assert [round(found.max_loss, 2), round(found.rms_loss, 2)] == GOLDEN["table3"]["TreeAgg-Full"]


def test_full_tree_of_no_rounds_is_refused() -> None:
    with pytest.raises(InputError, match="rounds=0"):
        full_tree(0)
