"""The plan under sliders: the accountant's numbers, fast enough to be dragged, and a recipe to take away."""

import math
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.view.looking import Parsed, client

from tacit.errors import InputError
from tacit.planning.noise_forecast import STEP, ratio_of_sums, share_kept
from tacit.privacy import Guarantee
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import epsilon, zcdp_for_epsilon
from tacit.recipe import Recipe
from tacit.view.closed_forms import SLIDERS, Asked, mechanisms, outcomes, over_epsilon, sentence

WHOLE = {each.name for each in SLIDERS if each.whole}


@st.composite
def plans(draw: st.DrawFn, rounds: int = 300) -> Asked:
    return Asked(
        population=draw(st.integers(10, 10**8)),
        rounds=draw(st.integers(1, rounds)),
        report_goal=draw(st.integers(1, 10_000)),
        min_separation=draw(st.integers(1, 400)),
        epsilon=draw(st.floats(0.05, 100)),
        parameters=draw(st.integers(1_000, 10**7)),
    )


@given(asked=plans())
def test_the_noise_is_that_which_the_accountant_asks_for(asked: Asked) -> None:
    for found in outcomes(asked):
        strategy = mechanisms(asked.min_separation)[found.mechanism]
        rho = zcdp_for_epsilon(asked.epsilon, asked.delta)
        slow = Guarantee.for_zcdp(rho, participation=asked.participation, strategy=strategy, clip_norm=1.0)
        assert found.noise_multiplier == pytest.approx(slow.noise_multiplier, rel=1e-9)
        assert epsilon(slow.zcdp, asked.delta) == pytest.approx(asked.epsilon, rel=1e-6)
        assert found.least <= found.share <= found.most


@given(asked=plans(rounds=40))
def test_the_forecast_is_that_of_the_matrix(asked: Asked) -> None:
    """The error of prefix sums from the whole matrix, where it is small enough to be written down."""
    for found in outcomes(asked):
        if found.mechanism == "tree":  # whose sums are made online, and not of all nodes by their inverse
            continue
        strategy = mechanisms(asked.min_separation)[found.mechanism]
        sums = np.tril(np.ones((asked.rounds, asked.rounds))) @ np.linalg.pinv(strategy.dense(asked.rounds))
        rms = math.sqrt(float((sums**2).sum()) / asked.rounds)
        ratio = ratio_of_sums(STEP * rms * found.noise_multiplier / asked.report_goal, parameters=asked.parameters)
        assert found.share == pytest.approx(share_kept(ratio), rel=1e-6, abs=1e-12)


@given(asked=plans(), more=st.floats(1.01, 3.0))
def test_more_budget_never_keeps_less(asked: Asked, more: float) -> None:
    richer = replace(asked, epsilon=asked.epsilon * more)
    for before, after in zip(
        sorted(outcomes(asked), key=lambda each: each.mechanism),
        sorted(outcomes(richer), key=lambda each: each.mechanism),
        strict=True,
    ):
        assert after.share >= before.share - 1e-12 and after.noise_multiplier <= before.noise_multiplier


def test_a_slider_is_answered_in_time(tmp_path: Path) -> None:
    """50 ms at 10,000 rounds: the least of some, since others use the processors."""
    asked = client(tmp_path)
    asked.get("/plan")
    taken = []
    for separation in range(300, 320):
        begun = time.perf_counter()
        plan = f"rounds=10000&min_separation={separation}&population=1000000&epsilon=7.{separation}"
        answer = asked.get(f"/plan?part=1&{plan}")
        taken.append(time.perf_counter() - begun)
        assert answer.status_code == 200
    assert min(taken) < 0.05, taken


@given(name=st.sampled_from([each.name for each in SLIDERS]), text=st.text(max_size=30))
def test_whatever_is_given_is_answered_in_a_sentence(name: str, text: str) -> None:
    try:
        asked = Asked.from_query({name: text})
    except InputError as error:
        assert "give" in str(error)
    else:
        assert sentence(asked) and over_epsilon(asked).alt


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "1e400", "1.5", "ten", "1_0x", "9" * 400])
def test_what_is_no_number_in_range_is_refused_beside_the_form(text: str, tmp_path: Path) -> None:
    answer = client(tmp_path).get("/plan", params={"rounds": text})
    assert answer.status_code == 422 and "rounds is" in Parsed(answer.text).text
    assert client(tmp_path).get("/plan/recipe", params={"rounds": text}).status_code == 422


def test_what_no_population_can_fill_is_said(tmp_path: Path) -> None:
    page = client(tmp_path).get("/plan?population=100&report_goal=50&min_separation=10")
    said = Parsed(page.text).text
    assert "need 500 clients, and there are 100" in said and "at most 2" in said and "Write this recipe" not in said
    assert client(tmp_path).get("/plan/recipe?population=100&report_goal=50&min_separation=10").status_code == 422


def test_the_recipe_is_one(tmp_path: Path) -> None:
    plan = "population=50000&rounds=150&report_goal=100&min_separation=40&epsilon=4"
    answer = client(tmp_path).get(f"/plan/recipe?{plan}")
    assert answer.headers["content-disposition"].startswith("attachment")
    recipe = Recipe.model_validate(tomllib.loads(answer.text), context=None)
    assert (recipe.rounds.rounds, recipe.rounds.report_goal, recipe.rounds.min_separation) == (150, 100, 40)
    assert recipe.privacy.epsilon == 4 and recipe.privacy.delta == default_delta(50_000)
    assert not list(tmp_path.iterdir()), "nothing is written"
