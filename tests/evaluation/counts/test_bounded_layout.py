"""One device's report of sums: clipped as a slow reference clips, to the unit; refused where it is beyond its norm."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.federation.report_layout import MOST_NORM, BoundedLayout, clipped

COUNTS = st.lists(st.integers(0, 40) | st.integers(0, 2**40), max_size=8)
NORMS = st.floats(1, 60) | st.integers(1, 60).map(float) | st.just(float(MOST_NORM))


def slowly_clipped(counts: list[int], norm: float) -> list[int]:
    """The largest whole numbers that are no more than min(1, norm / ||counts||) times these, found one by one."""
    squared = sum(count * count for count in counts)
    if squared <= Fraction(norm) ** 2:
        return counts

    def largest(count: int) -> int:
        low, high = 0, count  # low^2 ||counts||^2 <= count^2 norm^2, and high + 1 is too large
        while low < high:
            middle = (low + high + 1) // 2
            fits = middle * middle * squared <= count * count * Fraction(norm) ** 2
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    return [largest(count) for count in counts]


@given(counts=COUNTS, norm=NORMS)
def test_clipping_is_that_of_the_slow_reference(counts: list[int], norm: float) -> None:
    found = clipped(np.array(counts, np.int64), norm).tolist()
    assert found == slowly_clipped(counts, norm)
    assert sum(count * count for count in found) <= Fraction(norm) ** 2, "exactly, whatever floats would make of it"


def beyond(clip: Callable[[NDArray[np.int64], float], NDArray[np.int64]], counts: list[int], norm: float) -> bool:
    """Whether a layout refuses the report that a clipping makes."""
    layout = BoundedLayout(sizes=(max(1, len(counts)),), norms=(norm,))
    vector = np.zeros(layout.length, np.uint32)
    vector[: len(counts)] = clip(np.array(counts, np.int64), norm)
    try:
        layout.check(vector)
    except InputError:
        return True
    return False


def not_at_all(counts: NDArray[np.int64], norm: float) -> NDArray[np.int64]:
    return counts


def rounded_up(counts: NDArray[np.int64], norm: float) -> NDArray[np.int64]:
    return np.ceil(counts * min(1.0, norm / float(np.linalg.norm(counts)))).astype(np.int64)


def to_the_nearest(counts: NDArray[np.int64], norm: float) -> NDArray[np.int64]:
    return np.rint(counts * min(1.0, norm / float(np.linalg.norm(counts)))).astype(np.int64)


@given(counts=st.lists(st.integers(0, 40), max_size=8), norm=NORMS)
def test_no_clipped_report_is_refused(counts: list[int], norm: float) -> None:
    assert not beyond(clipped, counts, norm)


@pytest.mark.parametrize("wrong", [not_at_all, rounded_up, to_the_nearest])
def test_another_clipping_is_refused(wrong: Callable[[NDArray[np.int64], float], NDArray[np.int64]]) -> None:
    assert beyond(wrong, [7] * 20, 7.0) and not beyond(clipped, [7] * 20, 7.0)


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_the_norm_is_checked_to_the_unit(counts: list[int]) -> None:
    squared = sum(count * count for count in counts)
    assume(squared > 1)
    layout = BoundedLayout(sizes=(len(counts),), norms=(math.sqrt(squared - 0.5),))
    with pytest.raises(InputError, match="sum 1 are longer than the norm"):
        layout.check(np.array(counts, np.uint32))
    BoundedLayout(sizes=(len(counts),), norms=(math.sqrt(squared + 0.5),)).check(np.array(counts, np.uint32))


def test_numbers_that_overflow_when_squared_are_refused() -> None:
    """2^32 - 1 squared is 1 modulo 2^32, and 2^32 such squares are 0 modulo 2^64."""
    layout = BoundedLayout(sizes=(4,), norms=(3.0,))
    for value in (2**32 - 1, 2**31, 2**16):
        with pytest.raises(InputError, match="longer than the norm 3"):
            layout.check(np.full(4, value, np.uint32))
    with pytest.raises(InputError, match="has 3 numbers, and 4"):
        layout.check(np.zeros(3, np.uint32))


def test_each_sum_has_its_own_norm_and_the_report_the_root_of_their_squares() -> None:
    layout = BoundedLayout(sizes=(3, 2), norms=(3.0, 4.0))
    report = layout.reported([(np.array([0, 2]), np.array([30, 30])), (np.array([1]), np.array([9]))])
    assert report.tolist() == [2, 0, 2, 0, 4] and layout.clip_norm == 5.0
    layout.check(report)
    with pytest.raises(InputError, match="sum 1"):
        layout.check(np.array([4, 0, 0, 0, 0], np.uint32))
    with pytest.raises(InputError, match="cells 5 to 5 were counted, and the sum has 3"):
        layout.reported([(np.array([5]), np.array([1])), (np.array([0]), np.array([1]))])


@given(
    reports=st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=9), norm=st.floats(1, 9)
)
def test_a_sum_of_reports_is_taken(reports: list[list[int]], norm: float) -> None:
    layout = BoundedLayout(sizes=(3,), norms=(norm,))
    cells = np.arange(3)
    total = sum((layout.reported([(cells, np.array(each))]) for each in reports), np.zeros(3, np.uint32))
    layout.check_sum(total, len(reports))


@pytest.mark.parametrize(
    ("total", "said"),
    [
        ([7, 0, 0], "sum 1 holds 7, and 2 reports within the norm 3 give 6 at most"),
        ([4, 4, 3], "sum 1 holds 11, and 2 reports within the norm 3 give 10 at most"),
        ([0, 0], "has 2 numbers, and 3"),
    ],
)
def test_a_sum_that_no_reports_have_is_refused(total: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        BoundedLayout(sizes=(3,), norms=(3.0,)).check_sum(np.array(total, np.uint32), 2)


def test_a_sum_that_does_not_fit_its_words_is_refused_beforehand() -> None:
    layout = BoundedLayout(sizes=(3,), norms=(50_000.7,))
    layout.check_reports(85_899)
    with pytest.raises(InputError, match=r"85,900 reports .* up to 50,000 may sum to .*; ask 85,899 devices at most"):
        layout.check_reports(85_900)


@pytest.mark.parametrize("wrong", [0.5, -1.0, math.nan, math.inf, 70_000.0])
def test_norms_of_no_layout_are_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="must lie between 1"):
        BoundedLayout(sizes=(3,), norms=(wrong,))
    for sizes in ((), (0,), (3, 4)):
        with pytest.raises(InputError, match="count nothing"):
            BoundedLayout(sizes=sizes, norms=(1.0,))


@pytest.mark.parametrize("wrong", [[1.5], [-1, 4]])
def test_what_is_no_count_is_refused(wrong: list[float]) -> None:
    with pytest.raises(InputError, match="no whole numbers"):
        clipped(wrong, 3.0)
