"""Shuffling: between an attack and a theorem, both of them right; golden values; exact divergences at tiny sizes."""

import itertools
import json
import math
from collections import Counter
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

from tacit.errors import AccountingError, InputError
from tacit.privacy import local_shuffling as shuffling
from tacit.privacy.local_shuffling import (
    BLANKET,
    CLONES,
    MARGIN,
    TITLES,
    UNSHUFFLED,
    Kind,
    attack_delta,
    attack_on_supports,
    blanket_delta,
    clones_delta,
    fewest_reports,
    is_proved,
    shuffle_epsilon,
    three_values,
)
from tacit.privacy.local_supports import SUPPORTS, subset_selection
from tacit.randomizers.projective_geometry import geometry_for

Law = npt.NDArray[np.float64]  # (values, reports): the probability of each report under each value

KNOWN: dict[str, Any] = json.loads((REPOSITORY / "tests" / "golden" / "shuffling.json").read_text(encoding="utf-8"))
DOMAIN = 100_000  # of the golden file's Subset Selection
QUICK = KNOWN["grid"][::7]
ROWS = [pytest.param(row, marks=() if row in QUICK else pytest.mark.nightly) for row in KNOWN["grid"]]


def law_of_subsets(domain: int, size: int, local_epsilon: float) -> Law:
    subsets = list(itertools.combinations(range(domain), size))
    boost = math.exp(local_epsilon)
    law = np.array([[boost if value in subset else 1.0 for subset in subsets] for value in range(domain)])
    return law / law.sum(axis=1, keepdims=True)


def law_of(kind: str, domain: int, local_epsilon: float) -> Law:
    """Every randomizer's law, written from its definition: all sets, all values, all points, all rows of bits."""
    boost = math.exp(local_epsilon)
    if kind == "subset-selection":
        return law_of_subsets(domain, max(1, math.ceil(domain / (boost + 1))), local_epsilon)
    if kind == "k-ary":
        return law_of_subsets(domain, 1, local_epsilon)
    if kind == "projective-geometry":
        space = geometry_for(domain, local_epsilon)
        points = space.vectors(np.arange(space.points))
        law = np.where(points[:domain] @ points.T % space.order == 0, boost, 1.0)
        return law / law.sum(axis=1, keepdims=True)
    own, other = {
        "unary": (0.5, 1 / (boost + 1)),
        "rappor": (1 - 1 / (math.sqrt(boost) + 1), 1 / (math.sqrt(boost) + 1)),
    }[kind]
    bits = np.array(list(itertools.product((False, True), repeat=domain)))
    chances = np.where(np.eye(domain, dtype=bool), own, other)  # (values, bits)
    return np.array([np.where(bits, row, 1 - row).prod(axis=1) for row in chances])


def exact_delta(law: Law, first: int, second: int, others: tuple[int, ...], epsilon: float) -> float:
    """The slow reference: both laws of the histogram of reports, device by device, and their hockey-stick
    divergence.
    """
    one, two = histogram_law(law, (first, *others)), histogram_law(law, (second, *others))
    return sum(max(chance - math.exp(epsilon) * two.get(seen, 0.0), 0.0) for seen, chance in one.items())


