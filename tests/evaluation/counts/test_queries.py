"""What devices are asked: everybody once in every histogram, and answers that say what the arrays say."""

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.made_users import diverged, made_users

from tacit.errors import InputError
from tacit.evaluation.counts.answers import Answers, policies_of
from tacit.evaluation.counts.histograms import Buckets, mean_from, share_from
from tacit.evaluation.counts.queries import Queries
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.gate import GateRule, deployed_change, policy_change
from tacit.networks.metrics import ALL_TOKENS, TOP1

STRATEGIES = ("B=5, L=0.1", "B=5, L=1")


@pytest.fixture(scope="module")
def deltas() -> Deltas:
    return Deltas.from_outcomes(made_users(80, (0.03, -0.02)))


def asking(**changes: object) -> Queries:
    given = {"strategies": STRATEGIES, "tokens": Buckets((1000.0, 2500.0)), **changes}
    return Queries(**given)  # type: ignore[arg-type]


def test_everybody_asked_is_in_one_cell_of_every_histogram(deltas: Deltas) -> None:
    asked = asking(metrics=(TOP1, "cross_entropy"), slices=("tokens", "baseline", "joint"))
    questions = [*asked.about_strategies(deltas, 5), *asked.about_rules(deltas, 5)]
    assert len({each.name for each in questions}) == len(questions) == 1 + 2 * 2 * 3 + 2 * 3
    for each in questions:
        assert each.counts.sum() == 85 and each.counts[-1] == 5
        assert each.cells == asked.cells(each.name)


def test_answers_say_what_the_arrays_say(deltas: Deltas) -> None:
    asked = asking()
    halves = [deltas.of_clients(np.arange(40)), deltas.of_clients(np.arange(40, 80))]
    designed = exactly([*asked.about_strategies(halves[0], 1), *asked.about_rules(halves[0], 1)])
    policies = policies_of(asked, designed, harm_weight=1.0)
    judged = exactly([*asked.about_strategies(halves[1], 2), *asked.about_policies(policies, halves[1], 2)])
    answers = Answers(queries=asked, steps=(designed, judged), policies=policies)
    change = deltas.change[TOP1]
    for column, strategy in enumerate(STRATEGIES):
        whole = answers.change_of_all(TOP1, strategy)
        assert (whole.reporting, whole.devices, whole.silent) == (80, 83, 3)
        assert share_from(whole, 0.02).value == np.mean(change[:, column] >= 0.02)
        by = answers.change(TOP1, strategy, "tokens")
        for number in range(3):
            mine = asked.slice_of("tokens", deltas) == number
            assert by.slice(number).reporting == mine.sum()
            assert share_from(by.slice(number), 0.0).value == np.mean(change[mine, column] >= 0)
    assert answers.baseline.reporting == 80 and designed["baseline top1_accuracy"].reporting == 40
    for policy in policies:
        found = share_from(answers.policy(policy.name), 0.0).value
        assert found == np.mean(policy_change(policy, halves[1]) >= 0)
    gated = designed["change of top1_accuracy by tokens, B=5, L=1, gate 0.5"]
    own = deployed_change(halves[0], GateRule(strategy=1, level=0.5))
    assert share_from(gated, 0.01).value == np.mean(own >= 0.01)


def test_exact_and_counted_changes_point_the_same_way() -> None:
    """Nats saved are a gain in the array and in the histogram, and a diverged device is in the lowest bin."""
    reports = made_users(60, (0.03, -0.02))
    for at, report in enumerate(reports[:50]):
        before = report.test.baseline
        nats = before.sums["cross_entropy"] * (1 - 0.001 * at)
        fewer = before._replace(sums={**before.sums, "cross_entropy": nats})
        reports[at] = replace(report, test=replace(report.test, personalised=(fewer, fewer)))
    reports = [*reports[:50], *map(diverged, reports[50:])]
    deltas, asked = Deltas.from_outcomes(reports), asking(metrics=(TOP1, "cross_entropy"), levels=(1.0,))
    exact = deltas.change["cross_entropy"][:, 0]
    name = "change of cross_entropy by tokens, B=5, L=0.1"
    counted = exactly(asked.about_strategies(deltas, 0))[name]
    assert share_from(counted, 0.05).value == np.mean(exact >= 0.05) > 0.5
    assert counted.whole().counts[0, 0] == np.sum(exact < -1.0) == 10
    sound = exactly(asked.about_strategies(deltas.of_clients(np.arange(50)), 0))[name]
    assert mean_from(sound).value == pytest.approx(exact[:50].mean(), abs=0.025) and exact[:50].mean() > 0.1


