"""What a trial and the production run are, as recipes: the noise on the mean stays, the rest is as it was asked."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.training.tiny import MECHANISMS, tiny_recipe

from tacit.errors import InputError, TacitError
from tacit.mechanisms.tree import TreeStream
from tacit.planning.noise_forecast import PULL
from tacit.planning.trial_recipes import production_recipe, trial_base, trial_recipe
from tacit.planning.tuning import Choice, Setting, TrialName, TuningSettings
from tacit.privacy import Tree
from tacit.recipe import Recipe

SETTING = Setting(server_learning_rate=2.0, quantile=0.7)
CHOICE = Choice(setting=SETTING, score=0.1, trials=1, clip_norm=0.31)


def recipe(mechanism: str = "blt", **sections: Any) -> Recipe:
    limits = {"rounds": 40, "report_goal": 6, "min_separation": 3, **sections.pop("rounds", {})}
    return tiny_recipe(Path("cache"), privacy=sections.pop("privacy", MECHANISMS[mechanism]), rounds=limits, **sections)


@given(st.floats(1e-6, 1e6), st.floats(0.001, 0.999), st.integers(1, 99))
def test_a_folder_tells_its_trial(rate: float, quantile: float, number: int) -> None:
    name = TrialName(setting=Setting(server_learning_rate=rate, quantile=quantile), number=number)
    assert TrialName.from_folder(str(name)) == name


@pytest.mark.parametrize(
    "folder", ["notes", "lr1-q0.5", "lr1-q0.5-try0", "lrx-q0.5-try1", "lr1-q2-try1", ".lr1-q0.5-try1.draft"]
)
def test_other_folders_are_no_trials(folder: str) -> None:
    assert TrialName.from_folder(folder) is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_can_be_tuned_for(mechanism: str) -> None:
    wanted = recipe(mechanism, rounds={"report_goal": 12})  # enough for the noise of the counts
    trial = trial_recipe(trial_base(wanted, TuningSettings()), TrialName(setting=SETTING, number=1))
    assert trial.clipping is not None and trial.clipping.quantile == 0.7 and trial.server.learning_rate == 2.0
    assert trial.clipping.initial == trial.privacy.clip_norm == 0.02, "a tenth of the recipe's"
    kept = mechanism in ("none", "independent", "tree", "tree-variance-reduced")
    assert trial.privacy.mechanism_name == (wanted.privacy.mechanism_name if kept else "tree")
    trial.plan()
    made = production_recipe(wanted, CHOICE, 6000)
    assert made.clipping is None and made.privacy.clip_norm == 0.31 and made.server.learning_rate == 2.0
    assert made.privacy.mechanism == wanted.privacy.mechanism and made.rounds.report_goal == 6000
    assert made.privacy.noise_multiplier == (None if mechanism == "none" else 150.0)
    assert Recipe.from_toml(made.to_toml()) == made


@pytest.mark.parametrize("mechanism", ["independent", "blt"])
def test_a_trial_of_a_recipe_with_decryptors_has_the_noise_of_all_of_them(mechanism: str) -> None:
    """From a server, since no clip norm adapts beside decryptors; production has its decryptors back, each with its
    own.
    """
    kept, plain = (
        recipe(mechanism, aggregation={"kind": "secure", **decryptors}) for decryptors in ({"decryptors": 4}, {})
    )
    trial, other = (trial_base(each, TuningSettings()) for each in (kept, plain))
    assert trial.aggregation == other.aggregation == plain.aggregation
    assert trial.privacy.noise_multiplier == pytest.approx(2 * (other.privacy.noise_multiplier or 0))
    made, without = (production_recipe(each, CHOICE, 6000) for each in (kept, plain))
    assert made.privacy == without.privacy and made.aggregation == kept.aggregation


def test_a_trial_with_another_mechanism_has_its_worst_error_in_the_models() -> None:
    """Less what training takes back, from the matrices: what the model feels of the noise."""
    wanted = recipe("banded-toeplitz", server={"method": "momentum", "momentum": 0.5, "learning_rate": 30.0})
    trial, server = trial_base(wanted, TuningSettings(report_goal=3)), wanted.server.workload()
    pulled = np.linalg.inv(server.models(np.eye(40))) + PULL * 30 * wanted.privacy.clip_norm * np.eye(40, k=-1)
    column = np.zeros(40)
    column[:3] = 1.0, 0.5, 0.25
    banded = np.array([[column[i - j] if i >= j else 0.0 for j in range(40)] for i in range(40)])

    def worst(of: Recipe, added: np.ndarray) -> float:
        noise = of.guarantee().noise_multiplier / of.rounds.report_goal
        return float(noise * np.sqrt((np.linalg.solve(pulled, added) ** 2).sum(axis=1)).max())

    assert worst(wanted, np.linalg.inv(banded)) == pytest.approx(worst(trial, TreeStream(Tree()).dense(40)), rel=1e-6)


def test_for_a_server_that_divides_by_what_it_saw_it_has_the_worst_error_of_the_prefix_sums() -> None:
    wanted = recipe("banded-toeplitz", server={"method": "adam"})
    trial = trial_base(wanted, TuningSettings(report_goal=3))

    def worst(of: Recipe, strategy_matrix: np.ndarray) -> float:
        prefix = np.tril(np.ones((40, 40))) @ np.linalg.inv(strategy_matrix)
        noise = of.guarantee().noise_multiplier / of.rounds.report_goal
        return float(noise * np.sqrt((prefix**2).sum(axis=1)).max())

    column = np.zeros(40)
    column[:3] = 1.0, 0.5, 0.25
    banded = np.array([[column[i - j] if i >= j else 0.0 for j in range(40)] for i in range(40)])
    digits = max(bin(n).count("1") for n in range(1, 41))  # a tree's prefix sum has one node for each
    of_tree = trial.guarantee().noise_multiplier / trial.rounds.report_goal * math.sqrt(digits)
    assert math.isclose(worst(wanted, banded), of_tree, rel_tol=1e-6)


def test_the_noise_of_a_zcdp_is_computed() -> None:
    wanted = recipe(privacy={"mechanism": {"name": "blt-b400"}, "zcdp": 0.5})
    made = production_recipe(wanted, CHOICE, 600)
    assert made.privacy.zcdp is None
    assert math.isclose(made.guarantee().noise_multiplier, 100 * wanted.guarantee().noise_multiplier, rel_tol=1e-8)


def test_five_hundred_reports_become_6500() -> None:
    wanted = recipe(
        privacy={"mechanism": {"name": "tree"}, "noise_multiplier": 0.54},
        rounds={"rounds": 2000, "report_goal": 500, "min_separation": 300},
    )
    assert production_recipe(wanted, CHOICE, 6500).privacy.noise_multiplier == 7.02
    trial = trial_base(wanted, TuningSettings())
    assert trial.privacy.noise_multiplier == 0.54
    assert trial.guarantee().strategy == Tree(restarts=(128, 1152))


def test_what_only_served_the_adaptive_clip_norm_is_dropped() -> None:
    wanted = recipe(
        privacy={
            "mechanism": {"name": "tree", "restarts": [9]},
            "noise_multiplier": 0.3,
            "clip_norm": 0.05,
            "extrapolate_to": 50,
        },
        clipping={"initial": 0.05, "quantile": 0.6, "bit_stddev": 0.9},
    )
    trial = trial_base(wanted, TuningSettings(report_goal=12, initial_clip_norm=0.01))
    assert trial.guarantee().strategy == Tree(restarts=(9,)) and trial.privacy.extrapolate_to is None
    assert trial.clipping is not None and trial.clipping.initial == 0.01
    assert trial.clipping.bit_stddev == pytest.approx(1.8), "grown with the report goal"
    made = production_recipe(wanted, CHOICE, 6000)
    assert made.guarantee().strategy == Tree() and made.privacy.extrapolate_to is None and made.run.seed is None


def test_restarts_of_a_fixed_clip_norm_are_kept() -> None:
    assert production_recipe(recipe("tree"), CHOICE, 6000).guarantee().strategy == Tree(restarts=(5,))


def test_pairs_have_equal_seeds() -> None:
    base = trial_base(recipe(), TuningSettings())
    seeds = [trial_recipe(base, TrialName(setting=SETTING, number=n)).run.seed for n in (1, 2)]
    assert seeds == [3, 4]
    unseeded = recipe().model_copy(update={"run": recipe().run.model_copy(update={"seed": None})})
    secret = trial_base(unseeded, TuningSettings())
    assert trial_recipe(secret, TrialName(setting=SETTING, number=2)).run.seed is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 1}, "at least 2 rounds"),
        ({"rounds": 0}, "--rounds 0 must be at least 1"),
        ({"report_goal": 0}, "--report-goal 0 must be at least 1"),
        ({"min_separation": 0}, "--min-separation 0 must be at least 1"),
        ({"initial_clip_norm": 0.0}, "--initial-clip-norm 0 must be a number above 0"),
        ({"initial_clip_norm": math.nan}, "--initial-clip-norm nan must be"),
    ],
)
def test_trials_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trial_base(recipe(), TuningSettings(**changes))


def test_a_trial_whose_counts_cost_everything_is_refused() -> None:
    """The noise on a count is report goal / 20 clients; a noise multiplier of a tenth of the goal leaves nothing."""
    wanted = recipe("independent", privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 30.0})
    with pytest.raises(TacitError, match=r"clipping\.bit_stddev"):
        trial_base(wanted, TuningSettings())
