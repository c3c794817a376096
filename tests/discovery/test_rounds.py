"""Discovery runs: what they find without noise and with it, users asked once, what is kept, what is refused."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tacit.data.unknown_words import TypedWords
from tacit.discovery.collect import AtOnce, UserGroups
from tacit.discovery.rounds import LAYERS, Discovery, discover, least_votes
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.errors import InputError, ParticipationError
from tacit.privacy.local_anonymity import Anonymity
from tacit.progress import Advanced, Event, StageBegan
from tacit.randomizers.registry import RANDOMIZERS
from tacit.records import from_plain, to_plain
from tacit.statements import Ledger, LocalReports
from tacit.text.alphabet import Alphabet

ABC = Alphabet("abc")
NO_NOISE = 30.0  # an epsilon at which a report is its answer but with probability 1e-11


def one_word_each(counts: dict[str, int]) -> TypedWords:
    """A population of clients with one word each."""
    words = sorted(counts)
    word_of = np.repeat(np.arange(len(words), dtype=np.int32), [counts[word] for word in words])
    clients = len(word_of)
    return TypedWords(
        words=tuple(words),
        offsets=np.arange(clients + 1, dtype=np.int64),
        word_of=word_of,
        counts=np.ones(clients, np.int32),
        typed=np.full(clients, 2, np.int64),
    )


def zipf(words: int, clients: int) -> dict[str, int]:
    """Words over three letters with Zipf's counts, shorter ones first: a, b, c, aa, ab, ..."""
    shares = 1 / np.arange(1, words + 1)
    spelt = []
    for number in range(1, words + 1):
        word = ""
        while number:
            number, letter = divmod(number - 1, 3)
            word = "abc"[letter] + word
        spelt.append(word)
    return dict(zip(spelt, np.maximum(1, clients * shares / shares.sum()).astype(int).tolist(), strict=True))


class Memory:
    """A journal in memory that refuses to go on after some steps."""

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.steps: dict[str, Any] = {}
        self.left = breaks_after

    def read(self, name: str) -> tuple[LocalReports, dict[str, Any]] | None:
        if name not in self.steps:
            return None
        release, output = json.loads(self.steps[name])
        return from_plain(LocalReports, release), output

    def write(self, name: str, release: LocalReports, output: dict[str, Any], participants: int) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.steps[name] = json.dumps([to_plain(release), output])


def settings(**changes: Any) -> DiscoverySettings:
    reports = LocalReportSettings(
        local_epsilon=changes.pop("epsilon", NO_NOISE), contributions=changes.pop("contributions", 1)
    )
    given: dict[str, Any] = {
        "users_per_layer": 2000,
        "prefixes": 50,
        "depth": 6,
        "alphabet": ABC,
        "resample_users": True,
        "seed": 7,
    }
    return DiscoverySettings(reports=reports, **{**given, **changes})


def asked(
    of: DiscoverySettings, typed: TypedWords, journal: Memory | None = None, *, assignment: int = 1, **more: Any
) -> Discovery:
    """What a run finds in a population that is simulated at once."""
    collector = AtOnce(typed=typed, assignment=assignment, resampled=of.resample_users, seed=of.seed)
    return discover(of, collector, journal or Memory(), population=typed.clients, **more)


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 3), min_size=1, max_size=12),
    st.integers(1, 2),
)
def test_without_noise_and_with_room_every_word_is_found(counts: dict[str, int], passes: int) -> None:
    """Every word that fits is found when every word is certain to be drawn; longer words never are."""
    typed = one_word_each(counts)
    found = asked(settings(passes=passes), typed)
    assert set(found.words) == {word for word in counts if len(word) < 6}
    assert len(found.words) == len(set(found.words))


def test_known_words_are_not_output_and_a_second_pass_finds_new_ones() -> None:
    typed = one_word_each(zipf(30, 3000))
    once = asked(settings(prefixes=6), typed)
    twice = asked(settings(prefixes=6, passes=2), typed)
    assert twice.words[: len(once.words)] == once.words
    assert len(twice.words) > len(once.words)
    without = asked(settings(prefixes=6), typed, known={once.words[0]})
    assert once.words[0] not in without.words


