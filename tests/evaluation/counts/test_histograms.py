"""Histograms over clients: everybody is in one cell, and what is read from them covers the truth, noised or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import (
    Buckets,
    Histogram,
    HistogramCells,
    mean_from,
    merged,
    quantile_from,
    representatives,
    share_from,
    worst_share_from,
)
from tacit.evaluation.intervals import Estimate, worst_share_of

BINS = Buckets.steps(-20, 30, 200)
CELLS = HistogramCells(slices=Buckets((500.0, 2000.0)), bins=BINS)
NUMBERS = some.floats(-2, 2, allow_nan=False)


def counted(values: np.ndarray, tokens: np.ndarray, silent: int = 0) -> Histogram:
    flat = np.bincount(CELLS.of(tokens, values), minlength=CELLS.size)
    flat[-1] += silent
    return Histogram.from_cells(CELLS, flat, 0.0, values.size + silent)


@given(cuts=some.sets(NUMBERS, max_size=6), values=some.lists(NUMBERS | some.just(np.inf) | some.just(-np.inf)))
def test_every_value_is_in_just_one_bucket(cuts: set[float], values: list[float]) -> None:
    buckets = Buckets(tuple(sorted(cuts)))
    ends = [-np.inf, *buckets.cuts, np.inf]
    for value, bucket in zip(values, buckets.of(values), strict=True):
        holding = [j for j in range(len(buckets)) if ends[j] <= value < ends[j + 1] or value == ends[j + 1] == np.inf]
        assert bucket == holding[-1]
    assert len(buckets.labels()) == len(buckets)


def test_a_change_of_exactly_a_cut_is_on_its_right() -> None:
    for hits, words in ((2, 100), (14, 700), (6, 300)):
        assert BINS.of([hits / words]) == BINS.cuts.index(0.02) + 1


@pytest.mark.parametrize("cuts", [(0.2, 0.1), (0.1, 0.1), (0.1, float("nan")), (float("inf"),)])
def test_cuts_that_make_no_buckets_are_refused(cuts: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="do not increase"):
        Buckets(cuts)


def test_who_is_unchanged_has_not_gained() -> None:
    """A gate that rejects everybody changes nobody, and the mean read from its histogram must say so."""
    bins = BINS.with_unchanged_apart()
    cells = HistogramCells(slices=Buckets(), bins=bins)
    flat = np.bincount(cells.of(np.zeros(50), np.zeros(50)), minlength=cells.size)
    assert abs(mean_from(Histogram.from_cells(cells, flat, 0.0, 50)).value) < 1e-8
    assert bins.of([0.0])[0] != bins.of([1 / 100_000])[0] == bins.of([0.004])[0]
    assert bins.with_unchanged_apart() == bins and Buckets((0.1,)).with_unchanged_apart() == Buckets((0.1,))


def test_nan_is_in_no_bucket() -> None:
    with pytest.raises(InputError, match="makes no report"):
        BINS.of([0.1, np.nan])


def test_slices_and_groups_add_up() -> None:
    draw = np.random.default_rng(1)
    values, tokens = 0.05 * draw.standard_normal(300), draw.uniform(0, 4000, 300)
    whole = counted(values, tokens, silent=7)
    assert (whole.devices, whole.silent, whole.reporting, whole.exact) == (307, 7, 300, True)
    parts = [whole.slice(number) for number in range(3)]
    assert np.array_equal(sum(part.counts for part in parts), whole.whole().counts)
    halves = counted(values[:100], tokens[:100], 7) + counted(values[100:], tokens[100:])
    assert np.array_equal(halves.counts, whole.counts) and halves.devices == whole.devices


def test_an_exact_histogram_says_what_the_values_say() -> None:
    draw = np.random.default_rng(2)
    values, tokens = 0.02 + 0.03 * draw.standard_normal(900), draw.uniform(0, 4000, 900)
    whole = counted(values, tokens)
    assert share_from(whole, 0.02).value == np.mean(values >= 0.02)
    assert abs(mean_from(whole).value - values.mean()) < 0.0025
    for q in (0.1, 0.5, 0.9):
        found = quantile_from(whole, q)
        assert abs(found.value - np.quantile(values, q)) < 0.005
        assert found.low <= np.quantile(values, q) <= found.high


def noised(values: np.ndarray, spread: float, draw: np.random.Generator, claimed: float | None = None) -> Histogram:
    flat = np.bincount(CELLS.of(np.full(values.size, 1000.0), values), minlength=CELLS.size)
    claimed = spread if claimed is None else claimed
    return Histogram.from_cells(CELLS, flat + spread * draw.standard_normal(CELLS.size), claimed**2, values.size)


def coverage(found: list[Estimate], truth: float) -> float:
    return float(np.mean([each.low <= truth <= each.high for each in found]))


def test_noised_intervals_cover_and_those_of_too_little_noise_do_not() -> None:
    draw = np.random.default_rng(4)
    mean, width, spread = 0.02, 0.03, 8.0
    claims = {spread: [], spread / 3: []}  # type: ignore[var-annotated]
    for _ in range(300):
        values = mean + width * draw.standard_normal(2000)
        for claimed, found in claims.items():
            histogram = noised(values, spread, draw, claimed)
            found.append([mean_from(histogram), share_from(histogram, 0.02), quantile_from(histogram, 0.25)])
    truths = (mean, 0.5, mean - 0.6745 * width)
    right = [coverage(list(each), truth) for each, truth in zip(zip(*claims[spread], strict=True), truths, strict=True)]
    wrong = [coverage(list(each), t) for each, t in zip(zip(*claims[spread / 3], strict=True), truths, strict=True)]
    assert min(right) > 0.92, right
    assert max(wrong[:2]) < 0.85, wrong  # a quantile's interval ends at cuts, which hides a little


def test_a_histogram_diverged_in_noise_says_nothing() -> None:
    draw = np.random.default_rng(5)
    drowned = noised(np.full(20, 0.02), 1000.0, draw)
    assert drowned.noise_dominates and not noised(np.full(2000, 0.02), 8.0, draw).noise_dominates
    for found in (quantile_from(drowned, 0.5), mean_from(drowned)):
        assert np.isnan(found.value) and (found.low, found.high) == (-np.inf, np.inf)
    share = share_from(drowned, 0.02)
    assert np.isnan(share.value) and (share.low, share.high) == (0.0, 1.0)


def test_counting_the_same_clients_twice_halves_the_noise() -> None:
    draw = np.random.default_rng(6)
    values = 0.02 + 0.03 * draw.standard_normal(500)
    histograms = [noised(values, spread, draw) for spread in (4.0, 4.0)]
    both = merged(histograms)
    assert both.variance == pytest.approx(histograms[0].whole().variance / 2)
    truth = counted(values, np.full(500, 1000.0)).whole().counts
    assert np.std(both.counts - truth) < 0.85 * np.std(histograms[0].whole().counts - truth)
    exact = counted(values, np.full(500, 1000.0))
    assert np.array_equal(merged([exact, exact]).counts, exact.whole().counts)


def test_what_cannot_be_told_is_refused() -> None:
    exact = counted(np.array([0.01, 0.02]), np.array([1.0, 1.0]))
    with pytest.raises(InputError, match="is no cut"):
        share_from(exact, 0.021)
    other = Histogram.from_cells(HistogramCells(slices=Buckets(), bins=BINS), np.zeros(len(BINS) + 1), 0.0, 0)
    with pytest.raises(InputError, match="different cells"):
        exact + other


def test_open_bins_stand_at_their_cut() -> None:
    assert representatives(Buckets((0.0, 1.0, 3.0))).tolist() == [0.0, 0.5, 2.0, 3.0]


@given(
    values=some.lists(some.floats(-0.099, 0.149), min_size=3, max_size=60),
    share=some.sampled_from([0.05, 0.1, 0.3, 1.0]),
)
def test_the_worst_share_of_an_exact_histogram_is_half_a_bin_from_that_of_the_values(
    values: list[float], share: float
) -> None:
    found = worst_share_from(counted(np.array(values), np.zeros(len(values))), share)
    assert found.value == pytest.approx(worst_share_of(values, share).value, abs=0.0025 + 1e-9)


def test_the_worst_tenth_of_noised_counts_covers_and_too_little_noise_does_not() -> None:
    draw, spread = np.random.default_rng(9), 6.0
    sample = 0.03 + 0.03 * draw.standard_normal(200_000)
    truth = worst_share_of(np.clip(sample, -0.1, 0.15), 0.1).value
    found: dict[float, list[Estimate]] = {spread: [], spread / 3: []}
    for _ in range(400):
        values = 0.03 + 0.03 * draw.standard_normal(3000)
        for claimed, estimates in found.items():
            estimates.append(worst_share_from(noised(values, spread, draw, claimed), 0.1))
    assert coverage(found[spread], truth) > 0.92 > coverage(found[spread / 3], truth)
    drowned = worst_share_from(noised(values[:20], 50.0, draw), 0.1)
    assert np.isnan(drowned.value) and drowned.low == -np.inf
    with pytest.raises(InputError, match="no share"):
        worst_share_from(counted(values, values), 0.0)


# Where the worst tenth is: all at one end of a bin, as accuracies of 0 are, just below a cut, or spread over several.
WORST = {
    "left end": lambda draw, many: np.zeros(many),
    "right end": lambda draw, many: np.full(many, 0.0049999),
    "two bins": lambda draw, many: draw.choice([0.0, 0.0051], many),
    "anywhere": lambda draw, many: draw.uniform(0.0, 0.03, many),
}


def drawn_clients(worst: str, draw: np.random.Generator, many: int) -> np.ndarray:
    """A fifth of them fares as `worst` says, the others better."""
    there = WORST[worst](draw, many)
    return np.where(draw.random(many) < 0.2, there, draw.uniform(0.04, 0.14, many))


@pytest.mark.parametrize("worst", WORST)
@pytest.mark.parametrize(("clients", "spread"), [(2000, 6.0), (20_000, 1.0), (20_000, 60.0)])
def test_the_worst_tenths_interval_covers_the_exact_one_at_its_rate(worst: str, clients: int, spread: float) -> None:
    """Wherever in its bin a client is; an interval without the bin's width, around its middle, does not."""
    draw = np.random.default_rng(11)
    of_everybody = worst_share_of(drawn_clients(worst, draw, 400_000), 0.1).value
    found, narrow = list[bool](), list[bool]()
    for _ in range(200):
        values = drawn_clients(worst, draw, clients)
        histogram = noised(values, spread, draw)
        of_these = worst_share_of(values, 0.1).value
        wide = worst_share_from(histogram, 0.1)
        found += [wide.low <= truth <= wide.high for truth in (of_everybody, of_these)]
        margin = (wide.high - wide.low - 0.005) / 2  # what is left without the width of a bin
        narrow += [abs(truth - wide.value) <= margin for truth in (of_everybody, of_these)]
    assert np.mean(found) > 0.93
    if worst in ("left end", "right end") and (clients, spread) == (20_000, 1.0):
        assert np.mean(narrow) < 0.5, "the width of a bin is what the interval needs"