def histogram_law(law: Law, values: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    reached: dict[tuple[int, ...], float] = {(0,) * law.shape[1]: 1.0}
    for value in values:
        following: Counter[tuple[int, ...]] = Counter()
        for seen, chance in reached.items():
            for report, probability in enumerate(law[value]):
                following[*seen[:report], seen[report] + 1, *seen[report + 1 :]] += chance * probability
        reached = dict(following)
    return reached


def worst_delta(law: Law, reports: int, epsilon: float) -> float:
    """Over all data sets of the others, and over which two values are compared."""
    values, e, worst = range(law.shape[0]), math.exp(epsilon), 0.0
    for others in itertools.combinations_with_replacement(values, reports - 1):
        laws = [histogram_law(law, (value, *others)) for value in values]
        for one, two in itertools.permutations(laws, 2):
            worst = max(worst, sum(max(chance - e * two.get(seen, 0.0), 0.0) for seen, chance in one.items()))
    return worst


class TestAgainstGoldenValues:
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['eps0']}-{row['n']:.0e}-{row['delta']:g}")
    def test_grid(self, row: dict[str, Any]) -> None:
        """The clones' value is the same theorem evaluated elsewhere; Subset Selection lies between its two."""
        local, reports, delta = float(row["eps0"]), row["n"], row["delta"]
        any_one = shuffle_epsilon(local, reports, delta, "any")
        assert row["fmt21_lb"] * (1 - 1e-5) <= any_one.epsilon_upper <= row["fmt21_ub"] * (1 + 1e-3)
        assert any_one.epsilon_lower <= row["fmt21_ub"]
        subset = shuffle_epsilon(local, reports, delta, "subset-selection", DOMAIN)
        assert row["ss_d1e5_lb"] <= subset.epsilon_upper <= row["ss_d1e5_ub"] * (1 + 1e-3)
        assert row["ss_d1e5_lb"] * (1 - 1e-3) <= subset.epsilon_lower <= subset.epsilon_upper
        assert subset.theorem == BLANKET.format("Subset Selection")

    @pytest.mark.parametrize("local", range(3, 13))
    def test_reports_needed(self, local: int) -> None:
        """0.315 at 1e-10, as published for one deployment."""
        needed = KNOWN["needed_for_0315_1e_10"][str(local)]
        with_clones = shuffle_epsilon(local, needed["clones"], 1e-10, "any").epsilon_upper
        assert with_clones == pytest.approx(0.315, rel=2e-3)
        with_blanket = shuffle_epsilon(local, needed["blanket"], 1e-10, "subset-selection", 10**6).epsilon_upper
        assert 0.286 < with_blanket < 0.3151

    @pytest.mark.parametrize("row", KNOWN["brute_force"], ids=lambda row: row["mech"])
    def test_brute_force(self, row: dict[str, Any]) -> None:
        domain, size, local, reports, epsilon = row["d"], row["w"], row["eps0"], row["n"], row["eps"]
        law = law_of_subsets(domain, size, local)
        found = max(
            exact_delta(law, 0, 1, others, epsilon)
            for others in itertools.combinations_with_replacement(range(3), reports - 1)
        )
        assert found == pytest.approx(row["exact_delta"], abs=1e-6)
        made = subset_selection(domain, local)
        assert made.both + made.alone == pytest.approx(size / domain)
        assert found <= row["blanket_exact"] <= blanket_delta(made, reports, 1e-3)(epsilon)


class TestAgainstExactDivergences:
    @pytest.mark.parametrize("kind", SUPPORTS)
    @given(
        domain=st.integers(2, 4),
        reports=st.integers(1, 4),
        local=st.floats(0.2, 5),
        share=st.floats(0.02, 0.95),
        delta=st.sampled_from([1e-9, 1e-3, 0.2]),
    )
    @settings(max_examples=15, deadline=None)
    def test_two_levels(self, kind: str, domain: int, reports: int, local: float, share: float, delta: float) -> None:
        """All data sets and pairs of values, report by report: the bounds hold, and the attack is one."""
        if kind == "projective-geometry":  # spaces of 3, and of 7 points, where lines are no single points
            domain, local = (domain, local) if reports % 2 else (domain + 3, local / 5)
        epsilon, law, supports = share * local, law_of(kind, domain, local), SUPPORTS[kind](domain, local)
        reports = min(reports, 4 if law.shape[1] <= 6 else 3 if law.shape[1] <= 8 else 2)
        exact = worst_delta(law, reports, epsilon)
        slack = 1 + 1e-9  # several bounds are equalities here
        assert exact <= clones_delta(local, reports)(epsilon) * slack
        assert exact <= blanket_delta(supports, reports, delta)(epsilon) * slack
        assert attack_on_supports(supports, reports)(epsilon) <= exact * slack

    @given(
        reports=st.integers(1, 4),
        local=st.floats(0.2, 4),
        share=st.floats(0.02, 0.95),
        weights=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=3, max_size=3),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_randomizer(self, reports: int, local: float, share: float, weights: list[list[float]]) -> None:
        """Arbitrary randomizers with this local guarantee, most of them extreme in some reports."""
        law = np.exp(local / 2 * np.array(weights))
        law /= law.sum(axis=1, keepdims=True)  # scaling costs at most another factor e^(local / 2)
        assert np.max(law.max(axis=0) / law.min(axis=0)) <= math.exp(local) * (1 + 1e-12)
        epsilon = share * local
        assert worst_delta(law, reports, epsilon) <= clones_delta(local, reports)(epsilon) * (1 + 1e-9)

    @pytest.mark.parametrize("local", [0.5, 2.0, 4.0])
    @pytest.mark.parametrize("epsilon", [0.05, 0.3])
    def test_the_attack_on_any_is_randomised_response(self, local: float, epsilon: float) -> None:
        law = law_of_subsets(3, 1, local)
        exact = exact_delta(law, 0, 1, (2,) * 5, epsilon)
        attack = attack_delta(three_values(local), 6)(epsilon)
        assert attack <= exact * (1 + 1e-9)
        assert attack > 0.9 * exact

    @pytest.mark.parametrize(("local", "epsilon"), [(1.0, 0.4), (3.0, 1.2), (5.0, 2.0)])
    @pytest.mark.parametrize("reports", [1, 5, 12])
    def test_sums_of_bits_are_two_randomised_responses(self, local: float, epsilon: float, reports: int) -> None:
        """Who sees the sum of each bit alone: one value less in one sum and one more in another, at half of epsilon."""
        lie = 1 / (math.exp(local / 2) + 1)

        def sums(own: bool, holders: int) -> Law:
            """Of one bit, from all reports: one of its own, and as many set before the flips as there are holders."""
            law = np.ones(1)
            for bit in (own, *(True,) * holders, *(False,) * (reports - 1 - holders)):
                law = np.convolve(law, (lie, 1 - lie) if bit else (1 - lie, lie))
            return law

        exact = 0.0
        for first in range(reports):
            for second in range(reports - first):  # nobody holds two values
                one = np.outer(sums(True, first), sums(False, second))
                two = np.outer(sums(False, first), sums(True, second))
                exact = max(exact, float(np.maximum(one - math.exp(epsilon) * two, 0).sum()))

        def bound(n: int) -> float:
            return 2 * blanket_delta(SUPPORTS["k-ary"](2, local / 2), n, 1e-6)(epsilon / 2)

        assert exact <= bound(reports) * (1 + 1e-9)
        assert reports < 5 or exact > bound(3 * reports)  # for three times the reports it would be wrong

    def test_three_times_the_reports_would_be_wrong(self) -> None:
        """The exact divergence tells the bound for so many reports from the one for three times as many."""
        law = law_of_subsets(3, 1, 2.0)
        assert worst_delta(law, 4, 0.3) > clones_delta(2.0, 12)(0.3)
        assert worst_delta(law, 4, 0.3) > blanket_delta(subset_selection(3, 2.0), 12, 1e-6)(0.3)


