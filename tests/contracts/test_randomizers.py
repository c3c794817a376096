"""One contract for every randomizer of RANDOMIZERS, from its interface alone: private, unbiased, refusing nonsense."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.errors import InputError
from tacit.privacy.local_guarantee import PROVED
from tacit.randomizers import (
    KaryRandomizedResponse,
    ProjectiveGeometryResponse,
    Randomizer,
    device_generator,
    sample_votes,
)
from tacit.randomizers.registry import RANDOMIZERS

SIZES = [(2, 0.7), (5, 1.0), (13, 0.4), (40, 3.0), (300, 1.2), (500, 4.0)]
ALL = [made(domain, epsilon) for made in RANDOMIZERS.values() for domain, epsilon in SIZES]
SMALL = [each for each in ALL if each.domain <= 13]
Numbers = npt.NDArray[np.int64]


def excess(randomizer: Randomizer, sent: int = 40_000) -> float:
    """P0(S) - e^eps P1(S) in standard deviations, S being the reports that looked too likely under value 0 before.

    Half of the reports choose S, the other half judge it; a randomizer that keeps its epsilon has at most 0.
    """
    generator, boost = np.random.default_rng(7), math.exp(randomizer.epsilon)
    reports = np.concatenate([randomizer.encode(np.full(2 * sent, value), generator) for value in (0, 1)])
    _, kinds = np.unique(reports, axis=0, return_inverse=True)
    most = int(kinds.max()) + 1
    counts = np.array([np.bincount(part, minlength=most) for part in np.split(kinds.ravel(), 4)])
    suspect = counts[0] > boost * counts[2]
    own, other = counts[1][suspect].sum() / sent, counts[3][suspect].sum() / sent
    spread = math.sqrt((own * (1 - own) + boost**2 * other * (1 - other)) / sent)
    return (own - boost * other) / spread if spread else 0.0


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_the_table_calls_each_by_its_own_name(name: str) -> None:
    made = RANDOMIZERS[name](7, 1.5)
    assert (made.name, made.domain, made.epsilon) == (name, 7, 1.5)
    with pytest.raises(InputError):
        RANDOMIZERS[name](1, 1.5)
    with pytest.raises(InputError):
        RANDOMIZERS[name](7, 0.0)


def test_every_randomizer_is_vouched_for() -> None:
    """The accountant knows each by its name, and nothing else: what is not proved has no guarantee."""
    assert set(PROVED) == set(RANDOMIZERS)


@pytest.mark.parametrize("randomizer", SMALL, ids=repr)
def test_no_set_of_reports_is_likelier_than_epsilon_allows(randomizer: Randomizer) -> None:
    assert excess(randomizer) < 4.5


def test_a_randomizer_that_claims_too_small_an_epsilon_is_seen() -> None:
    @dataclass(frozen=True)
    class Loose(KaryRandomizedResponse):
        @property
        def lie(self) -> float:
            return 0.85 * super().lie

    assert excess(Loose(5, 1.0)) > 6


@pytest.mark.parametrize("randomizer", ALL, ids=repr)
class TestEveryRandomizer:
    def test_reports_support_as_often_as_p_and_q_say(self, randomizer: Randomizer) -> None:
        sent, held = 20_000, randomizer.domain - 1
        votes = randomizer.votes(randomizer.encode(np.full(sent, held), np.random.default_rng(3)))
        for chance, seen in ((randomizer.p, votes[held]), (randomizer.q, votes[0])):
            assert abs(seen - sent * chance) < 5 * math.sqrt(sent * chance * (1 - chance)) + 1e-9

    def test_estimates_are_unbiased_with_the_variance_claimed(self, randomizer: Randomizer) -> None:
        generator = np.random.default_rng(11)
        holders = np.arange(randomizer.domain) % 5 * 8
        devices, draws = int(holders.sum()), 2_000 if randomizer.domain < 20 else 80 if randomizer.domain < 100 else 40
        truth = np.repeat(np.arange(randomizer.domain), holders)
        reports = np.split(randomizer.encode(np.tile(truth, draws), generator), draws)
        estimates = np.array([randomizer.estimate(randomizer.votes(each), devices) for each in reports])
        deviations = np.sqrt([randomizer.variance(devices, count) for count in holders])
        standard = (estimates - holders) / deviations
        means = standard.mean(axis=0) * math.sqrt(draws)
        assert abs(means).max() < 5.5
        assert 0.92 < (standard**2).mean() < 1.08
        assert not 0.92 < (1.2 * standard**2).mean() < 1.08

    def test_sampled_votes_have_the_moments_of_summed_reports(self, randomizer: Randomizer) -> None:
        """The means and variances, value by value, of `sample_votes` are those that p and q give."""
        generator, draws = np.random.default_rng(5), 400 if randomizer.domain < 100 else 60
        holders = np.arange(randomizer.domain) * 3 % 8
        votes = np.array([sample_votes(randomizer, holders, generator) for _ in range(draws)])
        others = holders.sum() - holders
        p, q = randomizer.p, randomizer.q
        spread = np.sqrt(holders * p * (1 - p) + others * q * (1 - q))
        standard = (votes - holders * p - others * q) / np.maximum(spread, 1e-12)
        assert abs(standard.mean(axis=0)).max() * math.sqrt(draws) < 5.5
        assert abs((standard**2).mean() - 1) < 0.08

    def test_no_report_supports_more_than_the_most(self, randomizer: Randomizer) -> None:
        """What supports more is refused; of a projective space the domain may have no whole hyperplane."""
        generator = np.random.default_rng(3)
        reports = randomizer.encode(generator.integers(0, randomizer.domain, 400), generator)
        supported = [int(randomizer.votes(reports[at : at + 1]).sum()) for at in range(len(reports))]
        assert max(supported) <= randomizer.most_supported <= randomizer.domain
        if not isinstance(randomizer, ProjectiveGeometryResponse):
            assert max(supported) == randomizer.most_supported

    def test_no_device_no_vote(self, randomizer: Randomizer) -> None:
        generator = np.random.default_rng(0)
        nobody = np.zeros(randomizer.domain, np.int64)
        assert not sample_votes(randomizer, nobody, generator).any()
        assert not randomizer.votes(randomizer.encode(np.zeros(0, np.int64), generator)).any()

    def test_a_device_uses_the_operating_system(self, randomizer: Randomizer) -> None:
        reports = randomizer.encode(np.zeros(40, np.int64), device_generator())
        again = randomizer.encode(np.zeros(40, np.int64), device_generator())
        assert len(reports) == 40
        assert randomizer.domain == 2 or not np.array_equal(reports, again)

    @pytest.mark.parametrize("values", [[-1], [10**6], [[0]], [0.5]], ids=repr)
    def test_values_outside_the_domain_are_refused(self, randomizer: Randomizer, values: list[Any]) -> None:
        with pytest.raises(InputError):
            randomizer.encode(np.array(values), np.random.default_rng(0))

    @pytest.mark.parametrize("broken", [lambda h: h[:-1], lambda h: h - 1, lambda h: h + 0.5], ids=["short", "-", "."])
    def test_holders_that_cannot_be_are_refused(
        self, randomizer: Randomizer, broken: Callable[[Numbers], Numbers]
    ) -> None:
        with pytest.raises(InputError):
            sample_votes(randomizer, broken(np.zeros(randomizer.domain, np.int64)), np.random.default_rng(0))

    def test_estimates_need_a_report_and_a_number_for_each_value(self, randomizer: Randomizer) -> None:
        with pytest.raises(InputError):
            randomizer.estimate(np.zeros(randomizer.domain, np.int64), 0)
        with pytest.raises(InputError):
            randomizer.estimate(np.zeros(randomizer.domain + 1, np.int64), 9)
