"""What is designed for a server's workload: never worse there than the design for prefix sums, without one the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.workloads import matrix_of, participations, workloads

from tacit.design.banded import design_banded
from tacit.design.best import best_mechanism
from tacit.design.blt import design_blt
from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import losses
from tacit.design.objective import Objective
from tacit.design.toeplitz import (
    banded_inverse_square_root,
    banded_square_root,
    design_banded_inverse,
    design_banded_toeplitz,
    design_lambda_cgd,
)
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy import Participation

SERVED = Participation(rounds=18, min_separation=6, max_participations=3)
COOLED = Workload(momentum=0.9, cooldown=0.3)
PLAIN = Workload(momentum=1e-12)  # next to no momentum: prefix sums, but by the general way


@settings(max_examples=6, deadline=None)
@given(served=participations(), objective=st.sampled_from(["max", "rms"]), workload=workloads())
def test_it_is_at_least_as_good_as_the_design_for_prefix_sums(
    served: Participation, objective: Objective, workload: Workload
) -> None:
    bands = served.min_separation
    for found, plain in (
        (
            design_banded_toeplitz(served, bands=bands, objective=objective, workload=workload),
            design_banded_toeplitz(served, bands=bands, objective=objective),
        ),
        (
            design_lambda_cgd(served, objective=objective, workload=workload),
            design_lambda_cgd(served, objective=objective),
        ),
    ):
        cost, before = (losses(it, served, workload).of(objective) for it in (found, plain))
        assert cost <= before * (1 + 1e-9)


@settings(max_examples=4, deadline=None)
@given(workload=workloads())
def test_so_is_a_banded_matrix_in_rms(workload: Workload) -> None:
    found, plain = (losses(design_banded(SERVED, bands=6, workload=it), SERVED, workload) for it in (workload, PREFIX))
    assert found.rms_loss <= plain.rms_loss * (1 + 1e-4)


@pytest.mark.long  # seconds
@pytest.mark.parametrize("objective", ["max", pytest.param("rms", marks=pytest.mark.nightly)])
def test_so_are_a_blt_and_the_inverse_bands_with_a_cooldown(objective: Objective) -> None:
    for found, plain in (
        (
            design_blt(SERVED, buffers=2, objective=objective, workload=COOLED),
            design_blt(SERVED, buffers=2, objective=objective),
        ),
        (
            design_banded_inverse(SERVED, bands=3, objective=objective, workload=COOLED),
            design_banded_inverse(SERVED, bands=3, objective=objective),
        ),
    ):
        assert losses(found, SERVED, COOLED).of(objective) < 0.999 * losses(plain, SERVED, COOLED).of(objective)


@pytest.mark.long  # seconds
@pytest.mark.parametrize("objective", ["max", pytest.param("rms", marks=pytest.mark.nightly)])
def test_without_momentum_and_cooldown_it_is_the_design_for_prefix_sums(objective: Objective) -> None:
    def cost(workload: Workload) -> list[float]:
        designs = (
            design_banded(SERVED, bands=6, objective=objective, workload=workload),
            design_banded_toeplitz(SERVED, bands=6, objective=objective, workload=workload),
            design_lambda_cgd(SERVED, objective=objective, workload=workload),
            design_blt(SERVED, buffers=2, objective=objective, workload=workload),
        )
        return [losses(it, SERVED).of(objective) for it in designs]

    (banded, *others), (banded_before, *others_before) = cost(PLAIN), cost(PREFIX)
    assert others == pytest.approx(others_before, rel=1e-5)
    # The stopping rule leaves a banded matrix of least max error a few 1e-5 short, on every processor somewhere else;
    # designed for a momentum of 0.01 it is 6e-4 off.
    assert banded == pytest.approx(banded_before, rel=2e-4 if objective == "max" else 1e-5)


@pytest.mark.parametrize("workload", [Workload(momentum=0.9), Workload(momentum=0.7, nesterov=True)], ids=repr)
def test_the_closed_forms_are_roots(workload: Workload) -> None:
    rounds = 25
    root, inverse = banded_square_root(rounds, workload), banded_inverse_square_root(rounds, workload)
    whole = matrix_of(workload, rounds)
    assert root.dense(rounds) @ root.dense(rounds) == pytest.approx(whole / whole[0, 0], rel=1e-12)
    assert inverse.dense(rounds) @ root.dense(rounds) == pytest.approx(whole / whole[0, 0], rel=1e-10)
    assert np.all(np.diff(root.coefficients) <= 0), "its sensitivity is exact"


@pytest.mark.long  # seconds
def test_the_best_is_compared_by_the_same_losses() -> None:
    found = best_mechanism(SERVED, "rms", workload=COOLED)
    for each in found.candidates:
        assert each.losses == losses(each.strategy, SERVED, COOLED)
        assert MECHANISMS[each.chosen.name].any_workload
    assert "of what the server makes of the means" in found.why()
    plain = losses(best_mechanism(SERVED, "rms").strategy, SERVED, COOLED)
    assert losses(found.strategy, SERVED, COOLED).rms_loss < plain.rms_loss


def test_what_has_no_design_for_it_says_so() -> None:
    with pytest.raises(InputError, match="'tree' has no design"):
        MECHANISMS["tree"].strategy(SERVED, workload=COOLED)
