"""Losses against dense matrices, round-by-round sums and sixty digits."""

import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.strategies import ROUNDS, STRATEGIES

from tacit.design.blt_errors import blt_errors
from tacit.design.geometric import falling_sum, geometric_sum
from tacit.design.losses import losses, prefix_errors
from tacit.design.objective import Losses
from tacit.errors import AccountingError, InputError
from tacit.mechanisms.tree import TreeStream
from tacit.privacy import Blt, Independent, Participation, Tree
from tacit.privacy.strategy import BandedInverse, Strategy

SETTING = Participation(rounds=2052, min_separation=342, max_participations=6)


@st.composite
def blts(draw: st.DrawFn) -> Blt:
    """Decays near 1 and near each other, weights over many orders of magnitude, decreasing coefficients."""
    buffers = draw(st.integers(1, 5))
    decays = [10 ** draw(st.floats(-15, 0.5)) for _ in range(buffers)]
    if draw(st.booleans()):
        decays = [decays[0] * (1 + place * 10 ** draw(st.floats(-15, 0))) for place in range(buffers)]
    theta = [1.0 if draw(st.integers(0, 9)) == 0 else float(np.exp(-decay)) for decay in decays]
    weights = np.array([10 ** draw(st.floats(-10, 0)) for _ in range(buffers)])
    omega = weights / weights.sum() * draw(st.floats(0.01, 0.999))
    return Blt(theta=tuple(theta), omega=tuple(omega.tolist()))


def slow_blt_errors(blt: Blt, rounds: int) -> tuple[float, float]:
    """Round by round with sixty digits: run C^{-1} on the first unit vector and add up (Equation 3 and
    Proposition 3.3 of arXiv:2408.08868).
    """
    with mpmath.workdps(60):
        theta, omega = [mpmath.mpf(each) for each in blt.theta], [mpmath.mpf(each) for each in blt.omega]
        state, sum_so_far = [mpmath.mpf(0)] * len(theta), mpmath.mpf(0)
        total = falling = mpmath.mpf(0)
        for round in range(rounds):
            out = (1 if round == 0 else 0) - sum(w * s for w, s in zip(omega, state, strict=True))
            state = [t * s + out for t, s in zip(theta, state, strict=True)]
            sum_so_far += out
            total += sum_so_far**2
            falling += (rounds - round) * sum_so_far**2
        return float(mpmath.sqrt(total)), float(mpmath.sqrt(falling / rounds))


def squared_blt_errors(blt: Blt, rounds: int) -> tuple[float, float]:
    """The same for very many rounds: one round is a matrix F on (buffers, prefix sum), so with e the prefix sum's unit
    vector the sum over t of (F^t)^T e e^T F^t follows by doubling t, with sixty digits. No poles are needed.
    """
    with mpmath.workdps(60):
        size = len(blt.theta) + 1
        one_round = np.full((size, size), mpmath.mpf(0))
        one_round[:, :-1] = [[-mpmath.mpf(weight) for weight in blt.omega]] * size
        one_round[range(size - 1), range(size - 1)] += [mpmath.mpf(each) for each in blt.theta]
        one_round[-1, -1] = mpmath.mpf(1)
        first = np.full((size, size), mpmath.mpf(0))
        first[-1, -1] = mpmath.mpf(1)
        power, gram, grams, reached = one_round, first, first, 1
        for digit in f"{rounds:b}"[1:]:
            gram, grams = gram + power.T @ gram @ power, grams + reached * gram + power.T @ grams @ power
            power, reached = power @ power, 2 * reached
            if digit == "1":
                gram = first + one_round.T @ gram @ one_round
                grams, power, reached = grams + gram, power @ one_round, reached + 1
        return float(mpmath.sqrt(gram.sum())), float(mpmath.sqrt(grams.sum() / rounds))


