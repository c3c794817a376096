"""A group at once is its devices one by one: the same answers under the same numbers. The contract of collectors, which
says so of their sums, is in `tests/contracts`."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import ClientText
from tacit.data.unknown_words import TypedWords, read_typed_words
from tacit.discovery.collect import UserGroups, holders_of
from tacit.discovery.device_part import answers, uniforms_from
from tacit.discovery.question import PrefixQuestion, Question, WordQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.text.alphabet import Alphabet

ABC = Alphabet("abc")


class Typed:
    """Clients who typed these words, blank-separated."""

    description = "made-up clients"
    expected_clients = None
    left_out: dict[str, int] = {}  # noqa: RUF012

    def __init__(self, clients: list[dict[str, int]]) -> None:
        self._clients = clients

    def clients(self):  # type: ignore[no-untyped-def]
        for number, words in enumerate(self._clients):
            text = " ".join(word for word, count in words.items() for _ in range(count))
            yield ClientText(client_id=str(number), texts=[text], split="train")


def population(clients: list[dict[str, int]]) -> TypedWords:
    return read_typed_words(Typed(clients), lambda texts: Counter(texts[0].split()), frozenset())


clients = st.lists(
    st.dictionaries(st.text("abcd", min_size=1, max_size=4), st.integers(1, 4), max_size=9), min_size=1, max_size=5
)
questions = st.one_of(
    st.builds(
        PrefixQuestion,
        prefixes=st.sampled_from([("",), ("a", "c"), ("c", "b", "a"), ("ab", "cc"), ("abc",)]),
        alphabet=st.just(ABC),
        depth=st.integers(2, 5),
        found=st.sampled_from([frozenset(), frozenset({"a", "ab", "cc"})]),
    ),
    st.builds(WordQuestion, words=st.sampled_from([(), ("a",), ("cc", "ab", "b")])),
)
settings = st.builds(
    LocalReportSettings,
    local_epsilon=st.just(2.0),
    contributions=st.integers(1, 4),
    sampler=st.sampled_from(["random", "greedy"]),
)


@given(clients, questions, settings, st.integers(0, 2**32), st.integers(1, 3))
def test_a_client_answers_as_its_device_does(
    devices: list[dict[str, int]], question: Question, asked: LocalReportSettings, seed: int, times: int
) -> None:
    typed = population(devices)
    for client, words in enumerate(devices):
        users = np.zeros(len(devices), np.int64)
        users[client] = times
        numbers = uniforms_from(np.random.default_rng(seed), times * asked.contributions).reshape(times, -1)
        one_by_one = np.concatenate([answers(words, question, asked, row) for row in numbers])
        at_once = holders_of(typed, question, asked, users, np.random.default_rng(seed))
        assert at_once.tolist() == np.bincount(one_by_one, minlength=question.domain).tolist()


@given(clients, questions, settings)
def test_clients_add_up(devices: list[dict[str, int]], question: Question, asked: LocalReportSettings) -> None:
    typed = population(devices)
    users = np.arange(1, len(devices) + 1)
    together = holders_of(typed, question, asked, users, np.random.default_rng(0))
    assert together.sum() == users.sum() * asked.contributions
    if asked.sampler == "greedy":
        alone = [
            holders_of(typed, question, asked, np.where(users == n, n, 0), np.random.default_rng(0)) for n in users
        ]
        assert together.tolist() == np.sum(alone, axis=0).tolist()


def test_uniform_numbers_that_run_out_change_nothing(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    typed = population([{"a": 1, "b": 1, "c": 1}, {"b": 2, "ca": 1, "cb": 3}])
    question, asked = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=4), LocalReportSettings(local_epsilon=2.0)
    users = np.array([50, 60])
    at_once = holders_of(typed, question, asked, users, np.random.default_rng(4))
    monkeypatch.setattr("tacit.discovery.collect.UNIFORMS_AT_ONCE", 7)
    assert holders_of(typed, question, asked, users, np.random.default_rng(4)).tolist() == at_once.tolist()


def test_nobody_is_asked_twice() -> None:
    groups = UserGroups(clients=100, assignment=5)
    asked = np.sum([groups.group(10 * number, 10) for number in range(10)], axis=0)
    assert asked.tolist() == [1] * 100
    assert UserGroups(clients=100, assignment=6).group(0, 10).tolist() != groups.group(0, 10).tolist()
    drawn = UserGroups(clients=100, assignment=5, resampled=True).group(0, 50_000)
    assert drawn.sum() == 50_000 and drawn.min() > 380 and drawn.max() < 640
