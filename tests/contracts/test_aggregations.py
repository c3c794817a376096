"""The laws of every `Aggregation`: whoever adds which reports, and whoever merges whose sums, it is one sum."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.aggregation import Aggregation, Counted, CountSum, FloatSum, ReportSum, WordSum, merged
from tacit.discovery.trie import VoteSum
from tacit.randomizers import KaryRandomizedResponse
from tacit.secure_aggregation.one_message.ring import Ring
from tacit.secure_aggregation.residue_sums import PackedSum, add_packed
from tacit.secure_aggregation.residues import pack, packed_bytes

LENGTH, MOST, UNIT = 7, 8, 2.0**-24  # unit roundoff of float32
RING, POLYNOMIALS = Ring(64, (257, 769)), 2
Draw = np.random.Generator


class Case(NamedTuple):
    """An aggregation, a report for it, and what slow and exact addition of some reports gives."""

    sums: Aggregation[Any, Any, Any]
    report: Callable[[Draw], Any]
    exactly: Callable[[Sequence[Any]], Any]


def words(draw: Draw) -> NDArray[np.uint32]:
    return draw.integers(0, 2**32, LENGTH, dtype=np.uint32)


def whole(vectors: Sequence[NDArray[Any]], modulus: int) -> list[int]:
    return [sum(int(each[place]) for each in vectors) % modulus for place in range(LENGTH)]


def residues(draw: Draw) -> bytes:
    rows = [[draw.integers(0, prime, 64, dtype=np.uint64) for prime in RING.primes] for _ in range(POLYNOMIALS)]
    return b"".join(pack(RING, np.stack(each)) for each in rows)


def residues_one_by_one(reports: Sequence[bytes]) -> list[Any]:
    size, found = packed_bytes(RING), np.zeros((len(reports), POLYNOMIALS, len(RING.primes), 64), np.uint64)
    for report, polynomials in zip(reports, found, strict=True):
        for at, polynomial in enumerate(polynomials):
            add_packed(RING, polynomial, memoryview(report)[at * size : (at + 1) * size])
    return [
        [(each.astype(object).sum(axis=0) % prime).tolist() for each, prime in zip(rows, RING.primes, strict=True)]
        for rows in np.moveaxis(found, 0, 2)
    ]


def float_report(draw: Draw) -> Counted:
    """A loss of sixteenths: float64 holds every sum of such."""
    values = draw.standard_normal(LENGTH).astype(np.float32)
    return Counted.one(values, bool(draw.integers(2)), int(draw.integers(-64, 64)) / 16)


VOTES = KaryRandomizedResponse(LENGTH, 1.0)
INTEGERS = {
    "counts": Case(
        CountSum(LENGTH),
        lambda draw: draw.integers(-(2**40), 2**40, LENGTH),
        lambda reports: [sum(int(each[place]) for each in reports) for place in range(LENGTH)],
    ),
    "words": Case(WordSum(LENGTH), words, lambda reports: whole(reports, 2**32)),
    "words of 5 bits": Case(WordSum(LENGTH, 5), words, lambda reports: whole(reports, 2**5)),
    "reports of words": Case(
        ReportSum(WordSum(LENGTH)),
        lambda draw: Counted.one(words(draw)),
        lambda reports: [whole([each.values for each in reports], 2**32), len(reports), None, None],
    ),
    "votes": Case(
        VoteSum(VOTES),
        lambda draw: VOTES.encode(draw.integers(0, LENGTH, 2), draw),
        lambda reports: [whole([VOTES.votes(each) for each in reports], 2**32), 2 * len(reports)],
    ),
    "ciphertexts": Case(PackedSum(RING, POLYNOMIALS), residues, residues_one_by_one),
}
FLOATS = {
    "vectors": Case(FloatSum(LENGTH), lambda draw: float_report(draw).values, lambda reports: None),
    "reports": Case(ReportSum(FloatSum(LENGTH), True, True), float_report, lambda reports: None),
}
integers, every = (
    pytest.mark.parametrize("case", table.values(), ids=table) for table in (INTEGERS, INTEGERS | FLOATS)
)


def plain(state: Any) -> Any:
    """To compare, and kept from whoever changes arrays."""
    if isinstance(state, np.ndarray):
        return state.tolist()
    return [plain(each) for each in state] if isinstance(state, tuple) else state


def reports_of(case: Case, seed: int, count: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [case.report(draw) for _ in range(count)]


def added(case: Case, reports: Sequence[Any]) -> Any:
    return reduce(case.sums.add, reports, case.sums.zero())


@integers
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), count=st.integers(0, MOST), workers=st.integers(1, 4))
def test_any_split_in_any_order_is_one_sum(
    case: Case, data: st.DataObject, seed: int, count: int, workers: int
) -> None:
    reports = reports_of(case, seed, count)
    whose = data.draw(st.lists(st.integers(0, workers - 1), min_size=count, max_size=count))
    order = data.draw(st.permutations(range(count)))
    parts = [added(case, [reports[i] for i in order if whose[i] == worker]) for worker in range(workers)]
    by_turns = reduce(case.sums.merge, data.draw(st.permutations(parts)))  # no zero to begin with
    assert plain(case.sums.finish(by_turns)) == case.exactly(reports)
    assert plain(case.sums.finish(added(case, reports))) == case.exactly(reports)


@integers
@given(seed=st.integers(0, 2**32 - 1))
def test_merging_is_associative(case: Case, seed: int) -> None:
    a, b, c = (lambda one=one: added(case, [one]) for one in reports_of(case, seed, 3))
    merge = case.sums.merge
    assert plain(merge(merge(a(), b()), c())) == plain(merge(a(), merge(b(), c())))


@every
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, MOST))
def test_zero_is_neutral_and_merging_commutes(case: Case, seed: int, count: int) -> None:
    reports = reports_of(case, seed, count)
    one, other = plain(added(case, reports)), plain(added(case, reports[::2]))
    assert plain(case.sums.merge(case.sums.zero(), added(case, reports))) == one
    assert plain(case.sums.merge(added(case, reports), case.sums.zero())) == one
    both = case.sums.merge(added(case, reports), added(case, reports[::2]))
    assert plain(both) == plain(case.sums.merge(added(case, reports[::2]), added(case, reports)))
    assert plain(added(case, reports[::2])) == other


@every
@given(seed=st.integers(0, 2**32 - 1))
def test_only_the_sum_changes(case: Case, seed: int) -> None:
    """Not a report, a sum that was merged, one that was finished, nor the next zero."""
    reports = reports_of(case, seed, 3)
    kept, other = plain(tuple(reports)), added(case, reports[1:])
    before = plain(other)
    total = case.sums.merge(added(case, reports), other)
    sums = plain(total)
    case.sums.finish(total)
    assert (plain(tuple(reports)), plain(other), plain(total)) == (kept, before, sums)
    assert plain(case.sums.finish(case.sums.zero())) == plain(case.sums.finish(merged(case.sums, [])))


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, MOST), cut=st.integers(0, MOST))
def test_floats_have_one_sum_for_each_order_and_all_are_near(seed: int, count: int, cut: int) -> None:
    """To the bit what a loop adds in that order; another split is as near as the docstring says."""
    case = FLOATS["reports"]
    reports = reports_of(case, seed, count)
    slowly = np.zeros(LENGTH, np.float32)
    for each in reports:
        slowly = np.array([np.float32(x + y) for x, y in zip(slowly, each.values, strict=True)], np.float32)
    total = case.sums.finish(added(case, reports))
    assert total.values.tobytes() == slowly.tobytes()
    split = merged(case.sums, [added(case, reports[:cut]), added(case, reports[cut:])])
    assert plain(split)[1:] == plain(total)[1:]
    assert total[1:] == (count, sum(each.short_updates for each in reports), sum(each.losses for each in reports))
    magnitudes = sum(np.abs(each.values.astype(np.float64)) for each in reports)
    assert (np.abs(split.values.astype(np.float64) - total.values) <= 2.001 * (count - 1) * UNIT * magnitudes).all()
