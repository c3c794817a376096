"""The launch rule, and the same from what devices released."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.intervals import UNKNOWN, Estimate
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, DECIDING, RULE, decide, gains_of
from tacit.evaluation.type_ab.measures import MEASURES, Tally
from tacit.evaluation.type_ab.paired_bootstrap import changes_of
from tacit.evaluation.type_ab.release import cautious_gains, cuts_of, mean_changes, queries_about

SURE, HARM, NOTHING = Estimate(2, 1, 3), Estimate(-2, -3, -1), Estimate(0.1, -1, 1)
one_each = st.tuples(*[st.sampled_from([SURE, HARM, NOTHING, UNKNOWN])] * len(DECIDING))


@given(one_each)
def test_one_loss_weighs_more_than_any_gain_and_what_is_unknown_may_be_one(found: tuple[Estimate, ...]) -> None:
    decision = decide(dict(zip(DECIDING, found, strict=True)))
    known = "improved" if SURE in found else "neutral"
    assert decision.judgement == ("worse" if HARM in found else "unknown" if UNKNOWN in found else known)
    assert [name in decision.better for name in DECIDING] == [each is SURE for each in found]
    assert [name in decision.unknown for name in DECIDING] == [each is UNKNOWN for each in found]


def test_a_change_without_ends_is_unknown() -> None:
    """As one of few users is where some resample of them has no value."""
    gains = dict.fromkeys(DECIDING, SURE) | {"accuracy": Estimate(1.0, -math.inf, math.inf)}
    assert decide(gains).judgement == "unknown" and decide(gains).unknown == ("accuracy",)


def test_errors_are_shared_out_over_the_measures() -> None:
    assert math.isclose(1 - CAUTIOUS, 0.05 / 4) and "98.75%" in RULE and len(DECIDING) == 4
    assert set(DECIDING) < set(MEASURES)


def typed(fewer: int, seed: int = 1) -> tuple[list[Tally], list[Tally]]:
    """Of every user's 100 words some are modified, on B so many fewer."""
    random = np.random.default_rng(seed)
    base = {"words": 100, "strips": 100, "accurate": 15, "picked": 2, "seconds": 170.0}
    modified = random.integers(20, 40, 60).tolist()
    a = [Tally(**base, modified=each) for each in modified]
    return a, [each._replace(modified=each.modified - fewer - (at % 3)) for at, each in enumerate(a)]


@pytest.mark.parametrize(("fewer", "judgement"), [(2, "improved"), (-1, "neutral"), (-4, "worse")])
def test_fewer_words_modified_are_a_gain(fewer: int, judgement: str) -> None:
    a, b = typed(fewer)
    changes = changes_of(a, b, cautious=CAUTIOUS)
    decision = decide(gains_of(changes))
    assert decision.judgement == judgement or (judgement == "neutral" and not decision.better)
    assert (changes["words modified ratio"].difference.value < 0) == (fewer > -1)


class TestWhatIsReleased:
    def test_everybody_is_in_one_cell_of_each_histogram(self) -> None:
        a, b = typed(2)
        a[0] = b[0] = Tally()
        queries = queries_about(a, b)
        assert [query.name for query in queries] == list(DECIDING)
        assert all(query.counts.sum() == 60 and query.counts[-1] == 1 for query in queries), "who typed nothing, too"

    def test_without_noise_it_is_the_mean_change_of_a_user_to_half_a_bin(self) -> None:
        a, b = typed(2)
        changes = mean_changes(exactly(queries_about(a, b)))
        truth = float(np.mean([(y.modified - x.modified) / 100 for x, y in zip(a, b, strict=True)]))
        assert changes["words modified ratio"].value == pytest.approx(truth, abs=0.0026)
        assert changes["words modified ratio"].low < truth < changes["words modified ratio"].high
        assert decide(cautious_gains(changes)).better == ("words modified ratio",)

    def test_no_change_is_no_gain(self) -> None:
        a, _ = typed(2)
        changes = mean_changes(exactly(queries_about(a, a)))
        assert set(changes.values()) == {(0, 0, 0)} and decide(cautious_gains(changes)).judgement == "neutral"

    def test_the_rule_s_intervals_are_wider(self) -> None:
        a, b = typed(2)
        changes = mean_changes(exactly(queries_about(a, b)))
        narrow, wide = changes["words modified ratio"], cautious_gains(changes)["words modified ratio"]
        ratio = (wide.high - wide.low) / (narrow.high - narrow.low)
        assert ratio == pytest.approx(2.4977 / 1.96, abs=1e-4)  # normal quantiles at 98.75% and 95%
        assert wide.value == -narrow.value

    def test_cuts_are_in_the_unit_of_the_measure(self) -> None:
        assert cuts_of(MEASURES["accuracy"]).cuts[-1] == 0.0975
        assert cuts_of(MEASURES["words a minute"]).cuts[-1] == 4.875


def test_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="at least two"):
        changes_of([], [])
