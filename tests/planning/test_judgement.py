"""One judgement: over what is free, and never WORTH IT of what gains nothing, or of what nothing was measured for."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.planning.judgement import (
    COUNTED_FAR,
    COUNTED_NEAR,
    OF_PUBLIC,
    SEEN_FAR,
    SEEN_NEAR,
    FreeModel,
    Gains,
    Top1Over,
    Verdict,
    from_public,
    from_random,
    judged,
    judged_counts,
    not_forecast,
    over_free,
    said_points,
    share_to_gain,
)

REMEMBERED = Path(__file__).parents[2] / "benchmarks" / "utility" / "remembered"
SHARES = st.floats(0.0, 1.0)
TOP1 = st.floats(0.001, 0.9)
MIXED = {"public n-gram": 0.44, "public network": 0.56}


def free_of(top1: float, network: float | None) -> FreeModel:
    return FreeModel(weights=MIXED, text="public text: manuals", top1=top1, network=network, sentences=3_200)


@given(kept=SHARES, network=TOP1, more=st.floats(1.0, 2.0), public=st.booleans())
def test_worth_it_is_said_of_what_gains_and_of_nothing_else(
    kept: float, network: float, more: float, public: bool
) -> None:
    """In accuracies, which is the slow way: what it will have, less what the best free model has."""
    free = free_of(network * more, network)
    start = from_public(kept) if public else from_random(kept)
    found = judged(start, free)
    least, _, most = (network * (1 + gain) - free.top1 for gain in start)
    if found.verdict == "worth it":
        assert least >= -1e-9
    if found.verdict == "no gain expected":
        assert most <= 1e-9
    if found.verdict == "may not pay off":
        assert least < 1e-9 < most + 2e-9
    assert found.verdict in ("worth it", "may not pay off", "no gain expected")
    assert found.over_free == pytest.approx((least, network * (1 + start.unlike) - free.top1, most))
    assert found.says().startswith(f"{found.verdict.upper()}. Expected top-1: ")
    assert f"the best free model ({free.top1:.1%})." in found.expected
    assert "public n-gram 44%, public network 56% (weights fitted on held-out public text)" in found.says()
    assert "made of manuals. Its top-1 is" in found.says() and "3,200 held-out public sentences" in found.says()
    assert bool(found.way_out) == (found.verdict != "worth it")


@given(kept=SHARES, public=st.booleans(), clients=st.integers(1, 10**7), epsilon=st.floats(0.01, 100.0))
def test_where_nothing_was_measured_it_is_not_compared(kept: float, public: bool, clients: int, epsilon: float) -> None:
    start = from_public(kept) if public else from_random(kept)
    for found in (judged(start, None), judged(None, None), judged_counts(clients, epsilon, None)):
        assert found.verdict == "not compared" and found.over_free is None and "--public CACHE" in found.way_out
    assert judged(start, None, hopeless=True).verdict == "too noisy"


@given(st.floats(0.01, 1.0), st.floats(1.0, 3.0))
def test_the_share_to_gain_is_where_random_weights_begin_to(kept: float, more: float) -> None:
    free = free_of(0.1 * more, 0.1)
    over = over_free(from_random(kept), free)
    assert (over.low > 1e-12) <= (kept > share_to_gain(free) - 1e-9)
    assert (over.low < -1e-12) <= (kept < share_to_gain(free) + 1e-9)
    assert share_to_gain(None) == OF_PUBLIC == share_to_gain(free_of(0.1, None))


def test_counts_are_judged_by_who_gained() -> None:
    free = free_of(0.2, None)
    found = {clients: judged_counts(clients, 1.0, free) for clients in (499, 500, 6_130, 6_131)}
    assert [each.verdict for each in found.values()] == ["no gain expected", *2 * ["may not pay off"], "worth it"]
    assert "0.04 points below to 3.5 points above the best free model (20.0%)" in found[500].says()
    assert "0.09 to 3.7 points above the best free model" in found[6_131].says()
    assert judged_counts(100, 8.0, free).verdict == "may not pay off"


def test_what_counts_are_said_to_gain_is_the_least_and_the_most_that_was_measured() -> None:
    """Every arm of counts alone at an epsilon, of docs/results/people.md; in points of top-1."""
    measured: dict[Top1Over, list[float]] = {SEEN_FAR: [], SEEN_NEAR: []}
    for line in (REMEMBERED / "people.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        people, arm = re.fullmatch(r".* (\d+)", row["experiment"]), re.fullmatch(r"counts (\d+)", row["arm"])
        if people is None or arm is None or "top1_less_free" not in row["facts"]:
            continue
        many = int(people[1]) * int(arm[1])
        assert many >= COUNTED_FAR
        measured[SEEN_FAR if many < COUNTED_NEAR else SEEN_NEAR].append(row["facts"]["top1_less_free"][0])
    for said, values in measured.items():
        assert len(values) > 9 and min(values) == pytest.approx(said.low, abs=5e-5)
        assert max(values) == pytest.approx(said.high, abs=5e-5) and said.high == said.best


def test_gains_without_a_network_are_over_the_n_gram() -> None:
    assert over_free(Gains(0.0, 0.1, 0.2), free_of(0.2, None)) == pytest.approx((0.0, 0.02, 0.04))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.003, 0.014, "0.3 points below to 1.4 points above"),
        (-0.057, -0.045, "5.7 to 4.5 points below"),
        (0.0009, 0.0372, "0.09 to 3.7 points above"),
        (0.0, 0.014, "0 to 1.4 points above"),
        (-0.014, 0.0, "1.4 points below to level with"),
        (-0.014, -0.00001, "1.4 to 0 points below"),
        (-0.014, -0.014, "1.4 points below"),
        (0.00001, -0.00001, "level with"),
    ],
)
def test_a_range_is_said_in_points(low: float, high: float, said: str) -> None:
    assert said_points(Top1Over(low, high, high)) == said


def test_every_verdict_is_given_somewhere_and_json_has_its_numbers() -> None:
    free = free_of(0.15, 0.14)
    found = [
        judged(Gains(0.2, 0.3, 0.4), free),
        judged(Gains(-0.1, 0.1, 0.4), free),
        judged(Gains(-0.3, -0.2, -0.1), free),
        judged(None, free, hopeless=True),
        judged(None, None),
        not_forecast("it was never tried", free),
    ]
    assert [each.verdict for each in found] == list(get_args(Verdict))
    assert found[1].in_brief() == "MAY NOT PAY OFF (2.4 points below to 0.4 points above, at best 4.6 points above)"
    assert found[4].in_brief() == "NOT COMPARED"
    record = json.loads(json.dumps(found[1].to_record()))
    assert record["top1_over_free"] == pytest.approx({"low": -0.024, "high": 0.004, "best": 0.046})
    assert record["free"]["weights"] == MIXED and record["free"]["top1"] == 0.15
    assert all(len(sentence.split()) <= 25 for each in found for sentence in each.says().split(". "))


def test_a_part_alone_has_no_weights() -> None:
    alone = FreeModel(weights={"public n-gram": 1.0}, text="public text: x", top1=0.1, network=None, sentences=9)
    assert alone.says().startswith("The best free model: public n-gram. It is made of x.")
