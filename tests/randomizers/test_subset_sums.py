"""The sum of many uniform subsets drawn at once has the joint law of subsets drawn one by one."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.randomizers import SubsetSelection, subset_sums
from tacit.randomizers.subset_sums import _hypergeometric, sum_of_subsets

Votes = npt.NDArray[np.int64]


@pytest.fixture(scope="module", autouse=True)
def each_law_is_computed_once() -> Iterator[None]:
    """Thousands of sums over one domain need the same few laws, which are half of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subset_sums, "_hypergeometric", lru_cache(_hypergeometric))
        yield


def exact_law(owners: tuple[int, ...], size: int, others: int, other_size: int) -> dict[tuple[int, ...], float]:
    """The slow reference: every combination of subsets, by convolving one device after the other."""
    domain = len(owners)
    law: dict[tuple[int, ...], float] = {(0,) * domain: 1.0}
    devices = [[s for s in itertools.combinations(range(domain), other_size)]] * others
    for own, count in enumerate(owners):
        devices += [[s for s in itertools.combinations(range(domain), size) if own not in s]] * count
    for choices in devices:
        longer: Counter[tuple[int, ...]] = Counter()
        for votes, chance in law.items():
            for choice in choices:
                added = tuple(v + (y in choice) for y, v in enumerate(votes))
                longer[added] += chance / len(choices)
        law = dict(longer)
    return law


@pytest.mark.parametrize(
    ("owners", "size", "others", "other_size"),
    [
        pytest.param((1, 2, 0), 1, 1, 2, marks=pytest.mark.nightly),
        ((1, 0, 1, 1), 2, 1, 3),
        ((0, 1, 0, 2, 0), 2, 1, 1),
        pytest.param((1, 1, 0, 0, 1, 0), 1, 1, 2, marks=pytest.mark.nightly),
        ((0, 0, 0, 0, 3), 3, 0, 4),
        ((2, 1), 0, 3, 1),
    ],
    ids=repr,
)
def test_joint_law_is_exact(owners: tuple[int, ...], size: int, others: int, other_size: int) -> None:
    """Chi-squared over whole vectors of votes; the law with one subset larger is rejected."""
    generator, draws = np.random.default_rng(8), 1_200
    seen = Counter(
        tuple(sum_of_subsets(np.array(owners), size, others, other_size, generator).tolist()) for _ in range(draws)
    )
    law = exact_law(owners, size, others, other_size)
    assert seen.keys() <= law.keys()
    assert _p_value(seen, law, draws) > 1e-4
    moved = (*owners[1:], owners[0])  # the same devices with other values of their own
    if size and moved != owners:
        assert _p_value(seen, exact_law(moved, size, others, other_size), draws) < 1e-4


def _p_value(seen: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float], draws: int) -> float:
    """Chi-squared, with everything expected fewer than ten times in one cell."""
    common = [votes for votes, chance in law.items() if chance * draws >= 10]
    counts = [seen[votes] for votes in common]
    expected = [law[votes] * draws for votes in common]
    counts.append(draws - sum(counts))
    expected.append(draws - sum(expected))
    if expected[-1] < 1e-6:
        if counts[-1]:
            return 0.0
        counts, expected = counts[:-1], expected[:-1]
    return float(stats.chisquare(counts, np.array(expected) * draws / sum(expected)).pvalue)


@given(
    owners=st.lists(st.integers(0, 2000), min_size=2, max_size=40),
    others=st.integers(0, 3000),
    sizes=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_totals_and_limits_hold_exactly(owners: list[int], others: int, sizes: tuple[float, float], seed: int) -> None:
    """Every device puts in exactly its number of values, none twice, never its own."""
    held = np.array(owners)
    size, other_size = int(sizes[0] * (held.size - 1)), int(sizes[1] * held.size)
    votes = sum_of_subsets(held, size, others, other_size, np.random.default_rng(seed))
    assert votes.shape == held.shape
    assert votes.sum() == held.sum() * size + others * other_size
    assert np.all(votes >= 0)
    assert np.all(votes <= held.sum() - held + others)


@pytest.mark.parametrize(("domain", "epsilon"), [(41, 1.0), (130, 3.0)])
def test_sampled_votes_match_summed_reports(domain: int, epsilon: float) -> None:
    """Far beyond enumeration: marginals by Kolmogorov-Smirnov, and the variance of sums over blocks of values."""
    randomizer, generator, draws = SubsetSelection(domain, epsilon), np.random.default_rng(4), 100
    holders = np.where(np.arange(domain) % 3 == 0, 30, 1)
    truth = np.repeat(np.arange(domain), holders)
    share = randomizer.size / domain

    def at_once() -> Votes:
        forced = generator.binomial(holders, (randomizer.p - share) / (1 - share))
        rest = int(holders.sum() - forced.sum())
        return forced + sum_of_subsets(forced, randomizer.size - 1, rest, randomizer.size, generator)

    fast = np.array([at_once() for _ in range(draws)])
    slow = np.array([randomizer.votes(randomizer.encode(truth, generator)) for _ in range(draws)])
    assert np.all(fast.sum(axis=1) == truth.size * randomizer.size)
    for columns in ([0], [1], [domain - 1], range(0, domain, 3), range(domain // 2), range(5)):
        one, two = fast[:, list(columns)].sum(axis=1), slow[:, list(columns)].sum(axis=1)
        assert stats.ks_2samp(one, two).pvalue > 1e-3
        assert stats.ks_2samp(one, two + two.std()).pvalue < 1e-3
    joined = fast[:, : domain // 2].sum(axis=1)
    independent = math.sqrt(fast[:, : domain // 2].var(axis=0).sum())
    assert joined.std() < 0.85 * independent  # votes of one report exclude each other: independent draws would show


@given(st.integers(0, 60), st.integers(0, 60), st.data())
@settings(max_examples=100, deadline=None)
def test_hypergeometric_law(a: int, b: int, data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, a + b))
    lowest, law = _hypergeometric(a, b, chosen)
    exact = stats.hypergeom(a + b, a, chosen).pmf(np.arange(lowest, lowest + law.size)) if a + b else np.ones(1)
    np.testing.assert_allclose(law, exact, rtol=1e-9, atol=1e-29)
    assert law.sum() == pytest.approx(1, abs=1e-12)


def test_hypergeometric_law_keeps_its_tails() -> None:
    lowest, law = _hypergeometric(50_000, 50_001, 26_895)
    assert law[0] < 1e-30 and law[-1] < 1e-30
    assert float(np.arange(lowest, lowest + law.size) @ law) == pytest.approx(26_895 * 50_000 / 100_001, rel=1e-12)
