"""A campaign's statement: what weakens it comes first, every figure follows from the ledger, tampering is caught."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.statements.facts import DISCOVERY
from tests.support.statements.releases import LAYERS

from tacit.errors import AccountingError, InputError
from tacit.privacy.local_supports import SUPPORTS
from tacit.statements.statement import checksum, statement
from tacit.statements.verify import verify

RECORD = json.loads(statement(DISCOVERY).to_json())


def tampered(path: str, value: Any) -> dict[str, Any]:
    record: Any = copy.deepcopy(RECORD)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner = record
    for step in way:
        inner = inner[step]
    inner[last] = value
    return record  # type: ignore[no-any-return]


def failing(record: dict[str, Any]) -> list[str]:
    return [line.name for line in verify(record) if not line.holds]


def test_an_honest_statement_verifies_line_by_line() -> None:
    lines = verify(RECORD)
    assert all(line.holds for line in lines)
    names = {line.name for line in lines}
    assert {"guarantee.central_epsilon_item", "users", "words", "facts.releases.3.users", "items.7.text"} <= names


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("users", 8600),
        ("layers", 4),
        ("words", 4),
        ("guarantee.local_epsilon_item", 3.9),
        ("guarantee.local_epsilon_user", 4.0),
        ("guarantee.central_epsilon_item", 0.01),
        ("guarantee.central_epsilon_item_lower", 0.01),
        ("guarantee.central_epsilon_user", 0.02),
        ("guarantee.central_delta", 1e-9),
        ("guarantee.smallest_group", 5000),
        ("anonymity.delta_of_thresholds", 1e-9),
        ("anonymity.k", 50),
        ("items.7.text", "Central: epsilon = 0.001."),
        ("format", "tacit discovery statement 1"),
    ],
)
def test_a_changed_figure_is_found_by_its_name(path: str, value: Any) -> None:
    expected = [] if path == "format" else [path]
    assert failing(tampered(path, value)) == expected


def test_a_changed_fact_is_found_with_what_follows_from_it() -> None:
    record = tampered("facts.releases.1.users", 1990)
    assert failing(record)[0] == "facts.releases.1.users"
    record["checksums"]["releases.1.users"] = checksum("releases.1.users", 1990)
    assert "users" in failing(record) and "items.1.text" in failing(record)


def test_facts_without_a_guarantee_are_refused_by_name() -> None:
    """Even with their checksums made anew: users asked twice, an unknown kind of release, a promise not kept."""
    for path, value, says in (
        ("releases.1.first_user", 2999, "asked in layer 1 of pass 1 and again"),
        ("releases.1.what", "a survey", "none of 'prefix votes', 'word counts'"),
        ("anonymity.k", 50, "the thresholds of the layers promise"),
        ("releases.0.least_votes", 1, "the thresholds of the layers promise"),
        ("population", 8000, "some were asked twice"),
        ("sampler", "honest", "none of random, greedy"),
        ("key_source", "dice", "fixed seed N"),
        ("anonymity.delta", None, "a number was expected"),
        ("population", "many", "a whole number was expected"),
        ("releases", 3, "a list was expected"),
    ):
        record = tampered(f"facts.{path}", value)
        record["checksums"][path] = checksum(path, value)
        complaints = {line.name: line.complaint for line in verify(record) if not line.holds}
        assert says in str(complaints["facts"]), path
    record = copy.deepcopy(RECORD)
    del record["facts"]["sampler"], record["checksums"]["sampler"]
    assert failing(record) == ["facts"]


def test_what_weakens_it_stands_first_and_in_capitals() -> None:
    plain = statement(DISCOVERY).markdown()
    assert plain.startswith("# Privacy statement")
    facts = replace(DISCOVERY, key_source="fixed seed 3", resampled=True, population=20, vocabulary_kind="private")
    lines = statement(facts).markdown().splitlines()
    labels = [line.split(":")[0].strip("*") for line in lines if line.startswith("**")]
    assert labels == ["FIXED SEED", "RESAMPLED USERS", "VOCABULARY FROM PRIVATE TEXT"]
    assert lines.index("# Privacy statement of a discovery of new words") > 4
    assert "Whoever has the seed" in lines[0] and "Nothing is promised to those clients" in lines[2]


def test_a_large_epsilon_is_a_label() -> None:
    loud = []
    for layer in LAYERS:
        support = SUPPORTS["k-ary"](layer.domain, 25.0)
        numbers = dict(local_epsilon=25.0, randomizer="k-ary", own_support=support.p, other_support=support.q)
        loud.append(replace(layer, **numbers, contributions=1))
    labels = [label.name for label in statement(replace(DISCOVERY, releases=tuple(loud), anonymity=None)).labels]
    assert labels == ["VERY LARGE LOCAL EPSILON", "VERY LARGE CENTRAL EPSILON"]


def test_the_statement_says_every_item_in_words() -> None:
    said = statement(DISCOVERY).markdown()
    for part in (
        "8,500 users of a population of 9,000",
        "a public list",
        "made-up truth",
        "3 words",
        "1,000 further users",
        "at most one answer",
        "Replace-one",
        "everything a user answered (2 answers): epsilon = 8.",
        "fewer than 5 of those asked",
        "nobody in common",
        "simulated in the clear",
        "tacit verify statement.json",
    ):
        assert part in said
    assert "what a single user typed can be output" in statement(replace(DISCOVERY, anonymity=None)).markdown()


def test_facts_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="some were asked twice"):
        replace(DISCOVERY, population=8499)
    with pytest.raises(InputError, match="not a probability between 0 and 1"):
        replace(DISCOVERY, central_delta=0.0)
    with pytest.raises(AccountingError, match="empty"):
        replace(DISCOVERY, releases=())
