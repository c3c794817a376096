"""Banded Toeplitz designs: the published losses, the slow reference of the gradient, and no coefficient that rises."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY
from tests.design.workloads import participations, workloads

from tacit.design.losses import losses
from tacit.design.projected_gradient import falling, minimise_falling
from tacit.design.toeplitz import (
    _losses,
    banded_inverse_square_root,
    banded_square_root,
    design_banded_inverse,
    design_banded_toeplitz,
    design_lambda_cgd,
    root_coefficients,
)
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import BandedInverse, BandedToeplitz

GOLDEN = json.loads((REPOSITORY / "tests" / "golden" / "mechanisms.json").read_text())
ROOTS = {name: row for name, row in GOLDEN["losses"].items() if name.startswith(("BISR", "BandFHU"))}
PAPERS = Participation(
    rounds=GOLDEN["setting"]["rounds"],
    min_separation=GOLDEN["setting"]["b"],
    max_participations=GOLDEN["setting"]["k"],
)
OBJECTIVES = ("max", "rms")


# -- what is published -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROOTS)
def test_square_roots_have_the_losses_of_the_reference(name: str) -> None:
    chosen = banded_inverse_square_root if name.startswith("BISR") else banded_square_root
    found = losses(chosen(int(name.split("p=")[1])), PAPERS)
    assert found.max_loss == pytest.approx(ROOTS[name]["max"], rel=1e-11)
    assert found.rms_loss == pytest.approx(ROOTS[name]["rms"], rel=1e-11)


def test_all_bands_are_the_full_square_root() -> None:
    found = losses(banded_square_root(PAPERS.rounds), PAPERS)
    assert (found.max_loss, found.rms_loss) == pytest.approx(
        tuple(GOLDEN["losses"]["full sqrt (FHU)"][o] for o in OBJECTIVES)
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_banded_toeplitz_reaches_the_reference(objective: str) -> None:
    found = losses(design_banded_toeplitz(PAPERS, bands=342, objective=objective), PAPERS)
    published = GOLDEN["BandToep(342)"][objective]
    assert (found.max_loss, found.rms_loss) == pytest.approx(tuple(published), abs=5.1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_lambda_cgd_is_no_worse_than_the_grid_and_equals_two_free_bands(objective: str) -> None:
    chosen = design_lambda_cgd(PAPERS, objective=objective)
    grid, at = GOLDEN["losses"]["DP-lambdaCGD"][objective]
    assert losses(chosen, PAPERS).of(objective) <= grid
    assert losses(chosen, PAPERS).of(objective) == pytest.approx(
        GOLDEN["losses"][f"BandInvMF p=2 {objective}"], rel=1e-12
    )
    assert -chosen.coefficients[1] == pytest.approx(at, abs=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("bands", [3, 5, 8])
def test_banded_inverse_reaches_the_reference_or_less(bands: int, objective: str) -> None:
    """With three bands to the last digits, which shows that the reference counts the falling column above C's, too."""
    found = losses(design_banded_inverse(PAPERS, bands=bands, objective=objective), PAPERS)
    reference = GOLDEN["losses"][f"BandInvMF p={bands} {objective}"]
    assert not found.exact
    if bands == 3:
        assert found.of(objective) == pytest.approx(reference, rel=1e-10)
    else:
        assert found.of(objective) < reference


def test_falling_banded_inverses_are_exact_and_as_good_as_a_grid_of_them() -> None:
    grid = (
        BandedInverse((1.0, -first, -second))
        for first in np.linspace(0.7, 0.99, 30)
        for second in np.linspace(0.0, 1.0, 51) * first * (1 - first)
    )
    best = min(found.max_loss for found in (losses(each, PAPERS) for each in grid) if found.exact)
    designed = losses(design_banded_inverse(PAPERS, bands=3, falling=True), PAPERS)
    assert designed.exact and designed.max_loss <= best + 1e-12


# -- properties --------------------------------------------------------------------------------------------------