def test_interrupted_anywhere_the_result_is_the_same() -> None:
    typed = one_word_each(zipf(60, 4000))
    of = settings(epsilon=3.0, passes=2, counting_users=3000)
    whole = asked(of, typed, assignment=3)
    journal = Memory()
    interruptions = 0
    while True:
        journal.left = 1
        try:
            resumed = asked(of, typed, journal, assignment=3)
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions >= len(whole.layers)
    assert resumed == whole
    assert asked(of, typed, journal, assignment=3) == whole
    assert asked(settings(epsilon=3.0, passes=2, seed=8), typed, assignment=3).layers != whole.layers


def test_the_operating_system_gives_the_randomness_where_no_seed_does() -> None:
    typed = one_word_each(zipf(60, 4000))
    first, second = (asked(settings(epsilon=2.0, seed=None), typed, assignment=3) for _ in range(2))
    assert first.layers != second.layers


@given(st.integers(3, 500), st.integers(2, 20), st.sampled_from(["even", "middle"]))
def test_an_allocation_asks_as_many_in_all(users: int, depth: int, allocation: str) -> None:
    sizes = settings(users_per_layer=users, depth=depth, allocation=allocation).users_of_layers
    assert sum(sizes) == users * depth
    assert min(sizes) >= 1 and (allocation == "middle" or set(sizes) == {users})


def test_layers_of_different_sizes_share_nobody() -> None:
    """With each of 120 clients asked once, all letters they hold are voted on as often as there are holders."""
    typed = one_word_each({"a": 60, "b": 60})
    of = settings(users_per_layer=10, depth=4, passes=3, allocation="middle", resample_users=False)
    found = asked(of, typed, assignment=2)
    assert [layer.release.users for layer in found.layers if layer.release.turn == 1] == list(of.users_of_layers)[:2]
    groups = UserGroups(clients=120, assignment=2)
    starts = np.concatenate([[0], np.cumsum(of.users_of_layers * 3)])
    together = [groups.group(int(begin), int(end - begin)) for begin, end in pairwise(starts)]
    assert np.sum(together, axis=0).tolist() == [1] * 120


def test_too_few_users_are_refused_before_anybody_is_asked() -> None:
    typed = one_word_each({"a": 50, "b": 49})
    small = settings(users_per_layer=16, counting_users=4, resample_users=False)
    journal = Memory(breaks_after=0)
    with pytest.raises(ParticipationError, match=r"asks 100 users, the population has 99; .*--resample-users"):
        asked(small, typed, journal)
    enough = asked(settings(users_per_layer=16, counting_users=3, resample_users=False), typed, assignment=1)
    assert set(enough.words) == {"a", "b"}
    with pytest.raises(ParticipationError, match="no client"):
        asked(settings(), one_word_each({}))


def test_clients_who_hold_nothing_are_no_error() -> None:
    silent = TypedWords(
        words=(),
        offsets=np.zeros(6, np.int64),
        word_of=np.empty(0, np.int32),
        counts=np.empty(0, np.int32),
        typed=np.full(5, 2, np.int64),
    )
    found = asked(settings(epsilon=1.0, counting_users=50), silent)
    assert found.counts is not None and found.counts.coverage is None


def test_words_that_cannot_be_found_count_against_coverage() -> None:
    typed = one_word_each({"d": 500, "aaaaaa": 250, "a": 250})  # outside the alphabet, and too long for six layers
    found = asked(settings(counting_users=8000), typed)
    assert found.words == ("a",)
    assert found.counts is not None and found.counts.coverage is not None
    assert found.counts.coverage.value == pytest.approx(0.25, abs=0.02)


def coverage(found: Discovery, counts: dict[str, int]) -> float:
    return sum(counts.get(word, 0) for word in found.words) / sum(counts.values())


