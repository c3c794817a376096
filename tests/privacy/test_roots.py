"""Brent's method against SciPy's, bit for bit."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from tacit.privacy import gaussian
from tacit.privacy.roots import root_between

SCIPY = {"xtol": 1e-14, "rtol": 1e-14, "full_output": True, "disp": False}
some = st.floats(-50, 50)


Bend = Callable[[float], float]
bends = st.sampled_from([math.tanh, math.cbrt, math.atan, float])


@given(roots=st.lists(some, min_size=1, max_size=5), low=some, high=some, bend=bends)
def test_it_is_scipys_to_the_last_bit(
    roots: list[float], low: float, high: float, bend: Callable[[float], float]
) -> None:
    def function(x: float) -> float:
        return bend(math.prod((x - root) / 10 for root in roots))

    try:
        wanted, report = brentq(function, low, high, **SCIPY)
    except ValueError as refusal:
        assert "different signs" in str(refusal) and root_between(function, low, high) is None
        return
    found = root_between(function, low, high)
    assert found == wanted if report.converged else found is None


@given(zcdp=st.floats(1e-6, 1e4), log_delta=st.floats(-60, -0.1))
def test_an_epsilon_is_what_it_is_with_scipys(zcdp: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    ours = gaussian.epsilon(zcdp, delta), gaussian.zcdp_for_epsilon(zcdp, delta)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "root_between", lambda f, low, high: brentq(f, low, high, **SCIPY)[0])
        assert ours == (gaussian.epsilon(zcdp, delta), gaussian.zcdp_for_epsilon(zcdp, delta))


def test_no_change_of_sign_and_too_few_steps_are_none() -> None:
    assert root_between(lambda x: x * x + 1, -1.0, 1.0) is None
    assert root_between(math.sin, 3.0, 4.0, steps=2) is None
    assert root_between(math.sin, 3.0, 4.0) == pytest.approx(math.pi, abs=1e-13)
