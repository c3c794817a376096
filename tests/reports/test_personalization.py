"""The report of a personalization: the question in its title is answered first, by its own numbers."""

import math
from typing import Any

import pytest

from tacit.networks.metrics import TOP1
from tacit.reports.blocks import Block, Paragraph
from tacit.reports.personalize import _answer


def found(mean: list[float] | None, losing: list[float] | None = None) -> dict[str, Any]:
    return {TOP1: {"mean": mean, "losing": {} if losing is None else {"0.02": losing}}}


def said(blocks: list[Block]) -> str:
    (block,) = blocks
    assert isinstance(block, Paragraph)
    return block.text


@pytest.mark.parametrize(
    ("mean", "word"),
    [
        ([0.012, 0.006, 0.018], "Yes: "),
        ([-0.01, -0.02, 0.0], "No: "),
        ([0.01, -0.001, 0.02], "These users cannot tell: "),
    ],
)
def test_the_interval_decides(mean: list[float], word: str) -> None:
    text = said(_answer(TOP1, {"B=5": found(mean, [0.03, 0.02, 0.04])}))
    assert text.startswith(f"{word}B=5 changes ") and text.endswith("3.0% (2.0% to 4.0%) of them lose more than 0.02.")
    assert "only one" not in text


def test_of_several_ways_the_best_is_named_as_one_of_many() -> None:
    ways = {"one": found([0.001, 0.0, 0.002]), "two": found([0.02, 0.01, 0.03]), "three": found([math.nan] * 3)}
    text = said(_answer(TOP1, ways))
    assert text.startswith("Yes: the best of 2 ways, two, changes ")
    assert "+0.0200 (+0.0100 to +0.0300) in the mean over users, looked at as if it were the only one." in text


def test_where_no_mean_is_known_nothing_is_said() -> None:
    assert _answer(TOP1, {"one": found(None), "two": found([math.nan] * 3)}) == []
