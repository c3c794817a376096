"""How a number and its interval are written where readers meet them."""

import math

import pytest

from tacit.randomizers.estimates import Estimate
from tacit.reports.judgement import points
from tacit.reports.release import said

INF = math.inf


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "–"),
        (Estimate(math.nan, -INF, INF), "–"),
        (Estimate(0.0649, 0.0602, 0.0696), "6.49% (6.02% to 6.96%)"),
        (Estimate(0.0411, -INF, 0.047), "4.11% (up to 4.70%)"),
        (Estimate(0.0881, 0.0801, INF), "8.81% (from 8.01%)"),
        (Estimate(0.05, -INF, INF), "5.00% (any)"),
    ],
)
def test_an_end_that_is_not_known_is_left_out(found: Estimate | None, text: str) -> None:
    assert said(found, form=".2%") == text


def test_a_difference_of_accuracies_is_in_points() -> None:
    assert points(Estimate(-0.0647, -0.0694, 0.001)) == "\N{MINUS SIGN}6.5 points, \N{MINUS SIGN}6.9 to +0.1"
