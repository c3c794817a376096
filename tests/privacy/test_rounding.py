"""Figures for people are rounded up."""

import pytest

from tacit.privacy.rounding import rounded_up


@pytest.mark.parametrize("figure", [0.80612244898, 8.5264, 1e-12, 123456.7, 1.0])
def test_figures_are_never_rounded_down(figure: float) -> None:
    assert figure * (1 - 1e-9) <= float(rounded_up(figure)) <= figure * 1.001
    assert rounded_up(float("inf")) == "infinite"
