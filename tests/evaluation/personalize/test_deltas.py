"""What personalization changed, from the devices' reports: against a slow loop, and the clients that have none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.made_users import diverged, made_users
from tests.support.keyboard.counting import counted
from tests.support.keyboard.counting import nats as nats_of

from tacit.errors import InputError
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.summary import summarise
from tacit.networks.metrics import TOP1


def test_arrays_say_what_the_reports_say() -> None:
    reports = made_users(40)
    deltas = Deltas.from_outcomes(reports)
    for row, report in enumerate(reports):
        words = report.test.baseline.predicted
        for column, own in enumerate(report.test.personalised):
            assert deltas.change[TOP1][row, column] == (own.sums[TOP1] - report.test.baseline.sums[TOP1]) / words
            pair = report.test.paired[column]
            assert (
                deltas.test.gained[row, column] - deltas.test.lost[row, column]
                == own.sums[TOP1] - report.test.baseline.sums[TOP1]
            )
            assert deltas.test.gained[row, column] == pair.only_personalised
        assert deltas.baseline[TOP1][row] == report.test.baseline.value(TOP1)
        assert deltas.tokens[row] == report.train_tokens
    some = deltas.of_clients(np.array([3, 5]))
    assert some.clients.tolist() == [3, 5] and np.array_equal(
        some.change["top3_accuracy"], deltas.change["top3_accuracy"][[3, 5]]
    )
    assert some.gate is not None and deltas.gate is not None
    assert np.array_equal(some.gate.lost, deltas.gate.lost[[3, 5]])


def test_a_client_without_a_known_word_is_counted_and_not_judged() -> None:
    reports = made_users(5)
    mute = replace(reports[2], test=replace(reports[2].test, baseline=counted(words=9, oov=9)))
    deltas = Deltas.from_outcomes([*reports[:2], mute, *reports[3:]])
    assert (len(deltas), deltas.unmeasured) == (4, 1)
    with pytest.raises(InputError, match="none of the 1 clients"):
        Deltas.from_outcomes([mute])


def test_half_a_gate_is_refused() -> None:
    with pytest.raises(InputError, match="2 of 4 clients have a gate part"):
        Deltas.from_outcomes([*made_users(2), *made_users(2, gate=False)])
    assert Deltas.from_outcomes(made_users(3, gate=False)).gate is None


def test_a_diverged_model_is_a_loss_and_no_crash() -> None:
    reports = made_users(30)
    deltas = Deltas.from_outcomes([diverged(reports[0]), *reports[1:]])
    accuracy = summarise(deltas.change[TOP1][:, 0], deltas.baseline[TOP1])
    assert accuracy.diverged == 0 and accuracy.clients == 30
    assert deltas.change[TOP1][0, 0] == -deltas.baseline[TOP1][0]
    nats = summarise(deltas.change["cross_entropy"][:, 0], deltas.baseline["cross_entropy"])
    assert nats.diverged == 1 and np.isfinite(nats.mean.value)
    assert nats.losing[0.0].value == pytest.approx(1 / 30)
    assert nats.quantiles[0.1].low == -np.inf and not np.isnan(nats.quantiles[0.9].value)


@pytest.mark.parametrize("sound", [0, 1])
def test_where_next_to_all_diverged_the_mean_is_unknown_and_the_shares_are_not(sound: int) -> None:
    reports = made_users(12)
    deltas = Deltas.from_outcomes([*reports[:sound], *map(diverged, reports[sound:])])
    nats = summarise(deltas.change["cross_entropy"][:, 0], deltas.baseline["cross_entropy"])
    assert nats.diverged == 12 - sound and np.isnan([nats.mean.value, nats.relative.value]).all()
    assert (nats.mean.low, nats.relative.high) == (-np.inf, np.inf)
    assert nats.losing[0.0].value >= (12 - sound) / 12 and nats.quantiles[0.5].value == -np.inf


def test_what_nobody_had_right_before_has_no_relative_change() -> None:
    found = summarise(np.array([0.0, 0.02, 0.04]), np.zeros(3))
    assert found.mean.value == pytest.approx(0.02) and np.isnan(found.relative.value)


def test_a_gain_is_positive_of_every_metric() -> None:
    report = made_users(1)[0]
    before = report.test.baseline
    fewer_nats = before._replace(sums={**before.sums, "cross_entropy": nats_of(before) - 10.0})
    better = replace(report, test=replace(report.test, personalised=(fewer_nats,) * 3))
    change = Deltas.from_outcomes([better]).change["cross_entropy"][0, 0]
    assert change == pytest.approx(10.0 / report.test.baseline.predicted)


def test_a_summary_counts_people() -> None:
    change = np.array([-0.04, -0.02, 0.0, 0.01, 0.02, 0.05])
    found = summarise(change, np.full(6, 0.2))
    assert found.gaining[0.02].value == pytest.approx(2 / 6)
    assert found.gaining[0.0].value == pytest.approx(3 / 6)
    assert found.losing[0.02].value == pytest.approx(1 / 6)
    assert found.losing[0.0].value == pytest.approx(2 / 6)
    assert found.relative.value == pytest.approx(change.mean() / 0.2)
    assert found.mean.low < found.mean.value < found.mean.high
    json.dumps(found.as_row())