def test_the_first_metric_sets_the_baseline_and_the_slices() -> None:
    """All tokens alone may be asked without a gate, at the price of one metric; with one, policies still go by TOP1."""
    reports = made_users(40, (0.03, -0.02))
    for at, report in enumerate(reports):
        before = report.test.baseline
        sums = {**before.sums, ALL_TOKENS: int(before.sums[TOP1]) // 2 + at}
        reports[at] = replace(report, test=replace(report.test, baseline=before._replace(ends=50, sums=sums)))
    deltas = Deltas.from_outcomes(reports)
    alone = asking(metrics=(ALL_TOKENS,), slices=("baseline",), levels=(1.0,))
    questions = {each.name: each for each in alone.about_strategies(deltas, 0)}
    assert [*questions] == [*alone.of_step(None)] and len(questions) == alone.sizes[0] == 1 + 2
    counted = Answers(queries=alone, steps=(exactly([*questions.values()]),), policies=())
    baseline = deltas.baseline[ALL_TOKENS]
    assert share_from(counted.baseline, 0.1).value == np.mean(baseline >= 0.1)
    for number in range(len(alone.baseline)):
        part = counted.change(ALL_TOKENS, STRATEGIES[0], "baseline").slice(number)
        assert part.reporting == np.sum(alone.baseline.of(baseline) == number)
    assert not np.array_equal(alone.baseline.of(baseline), alone.baseline.of(deltas.baseline[TOP1]))
    gated = asking(metrics=(ALL_TOKENS, TOP1))
    designed = exactly([*gated.about_strategies(deltas, 0), *gated.about_rules(deltas, 0)])
    by_top1 = asking()
    slow = exactly([*by_top1.about_strategies(deltas, 0), *by_top1.about_rules(deltas, 0)])
    assert policies_of(gated, designed, 2.0) == policies_of(by_top1, slow, 2.0)


def test_joint_slices_are_both_at_once(deltas: Deltas) -> None:
    asked = asking(slices=("tokens", "joint"))
    joint = exactly(asked.about_strategies(deltas, 0))["change of top1_accuracy by joint, B=5, L=1"]
    tokens, baseline = asked.slice_of("tokens", deltas), asked.slice_of("baseline", deltas)
    labels = asked.labels("joint")
    for number, label in enumerate(labels):
        t, b = divmod(number, len(asked.baseline))
        assert joint.slice(number).reporting == np.sum((tokens == t) & (baseline == b))
        assert label == f"{asked.tokens.labels()[t]}, {asked.baseline.labels()[b]}"


def test_without_a_slice_there_is_one_histogram_of_everybody(deltas: Deltas) -> None:
    asked = asking(slices=(), levels=(1.0,))
    steps = (exactly(asked.about_strategies(deltas, 0)),)
    answers = Answers(queries=asked, steps=steps, policies=())
    assert len(steps[0]) == 3
    assert answers.change_of_all(TOP1, STRATEGIES[0]).reporting == 80


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"metrics": (TOP1, "perplexity")}, "metric 'perplexity' is unknown"),
        ({"slices": ("country",)}, "slice 'country' is unknown"),
        ({"metrics": (ALL_TOKENS,)}, "top1_accuracy is what policies"),
        ({"metrics": ("cross_entropy", TOP1)}, "the first metric is the one whose baseline is asked, a share"),
        ({"metrics": ()}, "begin with top1_accuracy or all_token_accuracy"),
        ({"slices": ("baseline",)}, "goes by train tokens"),
        ({"strategies": ("B=5, L=0.1", "B=5, L=0.1")}, "two strategies have one name"),
        ({"baseline": Buckets((0.1, 15.0))}, "the cut 15 of baseline parts nobody"),
        ({"tokens": Buckets((-1.0, 1000.0))}, "the cut -1 of tokens parts nobody"),
        ({"tokens": Buckets((1e23,))}, "above 0 and below 1,000,000,000"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        asking(**changes)