@given(
    values=some.lists(some.floats(-0.2, 0.3), min_size=3, max_size=60),
    share=some.sampled_from([0.05, 0.1, 0.3, 1.0]),
)
def test_without_noise_the_worst_shares_interval_has_the_clients_own(values: list[float], share: float) -> None:
    clipped = np.clip(np.array(values), -0.1, 0.15)
    found = worst_share_from(counted(np.array(values), np.zeros(len(values))), share)
    own = worst_share_of(clipped, share).value
    assert found.low - 1e-9 <= own <= found.high + 1e-9
    assert found.low - 1e-9 <= found.value <= found.high + 1e-9


def test_fewer_bins_hold_the_same_clients() -> None:
    draw = np.random.default_rng(1)
    values, tokens = 0.05 * draw.standard_normal(300), draw.uniform(0, 4000, 300)
    cuts = (-0.05, 0.0, 0.02, 0.1)
    slow = np.bincount(
        HistogramCells(slices=CELLS.slices, bins=Buckets(cuts)).of(tokens, values), minlength=len(CELLS.slices) * 5
    )
    found = noised(values, 0.0, draw).coarser(cuts)
    assert counted(values, tokens).coarser(cuts).counts.ravel().tolist() == slow.tolist()
    assert found.cells.bins.cuts == cuts and found.counts.sum() == 300
    wide = noised(values, 2.0, draw)
    assert wide.coarser(cuts).variance.sum() == pytest.approx(wide.variance.sum())
    with pytest.raises(InputError, match="only be put together"):
        wide.coarser((0.0012,))
