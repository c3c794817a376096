"""The law of each local randomizer, report by report, against its definition written out; the contract of all is in
`tests/contracts`."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import InputError
from tacit.randomizers import (
    KaryRandomizedResponse,
    ProjectiveGeometryResponse,
    Randomizer,
    SubsetSelection,
    sample_votes,
)
from tacit.randomizers.projective_geometry import Geometry, geometry_for
from tacit.randomizers.randomizer import lies

KNOWN: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "local_dp.json").read_text())
# Subset Selection as bitmap and as numbers, with one and more values; projective spaces with and without spare points.
SMALL = [
    SubsetSelection(5, 1.0),
    SubsetSelection(7, 0.2),
    SubsetSelection(6, 2.5),
    SubsetSelection(2, 0.7),
    KaryRandomizedResponse(4, 1.5),
    KaryRandomizedResponse(2, 3.0),
    ProjectiveGeometryResponse(7, 0.4),
    ProjectiveGeometryResponse(13, 1.0),
    ProjectiveGeometryResponse(9, 1.0),
]
LARGE = [
    SubsetSelection(300, 1.0),
    SubsetSelection(600, 4.0),
    KaryRandomizedResponse(40, 3.0),
    ProjectiveGeometryResponse(500, 3.0),
    ProjectiveGeometryResponse(300, 1.2),
]
Law = dict[tuple[int, ...], npt.NDArray[np.float64]]


def law_of(randomizer: Randomizer) -> Law:
    """Every report a device can send, as the values it supports, with its probability under each value (domain,).

    Written from the definitions, not from the code: all sets of a size, all values, all points of the space.
    """
    domain, boost = randomizer.domain, math.exp(randomizer.epsilon)
    if isinstance(randomizer, SubsetSelection):
        supports = [set(chosen) for chosen in itertools.combinations(range(domain), randomizer.size)]
    elif isinstance(randomizer, KaryRandomizedResponse):
        supports = [{value} for value in range(domain)]
    else:
        assert isinstance(randomizer, ProjectiveGeometryResponse)
        space = randomizer.geometry
        points = canonical_vectors(space)
        supports = [
            {x for x in range(domain) if np.dot(points[x], point) % space.order == 0} | {domain + number}
            for number, point in enumerate(points)  # the number keeps reports apart that support the same values
        ]
    weights = np.array([[boost if value in support else 1.0 for value in range(domain)] for support in supports])
    return {tuple(sorted(s)): row for s, row in zip(supports, weights / weights.sum(axis=0), strict=True)}


def canonical_vectors(space: Geometry) -> list[tuple[int, ...]]:
    vectors = itertools.product(range(space.order), repeat=space.length)
    canonical = [v for v in vectors if any(v) and next(filter(None, v)) == 1]
    return sorted(canonical, key=lambda v: (v.index(1), v))


def keys_of(randomizer: Randomizer, reports: npt.NDArray[np.generic]) -> list[tuple[int, ...]]:
    """Reports as the keys of `law_of`."""
    if isinstance(randomizer, ProjectiveGeometryResponse):
        by_number = {max(key): key for key in law_of(randomizer)}
        return [by_number[randomizer.domain + int(report)] for report in reports]
    if isinstance(randomizer, SubsetSelection) and randomizer.as_bitmap:
        return [tuple(y for y in range(randomizer.domain) if int(row[y // 64]) >> (y % 64) & 1) for row in reports]
    return [tuple(int(value) for value in np.atleast_1d(report)) for report in reports]


@pytest.mark.parametrize("randomizer", SMALL, ids=repr)
class TestTheLaw:
    def test_epsilon_is_exact(self, randomizer: Randomizer) -> None:
        """Over all reports and all pairs of values the likelihood ratio reaches e^eps and never exceeds it."""
        ratios = [row.max() / row.min() for row in law_of(randomizer).values()]
        assert max(ratios) == pytest.approx(math.exp(randomizer.epsilon), rel=1e-12)

    def test_inclusion_probabilities(self, randomizer: Randomizer) -> None:
        law = law_of(randomizer)
        for value, held in itertools.product(range(randomizer.domain), repeat=2):
            supported = sum(row[held] for support, row in law.items() if value in support)
            assert supported == pytest.approx(randomizer.p if value == held else randomizer.q, rel=1e-12)

    def test_encode_follows_it_and_no_other(self, randomizer: Randomizer) -> None:
        """Chi-squared over all reports: accepts the law under every value, rejects that of 0.2 more epsilon."""
        law, generator, sent = law_of(randomizer), np.random.default_rng(5), 30_000
        place = {key: number for number, key in enumerate(law)}
        other = law_of(type(randomizer)(randomizer.domain, randomizer.epsilon + 0.2))  # type: ignore[call-arg]
        same_space = other.keys() == law.keys()
        for value in (0, randomizer.domain - 1):
            reports = randomizer.encode(np.full(sent, value), generator)
            different, times = np.unique(reports, axis=0, return_counts=True)
            seen = np.zeros(len(law))
            seen[[place[key] for key in keys_of(randomizer, different)]] = times
            expected = sent * np.array([row[value] for row in law.values()])
            assert stats.chisquare(seen, expected).pvalue > 1e-4
            if same_space:
                wrong = sent * np.array([row[value] for row in other.values()])
                assert stats.chisquare(seen, wrong).pvalue < 1e-4

    def test_variance_is_exact(self, randomizer: Randomizer) -> None:
        """The estimate's variance from the law itself: a device with the value, and two without."""
        law, spread = law_of(randomizer), randomizer.p - randomizer.q
        held = randomizer.domain - 1
        chances = [sum(row[device] for key, row in law.items() if held in key) for device in (held, 0, 0)]
        assert randomizer.variance(3, 1) == pytest.approx(sum(c * (1 - c) for c in chances) / spread**2, rel=1e-10)

    def test_slow_votes_agree(self, randomizer: Randomizer) -> None:
        reports = randomizer.encode(np.arange(200) % randomizer.domain, np.random.default_rng(2))
        slow = np.zeros(randomizer.domain, int)
        for key in keys_of(randomizer, reports):
            for value in key:
                if value < randomizer.domain:
                    slow[value] += 1
        assert np.array_equal(randomizer.votes(reports), slow)

    def test_sampled_votes_have_the_law_of_summed_reports(self, randomizer: Randomizer) -> None:
        """Means and covariances of `sample_votes`, value by value and pair by pair, against the exact ones."""
        generator, draws = np.random.default_rng(3), 1_500
        holders = np.arange(randomizer.domain) * 3 % 8
        votes = np.array([sample_votes(randomizer, holders, generator) for _ in range(draws)])
        check_moments(votes, *moments(randomizer, holders))


