"""The population at once is the devices one by one: the same answers under the same numbers, votes of the same law."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from tacit.data import ClientText
from tacit.data.unknown_words import TypedWords, read_typed_words
from tacit.discovery.alphabet import Alphabet
from tacit.discovery.collect import holders_of, votes_of
from tacit.discovery.device import PrefixQuestion, Question, Terms, WordQuestion, answers, reports, uniforms_from
from tacit.discovery.trie import Tally

ABC = Alphabet("abc")


class Phones:
    """Clients who typed these words, blank-separated."""

    description = "phones"
    expected_clients = None
    left_out: dict[str, int] = {}  # noqa: RUF012

    def __init__(self, clients: list[dict[str, int]]) -> None:
        self._clients = clients

    def clients(self):  # type: ignore[no-untyped-def]
        for number, words in enumerate(self._clients):
            text = " ".join(word for word, count in words.items() for _ in range(count))
            yield ClientText(client_id=str(number), texts=[text], split="train")


def population(clients: list[dict[str, int]]) -> TypedWords:
    return read_typed_words(Phones(clients), lambda texts: Counter(texts[0].split()), frozenset())


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
terms = st.builds(
    Terms,
    local_epsilon=st.just(2.0),
    contributions=st.integers(1, 4),
    sampler=st.sampled_from(["random", "greedy"]),
)


@given(clients, questions, terms, st.integers(0, 2**32), st.integers(1, 3))
def test_a_client_answers_as_its_device_does(
    phones: list[dict[str, int]], question: Question, asked: Terms, seed: int, times: int
) -> None:
    typed = population(phones)
    for client, words in enumerate(phones):
        users = np.zeros(len(phones), np.int64)
        users[client] = times
        numbers = uniforms_from(np.random.default_rng(seed), times * asked.contributions).reshape(times, -1)
        one_by_one = np.concatenate([answers(words, question, asked, row) for row in numbers])
        at_once = holders_of(typed, question, asked, users, np.random.default_rng(seed))
        assert at_once.tolist() == np.bincount(one_by_one, minlength=question.domain).tolist()


@given(clients, questions, terms)
def test_clients_add_up(phones: list[dict[str, int]], question: Question, asked: Terms) -> None:
    typed = population(phones)
    users = np.arange(1, len(phones) + 1)
    together = holders_of(typed, question, asked, users, np.random.default_rng(0))
    assert together.sum() == users.sum() * asked.contributions
    if asked.sampler == "greedy":
        alone = [
            holders_of(typed, question, asked, np.where(users == n, n, 0), np.random.default_rng(0)) for n in users
        ]
        assert together.tolist() == np.sum(alone, axis=0).tolist()


def test_uniform_numbers_that_run_out_change_nothing(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    typed = population([{"a": 1, "b": 1, "c": 1}, {"b": 2, "ca": 1, "cb": 3}])
    question, asked = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=4), Terms(local_epsilon=2.0)
    users = np.array([50, 60])
    at_once = holders_of(typed, question, asked, users, np.random.default_rng(4))
    monkeypatch.setattr("tacit.discovery.collect.UNIFORMS_AT_ONCE", 7)
    assert holders_of(typed, question, asked, users, np.random.default_rng(4)).tolist() == at_once.tolist()


def test_votes_have_the_law_of_the_devices_reports() -> None:
    """Vote counts of both roads over 300 repetitions, answer by answer; votes of another epsilon are told apart."""
    phones = [{"a": 3, "ab": 1, "b": 1}, {"b": 1}, {}, {"cab": 2, "abc": 1, "b": 1}] * 3
    typed, users = population(phones), np.ones(12, np.int64)
    question, asked = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=5), Terms(local_epsilon=2.0, contributions=2)
    randomizer = asked.randomizer_for(question.domain)
    generator = np.random.default_rng(8)
    slow = np.zeros((300, question.domain))
    for row in slow:
        tally = Tally(randomizer)
        for phone in phones:
            tally.add(reports(phone, question, asked, generator))
        assert tally.reports == 24
        row[:] = tally.votes
    fast = np.array([votes_of(typed, question, asked, users, generator) for _ in range(300)])
    other = Terms(local_epsilon=1.0, contributions=2)
    wrong = np.array([votes_of(typed, question, other, users, generator) for _ in range(300)])
    same = [ks_2samp(slow[:, answer], fast[:, answer]).pvalue for answer in range(question.domain)]
    apart = [ks_2samp(slow[:, answer], wrong[:, answer]).pvalue for answer in range(question.domain)]
    assert min(same) > 0.01
    assert min(apart) < 1e-6