class TestTheBoundsThemselves:
    @pytest.mark.parametrize("local", [1.0, 4.0, 8.0])
    def test_more_reports_hide_better(self, local: float) -> None:
        for kind, domain in (("any", None), ("subset-selection", 10_001)):
            found = [shuffle_epsilon(local, 10**power, 1e-8, kind, domain).epsilon_upper for power in range(1, 9)]  # type: ignore[arg-type]
            assert sorted(found, reverse=True) == found

    @pytest.mark.parametrize(("reports", "local"), [(500, 2.0), (3_000, 5.0), (20_000, 1.0)])
    def test_blocks_only_loosen(self, monkeypatch: pytest.MonkeyPatch, reports: int, local: float) -> None:
        """With a block for every number the sums are exact; blocks move each bound to its safe side, and hardly."""
        supports = subset_selection(1000, local)

        def all_three() -> list[float]:
            made = (
                clones_delta(local, reports),
                blanket_delta(supports, reports, 1e-6),
                attack_on_supports(supports, reports),
            )
            return [delta_at(0.3 * local / math.sqrt(reports / 300)) for delta_at in made]

        clones, blanket, attack = all_three()
        monkeypatch.setattr(shuffling, "BLOCKS", 50_000)
        finer = all_three()
        assert finer[0] <= clones * (1 + 1e-9) and clones < 1.02 * finer[0]
        assert finer[1] <= blanket * (1 + 1e-9) and blanket < 1.05 * finer[1]
        assert finer[2] >= attack * (1 - 1e-9) and attack > 0.98 * finer[2]

    @given(
        local=st.floats(0.1, 12),
        reports=st.integers(1, 10**9),
        delta=st.floats(1e-15, 1e-3),
        domain=st.integers(2, 10**6),
    )
    @settings(max_examples=4, deadline=None)
    @pytest.mark.parametrize("kind", SUPPORTS)
    def test_never_above_the_clones(self, kind: Kind, local: float, reports: int, delta: float, domain: int) -> None:
        made = shuffle_epsilon(local, reports, delta, kind, domain)
        clones = shuffle_epsilon(local, reports, delta, "any")
        assert 0 <= made.epsilon_lower <= made.epsilon_upper <= clones.epsilon_upper <= local
        assert clones.epsilon_lower <= clones.epsilon_upper

    @pytest.mark.parametrize("kind", SUPPORTS)
    def test_what_each_randomizer_hides_in_is_worth_most_of_the_clones(self, kind: Kind) -> None:
        """Half of what is proved for any randomizer, or less, and the attack shows that little more is to be had."""
        made = shuffle_epsilon(6.0, 10**6, 1e-10, kind, 100_001)
        clones = shuffle_epsilon(6.0, 10**6, 1e-10, "any").epsilon_upper
        assert 0.95 * made.epsilon_upper < made.epsilon_lower
        assert made.epsilon_upper < (0.7 if kind == "rappor" else 0.5) * clones
        assert made.theorem == BLANKET.format(TITLES[kind])

    @pytest.mark.parametrize(("kind", "domain"), [("subset-selection", 101), ("projective-geometry", 2), ("any", None)])
    def test_fewest_reports(self, kind: Kind, domain: int | None) -> None:
        fewest = fewest_reports(0.4, 3.0, 1e-8, kind, domain)
        assert shuffle_epsilon(3.0, fewest, 1e-8, kind, domain).epsilon_upper <= 0.4
        assert shuffle_epsilon(3.0, int(0.999 * fewest), 1e-8, kind, domain).epsilon_upper > 0.4

    def test_what_no_sum_promises(self) -> None:
        with pytest.raises(InputError, match="not even 10,000,000,000 reports"):
            fewest_reports(1e-9, 3.0, 1e-8, "any")
        with pytest.raises(InputError, match="ask for one above 0"):
            fewest_reports(0.0, 3.0, 1e-8, "any")

    def test_few_reports_promise_the_local_guarantee(self) -> None:
        made = shuffle_epsilon(8.0, 3, 1e-17, "any")
        assert made.epsilon_upper == 8.0
        assert made.theorem == UNSHUFFLED

    def test_theorem_is_named(self) -> None:
        assert shuffle_epsilon(4.0, 10**6, 1e-8, "any").theorem == CLONES

    def test_another_question_of_the_same_people(self) -> None:
        made = shuffle_epsilon(6.0, 200_000, 1e-10, "subset-selection", 101)
        proved = made.epsilon_upper
        assert not is_proved(proved, 6.0, 100_000, 1e-10, "subset-selection", 101)
        assert is_proved(proved, 6.0, 300_000, 1e-10, "subset-selection", 101)
        assert not is_proved(proved, 6.0, 200_000, 1e-10, "any", None)
        assert is_proved(6.0, 6.0, 1, 1e-10, "any", None)

    @pytest.mark.parametrize("coins", [50, 10**4, 10**6, 10**8])
    @pytest.mark.parametrize("deviations", [0.5, 3, 8])
    def test_tails_are_as_exact_as_the_margin_says(self, coins: int, deviations: float) -> None:
        """Binomial tails summed with 40 digits."""
        k = min(coins, int(coins / 2 + deviations * math.sqrt(coins) / 2))
        with mpmath.workdps(40):
            term = mpmath.exp(
                mpmath.loggamma(coins + 1)
                - mpmath.loggamma(k + 1)
                - mpmath.loggamma(mpmath.mpf(coins - k + 1))
                - coins * mpmath.log(2)
            )
            total, ratio, step = mpmath.mpf(1), mpmath.mpf(1), k
            while ratio > mpmath.mpf(10) ** -16 and step < coins:
                ratio *= mpmath.mpf(coins - step) / (step + 1)
                total += ratio
                step += 1
            exact = float(term * total)
        assert shuffling._tail(np.array([float(k)]), np.array([float(coins)]))[0] == pytest.approx(exact, rel=MARGIN)


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            ((0.0, 10, 1e-6, "any", None), "local_epsilon=0"),
            ((math.inf, 10, 1e-6, "any", None), "local_epsilon=inf"),
            ((math.nan, 10, 1e-6, "any", None), "local_epsilon=nan"),
            ((31.0, 10, 1e-6, "any", None), "local_epsilon=31"),
            ((1.0, 0, 1e-6, "any", None), "reports=0"),
            ((1.0, 10**11, 1e-6, "any", None), "reports=100000000000"),
            ((1.0, 10, 0.0, "any", None), "delta=0"),
            ((1.0, 10, 1.0, "any", None), "delta=1"),
            ((1.0, 10, 1e-6, "subset-selection", None), "domain=None"),
            ((1.0, 10, 1e-6, "subset-selection", 1), "domain=1"),
        ],
        ids=repr,
    )
    def test_is_refused_by_name(self, arguments: tuple[Any, ...], named: str) -> None:
        with pytest.raises(InputError, match=named):
            shuffle_epsilon(*arguments)

    def test_no_theorem_no_figure(self) -> None:
        with pytest.raises(AccountingError, match="no shuffling theorem"):
            shuffle_epsilon(1.0, 10, 1e-6, "gaussian")  # type: ignore[arg-type]
