"""A training loss that is released: what a device can move, what it costs with the rest, and a run that has one."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.support.reports.publishable import slipped_into
from tests.support.training.tiny import tiny_cache, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.errors import AccountingError, InputError, RecipeError
from tacit.jobs.account.run import account_run
from tacit.jobs.train.job import resume_training, train
from tacit.privacy import Guarantee, Independent, Participation, Tree
from tacit.privacy.composition import Composition, ReleasedSequence, remaining_noise_multiplier
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.runs import Run
from tacit.statements.verify import verify
from tacit.training import ClientTraining, RoundPlan, ServerOptimizer
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.private_loss import PrivateLoss, first_noise, release
from tacit.training.report_encoding import bounded_sum

ONE = Hardware(workers=1)
STRATEGIES: tuple[Strategy, ...] = (Tree(restarts=(5,)), Independent(), PUBLISHED_BLT["b400"])

losses = st.lists(st.floats(-5, 50, width=32) | st.sampled_from([math.nan, math.inf, -math.inf]), max_size=12)


def in_words(values: list[float], bound: float) -> Fraction:
    """The slow reference of `bounded_sum`, exact."""
    total = Fraction(0)
    for value in values:
        clipped = bound if math.isnan(value) else min(max(value, 0.0), bound)
        total += Fraction(clipped - bound / 2)
    return total


# -- what a device sends -----------------------------------------------------------------------------------------------


@given(values=losses, bound=st.sampled_from([0.7, 3.0, 10.0]), seed=st.integers(0, 9))
def test_the_sum_is_exact_in_any_order_and_a_device_moves_it_by_half_the_bound(
    values: list[float], bound: float, seed: int
) -> None:
    got = bounded_sum(np.array(values, np.float32), bound)
    assert got is not None and got == float(in_words(values, bound))
    mixed = np.random.default_rng(seed).permutation(np.array(values, np.float32))
    assert bounded_sum(mixed, bound) == got
    for at in range(len(values)):
        without = bounded_sum(np.array(values[:at] + values[at + 1 :], np.float32), bound)
        assert without is not None and abs(got - without) <= bound / 2 * (1 + 1e-12)
    assert bounded_sum(np.array(values, np.float32), None) is None


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_golden_division_of_a_budget() -> None:
    """3-4-5: (3^-2 - 5^-2)^(-1/2) = 15/4."""
    assert remaining_noise_multiplier(3.0, 5.0) == pytest.approx(3.75, rel=1e-15)
    rest, of_losses = PrivateLoss(bound=8.0, stddev=0.2).guarantees(planned(Tree(), 3.0), 100)
    assert (of_losses.clip_norm, of_losses.noise_multiplier) == (4.0, pytest.approx(5.0))  # 0.2 * 100 / 4
    assert rest.noise_multiplier == pytest.approx(3.75) and of_losses.seed_stddev == pytest.approx(20.0)


def planned(strategy: Strategy, noise: float) -> Guarantee:
    return Guarantee(
        participation=Participation.worst_case(20, 4), strategy=strategy, clip_norm=1.0, noise_multiplier=noise
    )


@given(
    strategy=st.sampled_from(STRATEGIES),
    noise=st.floats(0.1, 4.0),
    goal=st.integers(50, 7000),
    bound=st.floats(0.5, 20.0),
    clipped=st.booleans(),
)
def test_all_that_is_released_costs_what_was_planned(
    strategy: Strategy, noise: float, goal: int, bound: float, clipped: bool
) -> None:
    """Updates, losses and, where the clip norm is adapted, counts: together one sequence of the whole budget."""
    whole = planned(strategy, noise)
    adapts = clipped and not isinstance(strategy, type(PUBLISHED_BLT["b400"]))
    plan = RoundPlan(
        guarantee=whole,
        report_goal=goal,
        client=ClientTraining(),
        server=ServerOptimizer(),
        clipping=AdaptiveClipping(initial=0.1) if adapts else None,
        loss=PrivateLoss(bound=bound),
    )
    sequences = {"model update": plan.updates, **plan.beside}
    assert list(sequences) == ["model update", *(["clip estimate"] if adapts else []), "training loss"]
    together = Composition(tuple(ReleasedSequence(what=what, guarantee=each) for what, each in sequences.items()))
    assert together.zcdp == pytest.approx(whole.zcdp, rel=1e-12)
    assert plan.updates.noise_multiplier > noise


def test_the_noise_has_the_declared_scale_and_no_other() -> None:
    settings, goal = PrivateLoss(bound=4.0, stddev=0.5), 10
    whole = Guarantee(
        participation=Participation.worst_case(300, 1), strategy=Independent(), clip_norm=1.0, noise_multiplier=0.1
    )
    _, guarantee = settings.guarantees(whole, goal)
    noise, means = first_noise(guarantee), []
    for round in range(300):
        mean, noise, row = release(
            3.0,
            noise,
            settings=settings,
            guarantee=guarantee,
            report_goal=goal,
            reports=goal,
            dropped=0,
            round=round,
            key=b"k" * 16,
        )
        means.append(mean)
    assert (row.what, row.round, row.clip_norm, row.noise_multiplier) == ("training loss", 299, 2.0, 2.5)
    drawn = (np.array(means) - (2.0 + 3.0 / goal)) / 0.5
    assert kstest(drawn, "norm").pvalue > 0.01
    assert kstest(drawn / 1.5, "norm").pvalue < 1e-3


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_the_key(tmp_path: Path) -> None:
    for wrong in ({"bound": 0.0}, {"stddev": -1.0}, {"bound": math.inf}):
        with pytest.raises(InputError, match=r"training_loss\.(bound|stddev)=.* must be a positive number of nats"):
            PrivateLoss(**wrong)
    with pytest.raises(AccountingError, match="nothing is left for the others"):
        PrivateLoss(bound=10.0, stddev=0.001).guarantees(planned(Tree(), 3.0), 100)
    with pytest.raises(RecipeError, match=r"training_loss\.stddev \(left out: training_loss\.bound / 20\): a sequence"):
        tiny_recipe(tmp_path, training_loss={"stddev": 0.001})


# -- a run -------------------------------------------------------------------------------------------------------------


def test_a_run_releases_it_with_a_guarantee_and_resumes_to_the_same_bits(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "cache")
    recipe = tiny_recipe(
        cache.path,
        privacy={"mechanism": {"name": "tree", "restarts": [2, 6]}, "noise_multiplier": 0.3},
        clipping={"initial": 0.2},
        training_loss={"bound": 8.0},
    )
    whole = train(recipe, tmp_path / "whole", hardware=ONE)
    train(recipe, tmp_path / "cut", hardware=ONE, until=4)
    resume_training(tmp_path / "cut", hardware=ONE)
    assert what_happened(tmp_path / "cut") == what_happened(tmp_path / "whole")
    account = account_run(whole.run)
    assert account.realised is not None and account.planned.zcdp == pytest.approx(recipe.guarantee().zcdp)
    assert [each.what for each in account.realised.sequences] == ["model update", "clip estimate", "training loss"]
    assert whole.report is not None
    record = json.loads(whole.report.json.read_text())
    with Run.open(tmp_path / "whole") as run:
        kept = [row.measures for row in run.steps()]
    released, exact = ([row[name] for row in kept] for name in ("private_loss", "loss"))
    assert record["per_round"]["private_loss"] == released != exact
    assert not slipped_into(whole.report.html.parent)
    assert (whole.report.html.parent / "training_loss.png").is_file()
    statement = json.loads((whole.report.html.parent / "statement.json").read_text())
    assert all(line.holds for line in verify(statement))
    assert "training loss: a client's summand has norm at most 4" in json.dumps(statement["items"])
