"""The audit of local randomizers: laws by every choice, faults of each kind found, none where there is none."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit.discovery.rounds
from tacit.audit.randomizer.exact import ScriptedChoices, exact_epsilon, exact_law, lying_words
from tacit.audit.randomizer.job import audit_randomizer, by_likelihood, rare_words
from tacit.audit.randomizer.likelihood import epsilon_of_reports, reports_within, tells_apart
from tacit.audit.randomizer.rare_words import rare_output
from tacit.audit.randomizer.shuffled import epsilon_of_shuffled
from tacit.audit.randomizer.supports import supports
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError
from tacit.privacy.local_anonymity import absolute_threshold
from tacit.privacy.local_shuffling import shuffle_epsilon
from tacit.randomizers.k_ary import KaryRandomizedResponse
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.registry import RANDOMIZERS
from tacit.randomizers.subset_selection import SubsetSelection


@pytest.mark.parametrize("name", RANDOMIZERS)
@pytest.mark.parametrize(("domain", "epsilon"), [(2, 0.3), (5, 1.0), (9, 0.7), (12, 2.5)])
def test_the_exact_epsilon_of_what_is_shipped_is_the_claim_and_not_above(
    name: str, domain: int, epsilon: float
) -> None:
    found, played = exact_epsilon(RANDOMIZERS[name](domain, epsilon))
    assert epsilon - 1e-12 < found <= epsilon
    assert played >= domain


def test_the_law_of_subset_selection_is_the_published_one() -> None:
    """Ye & Barg: every set with the own value has probability p / C(d-1, s-1), every other (1 - p) / C(d-1, s)."""
    made = SubsetSelection(7, 0.6)
    law = exact_law(made, 3)
    assert sum(law.values()) == 1 and len(law) == math.comb(7, made.size)
    for members in combinations(range(7), made.size):
        row = np.array([sum(1 << member for member in members)], np.uint64)
        report = row if made.as_bitmap else np.array(members, np.uint32)
        inside = 3 in members
        chance = made.p / math.comb(6, made.size - 1) if inside else (1 - made.p) / math.comb(6, made.size)
        assert float(law[report.tobytes()]) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_the_law_is_that_of_reports_that_devices_make(name: str) -> None:
    made = RANDOMIZERS[name](6, 1.0)
    law, n = exact_law(made, 2), 60_000
    reports = made.encode(np.full(n, 2), np.random.default_rng(5))
    rows, counts = np.unique(reports, axis=0, return_counts=True)
    seen = {np.ascontiguousarray(row).tobytes(): int(count) for row, count in zip(rows, counts, strict=True)}
    assert seen.keys() <= law.keys()
    expected = {report: n * float(chance) for report, chance in law.items()}
    squares = sum((seen.get(report, 0) - mean) ** 2 / mean for report, mean in expected.items())
    assert squares < len(law) + 5 * math.sqrt(2 * len(law))


def test_words_that_lie_are_counted_exactly() -> None:
    made = KaryRandomizedResponse(4, 1.0)
    assert lying_words(made, 2) == math.ceil(made.lie * (1 + 2.0**-50) * 2.0**64)


@pytest.mark.parametrize("domain", [3, 7, 12])
def test_each_value_is_drawn_by_as_many_numbers_as_any_other(domain: int) -> None:
    """Lemire's method: the first 2^32 mod d numbers of each interval are refused, and drawn again."""
    made, refused = KaryRandomizedResponse(domain, 1.0), 2**32 % domain
    size = set()
    for item in range(1, domain):
        first, end = -(-(item * 2**32 + refused) // domain), -(-(item + 1) * 2**32 // domain)
        size.add(end - first)
        other = domain - 1 if item < domain - 1 else 1
        spare = ((2 * other + 1) << 31) // domain
        for half, answer in ((first, item), (end - 1, item), (first - 1, other)):
            taken = _answer(made, half, spare)
            assert taken == answer or (half == first - 1 and refused == 0) or (half == first - 1 and taken == item - 1)
    assert size == {2**32 // domain}


def _answer(made: KaryRandomizedResponse, half: int, spare: int) -> int:
    """What a lying device with the value 0 answers if these are its next two numbers."""
    halves = np.array([half, spare], np.uint32).view(np.uint64)
    script: Any = ScriptedChoices(np.zeros(1, np.uint64), halves)
    return int(made.encode(np.zeros(1, np.int64), script)[0])


@given(st.sampled_from(sorted(RANDOMIZERS)), st.integers(2, 90), st.floats(0.2, 5), st.integers(0, 99))
def test_reports_support_what_their_votes_count(name: str, domain: int, epsilon: float, seed: int) -> None:
    made, generator = RANDOMIZERS[name](domain, epsilon), np.random.default_rng(seed)
    reports = made.encode(generator.integers(0, domain, 5), generator)
    value = int(generator.integers(domain))
    slow = supports.dispatch(Randomizer)(made, reports, value)
    np.testing.assert_array_equal(supports(made, reports, value), slow)


@dataclass(frozen=True)
class TruthTooOften(KaryRandomizedResponse):
    """The off-by-one: as if the domain had one value less."""

    @property
    def lie(self) -> float:
        return (self.domain - 2) / (math.exp(self.epsilon) + self.domain - 2)


@dataclass(frozen=True)
class OwnFirst(SubsetSelection):
    """Sends the numbers in the order in which they were drawn."""

    def encode(self, values: Any, generator: np.random.Generator) -> Any:
        reports = super().encode(values, generator)
        return np.where((reports == values[:, None]).any(axis=1, keepdims=True), np.sort(reports)[:, ::-1], reports)


@dataclass(frozen=True)
class LiesInside(ProjectiveGeometryResponse):
    """A device that lies answers inside its hyperplane too, half of the time."""

    @property
    def lie(self) -> float:
        return super().lie / 2


def test_planted_faults_of_small_domains_are_found_exactly() -> None:
    assert exact_epsilon(TruthTooOften(5, 1.0))[0] == pytest.approx(1.0 + math.log(4 / 3), rel=1e-9)
    assert exact_epsilon(OwnFirst(9, 1.9))[0] == math.inf
    assert exact_epsilon(LiesInside(7, 1.0))[0] > 1.5


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_a_bound_of_a_large_domain_is_tight_and_seldom_above(name: str) -> None:
    made = RANDOMIZERS[name](200, 3.0)
    reports = reports_within(made, 0.03, confidence=0.95)
    bounds = [
        epsilon_of_reports(made, reports, np.random.default_rng(seed), confidence=0.95).lower for seed in range(40)
    ]
    assert sum(bound > 3.0 for bound in bounds) <= 5  # of 40, at most 2 are expected
    assert np.median(bounds) > 0.96 * 3.0


def test_a_large_domain_with_too_much_truth_is_refuted() -> None:
    made = LiesInside(200, 3.0)
    assert epsilon_of_reports(made, 200_000, np.random.default_rng(1), confidence=0.99).lower > 3.3


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_shuffled_sums_leak_less_than_proved_and_more_than_nothing(name: str) -> None:
    made = RANDOMIZERS[name](6, 3.0)
    bound = epsilon_of_shuffled(made, 50, 4_000, 0.01, np.random.default_rng(2), confidence=0.95)
    proved = shuffle_epsilon(3.0, 50, 0.01, name, 6)  # type: ignore[arg-type]
    assert 0.25 * proved.epsilon_lower < bound.lower < proved.epsilon_upper
    assert bound.lower > shuffle_epsilon(3.0, 5_000, 0.01, name, 6).epsilon_upper  # type: ignore[arg-type]


def test_a_threshold_that_forgets_the_contributors_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not rare_words(100, 0.95, 0).claim < rare_words(100, 0.95, 0).lower
    monkeypatch.setattr(
        tacit.discovery.rounds, "absolute_threshold", lambda p, q, n, k, delta: absolute_threshold(p, q, n, 1, delta)
    )
    found = rare_words(100, 0.95, 0)
    assert found.broken and found.figures["words_output"] > 0


def test_an_audit_of_one_randomizer_says_what_it_found() -> None:
    found = audit_randomizer(names=("k-ary",), campaigns=100, shuffles=400, seed=3)
    assert not found.broken and len(found.findings) == 8
    assert found.to_record()["findings"][0]["samples"] == 572
    assert "--seed 3" in str(found) and "none refuted" in str(found)


def test_an_audit_again_is_the_same() -> None:
    made = SubsetSelection(1000, 4.0)
    assert by_likelihood(made, 0.95, (3, 1)) == by_likelihood(made, 0.95, (3, 1)) != by_likelihood(made, 0.95, (4, 1))


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InputError, match="no randomizer is called 'coin'"):
        audit_randomizer(names=("coin",))
    with pytest.raises(InputError, match="campaigns=99 must be 100 or more"):
        audit_randomizer(campaigns=99)
    with pytest.raises(InputError, match=r"outside 0\.\.3"):
        epsilon_of_reports(KaryRandomizedResponse(4, 1.0), 100, np.random.default_rng(0), values=(0, 4))
    with pytest.raises(InputError, match="are alike"):
        epsilon_of_reports(KaryRandomizedResponse(4, 1.0), 100, np.random.default_rng(0), values=(1, 1))
    with pytest.raises(InputError, match="sequences of choices"):
        exact_law(SubsetSelection(40, 0.1), 0)
    unpromised = DiscoverySettings(reports=LocalReportSettings(local_epsilon=1.0), users_per_layer=500, depth=3)
    with pytest.raises(InputError, match="promise no anonymity"):
        rare_output(unpromised, 100, 0)


def test_what_tells_two_values_apart_is_as_much_likelier_as_claimed() -> None:
    made = SubsetSelection(6, 1.0)
    laws = [exact_law(made, value) for value in (0, 1)]
    rows = [np.frombuffer(report, np.uint64 if made.as_bitmap else np.uint32)[None] for report in laws[0]]
    chosen = [bool(tells_apart(made, row, 0, 1)[0]) for row in rows]
    mass = [sum((law[key] for key, take in zip(laws[0], chosen, strict=True) if take), Fraction(0)) for law in laws]
    assert float(mass[0] / mass[1]) == pytest.approx(math.e, rel=1e-12)
