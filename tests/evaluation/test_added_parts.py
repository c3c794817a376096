"""What a part is said to add: better and worse in each measure apart, by its interval alone."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.evaluation.added_parts import arms_of
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.verdict import NATS, SHOWN, sides_of, verdict_of
from tacit.networks.metrics import TOP1
from tacit.reports.mixture import VERDICTS, tables
from tacit.text.vocabulary import BOS, EOS, SPECIALS

V = SPECIALS + 6
INTERVALS = {1: (0.02, 0.01, 0.03), 0: (0.01, -0.01, 0.03), -1: (-0.02, -0.03, -0.01)}
FEWER_NATS = {1: (-0.2, -0.3, -0.1), 0: (0.1, -0.1, 0.3), -1: (0.2, 0.1, 0.3)}


class Always:
    """A reader with the same probabilities after every token."""

    def __init__(self, *shares: float) -> None:
        self.scores = np.log(np.array([1e-9] * SPECIALS + list(shares)))

    def begin(self) -> Any:
        return None

    def step(self, state: Any, token: int) -> tuple[Any, Any]:
        return None, self.scores


def clients_of(words: list[int], many: int = 40) -> HeldOut:
    """Clients who type these words, each beginning elsewhere among them."""
    rows = [[BOS, *np.roll(words, at)[:5], EOS] for at in range(many)]
    return HeldOut(sentences=np.array(rows, np.int32)[:, None, :])


def change(top1: int, top3: int, nats: int) -> dict[str, tuple[float, float, float]]:
    return {TOP1: INTERVALS[top1], "top3_accuracy": INTERVALS[top3], NATS: FEWER_NATS[nats]}


def shown(*arms: dict[str, Any]) -> str:
    record = {"network_weight": 0.5, "simulation_only": {"clients": 40, "words": 200, "arms": list(arms)}}
    return str(tables(record))


@pytest.mark.parametrize(("top1", "top3", "nats"), list(itertools.product((1, 0, -1), repeat=3)))
def test_every_difference_is_named_with_its_direction(top1: int, top3: int, nats: int) -> None:
    """A part that helps needs no sentence; of every other all that its intervals tell stands beside its verdict."""
    found = change(top1, top3, nats)
    assert tuple(sides_of(found)[name] for name in SHOWN) == (top1, top3, nats)
    verdict = verdict_of(found)
    assert (verdict == "not shown") == (top1 == nats == 0) and (verdict == "helps") == (top1 == 1 and nats >= 0)
    assert (verdict == "hurts") == (top1 == -1)
    said = shown({"name": "+ part", "values": dict.fromkeys(SHOWN, 0.1), "change": found, "verdict": verdict})
    if verdict == "helps":
        return
    sentence = f"+ part: {VERDICTS[verdict]}."
    assert sentence in said
    told = said[said.index(sentence) :]
    measures = {"top-1": top1, "top-3": top3, "nats": nats}
    for side, words in {1: "Better in", -1: "Worse in", 0: "Not told apart in"}.items():
        there = [name for name, each in measures.items() if each == side]
        part = told.split(words)[1].split(". ")[0] if words in told else ""
        assert [name for name in measures if f"{name} " in part] == there
    assert ("-2.00 (-3.00 to -1.00) points" in told) == (-1 in (top1, top3))


@given(st.tuples(*[st.tuples(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5))] * 3))
def test_a_side_is_where_the_whole_interval_is(drawn: tuple[tuple[float, float, float], ...]) -> None:
    found = {name: (value, value - low, value + high) for name, (value, low, high) in zip(SHOWN, drawn, strict=True)}
    for name, side in sides_of(found).items():
        _, low, high = found[name]
        above, below = low > 0, high < 0
        better, worse = (below, above) if name == NATS else (above, below)
        assert side == (1 if better else -1 if worse else 0)


def test_more_first_suggestions_at_worse_probabilities_are_both_told() -> None:
    """What was said to help: the second puts first what is typed most, and gives the rest hardly any probability."""
    words = [SPECIALS, SPECIALS, SPECIALS + 1, SPECIALS + 2, SPECIALS, SPECIALS + 3]
    before = Always(0.24, 0.26, 0.2, 0.15, 0.1, 0.05)
    after = Always(0.9, 0.0998, 1e-4, 1e-5, 1e-6, 1e-7)
    clients = clients_of(words)
    readers = {"before": before, "+ part": after}
    first, second = arms_of({name: evaluate_reader(each, clients) for name, each in readers.items()})
    assert second.verdict == "first suggestion only"
    assert second.values[TOP1] > first.values[TOP1] and second.values[NATS] > first.values[NATS]
    assert second.change is not None
    low, high = second.change[TOP1][1:]
    assert 0 < low <= high
    assert second.change[NATS][1] > 0
