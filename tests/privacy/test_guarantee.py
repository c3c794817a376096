"""Guarantee: one noise standard deviation, and it is the promised one."""

import math
import subprocess
import sys

import numpy as np
import pytest

import tacit.privacy
from tacit.errors import InputError
from tacit.privacy import Guarantee, Independent, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, Blt, Strategy

COLAB = Participation.from_rounds_between(rounds=2000, rounds_between=313, max_participations=6)


def test_the_tree_colab_case() -> None:
    # tests/golden/tree_tables.json, "colab".
    promise = Guarantee(participation=COLAB, strategy=Tree(), clip_norm=5.0, noise_multiplier=7.0)
    assert promise.private
    assert promise.sensitivity_squared == 79
    assert promise.sensitivity == pytest.approx(math.sqrt(79))
    assert promise.zcdp == pytest.approx(0.806122, abs=5e-7)
    assert promise.mu == pytest.approx(math.sqrt(2 * promise.zcdp))
    assert promise.epsilon(1e-10) == pytest.approx(8.526, abs=5e-4)
    assert promise.seed_stddev == 35.0


def test_what_is_promised_is_what_is_printed_and_shown() -> None:
    promise = Guarantee(participation=COLAB, strategy=Tree(), clip_norm=5.0, noise_multiplier=7.0)
    said = str(promise)
    assert said.startswith("zCDP 0.8062, epsilon ") and "8.527 at delta 1e-10" in said  # 8.526 and more: rounded up
    assert "at most 6 times, at least 314 rounds apart" in said and "upper bound" not in said
    assert promise._repr_html_() == f"<p>{said}</p>"
    assert str(Guarantee(participation=COLAB, strategy=None, clip_norm=1.0, noise_multiplier=0)).startswith("no noise")
    rising = Blt(theta=(0.9,), omega=(1.5,))
    unknown = Guarantee(participation=COLAB, strategy=rising, clip_norm=1.0, noise_multiplier=1.0)
    assert str(unknown).startswith("no guarantee is known: ")


@pytest.mark.parametrize("strategy", [Independent(), Tree(restarts=(700,)), PUBLISHED_BLT["b400"]], ids=repr)
def test_calibration_reaches_the_zcdp_it_was_asked_for(strategy: Strategy) -> None:
    promise = Guarantee.for_zcdp(0.25, participation=COLAB, strategy=strategy, clip_norm=2.0)
    assert promise.zcdp == pytest.approx(0.25, rel=1e-12)
    assert promise.seed_stddev == pytest.approx(2.0 * promise.sensitivity / math.sqrt(0.5))


def test_without_a_strategy_nothing_is_promised() -> None:
    promise = Guarantee(participation=COLAB, strategy=None, clip_norm=math.inf, noise_multiplier=0.0)
    assert not promise.private
    assert (promise.zcdp, promise.mu, promise.epsilon(0.5), promise.seed_stddev) == (
        math.inf,
        math.inf,
        math.inf,
        0.0,
    )


def test_coming_more_often_than_planned_promises_less() -> None:
    planned = Guarantee(participation=COLAB, strategy=Tree(), clip_norm=1.0, noise_multiplier=7.0)
    happened = planned.with_participation(Participation(rounds=2000, min_separation=100, max_participations=8))
    assert happened.zcdp > planned.zcdp
    assert happened.seed_stddev == planned.seed_stddev


@pytest.mark.parametrize("strategy", [None, Tree()])
@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.nan])
def test_a_clip_norm_that_clips_nothing_sensible_is_refused(strategy: Strategy | None, clip_norm: float) -> None:
    with pytest.raises(InputError, match="clip_norm"):
        Guarantee(
            participation=COLAB,
            strategy=strategy,
            clip_norm=clip_norm,
            noise_multiplier=1.0 if strategy else 0.0,
        )


@pytest.mark.parametrize(
    ("strategy", "clip_norm", "noise_multiplier", "complaint"),
    [
        (Tree(), math.inf, 1.0, "clip_norm=inf"),
        (Tree(), 1.0, 0.0, "noise_multiplier=0.0"),
        (Tree(), 1.0, math.inf, "noise_multiplier=inf"),
        (Tree(), 1.0, math.nan, "noise_multiplier=nan"),
        (Tree(), 1.0, -7.0, "noise_multiplier=-7.0"),
        (None, 1.0, 7.0, "name a strategy"),
    ],
)
def test_noise_without_a_strategy_or_a_strategy_without_noise_is_refused(
    strategy: Strategy | None, clip_norm: float, noise_multiplier: float, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        Guarantee(participation=COLAB, strategy=strategy, clip_norm=clip_norm, noise_multiplier=noise_multiplier)


def test_accounting_needs_no_accelerator() -> None:
    code = (
        "import sys, tacit.privacy, tacit.statements.statement; "
        "print(*sorted({'jax', 'optax', 'pyarrow', 'matplotlib'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "", "")


def test_the_front_door_is_sorted_and_small() -> None:
    assert sorted(tacit.privacy.__all__) == tacit.privacy.__all__
    assert len(tacit.privacy.__all__) <= 10
    assert all(hasattr(tacit.privacy, name) for name in tacit.privacy.__all__)


def test_a_bound_is_told_from_an_exact_figure() -> None:
    plan = Participation(rounds=10, min_separation=2, max_participations=5)
    falling, rising = BandedInverse((1.0, -0.5)), BandedInverse((1.0, -0.3, -0.6))
    for strategy, exact in ((falling, True), (rising, False), (None, True)):
        noise = 1.0 if strategy else 0.0
        promise = Guarantee(participation=plan, strategy=strategy, clip_norm=1.0, noise_multiplier=noise)
        assert promise.exact is exact
    # The bound covers the worst of all patterns: for coefficients of one sign, coming as early as possible among them.
    matrix = rising.dense(10)
    early = float(np.sum(matrix[:, ::2].sum(axis=1) ** 2))
    bounded = Guarantee(participation=plan, strategy=rising, clip_norm=1.0, noise_multiplier=1.0)
    assert bounded.sensitivity_squared >= early


@pytest.mark.parametrize("inflation", [0.99, 0.0, -1.0, math.inf, math.nan])
def test_encoding_never_shortens(inflation: float) -> None:
    with pytest.raises(InputError, match="clip_inflation"):
        Guarantee(participation=COLAB, strategy=Tree(), clip_norm=1.0, noise_multiplier=1.0, clip_inflation=inflation)
