"""Campaigns: what they find without noise and with it, users asked once, steps kept, refusals before the start."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tacit.data.unknown_words import TypedWords
from tacit.discovery.alphabet import Alphabet
from tacit.discovery.campaign_folder import CampaignFolder
from tacit.discovery.device import Terms
from tacit.discovery.report_sums import Crowd
from tacit.discovery.rounds import Discovery, Layer, discover, least_votes
from tacit.discovery.settings import Campaign
from tacit.errors import InputError, ParticipationError, RunError, UnknownRelease
from tacit.privacy.local_anonymity import Anonymity
from tacit.statements import Ledger
from tacit.statements.local_releases import rare_output

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

    def read(self, name: str) -> dict[str, Any] | None:
        return json.loads(self.steps[name]) if name in self.steps else None

    def write(self, name: str, record: Any) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.steps[name] = json.dumps(record)


def campaign(**changes: Any) -> Campaign:
    terms = Terms(local_epsilon=changes.pop("epsilon", NO_NOISE), contributions=changes.pop("contributions", 1))
    settings: dict[str, Any] = {
        "users_per_layer": 2000,
        "prefixes": 50,
        "depth": 6,
        "alphabet": ABC,
        "resample_users": True,
        "seed": 7,
    }
    return Campaign(terms=terms, **{**settings, **changes})


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 3), min_size=1, max_size=12),
    st.integers(1, 2),
)
def test_without_noise_and_with_room_every_word_is_found(counts: dict[str, int], passes: int) -> None:
    """Every word that fits is found when every word is certain to be drawn; longer words never are."""
    typed = one_word_each(counts)
    found = discover(campaign(passes=passes), typed, Memory(), assignment=1)
    assert set(found.words) == {word for word in counts if len(word) < 6}
    assert len(found.words) == len(set(found.words))


def test_known_words_are_not_output_and_a_second_pass_finds_new_ones() -> None:
    typed = one_word_each(zipf(30, 3000))
    once = discover(campaign(prefixes=6), typed, Memory(), assignment=1)
    twice = discover(campaign(prefixes=6, passes=2), typed, Memory(), assignment=1)
    assert twice.words[: len(once.words)] == once.words
    assert len(twice.words) > len(once.words)
    without = discover(campaign(prefixes=6), typed, Memory(), assignment=1, known={once.words[0]})
    assert once.words[0] not in without.words


def test_interrupted_anywhere_the_result_is_the_same() -> None:
    typed = one_word_each(zipf(60, 4000))
    asked = campaign(epsilon=3.0, passes=2, counting_users=3000)
    whole = discover(asked, typed, Memory(), assignment=3)
    journal = Memory()
    interruptions = 0
    while True:
        journal.left = 1
        try:
            resumed = discover(asked, typed, journal, assignment=3)
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions >= len(whole.layers)
    assert resumed == whole
    assert discover(asked, typed, journal, assignment=3) == whole
    assert discover(campaign(epsilon=3.0, passes=2, seed=8), typed, Memory(), assignment=3).layers != whole.layers


def test_the_operating_system_gives_the_randomness_where_no_seed_does() -> None:
    typed = one_word_each(zipf(60, 4000))
    first, second = (discover(campaign(epsilon=2.0, seed=None), typed, Memory(), assignment=3) for _ in range(2))
    assert first.layers != second.layers


def test_nobody_is_asked_twice() -> None:
    crowd = Crowd(clients=100, assignment=5)
    asked = np.sum([crowd.group(10 * number, 10) for number in range(10)], axis=0)
    assert asked.tolist() == [1] * 100
    assert Crowd(clients=100, assignment=6).group(0, 10).tolist() != crowd.group(0, 10).tolist()
    drawn = Crowd(clients=100, assignment=5, resampled=True).group(0, 50_000)
    assert drawn.sum() == 50_000 and drawn.min() > 380 and drawn.max() < 640


@given(st.integers(3, 500), st.integers(2, 20), st.sampled_from(["even", "middle"]))
def test_an_allocation_asks_as_many_in_all(users: int, depth: int, allocation: str) -> None:
    sizes = campaign(users_per_layer=users, depth=depth, allocation=allocation).users_of_layers
    assert sum(sizes) == users * depth
    assert min(sizes) >= 1 and (allocation == "middle" or set(sizes) == {users})


def test_layers_of_different_sizes_share_nobody() -> None:
    """With each of 120 clients asked once, all letters they hold are voted on as often as there are holders."""
    typed = one_word_each({"a": 60, "b": 60})
    asked = campaign(users_per_layer=10, depth=4, passes=3, allocation="middle", resample_users=False)
    found = discover(asked, typed, Memory(), assignment=2)
    assert [layer.release.users for layer in found.layers if layer.release.turn == 1] == list(asked.users_of_layers)[:2]
    crowd = Crowd(clients=120, assignment=2)
    starts = np.concatenate([[0], np.cumsum(asked.users_of_layers * 3)])
    together = [crowd.group(int(begin), int(end - begin)) for begin, end in pairwise(starts)]
    assert np.sum(together, axis=0).tolist() == [1] * 120


def test_too_few_users_are_refused_before_anybody_is_asked() -> None:
    typed = one_word_each({"a": 50, "b": 49})
    small = campaign(users_per_layer=16, counting_users=4, resample_users=False)
    journal = Memory(breaks_after=0)
    with pytest.raises(ParticipationError, match=r"asks 100 users, the population has 99; .*--resample-users"):
        discover(small, typed, journal, assignment=1)
    enough = discover(
        campaign(users_per_layer=16, counting_users=3, resample_users=False), typed, Memory(), assignment=1
    )
    assert set(enough.words) == {"a", "b"}
    with pytest.raises(ParticipationError, match="no client"):
        discover(campaign(), one_word_each({}), Memory(), assignment=1)


def test_clients_who_hold_nothing_are_no_error() -> None:
    silent = TypedWords(
        words=(),
        offsets=np.zeros(6, np.int64),
        word_of=np.empty(0, np.int32),
        counts=np.empty(0, np.int32),
        typed=np.full(5, 2, np.int64),
    )
    found = discover(campaign(epsilon=1.0, counting_users=50), silent, Memory(), assignment=1)
    assert found.counts is not None and found.counts.coverage is None


def test_words_that_cannot_be_found_count_against_coverage() -> None:
    typed = one_word_each({"d": 500, "aaaaaa": 250, "a": 250})  # outside the alphabet, and too long for six layers
    found = discover(campaign(counting_users=8000), typed, Memory(), assignment=1)
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
    asked = campaign(epsilon=2.0, users_per_layer=20_000, prefixes=200, anonymity=anonymity, depth=5)
    results = [discover(replace(asked, seed=seed), typed, Memory(), assignment=seed) for seed in range(12)]
    measured = np.mean([coverage(found, counts) for found in results])
    last = next(layer for layer in results[0].layers if layer.release.layer == 3)
    randomizer = asked.terms.randomizer_for(last.release.domain)
    p, q, n = randomizer.p, randomizer.q, asked.users_per_layer
    shares = np.array(list(counts.values())) / sum(counts.values())
    spread = np.sqrt(n * q * (1 - q) + n * shares * (p * (1 - p) + (p - q) ** 2 * (1 - shares)))
    predicted = (shares * norm.cdf((n * (shares * (p - q) + q) - last.release.least_votes) / spread)).sum()
    assert measured == pytest.approx(predicted, abs=0.03)
    assert abs(measured - (shares * norm.cdf((n * shares * (p - q)) / spread)).sum()) > 0.05  # with no threshold


def test_the_threshold_keeps_noise_out() -> None:
    """Three of 27 words exist; top-L alone outputs noise at a small epsilon, the threshold next to none."""
    typed = one_word_each({"aaa": 400, "bbb": 300, "ccc": 300})
    plain = discover(campaign(epsilon=2.0, prefixes=60), typed, Memory(), assignment=1)
    private = discover(
        campaign(epsilon=2.0, prefixes=60, anonymity=Anonymity(k=20, delta=1e-4)), typed, Memory(), assignment=1
    )
    assert len(plain.words) > 20
    assert set(private.words) == {"aaa", "bbb", "ccc"}
    shared = Campaign(
        terms=Terms(local_epsilon=2.0), users_per_layer=500, passes=4, anonymity=Anonymity(k=9, delta=0.04)
    )
    alone = Campaign(terms=Terms(local_epsilon=2.0), users_per_layer=500, anonymity=Anonymity(k=9, delta=0.01))
    assert least_votes(shared, 500, 101) == least_votes(alone, 500, 101)  # each of four passes has a fourth of delta


def test_the_ledger_in_the_folder_is_what_was_released(tmp_path: Path) -> None:
    """Groups one after another, whatever the layers found; the thresholds keep what was asked for."""
    asked = campaign(
        epsilon=3.0, passes=2, counting_users=500, anonymity=Anonymity(k=9, delta=1e-3), allocation="middle"
    )
    typed = one_word_each(zipf(30, 3000))
    with CampaignFolder.opened(tmp_path / "run", asked.to_record()) as folder:
        found = discover(asked, typed, folder, assignment=folder.assignment)
        ledger = folder.ledger()
    assert [*ledger.releases[:-1]] == [layer.release for layer in found.layers]
    assert (ledger.releases[-1].what, ledger.releases[-1].words) == ("word counts", len(found.words))
    guarantee = ledger.local_guarantee(central_delta=1e-8)
    assert guarantee.item_epsilon == 3.0
    assert [group.users for group in guarantee.groups] == [release.users for release in ledger.releases]
    assert rare_output(ledger.local_reports, 9) <= 1e-3 < rare_output(ledger.local_reports, 12)


@pytest.mark.parametrize("randomizer", ["subset-selection", "projective-geometry", "k-ary"])
@pytest.mark.parametrize("epsilon", [0.05, 4.0, 20.0, 30.0])
def test_every_randomizer_has_a_guarantee(randomizer: Any, epsilon: float) -> None:
    """Also where 1 - p is hardly more than the rounding of p."""
    terms = Terms(local_epsilon=epsilon, randomizer=randomizer)
    found = discover(
        replace(campaign(users_per_layer=60, depth=3), terms=terms), one_word_each({"a": 9}), Memory(), assignment=1
    )
    ledger = Ledger(tuple(layer.release for layer in found.layers))
    assert ledger.local_guarantee(central_delta=1e-8).central.epsilon_upper <= epsilon


def test_settings_survive_their_record() -> None:
    for asked in (campaign(), campaign(anonymity=Anonymity(k=3, delta=0.1), seed=None)):
        assert Campaign.from_record(asked.to_record()) == asked


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
        campaign(**wrong)
    for anonymity in ((0, 0.1), (3, 0.0), (3, 1.0)):
        with pytest.raises(InputError):
            Anonymity(k=anonymity[0], delta=anonymity[1])


def test_a_folder_keeps_steps_and_refuses_other_settings(tmp_path: Path) -> None:
    asked = {"depth": 6, "seed": 5, "alphabet": "abc"}
    with CampaignFolder.opened(tmp_path / "run", asked) as folder:
        assert folder.assignment == 5
        assert folder.read("pass-1-layer-01") is None
        folder.write("pass-1-layer-01", {"prefixes": ["ñ"]})
        (tmp_path / "run" / "steps" / ".pass-1-layer-02.json.99.draft").write_text("half")
        with pytest.raises(RunError, match="in use"), CampaignFolder.opened(tmp_path / "run", asked):
            pass
    with CampaignFolder.opened(tmp_path / "run", asked) as folder:
        assert folder.read("pass-1-layer-01") == {"prefixes": ["ñ"]}
        assert not list((tmp_path / "run" / "steps").glob(".*"))
    with (
        pytest.raises(RunError, match=r"depth=7 \(it has 6\)"),
        CampaignFolder.opened(tmp_path / "run", {**asked, "depth": 7}),
    ):
        pass
    with pytest.raises(UnknownRelease):  # never skipped
        CampaignFolder.reading(tmp_path / "run").ledger()
    (tmp_path / "run" / "steps" / "pass-1-layer-01.json").write_text("[1]")
    with pytest.raises(RunError, match="no step"):
        CampaignFolder.reading(tmp_path / "run").ledger()
    (tmp_path / "run" / "steps" / "pass-1-layer-01.json").write_text("{")
    with pytest.raises(RunError, match="damaged"):
        CampaignFolder.reading(tmp_path / "run").read("pass-1-layer-01")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(RunError, match="left alone"), CampaignFolder.opened(tmp_path / "other", asked):
        pass
    with pytest.raises(RunError, match="no campaign"):
        CampaignFolder.reading(tmp_path / "nothing")


def test_without_a_seed_who_is_asked_is_drawn_once_and_kept(tmp_path: Path) -> None:
    with CampaignFolder.opened(tmp_path / "a", {"depth": 6}) as folder:
        drawn = folder.assignment
    with CampaignFolder.opened(tmp_path / "a", {"depth": 6}) as folder:
        assert folder.assignment == drawn
    with CampaignFolder.opened(tmp_path / "b", {"depth": 6}) as folder:
        assert folder.assignment != drawn


def test_a_layer_survives_its_record() -> None:
    found = discover(campaign(), one_word_each({"a": 3, "ab": 4}), (journal := Memory()), assignment=1)
    assert [Layer.from_record(json.loads(text)) for text in journal.steps.values()] == list(found.layers)
    assert Counter(layer.release.turn for layer in found.layers) == {1: 3}
