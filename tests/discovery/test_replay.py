"""A run played again from what it published is the run; whatever else is published does not follow."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from tacit.discovery.collect import DiscoverQuestion
from tacit.discovery.replay import replayed
from tacit.discovery.rounds import Discovery, discover
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.federation.collector import Answered
from tacit.privacy.local_anonymity import Anonymity
from tacit.statements import LocalReports
from tacit.text.alphabet import Alphabet


class Memory:
    """A journal that keeps what it is given."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[LocalReports, dict[str, Any]]] = {}

    def read(self, name: str) -> None:
        return None

    def write(self, name: str, release: LocalReports, output: dict[str, Any], participants: int) -> None:
        self.steps[name] = (release, json.loads(json.dumps(output)))


def settings(**changes: Any) -> DiscoverySettings:
    reports = LocalReportSettings(local_epsilon=3.0)
    return DiscoverySettings(reports=reports, users_per_layer=2000, alphabet=Alphabet("abc"), seed=7, **changes)


class AnyVotes:
    """A collector whose sums are drawn at random, many of them equal."""

    def __init__(self, seed: int) -> None:
        self.draws = np.random.default_rng(seed)

    def init(self) -> tuple[()]:
        return ()

    def collect(self, state: Any, question: DiscoverQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        votes = self.draws.integers(0, 12, question.question.domain) * (question.reports // 12)
        return Answered(votes.astype(np.int64), question.users, question.users), state


def played(asked: DiscoverySettings, seed: int) -> tuple[Discovery, list[LocalReports], dict[str, Any]]:
    journal = Memory()
    found = discover(asked, AnyVotes(seed), journal, population=10**6, known={"ab"})
    return (
        found,
        [release for release, _ in journal.steps.values()],
        {name: output for name, (_, output) in journal.steps.items()},
    )


@trials(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    passes=st.integers(1, 2),
    depth=st.integers(2, 4),
    prefixes=st.integers(1, 9),
    counting=st.sampled_from([0, 500]),
    anonymity=st.sampled_from([None, Anonymity(k=20, delta=1e-3)]),
)
def test_what_a_run_published_gives_the_run_again(
    seed: int, passes: int, depth: int, prefixes: int, counting: int, anonymity: Anonymity | None
) -> None:
    asked = settings(passes=passes, depth=depth, prefixes=prefixes, counting_users=counting, anonymity=anonymity)
    found, ledger, steps = played(asked, seed)
    again = replayed(asked, ledger, steps)
    assert set(again.complaints.values()) == {None} and list(again.complaints) == list(steps)
    assert again.found == found


ASKED = settings(passes=2, depth=4, prefixes=9, counting_users=500)
_, LEDGER, STEPS = played(ASKED, seed=1)


def complaint(asked: DiscoverySettings, ledger: list[LocalReports], steps: dict[str, Any]) -> str:
    again = replayed(asked, ledger, steps)
    assert again.found is None
    (why,) = [each for each in again.complaints.values() if each is not None]
    return why


def changed(name: str, **output: Any) -> dict[str, Any]:
    return {**STEPS, name: {**STEPS[name], **output}}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (replace(ASKED, prefixes=8), "more than 8|domain"),
        (replace(ASKED, passes=1), "against the ledger"),
        (replace(ASKED, depth=5), "ledger|not among"),
        (replace(ASKED, alphabet=Alphabet("abcd")), "domain"),
        (replace(ASKED, users_per_layer=1999), "users|least_votes"),
        (replace(ASKED, allocation="middle"), "users"),
        (replace(ASKED, reports=replace(ASKED.reports, local_epsilon=2.9)), "local_epsilon"),
        (replace(ASKED, anonymity=Anonymity(k=20, delta=1e-3)), "least_votes"),
        (replace(ASKED, counting_users=0), "steps follow"),
        (replace(ASKED, counting_users=400), "users"),
    ],
)
def test_other_settings_give_another_run(asked: DiscoverySettings, why: str) -> None:
    assert re.search(why, complaint(asked, LEDGER, STEPS))


FIRST = STEPS["pass-1-layer-01"]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (changed("pass-1-layer-01", prefixes=FIRST["prefixes"][::-1]), "not in the order of their votes"),
        (changed("pass-1-layer-01", prefixes=["d", *FIRST["prefixes"][1:]]), "continues no prefix"),
        (changed("pass-1-layer-01", prefixes=[FIRST["prefixes"][1], *FIRST["prefixes"][1:]]), "not in the order"),
        (changed("pass-1-layer-01", prefix_votes=[10**9, *FIRST["prefix_votes"][1:]]), "has 1,000,000,000 votes"),
        (changed("pass-1-layer-01", prefix_votes=FIRST["prefix_votes"][1:]), "have"),
        (changed("pass-1-layer-02", prefixes=STEPS["pass-1-layer-02"]["prefixes"][:-1]), "prefixes"),
        (changed("counting", votes=STEPS["counting"]["votes"][:-1]), "there are not"),
        ({name: output for name, output in STEPS.items() if name != "pass-2-layer-01"}, "not among the published"),
        ({**STEPS, "pass-3-layer-01": STEPS["pass-1-layer-01"]}, "steps follow"),
        (changed("pass-1-layer-01", prefixes=7), "prefixes"),
    ],
)
def test_other_outputs_do_not_follow(steps: dict[str, Any], why: str) -> None:
    ledger = list(LEDGER)
    names = [name for name in STEPS]
    for name, output in steps.items():  # a forger mends the ledger too
        if name in names and isinstance(output.get("prefixes"), list):
            at = names.index(name)
            ledger[at] = replace(ledger[at], prefixes=len(output["prefixes"]), words=len(output["words"]))
    assert why in complaint(ASKED, ledger, steps)


def test_a_word_is_found_in_one_pass_only_and_is_no_empty_one() -> None:
    words = [word for name, output in STEPS.items() if name.startswith("pass-1") for word in output["words"]]
    assert words
    for false in (words[0], ""):
        name = f"pass-2-layer-{len(false) + 1:02d}"
        output = STEPS[name]
        assert false not in output["words"]
        output = {**output, "words": [false], "word_votes": [LEDGER[0].reports]}
        output["prefixes"] = output["prefixes"][:1]
        output["prefix_votes"] = output["prefix_votes"][:1]
        at = list(STEPS).index(name)
        ledger = list(LEDGER)
        ledger[at] = replace(ledger[at], prefixes=len(output["prefixes"]), words=1)
        why = complaint(ASKED, ledger, {**STEPS, name: output})
        assert "was found before" in why, why


def test_the_last_bits_of_another_machine_are_no_complaint() -> None:
    first = replace(LEDGER[0], own_support=LEDGER[0].own_support * (1 + 1e-13))
    assert replayed(ASKED, [first, *LEDGER[1:]], STEPS).found is not None
    first = replace(LEDGER[0], own_support=LEDGER[0].own_support * (1 - 1e-6))
    assert "own_support" in complaint(ASKED, [first, *LEDGER[1:]], STEPS)