@given(
    served=participations(),
    objective=st.sampled_from(OBJECTIVES),
    workload=st.just(PREFIX) | workloads(),
    seed=st.integers(0, 99),
)
def test_loss_is_that_of_the_strategy_and_gradients_are_its_differences(
    served: Participation, objective: str, workload: Workload, seed: int
) -> None:
    several, random = _losses(served, objective, workload), np.random.default_rng(seed)
    loss = several[0]  # the last, the largest of falling rates' rows, has kinks
    bands = int(random.integers(1, served.rounds + 1))
    column = np.sort(random.uniform(0.1, 1.0, bands))[::-1]
    gaps = np.sort(random.uniform(0.05, 0.9, bands))[::-1]
    sums = np.exp(-np.append(0.0, np.cumsum(gaps)))[: served.rounds]
    pairs = [(loss.of_column, column, BandedToeplitz(tuple(column)))]
    if sums.size == bands + 1:
        pairs.append((loss.of_gaps, gaps, BandedInverse(tuple(np.diff(sums, prepend=0.0)))))
    inverse = np.append(1.0, -random.uniform(0.0, 0.9, bands - 1))
    pairs.append((loss.of_inverse, inverse, BandedInverse(tuple(inverse))))
    for function, at, strategy in pairs:
        slope = function(at)[1]
        value = getattr(several[-1], function.__name__)(at)[0]
        assert math.exp(value / 2) == pytest.approx(losses(strategy, served, workload).of(objective), rel=1e-9)
        for index in range(bands):
            step = 1e-6 * np.eye(bands)[index]
            difference = (function(at + step)[0] - function(at - step)[0]) / 2e-6
            assert slope[index] == pytest.approx(difference, abs=1e-7)


@given(served=participations(), objective=st.sampled_from(OBJECTIVES), share=st.floats(0, 1))
def test_designs_can_be_accounted_and_beat_their_starts(served: Participation, objective: str, share: float) -> None:
    bands = 1 + int(share * (served.rounds - 1))
    toeplitz = losses(design_banded_toeplitz(served, bands=bands, objective=objective), served).of(objective)
    inverse = losses(design_banded_inverse(served, bands=bands, objective=objective), served).of(objective)
    assert toeplitz <= losses(banded_square_root(bands), served).of(objective) * (1 + 1e-12)
    assert inverse <= losses(banded_inverse_square_root(bands), served).of(objective) * (1 + 1e-12)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=9), st.lists(st.floats(0, 1), min_size=9, max_size=9))
def test_the_nearest_falling_sequence_is_nearest(values: list[float], gaps: list[float]) -> None:
    """The projection's own characterisation: the way on to any other member never leads back to the point."""
    point, found = np.array(values), falling(np.array(values))
    assert (np.diff(found) <= 0).all() and (found >= 0).all()
    other = np.cumsum(gaps[: point.size][::-1])[::-1]
    assert (point - found) @ (other - found) <= 1e-9


def test_a_search_that_meets_infinity_steps_back() -> None:
    def cliff(at: np.ndarray) -> tuple[float, np.ndarray]:
        return (math.inf, at) if at[0] > 1.5 else (float((at - 1) @ (at - 1)), 2e3 * (at - 1) / 1e3)

    assert minimise_falling(cliff, np.array([0.1, 0.0])) == pytest.approx([1.0, 1.0], abs=1e-5)


# -- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [design_banded_toeplitz, design_banded_inverse])
@pytest.mark.parametrize("bands", [0, 13])
def test_bands_that_do_not_fit_are_refused(design, bands: int) -> None:  # type: ignore[no-untyped-def]
    served = Participation(rounds=12, min_separation=4, max_participations=3)
    with pytest.raises(InputError, match=f"bands={bands}"):
        design(served, bands=bands)


def test_another_objective_is_refused() -> None:
    with pytest.raises(InputError, match="median"):
        design_banded_toeplitz(Participation.worst_case(12, 4), bands=3, objective="median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="bands=0"):
        banded_square_root(0)


def test_root_coefficients_squared_are_ones() -> None:
    root = root_coefficients(40)
    np.testing.assert_allclose(np.convolve(root, root)[:40], np.ones(40), rtol=1e-13)
