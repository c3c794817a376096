"""One device's report of histograms: what lies where, what is refused, and that a sum of them says what was counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.device.count import randomized
from tacit.errors import InputError
from tacit.federation.report_layout import ReportLayout
from tacit.randomizers import SubsetSelection

SIZES = st.lists(st.integers(2, 9), min_size=1, max_size=5).map(tuple)


@given(sizes=SIZES, devices=st.integers(1, 20), seed=st.integers(0, 99))
def test_a_sum_of_reports_counts_who_is_in_which_cell(sizes: tuple[int, ...], devices: int, seed: int) -> None:
    layout, draw = ReportLayout(sizes=sizes), np.random.default_rng(seed)
    chosen = np.stack([draw.integers(0, size, devices) for size in sizes], axis=1)
    reports = [layout.counted(each) for each in chosen]
    for each in reports:
        layout.check(each)
        assert np.square(each.astype(float)).sum() == len(sizes)  # its norm is sqrt(H), exactly
    slow = np.concatenate([np.bincount(chosen[:, at], minlength=size) for at, size in enumerate(sizes)])
    counts, answered = layout.opened(sum(reports, np.zeros(layout.length, np.uint32)), devices)
    assert np.array_equal(counts, slow) and (answered == devices).all()


@settings(max_examples=25)
@given(sizes=SIZES, seed=st.integers(0, 999), epsilon=st.floats(0.1, 8))
def test_a_randomised_report_is_one_that_is_taken(sizes: tuple[int, ...], seed: int, epsilon: float) -> None:
    layout, draw = ReportLayout(sizes=sizes, local_epsilon=epsilon), np.random.default_rng(seed)
    report = randomized(layout, [int(draw.integers(0, size)) for size in sizes], draw)
    layout.check(report)
    counts, answered = layout.opened(report, 1)
    assert answered.sum() == 1
    number = int(np.argmax(answered))
    assert counts.sum() == SubsetSelection(domain=sizes[number], epsilon=epsilon).size


def test_randomised_reports_are_unbiased_and_which_is_answered_says_nothing() -> None:
    layout, draw = ReportLayout(sizes=(4, 6), local_epsilon=2.0), np.random.default_rng(0)
    total = np.zeros(layout.length, np.int64)
    for _ in range(4000):
        total += randomized(layout, (3, 0), draw)
    counts, answered = layout.opened(total, 4000)
    assert chisquare(answered).pvalue > 0.01
    for own, size, cell, users in ((counts[:4], 4, 3, answered[0]), (counts[4:], 6, 0, answered[1])):
        device = SubsetSelection(domain=size, epsilon=2.0)
        truth = np.where(np.arange(size) == cell, users, 0)
        spread = [np.sqrt(device.variance(int(users), float(each))) for each in truth]
        assert np.abs((device.estimate(own, int(users)) - truth) / spread).max() < 4
        wrong = SubsetSelection(domain=size, epsilon=1.0).estimate(own, int(users))
        assert np.abs((wrong - truth) / spread).max() > 4


@pytest.mark.parametrize(
    ("layout", "changed", "said"),
    [
        (ReportLayout(sizes=(3, 4)), {0: 2}, "above 1"),
        (ReportLayout(sizes=(3, 4)), {4: 2**32 - 1}, "above 1"),
        (ReportLayout(sizes=(3, 4)), {1: 1}, "in 2 cells of histogram 1"),
        (ReportLayout(sizes=(3, 4)), {0: 0}, "in 0 cells of histogram 1"),
        (ReportLayout(sizes=(3, 4)), {3: 0, 4: 1, 5: 1}, "in 2 cells of histogram 2"),
    ],
)
def test_what_no_device_counts_is_refused(layout: ReportLayout, changed: dict[int, int], said: str) -> None:
    report = layout.counted((0, 0))
    for at, value in changed.items():
        report[at] = value
    with pytest.raises(InputError, match=said):
        layout.check(report)


def test_what_no_device_randomises_is_refused() -> None:
    layout = ReportLayout(sizes=(3, 40), local_epsilon=1.0)
    report = randomized(layout, (0, 0), np.random.default_rng(1))
    number = int(np.argmax(report[-2:]))
    both, elsewhere, more = report.copy(), report.copy(), report.copy()
    both[-2:] = 1
    elsewhere[[0, 3][1 - number]] ^= 1
    begins, ends = ((0, 3), (3, 43))[number]
    more[begins + int(np.argmin(report[begins:ends]))] = 1
    for wrong, said in ((both, "answers 2"), (elsewhere, "names"), (more, "names")):
        with pytest.raises(InputError, match=said):
            layout.check(wrong)
    with pytest.raises(InputError, match="44 numbers, and 45"):
        layout.check(report[1:])


def test_settings_of_no_layout_are_refused() -> None:
    for wrong in ({"sizes": ()}, {"sizes": (1, 3)}, {"sizes": (3,), "local_epsilon": 0.0}):
        with pytest.raises(InputError):
            ReportLayout(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="are not one of each"):
        ReportLayout(sizes=(3,)).counted([3])
    with pytest.raises(InputError, match="randomises itself"):
        ReportLayout(sizes=(3,), local_epsilon=1.0).counted([0])