def test_coverage_on_a_zipf_population_is_what_theory_predicts() -> None:
    """A word of share f is found when its votes stand above the noise in its worst layer.

    With votes of word and noise normal, it is kept with probability Phi((f N (p - q) - (t - N q)) / sd) where t is the
    threshold; the last layer of a word (its own share) is the hardest. Words are two symbols and the end.
    """
    counts = zipf(39, 200_000)
    typed = one_word_each(counts)
    anonymity = Anonymity(k=1, delta=1e-3)
    of = settings(epsilon=2.0, users_per_layer=20_000, prefixes=200, anonymity=anonymity, depth=5)
    results = [asked(replace(of, seed=seed), typed, assignment=seed) for seed in range(12)]
    measured = np.mean([coverage(found, counts) for found in results])
    last = next(layer for layer in results[0].layers if layer.release.layer == 3)
    randomizer = of.reports.randomizer_for(last.release.domain)
    p, q, n = randomizer.p, randomizer.q, of.users_per_layer
    shares = np.array(list(counts.values())) / sum(counts.values())
    spread = np.sqrt(n * q * (1 - q) + n * shares * (p * (1 - p) + (p - q) ** 2 * (1 - shares)))
    predicted = (shares * norm.cdf((n * (shares * (p - q) + q) - last.release.least_votes) / spread)).sum()
    assert measured == pytest.approx(predicted, abs=0.03)
    assert abs(measured - (shares * norm.cdf((n * shares * (p - q)) / spread)).sum()) > 0.05  # with no threshold


def test_the_threshold_keeps_noise_out() -> None:
    """Three of 27 words exist; top-L alone outputs noise at a small epsilon, the threshold next to none."""
    typed = one_word_each({"aaa": 400, "bbb": 300, "ccc": 300})
    plain = asked(settings(epsilon=2.0, prefixes=60), typed)
    private = asked(settings(epsilon=2.0, prefixes=60, anonymity=Anonymity(k=20, delta=1e-4)), typed, assignment=1)
    assert len(plain.words) > 20
    assert set(private.words) == {"aaa", "bbb", "ccc"}
    shared = settings(epsilon=2.0, users_per_layer=500, passes=4, anonymity=Anonymity(k=9, delta=0.04))
    alone = settings(epsilon=2.0, users_per_layer=500, anonymity=Anonymity(k=9, delta=0.01))
    assert least_votes(shared, 500, 101) == least_votes(alone, 500, 101)  # each of four passes has a fourth of delta


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
@pytest.mark.parametrize("epsilon", [0.05, 4.0, 20.0, 30.0])
def test_every_randomizer_has_a_guarantee(randomizer: Any, epsilon: float) -> None:
    """Also where 1 - p is hardly more than the rounding of p."""
    reports = LocalReportSettings(local_epsilon=epsilon, randomizer=randomizer)
    found = asked(replace(settings(users_per_layer=60, depth=3), reports=reports), one_word_each({"a": 9}))
    ledger = Ledger(tuple(layer.release for layer in found.layers))
    assert ledger.local_guarantee(central_delta=1e-8).central.epsilon_upper <= epsilon


@pytest.mark.parametrize(
    "wrong",
    [
        {"users_per_layer": 0},
        {"passes": 0},
        {"prefixes": 0},
        {"depth": 1},
        {"counting_users": -1},
        {"seed": -1},
        {"allocation": "late"},
        {"allocation": "middle", "users_per_layer": 1},
        {"epsilon": 0.0},
        {"contributions": 0},
        {"anonymity": Anonymity(k=2001, delta=0.1)},  # more than a layer has reports
        {"prefixes": 2**31},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        settings(**wrong)
    for anonymity in ((0, 0.1), (3, 0.0), (3, 1.0)):
        with pytest.raises(InputError):
            Anonymity(k=anonymity[0], delta=anonymity[1])


def test_layers_are_told_as_they_are_done() -> None:
    seen: list[Event] = []
    typed = one_word_each({"a": 3, "ab": 4})
    found = asked(settings(passes=2, counting_users=9), typed, journal := Memory(), progress=seen.append)
    assert Counter(layer.release.turn for layer in found.layers) == {1: 3, 2: 1}
    told = [event for event in seen if isinstance(event, Advanced)]
    assert seen[0] == StageBegan(LAYERS, 12) and [event.done for event in told] == [1, 2, 3, 7]
    assert told[2].figures == {"pass": 1, "layer": 3, "prefixes": 0, "users": 6000, "words": 2}
    again: list[Event] = []
    assert asked(settings(passes=2, counting_users=9), typed, journal, progress=again.append) == found
    assert again == seen  # what was kept is told, too
