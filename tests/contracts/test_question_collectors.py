"""One contract for whoever asks devices for new words: a group's sum is whole, repeatable, and of one law."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tacit.data import ClientText
from tacit.data.unknown_words import TypedWords, read_typed_words
from tacit.discovery import collect
from tacit.discovery.collect import AtOnce, DiscoverQuestion, SecurelySummed, UsersOneByOne
from tacit.discovery.question import PrefixQuestion, WordQuestion
from tacit.discovery.rounds import discover
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.federation.collector import Answered, Collector
from tacit.randomizers.registry import RANDOMIZERS
from tacit.secure_aggregation.counts import secure_total
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements.local_releases import LocalReports
from tacit.text.alphabet import Alphabet

COLLECTORS: list[Any] = [AtOnce, UsersOneByOne, SecurelySummed]
NO_NOISE = 30.0  # an epsilon at which a report is its answer but with probability 1e-11
ABC = Alphabet("abc")
PREFIXES = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=5)
DEVICES = [{"a": 3, "ab": 1, "b": 1}, {"b": 1}, {}, {"cab": 2, "abc": 1, "b": 1}] * 6


class Typed:
    """Made-up clients who typed the words of DEVICES, blank-separated."""

    description, expected_clients, left_out = "made-up clients", None, {}

    def clients(self) -> Iterator[ClientText]:
        for number, words in enumerate(DEVICES):
            text = " ".join(word for word, count in words.items() for _ in range(count))
            yield ClientText(client_id=str(number), texts=[text], split="train")


@pytest.fixture(scope="module")
def typed() -> TypedWords:
    return read_typed_words(Typed(), lambda texts: Counter(texts[0].split()), frozenset())  # type: ignore[arg-type]


def task(epsilon: float = NO_NOISE, users: int = 12, **changes: Any) -> DiscoverQuestion:
    settings = LocalReportSettings(
        local_epsilon=epsilon,
        contributions=changes.pop("contributions", 2),
        sampler=changes.pop("sampler", "greedy"),
        randomizer=changes.pop("randomizer", "subset-selection"),
    )
    whole: dict[str, Any] = {"round": 0, "question": PREFIXES, "settings": settings, "first_user": 0, "users": users}
    return DiscoverQuestion(**{**whole, **changes})


def asked_of(collector: Collector, question: DiscoverQuestion) -> Answered:
    return collector.collect(collector.init(), question, seed=b"")[0]


@pytest.mark.parametrize("collector", COLLECTORS)
class TestEveryCollector:
    def test_a_groups_sum_is_whole_and_repeatable(self, collector: Any, typed: TypedWords) -> None:
        made: Collector = collector(typed=typed, assignment=4, seed=9)
        for asked in (task(), task(question=WordQuestion(words=("ab", "b"))), task(2.0, users=0)):
            answered = asked_of(made, asked)
            votes = answered.values
            assert votes.shape == (asked.question.domain,) and votes.dtype == np.int64
            assert (answered.reports, answered.clients) == (asked.users, asked.users)
            assert np.array_equal(asked_of(made, asked).values, votes)
        other = asked_of(made, task(2.0, round=1)).values
        assert not np.array_equal(asked_of(made, task(2.0)).values, other)  # each group draws its own randomness

    def test_without_a_seed_devices_use_the_operating_system(self, collector: Any, typed: TypedWords) -> None:
        made = collector(typed=typed, assignment=4)
        assert any(
            not np.array_equal(asked_of(made, task(0.5)).values, asked_of(made, task(0.5)).values) for _ in range(5)
        )

    def test_no_client_is_in_two_groups(self, collector: Any, typed: TypedWords) -> None:
        """What groups of users answer, summed over all groups, is what everybody answers at once."""
        made = collector(typed=typed, assignment=4, seed=1)
        parts = [asked_of(made, task(round=n, first_user=6 * n, users=6)).values for n in range(4)]
        assert np.array_equal(np.sum(parts, axis=0), asked_of(made, task(users=24)).values)

    def test_a_whole_run_finds_the_words(self, collector: Any, typed: TypedWords) -> None:
        settings = DiscoverySettings(
            reports=LocalReportSettings(local_epsilon=NO_NOISE, contributions=3),
            users_per_layer=60,
            prefixes=20,
            depth=5,
            alphabet=ABC,
            counting_users=60,
            resample_users=True,
            seed=3,
        )
        made = collector(typed=typed, assignment=3, resampled=True, seed=3)
        found = discover(settings, made, Nothing(), population=len(DEVICES), known={"b"})
        assert set(found.words) == {"a", "ab", "abc", "cab"}
        assert [layer.release.users for layer in found.layers] == [60] * 4
        assert found.counts is not None and found.counts.reports == 180


class Nothing:
    """A journal that keeps nothing."""

    def read(self, name: str) -> None:
        return None

    def write(self, name: str, release: LocalReports, output: dict[str, Any], participants: int) -> None:
        pass


@pytest.mark.parametrize("resampled", [False, True])
@pytest.mark.parametrize("question", [PREFIXES, PrefixQuestion(prefixes=("a", "c"), alphabet=ABC, depth=5)])
def test_where_nothing_is_drawn_the_sums_are_equal(
    typed: TypedWords, question: PrefixQuestion, resampled: bool
) -> None:
    asked = task(question=question, first_user=5)
    first, *others = (asked_of(each(typed=typed, assignment=2, resampled=resampled), asked) for each in COLLECTORS)
    assert all(first.reports == other.reports for other in others)
    assert all(np.array_equal(first.values, other.values) for other in others)


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_a_secure_sum_is_the_plain_sum_of_the_same_votes(
    typed: TypedWords, randomizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever devices drew: the protocol's total of their votes is, bit by bit, what adding them up gives."""
    asked, given = task(1.0, users=24, sampler="random", randomizer=randomizer), []

    def told(secure: SimulatedProtocol, devices: list[Any], others: Any, **bounds: int) -> Any:
        given.append((np.sum(devices, axis=0) + others, len(devices)))
        return secure_total(secure, devices, others, **bounds)

    monkeypatch.setattr(collect, "secure_total", told)
    made = SecurelySummed(typed=typed, assignment=2, seed=8, secure=SimulatedProtocol(devices=5))
    votes = asked_of(made, asked).values
    [(plain, playing)] = given
    assert playing == 5 and np.array_equal(votes, plain)


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_sums_are_of_one_law(typed: TypedWords, randomizer: str) -> None:
    """Votes of both roads over 300 groups, answer by answer; votes of another epsilon are told apart."""
    asked = task(2.0, sampler="random", randomizer=randomizer)
    wrong = replace(asked, settings=replace(asked.settings, local_epsilon=1.0))
    slow, fast, other = (
        np.array([asked_of(of(typed=typed, assignment=2, seed=8), replace(each, round=n)).values for n in range(300)])
        for of, each in ((UsersOneByOne, asked), (AtOnce, replace(asked)), (AtOnce, wrong))
    )
    same = [ks_2samp(slow[:, answer], fast[:, answer]).pvalue for answer in range(PREFIXES.domain)]
    apart = [ks_2samp(slow[:, answer], other[:, answer]).pvalue for answer in range(PREFIXES.domain)]
    assert min(same) > 0.005
    assert min(apart) < 1e-4
