"""The report of a tuning: every trial, the choice, what may lie beyond it, and what tuning cost."""

import math
from typing import Any

import pytest

from tacit.planning.tuning import Choice, Setting, Trial, choose
from tacit.reports.drawing import render
from tacit.reports.figure import RED, Points, Rule
from tacit.reports.page import to_markdown
from tacit.reports.tune import both, page

RATES = (0.5, 1.0, 2.0)


def trials(failing: tuple[float, ...] = ()) -> list[Trial]:
    return [
        Trial(
            setting=Setting(server_learning_rate=rate, quantile=0.5),
            score=math.nan if rate in failing else 0.1 + rate / 100,
            clip_estimates=tuple(0.1 * (1 + at / 10) for at in range(8)),
            failure="diverged" if rate in failing else None,
        )
        for rate in RATES
    ]


def record(chosen: Choice | None, failing: tuple[float, ...] = ()) -> dict[str, Any]:
    rows = [
        {
            "trial": f"lr{rate:g}-q0.5-try1",
            "server_learning_rate": rate,
            "quantile": 0.5,
            "top1_accuracy": None if rate in failing else 0.1 + rate / 100,
            "cross_entropy": None if rate in failing else 5.0,
            "clip_estimate": 0.17,
            "zcdp": 0.5,
            "status": "FAILED: diverged" if rate in failing else "finished",
            "reason": "no update was finite" if rate in failing else None,
        }
        for rate in RATES
    ]
    settings = [
        {
            "server_learning_rate": rate,
            "quantile": 0.5,
            "trials": 1,
            "score": 0.1 + rate / 100,
            "chosen": chosen is not None and rate == chosen.setting.server_learning_rate,
            "interval": [0.09 + rate / 100, 0.1 + rate / 100, 0.11 + rate / 100],
            "against_chosen": None if rate == 2.0 else [-0.02, (rate - 2) / 100, (rate - 1) / 1000],
            "told_apart": None if rate == 2.0 else rate < 1,
            "covers": "clients",
            "clients": 40,
        }
        for rate in RATES
        if chosen is not None and rate not in failing
    ]
    tuning = {
        "settings": settings,
        "chosen_by": "accuracy",
        "trials": rows,
        "trial_report_goal": 6,
        "trial_noise_multiplier": 0.3,
        "chosen": None
        if chosen is None
        else {
            "server_learning_rate": chosen.setting.server_learning_rate,
            "quantile": chosen.setting.quantile,
            "score": chosen.score,
            "trials": chosen.trials,
            "clip_norm": chosen.clip_norm,
            "clip_norm_settled": False,
            "clip_norm_drift": 1.7,
            "at_the_edge": ["the largest server learning rate"],
        },
        "production": None,
        "privacy_of_tuning": {"words": "The 3 trials cost zCDP 1.5 together."},
    }
    tried = trials(failing)
    return {
        "tuning": tuning,
        "clip_estimates": [list(each.clip_estimates) for each in tried],
        "failures": [each.failure for each in tried],
    }


def test_the_page_says_what_was_chosen_and_what_it_cost() -> None:
    tried = trials()
    best = choose(tried, "accuracy")
    assert best is not None and best.setting.server_learning_rate == 2.0
    text = to_markdown(page(record(best)))
    for words in (
        "3 trials with 6 reports a round, noise multiplier 0.3.",
        "| lr2-q0.5-try1 | 2 | 0.5 | 12.00% | 5.000 | 0.17 | 0.5 | finished |",
        "Server learning rate 2, clip norm",
        "| 0.5 | 0.5 | 1 | 10.50% (9.50% to 11.50%) | -1.50 (-2.00 to -0.05) | told apart |",
        "| 1 | 0.5 | 1 | 11.00% (10.00% to 12.00%) | -1.00 (-2.00 to +0.00) | not told apart |",
        "| 2 | 0.5 | 1 | 12.00% (11.00% to 13.00%) |  | chosen |",
        "Of 2 other settings 1 is not told apart from it",
        "over 40 validation clients alone: another seed may say otherwise",
        "still moved by a factor of 1.7",
        "It is the largest server learning rate that was tried",
        "The 3 trials cost zCDP 1.5 together.",
    ):
        assert words in text


@pytest.mark.parametrize("failing", [(2.0,), RATES])
def test_what_failed_is_named_and_drawn_as_failed(failing: tuple[float, ...]) -> None:
    tried = trials(failing)
    best = choose(tried, "accuracy")
    assert (best is None) == (failing == RATES)
    drawn = both(tried, best, record(best, failing)["tuning"])
    (crosses,) = [mark for mark in drawn.panels[0].marks if isinstance(mark, Points) and mark.hue == RED]
    assert crosses.x == tuple(float(RATES.index(each)) for each in failing) and crosses.at_foot
    assert bool([mark for mark in drawn.panels[1].marks if isinstance(mark, Rule)]) == (best is not None)
    assert render(drawn, "png").startswith(b"\x89PNG")
    text = to_markdown(page(record(best, failing)))
    assert f"lr{failing[-1]:g}-q0.5-try1 failed: no update was finite" in text
    assert ("Nothing is chosen: every trial failed." in text) == (best is None)
