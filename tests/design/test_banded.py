"""BandMF: the block recursion against dense matrices, the optimum against its dual bound, the paper's loss."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.design.workloads import matrix_of, workloads

from tacit.design import banded_error
from tacit.design.banded import _with_positive_diagonal, design_banded
from tacit.design.banded_error import BandedErrors
from tacit.design.losses import losses
from tacit.design.toeplitz import design_banded_toeplitz
from tacit.design.workload import PREFIX, Workload
from tacit.errors import AccountingError, InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Banded
from tacit.progress import Advanced, Event

PAPERS = Participation(rounds=2052, min_separation=342, max_participations=6)


@st.composite
def problems(draw: st.DrawFn, workload: Workload = PREFIX) -> tuple[BandedErrors, np.ndarray]:
    """Errors with blocks of any size, and columns."""
    rounds = draw(st.integers(1, 40))
    bands = draw(st.integers(1, rounds))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banded_error, "SMALLEST", draw(st.integers(1, 16)))
        errors = BandedErrors(rounds, bands, workload)
    random = np.random.default_rng(draw(st.integers(0, 999)))
    columns = np.where(errors.inside, random.uniform(0.05, 0.5, (rounds, bands)), 0.0)
    columns[:, 0] = random.uniform(0.5, 1.0, rounds)
    return errors, columns


@given(data=st.data(), workload=st.just(PREFIX) | workloads(), power=st.sampled_from([1.0, 2.0, 64.0]))
def test_block_recursion_equals_dense_matrices(data: st.DataObject, workload: Workload, power: float) -> None:
    errors, columns = data.draw(problems(workload))
    rounds = errors.rounds
    spread = matrix_of(workload, rounds) @ np.linalg.inv(Banded(columns).dense(rounds))
    variances = (spread**2).sum(axis=1)
    expected = np.log(variances.max()) + np.log(((variances / variances.max()) ** power).mean()) / power
    value, slope = errors.mean(columns, power)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    direction = np.where(errors.inside, np.random.default_rng(1).standard_normal(columns.shape), 0.0)
    ahead, behind = (errors.mean(columns + step * direction, power)[0] for step in (1e-6, -1e-6))
    assert (slope * direction).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-5, abs=1e-6)
    assert not slope[~errors.inside].any()


@given(problem=problems(), seed=st.integers(0, 99))
def test_negated_rows_are_the_same_mechanism(problem: tuple[BandedErrors, np.ndarray], seed: int) -> None:
    errors, columns = problem
    rounds, bands = columns.shape
    signs = np.append(np.random.default_rng(seed).choice([-1.0, 1.0], rounds), np.ones(bands))
    crossed = columns * signs[np.arange(rounds)[:, None] + np.arange(bands)]
    np.testing.assert_array_equal(_with_positive_diagonal(crossed), columns)
    assert errors.mean(crossed, 1.0)[0] == pytest.approx(errors.mean(columns, 1.0)[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("rounds", "bands", "workload"),
    [
        (12, 12, PREFIX),
        (40, 8, PREFIX),
        (60, 3, PREFIX),
        (96, 24, PREFIX),
        (40, 8, Workload(momentum=0.9)),
        (60, 10, Workload(momentum=0.9, nesterov=True, cooldown=0.3)),
    ],
)
def test_optimum_is_within_its_dual_bound(rounds: int, bands: int, workload: Workload) -> None:
    """For X = C^T C banded with unit diagonal, tr(M X^{-1}) >= 2 tr((A W A^T)^{1/2}) - tr(W) for every positive W
    that vanishes inside the band off the diagonal. W = X^{-1} M X^{-1} with the band cleared comes near."""
    served = Participation(rounds=rounds, min_separation=bands, max_participations=-(-rounds // bands))
    matrix = design_banded(served, bands=bands, workload=workload).dense(rounds)
    sums = matrix_of(workload, rounds)
    inverse = np.linalg.inv(matrix.T @ matrix)
    primal = np.trace(sums @ inverse @ sums.T)
    weights = inverse @ sums.T @ sums @ inverse
    lag = np.abs(np.subtract.outer(np.arange(rounds), np.arange(rounds)))
    weights[(lag > 0) & (lag < bands)] = 0.0
    values = np.linalg.eigvalsh(weights)
    assert values.min() > 0
    dual = 2 * np.sqrt(np.linalg.eigvalsh(sums @ weights @ sums.T)).sum() - np.trace(weights)
    assert dual <= primal <= dual * (1 + 2e-4)


def test_columns_have_norm_one_and_the_sensitivity_counts_participations() -> None:
    served = Participation(rounds=30, min_separation=6, max_participations=5)
    chosen = design_banded(served, bands=6)
    np.testing.assert_allclose((chosen.columns**2).sum(axis=1), 1.0, rtol=1e-12)
    assert losses(chosen, served).sensitivity ** 2 == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize("bands", [1, 4, 10])
def test_free_entries_beat_toeplitz_ones(bands: int) -> None:
    served = Participation(rounds=100, min_separation=10, max_participations=10)
    free, toeplitz = design_banded(served, bands=bands), design_banded_toeplitz(served, bands=bands, objective="rms")
    assert losses(free, served).rms_loss <= losses(toeplitz, served).rms_loss + 1e-9


def test_max_objective_lowers_the_largest_error() -> None:
    served = Participation(rounds=60, min_separation=12, max_participations=5)
    by_max, by_rms = (losses(design_banded(served, bands=12, objective=it), served) for it in ("max", "rms"))
    assert by_max.max_loss < by_rms.max_loss
    assert by_max.rms_loss > by_rms.rms_loss


def test_progress_is_told_every_step() -> None:
    events: list[Event] = []
    served = Participation(rounds=40, min_separation=8, max_participations=5)
    chosen = design_banded(served, bands=8, progress=events.append)
    told = [(each.done, each.figures["loss"]) for each in events if isinstance(each, Advanced)]
    assert [step for step, _ in told] == list(range(1, len(told) + 1))
    assert all(later <= earlier for (_, earlier), (_, later) in pairwise(told))
    assert told[-1][1] == pytest.approx(losses(chosen, served).rms_loss, rel=1e-9)


def test_overlapping_columns_are_refused() -> None:
    with pytest.raises(InputError, match="at most 5"):
        design_banded(Participation(rounds=20, min_separation=5, max_participations=4), bands=6)
    with pytest.raises(InputError, match="bands=0"):
        design_banded(Participation(rounds=20, min_separation=5, max_participations=4), bands=0)
    with pytest.raises(AccountingError, match="of 20 rounds"):
        design_banded(Participation(rounds=20, min_separation=5, max_participations=4), bands=5).dense(21)


@pytest.mark.nightly  # as its row in the paper's table is (tests/test_papers_tables.py)
def test_paper_loss_is_reached() -> None:
    """arXiv:2408.08868, Table 3: BandMF(342) has rms loss 8.60."""
    found = losses(design_banded(PAPERS, bands=342), PAPERS)
    assert found.rms_loss < 8.597
    assert found.max_loss < 10.25
