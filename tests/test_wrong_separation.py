"""Runs whose mechanism was designed for another separation: what it was designed for, and that all spend the same."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.conftest import REPOSITORY

from tacit.design.banded import design_banded
from tacit.privacy import Guarantee, Participation
from tacit.privacy.sensitivity import sensitivity


@pytest.fixture(scope="module")
def wrong() -> ModuleType:
    """Found as where it is run from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
        return importlib.import_module("wrong_separation")


def test_every_guess_spends_the_same_on_clients_as_they_come(wrong: ModuleType) -> None:
    plan = wrong.Plan(Path("blogs2k"), 1, 24, smoke=True)
    assert [each.separation for each in wrong.guesses(plan.served)] == [4, 4, 8, 8]
    for guess, cell in zip(wrong.guesses(plan.served), wrong.cells(plan), strict=True):
        section = cell.recipe.privacy
        strategy = section.strategy(plan.served, section.matrix(plan.served))
        guarantee = Guarantee.for_zcdp(section.zcdp, participation=plan.served, strategy=strategy, clip_norm=1.0)
        spent = sensitivity(strategy, plan.served) ** 2 / (2 * guarantee.noise_multiplier**2)
        assert spent == pytest.approx(wrong.LEVEL.zcdp), guess
        assert guess.right(plan.served) == (cell.name in {"blt-6-rms-e2-1000-1", "banded-e2-1000-1"})


def test_banded_for_a_guess_is_the_design_for_that_separation(wrong: ModuleType) -> None:
    served = Participation(rounds=24, min_separation=4, max_participations=6)
    guess = Participation.worst_case(24, 8)
    made = wrong.FOR_ITS_BANDS.strategy(served, "rms", wrong.BAND_MF.parameters(bands=8))
    expected = design_banded(guess, bands=8, objective="rms")
    np.testing.assert_allclose(made.dense(24), expected.dense(24), atol=1e-6)
    assert sensitivity(made, guess) == pytest.approx(3**0.5), "columns of clients who come as guessed share no round"
    assert sensitivity(made, served) > 6**0.5 * 1.05, "those of clients who come sooner do"