@settings(max_examples=60, deadline=None)
@given(blt=blts(), rounds=st.integers(1, 60))
def test_the_closed_form_is_the_sum_over_rounds(blt: Blt, rounds: int) -> None:
    assert blt_errors(blt, rounds) == pytest.approx(slow_blt_errors(blt, rounds), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(blt=blts(), rounds=st.integers(1, 40))
def test_doubling_is_the_sum_over_rounds(blt: Blt, rounds: int) -> None:
    assert squared_blt_errors(blt, rounds) == pytest.approx(slow_blt_errors(blt, rounds), rel=1e-15)


@settings(max_examples=40, deadline=None)
@given(blt=blts(), rounds=st.integers(1, 10**9))
def test_the_closed_form_holds_for_a_billion_rounds(blt: Blt, rounds: int) -> None:
    assert blt_errors(blt, rounds) == pytest.approx(squared_blt_errors(blt, rounds), rel=1e-12)


def test_decays_one_bit_apart_and_a_decay_of_one() -> None:
    near = Blt(theta=(1.0, 1.0 - 2**-53, 1.0 - 2**-52, 0.5, 0.5), omega=(0.1, 0.05, 0.01, 0.2, 0.1))
    merged = Blt(theta=(1.0, 1.0 - 2**-53, 1.0 - 2**-52, 0.5), omega=(0.1, 0.05, 0.01, 0.3))
    assert blt_errors(near, 200) == pytest.approx(slow_blt_errors(near, 200), rel=1e-13)
    assert blt_errors(near, 10**9) == pytest.approx(blt_errors(merged, 10**9), rel=4e-16)  # one ulp: processors differ


def test_a_negative_decay_of_the_inverse() -> None:
    steep = Blt(theta=(0.01,), omega=(0.95,))  # theta_hat = -0.94
    for rounds in (1, 2, 3, 50, 51):
        assert blt_errors(steep, rounds) == pytest.approx(slow_blt_errors(steep, rounds), rel=1e-13)


@settings(max_examples=100, deadline=None)
@given(exponent=st.floats(-18, 0.29), terms=st.sampled_from([1, 2, 3, 10, 999, 10**6, 10**9]))
def test_geometric_sums_have_all_their_digits(exponent: float, terms: int) -> None:
    gap = np.array([10.0**exponent])
    with mpmath.workdps(80):
        x = 1 - mpmath.mpf(float(gap[0]))
        plain = (1 - x**terms) / (1 - x)
        late = (terms - x * plain) / (1 - x)
        slope = (terms * x ** (terms - 1) - plain) / (1 - x) if terms > 1 else mpmath.mpf(0)
        late_slope = (plain + x * (-slope) - late) / (1 - x)
        assert geometric_sum(gap, terms)[0][0] == pytest.approx(float(plain), rel=2e-14)
        assert falling_sum(gap, terms)[0][0] == pytest.approx(float(late), rel=2e-14)
        assert geometric_sum(gap, terms)[1][0] * gap[0] == pytest.approx(
            float(slope * gap[0]), abs=1e-13 * float(plain)
        )
        assert falling_sum(gap, terms)[1][0] * gap[0] == pytest.approx(
            float(late_slope * gap[0]), abs=1e-12 * float(late)
        )


def dense_errors(strategy: Strategy, rounds: int) -> tuple[float, float]:
    """The row norms of A C^{-1}, by matrices; for a tree, of its stream's own matrix."""
    of_tree = isinstance(strategy, Tree)
    noise = TreeStream(strategy).dense(rounds) if of_tree else np.linalg.inv(strategy.dense(rounds))
    variances = (np.tril(np.ones((rounds, rounds))) @ noise) ** 2 @ np.ones(noise.shape[1])
    return float(np.sqrt(variances.max())), float(np.sqrt(variances.mean()))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_the_errors_of_its_matrix(name: str) -> None:
    assert prefix_errors(STRATEGIES[name], ROUNDS) == pytest.approx(dense_errors(STRATEGIES[name], ROUNDS), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(rounds=st.integers(1, 70), restarts=st.sets(st.integers(1, 70), max_size=3), reduced=st.booleans())
def test_every_tree_has_the_errors_of_its_stream(rounds: int, restarts: set[int], reduced: bool) -> None:
    tree = Tree(restarts=tuple(sorted(restarts)), variance_reduced=reduced)
    assert prefix_errors(tree, rounds) == pytest.approx(dense_errors(tree, rounds), rel=1e-12)


def test_blocks_of_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [prefix_errors(STRATEGIES[name], ROUNDS) for name in ("banded", "dense")]
    monkeypatch.setattr(sys.modules["tacit.design.losses"], "ROWS", 7)
    assert [prefix_errors(STRATEGIES[name], ROUNDS) for name in ("banded", "dense")] == [
        pytest.approx(each, rel=1e-13) for each in whole
    ]


def test_losses_are_errors_times_sensitivity() -> None:
    cost = Losses(max_error=2.0, rms_error=1.5, sensitivity=3.0)
    assert (cost.max_loss, cost.rms_loss, cost.of("max"), cost.of("rms")) == (6.0, 4.5, 6.0, 4.5)
    with pytest.raises(InputError, match="neither max nor rms"):
        cost.of("mean")  # type: ignore[arg-type]


def test_independent_noise_costs_what_the_reference_says() -> None:
    # The reference of mechanisms at (2052, 342, 6): 110.95945205344158 max, 78.47929663293371 rms.
    cost = losses(Independent(), SETTING)
    assert (cost.max_loss, cost.rms_loss) == pytest.approx((110.95945205344158, 78.47929663293371), rel=1e-14)


def test_losses_refuse_a_blt_that_rises() -> None:
    with pytest.raises(AccountingError):
        losses(Blt(theta=(0.9, 0.8), omega=(0.7, 0.6)), SETTING)


def test_losses_say_where_the_sensitivity_is_a_bound() -> None:
    rising = BandedInverse(coefficients=(1.0, -1.2, 0.3))
    cost = losses(rising, SETTING)
    assert not cost.exact
    assert cost.sensitivity >= np.linalg.norm(rising.dense(2052)[:, ::342].sum(axis=1))
    assert losses(Independent(), SETTING).exact
