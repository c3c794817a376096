"""Conversions of the Gaussian mechanism against slow integrals, published figures and their own inverses."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from tacit.errors import InputError
from tacit.privacy import Guarantee, Independent, Participation, gaussian
from tacit.privacy.composition import Composition, ReleasedSequence

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "gaussian_epsilon.json").read_text())
TREES: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "tree_tables.json").read_text())
BLTS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "blt.json").read_text())


def slow_delta(epsilon: float, mu: float) -> float:
    """The hockey-stick divergence by integration: where N(mu, 1) exceeds e^epsilon N(0, 1)."""
    begin = epsilon / mu + mu / 2
    value, _ = quad(
        lambda x: norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), begin, max(begin, mu) + 12, epsabs=1e-14
    )
    return float(value)


@pytest.mark.parametrize("mu", [0.1, 0.7, 1.3, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0])
def test_delta_is_the_hockey_stick_divergence(epsilon: float, mu: float) -> None:
    assert gaussian.delta(epsilon, mu) == pytest.approx(slow_delta(epsilon, mu), abs=1e-12)


def log_phi(x: float) -> float:
    """log Phi(x) with 60 digits."""
    with mpmath.workdps(60):
        tail = mpmath.erfc(abs(mpmath.mpf(x)) / mpmath.sqrt(2)) / 2
        return float(mpmath.log(tail) if x < 0 else mpmath.log1p(-tail))


@given(st.floats(-1e4, 2) | st.floats(gaussian.FAR - 1e-6, gaussian.FAR + 1e-6))
def test_the_logarithm_of_phi_is_that_of_sixty_digits_and_of_scipy(x: float) -> None:
    assert gaussian.log_normal_cdf(x) == pytest.approx(log_phi(x), rel=1e-15, abs=0)
    assert gaussian.log_normal_cdf(x) == pytest.approx(float(log_ndtr(x)), rel=2e-15, abs=0)


@given(st.floats(2, 40))
def test_where_phi_is_nearly_one_its_logarithm_is_that_of_scipy(x: float) -> None:
    assert gaussian.log_normal_cdf(x) == pytest.approx(float(log_ndtr(x)), rel=1e-14 * x**2, abs=0)


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: f"{row['where']} {row['rho']:.4f}")
def test_epsilon_is_exact_and_below_renyi_accounting(row: dict[str, Any]) -> None:
    epsilon = gaussian.epsilon(row["rho"], GOLDEN["delta"])
    assert epsilon == pytest.approx(row["epsilon"], abs=1e-9)
    assert epsilon == pytest.approx(row["epsilon_pld"], abs=1e-4)  # PLD rounds its losses up
    assert epsilon < row["epsilon_rdp"]


@pytest.mark.parametrize("row", TREES["rows"], ids=lambda row: f"{row['table']} {row['task']}")
def test_epsilons_of_the_published_tree_rows(row: dict[str, Any]) -> None:
    rho = gaussian.zcdp(math.sqrt(row["exact_sens2"]), row["noise_multiplier"])
    assert rho == pytest.approx(row["exact_rho"], rel=1e-14)
    assert gaussian.epsilon(rho, 1e-10) == pytest.approx(row["exact_epsilon_at_1e_10"], abs=1e-9)


@pytest.mark.parametrize("row", BLTS["table4"], ids=lambda row: f"{row['task']} {row['min_s']}")
def test_epsilons_of_the_published_blt_rows(row: dict[str, Any]) -> None:
    assert gaussian.epsilon(row["rho"], 1e-10) == pytest.approx(row["epsilon"], abs=1e-3)
    assert round(gaussian.epsilon(row["rho"], 1e-10), 2) == pytest.approx(row["paper"][1], abs=0.0101)


def test_the_tree_colab_case() -> None:
    # tests/golden/tree_tables.json, "colab": 8.90 there is the looser RDP conversion.
    rho = gaussian.zcdp(math.sqrt(79), 7.0)
    assert rho == pytest.approx(0.806122, abs=5e-7)
    assert gaussian.epsilon(rho, 1e-10) == pytest.approx(8.526, abs=5e-4)


def is_epsilon(found: float, mu: float, delta: float, *, off: float = 1e-11) -> bool:
    """Whether the exact curve (arXiv:1805.06530, Theorem 8) falls to delta within `off` of what was found, with 30
    digits more than cancel.
    """
    with mpmath.workdps(int(30 - math.log10(delta) + max(0.0, -2 * math.log10(mu)))):
        m, root = mpmath.mpf(mu), mpmath.sqrt(2)

        def exceeds(epsilon: Any) -> bool:
            u = epsilon / m - m / 2
            exact = (mpmath.erfc(u / root) - mpmath.e**epsilon * mpmath.erfc((u + m) / root)) / 2
            return bool(exact > mpmath.mpf(delta))

        if found == 0:
            return not exceeds(mpmath.mpf(0))
        return exceeds(found * (1 - mpmath.mpf(off))) and not exceeds(found * (1 + mpmath.mpf(off)))


@settings(max_examples=30, deadline=None)
@given(st.floats(-290, 8).map(lambda x: 10**x), st.floats(-300, -0.01).map(lambda x: 10**x))
@example(1e-8, 1e-10)
@example(1e-8, 1e-12)
@example(gaussian.SMALL, 1e-10)
@example(math.nextafter(gaussian.SMALL, 2), 1e-10)
@example(1e-160, 1e-300)
def test_epsilon_of_mu_is_that_of_many_digits(mu: float, delta: float) -> None:
    """At mu = 1e-8 it was 5.6e-7 too low, and at 1e-160, whose zCDP is 0, nothing."""
    found = gaussian.epsilon_of_mu(mu, delta)
    assert is_epsilon(found, mu, delta)
    assert not found or not is_epsilon(found * (1 + 3e-11), mu, delta)


@given(st.floats(-300, 140), st.floats(1e-9, 3.0), st.floats(-300, -0.01), st.floats(0.0, 2.0))
def test_less_noise_and_a_smaller_delta_never_lower_epsilon(
    log_mu: float, more: float, log_delta: float, smaller: float
) -> None:
    mu, delta = 10**log_mu, 10**log_delta
    epsilon = gaussian.epsilon_of_mu(mu, delta)
    assert gaussian.epsilon_of_mu(mu * 10**more, delta) >= epsilon * (1 - 1e-12)
    assert gaussian.epsilon_of_mu(mu, max(delta * 10**-smaller, 1e-305)) >= epsilon * (1 - 1e-12)


def test_noise_whose_zcdp_is_too_small_for_a_number_still_has_an_epsilon() -> None:
    """It was 0 where 3.7e-159 is right."""
    once = Guarantee(
        participation=Participation(rounds=1, min_separation=1, max_participations=1),
        strategy=Independent(),
        clip_norm=1.0,
        noise_multiplier=1e160,
    )
    assert is_epsilon(once.epsilon(1e-300), 1e-160, 1e-300)
    both = Composition((ReleasedSequence(what="a", guarantee=once), ReleasedSequence(what="b", guarantee=once)))
    assert is_epsilon(both.epsilon(1e-300), math.sqrt(2) * 1e-160, 1e-300)


@given(st.floats(-30, 270).map(lambda x: 10**x), st.floats(-300, -0.01).map(lambda x: 10**x))
@example(1e59, 1e-5)
def test_the_largest_zcdp_of_any_epsilon_is_found(epsilon: float, delta: float) -> None:
    rho = gaussian.zcdp_for_epsilon(epsilon, delta)
    assert gaussian.epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-9)


@given(log_rho=st.floats(-20, 12), log_delta=st.floats(-60, -0.8))
def test_epsilon_and_zcdp_are_inverses(log_rho: float, log_delta: float) -> None:
    rho, delta = math.exp(log_rho), math.exp(log_delta)
    epsilon = gaussian.epsilon(rho, delta)
    if epsilon > 1e-6:  # 0 is also the answer of every smaller rho
        assert gaussian.zcdp_for_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-7)
        assert gaussian.delta(epsilon, math.sqrt(2 * rho)) == pytest.approx(delta, rel=1e-6)


@given(rho=st.floats(1e-6, 1e4), sensitivity=st.floats(0.1, 100))
def test_the_noise_multiplier_reaches_its_zcdp(rho: float, sensitivity: float) -> None:
    noise = gaussian.noise_multiplier_for(rho, sensitivity)
    assert gaussian.zcdp(sensitivity, noise) == pytest.approx(rho, rel=1e-12)


def test_the_ends_of_the_scale() -> None:
    assert gaussian.zcdp(0.0, 0.0) == 0.0
    assert gaussian.zcdp(1.0, 0.0) == math.inf
    assert gaussian.epsilon(0.0, 1e-10) == 0.0
    assert gaussian.epsilon(math.inf, 1e-10) == math.inf
    assert gaussian.epsilon(1e-6, 0.1) == 0.0  # delta alone covers it
    assert gaussian.delta(1.0, 0.0) == 0.0
    assert gaussian.delta(1.0, math.inf) == 1.0
    assert gaussian.epsilon(1e9, 1e-10) > 1e9


def test_more_noise_promises_more() -> None:
    epsilons = [gaussian.epsilon(gaussian.zcdp(3.0, noise), 1e-10) for noise in np.geomspace(0.01, 1000, 60)]
    assert all(later < earlier for earlier, later in itertools.pairwise(epsilons))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: gaussian.epsilon(-1.0, 1e-10), "zcdp=-1.0"),
        (lambda: gaussian.epsilon(math.nan, 1e-10), "zcdp=nan"),
        (lambda: gaussian.epsilon(1.0, 0.0), "delta=0.0"),
        (lambda: gaussian.epsilon(1.0, 1.0), "delta=1.0"),
        (lambda: gaussian.delta(-0.1, 1.0), "epsilon=-0.1"),
        (lambda: gaussian.delta(0.1, -1.0), "mu=-1.0"),
        (lambda: gaussian.zcdp(-1.0, 1.0), "sensitivity=-1.0"),
        (lambda: gaussian.zcdp(1.0, math.nan), "noise_multiplier=nan"),
        (lambda: gaussian.zcdp_for_epsilon(math.inf, 1e-10), "epsilon=inf"),
        (lambda: gaussian.noise_multiplier_for(0.0, 1.0), "zcdp=0.0"),
        (lambda: gaussian.noise_multiplier_for(math.inf, 1.0), "zcdp=inf"),
        (lambda: gaussian.noise_multiplier_for(1.0, 0.0), "sensitivity=0.0"),
    ],
)
def test_what_is_no_such_quantity_is_refused(call: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        call()  # type: ignore[operator]