@pytest.mark.parametrize("randomizer", [*SMALL, *LARGE], ids=repr)
class TestReports:
    def test_bits_are_what_a_report_holds(self, randomizer: Randomizer) -> None:
        reports = randomizer.encode(np.arange(randomizer.domain), np.random.default_rng(1))
        if isinstance(randomizer, SubsetSelection) and randomizer.as_bitmap:
            assert randomizer.bits == randomizer.domain
        else:
            numbers = 1 if reports.ndim == 1 else reports.shape[1]
            assert int(reports.max()).bit_length() * numbers <= randomizer.bits


def moments(
    randomizer: Randomizer, holders: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and covariance of the votes, from the law of each device's report."""
    law, domain = law_of(randomizer), randomizer.domain
    supports = np.array([[value in key for value in range(domain)] for key in law], float)
    mean, covariance = np.zeros(domain), np.zeros((domain, domain))
    for held, count in enumerate(holders):
        chances = np.array([row[held] for row in law.values()])
        one = chances @ supports
        mean += count * one
        covariance += count * (supports.T * chances @ supports - np.outer(one, one))
    return mean, covariance


def check_moments(
    votes: npt.NDArray[np.int64], mean: npt.NDArray[np.float64], covariance: npt.NDArray[np.float64]
) -> None:
    draws = len(votes)
    deviations = np.sqrt(np.diag(covariance))
    assert np.all(abs(votes.mean(axis=0) - mean) < 5 * deviations / math.sqrt(draws) + 1e-9)
    # The covariance of a sample of nearly normal pairs has variance (c_ij^2 + c_ii c_jj) / draws.
    allowed = 5 * np.sqrt((covariance**2 + np.outer(deviations, deviations) ** 2) / draws)
    assert np.all(abs(np.cov(votes.T, bias=True) - covariance) < allowed + 1e-9)


class TestSubsetSelection:
    @given(st.integers(2, 300), st.floats(0.05, 9))
    @settings(max_examples=60, deadline=None)
    def test_formulas(self, domain: int, epsilon: float) -> None:
        made = SubsetSelection(domain, epsilon)
        size, boost = max(1, math.ceil(domain / (math.exp(epsilon) + 1))), math.exp(epsilon)
        assert made.size == size
        assert made.p == pytest.approx(size * boost / (size * boost + domain - size), rel=1e-12)
        assert made.p + (domain - 1) * made.q == pytest.approx(size, rel=1e-12)
        assert made.p > made.q > 0

    @given(st.integers(2, 130), st.floats(0.05, 6), st.integers(0, 2**31))
    @settings(max_examples=30, deadline=None)
    def test_reports_name_so_many_different_values(self, domain: int, epsilon: float, seed: int) -> None:
        made = SubsetSelection(domain, epsilon)
        reports = made.encode(np.arange(domain), np.random.default_rng(seed))
        for key in keys_of(made, reports):
            assert len(set(key)) == made.size and list(key) == sorted(key) and key[-1] < domain
        assert made.votes(reports).sum() == domain * made.size

    def test_randomness_that_comes_in_batches_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two numbers at a time, so that every device is interrupted: the same subsets."""
        made = SubsetSelection(40, 1.0)
        for randomizer in (made, SubsetSelection(400, 4.0)):
            whole = randomizer.encode(np.arange(40), np.random.default_rng(9))
            monkeypatch.setattr("tacit.randomizers.subsets.BATCH", 1)
            assert np.array_equal(randomizer.encode(np.arange(40), np.random.default_rng(9)), whole)
            monkeypatch.undo()

    def test_reports_no_device_sends_are_refused(self) -> None:
        named, drawn = SubsetSelection(1000, 5.0), SubsetSelection(70, 1.0)
        generator = np.random.default_rng(0)
        for spoil in ((0, 1), (0, 2000)):
            reports = named.encode(np.arange(3), generator)
            reports[0, spoil[0]] = reports[0, 1] if spoil[1] == 1 else spoil[1]
            with pytest.raises(InputError, match="no device sends that"):
                named.votes(reports)
        reports = drawn.encode(np.arange(3), generator)
        reports[1, 0] = 0
        with pytest.raises(InputError, match="does not name"):
            drawn.votes(reports)
        reports = drawn.encode(np.arange(3), generator)
        moved = np.array([(1 << drawn.size) - 1, 0], np.uint64)
        reports[1] = moved >> np.uint64(1)
        reports[1, 1] = 1 << 63
        with pytest.raises(InputError, match="beyond 69"):
            drawn.votes(reports)
        with pytest.raises(InputError, match="bitmaps"):
            drawn.votes(reports[:, :1])
        with pytest.raises(InputError, match="values each"):
            named.votes(reports[:, :1])

    def test_more_devices_than_can_be_drawn_are_refused(self) -> None:
        with pytest.raises(InputError, match="split"):
            sample_votes(SubsetSelection(3, 1.0), np.array([10**9, 0, 0]), np.random.default_rng(0))


class TestGoldenValues:
    @pytest.mark.parametrize("row", KNOWN["subset_selection"], ids=lambda row: f"{row['k']}-{row['eps']}")
    def test_subset_selection(self, row: dict[str, Any]) -> None:
        made = SubsetSelection(row["k"], float(row["eps"]))
        assert made.size == row["w"]
        assert made.p == pytest.approx(row["p"], rel=1e-12)
        assert made.q == pytest.approx(row["q"], rel=1e-12)
        assert made.bits == row["bits_set"]
        assert made.variance(1) == pytest.approx(row["var_factor"], rel=1e-12)

    @pytest.mark.parametrize("row", KNOWN["variance_and_bits"], ids=lambda row: f"{row['k']}-{row['eps']}")
    def test_the_others_beside_it(self, row: dict[str, Any]) -> None:
        """Fields of prime order only, spaces of 2^26 points at most: the published field has 8 elements at epsilon 2,
        and 22,027 at epsilon 10, where messages of Subset Selection are short anyway."""
        domain, epsilon = row["k"], float(row["eps"])
        least = SubsetSelection(domain, epsilon).variance(1)
        assert KaryRandomizedResponse(domain, epsilon).variance(1) / least == pytest.approx(row["grr_ratio"], rel=1e-9)
        ratio = ProjectiveGeometryResponse(domain, epsilon).variance(1) / least
        if epsilon < 10:
            assert ratio == pytest.approx(row["pgr_ratio"], rel=0.012)
            assert ProjectiveGeometryResponse(domain, epsilon).bits <= row["bits_pgr"] + 1
        else:
            assert ratio < 1.5


class TestProjectiveGeometry:
    @pytest.mark.parametrize("space", [Geometry(2, 4), Geometry(3, 3), Geometry(5, 3), Geometry(7, 2)], ids=repr)
    def test_points_and_their_numbers(self, space: Geometry) -> None:
        numbers = np.arange(space.points)
        vectors = space.vectors(numbers)
        assert [tuple(row) for row in vectors.tolist()] == canonical_vectors(space)
        for factor in range(1, space.order):
            assert np.array_equal(space.numbers(vectors * factor % space.order), numbers)
        orthogonal = vectors @ vectors.T % space.order == 0
        assert np.all(orthogonal.sum(axis=0) == space.in_hyperplane)
        together = orthogonal.astype(int) @ orthogonal
        assert np.all(together[~np.eye(space.points, dtype=bool)] == space.in_two_hyperplanes)

    @pytest.mark.parametrize("epsilon", [2.0, 4.0, 6.0, 8.0])
    def test_error_of_subset_selection_in_few_bits(self, epsilon: float) -> None:
        short, long = ProjectiveGeometryResponse(100_001, epsilon), SubsetSelection(100_001, epsilon)
        assert short.variance(1) < 1.016 * long.variance(1)
        assert short.bits <= 24 < long.bits / 20

    def test_domains_too_large_are_refused(self) -> None:
        with pytest.raises(InputError, match="take Subset Selection"):
            geometry_for(2**26 + 1, 3.0)

    def test_points_outside_the_space_are_refused(self) -> None:
        made = ProjectiveGeometryResponse(9, 1.0)
        with pytest.raises(InputError, match="below 13"):
            made.votes(np.array([13], np.uint32))


class TestBadSettings:
    @pytest.mark.parametrize("kind", [SubsetSelection, KaryRandomizedResponse, ProjectiveGeometryResponse])
    @pytest.mark.parametrize("domain", [1, 0, -3, 2**31 + 1])
    def test_domain(self, kind: type[SubsetSelection], domain: int) -> None:
        with pytest.raises(InputError, match=f"domain={domain}"):
            kind(domain, 1.0)

    @pytest.mark.parametrize("kind", [SubsetSelection, KaryRandomizedResponse, ProjectiveGeometryResponse])
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, 31.0])
    def test_epsilon(self, kind: type[SubsetSelection], epsilon: float) -> None:
        with pytest.raises(InputError, match="epsilon="):
            kind(10, epsilon)

    def test_estimates_of_nothing(self) -> None:
        made = SubsetSelection(5, 1.0)
        with pytest.raises(InputError, match="one report or more"):
            made.estimate(np.zeros(5, np.int64), 0)
        with pytest.raises(InputError, match="5 values"):
            made.estimate(np.zeros(4, np.int64), 1)
        with pytest.raises(InputError, match="count=3"):
            made.variance(2, 3)


class TestLies:
    def test_probability_is_rounded_against_the_device(self) -> None:
        """Never below the probability asked for, and off by 2^-50 of it at most."""
        for probability in (1e-13, 0.25, 1 / 3, 0.5):
            share = lies(np.random.default_rng(1), 200_000, probability).mean()
            assert abs(share - probability) < 5 * math.sqrt(probability / 200_000)
        made = SubsetSelection(2, 30.0)
        assert made.lie == pytest.approx(math.exp(-30), rel=1e-9)
        assert lies(np.random.default_rng(0), 1000, made.lie).sum() == 0
