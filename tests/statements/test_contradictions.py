"""No statement of what cannot have happened: each number of each kind of statement changed, restated as if true."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from tests.statements.every_training import FACTS, STATEMENTS, otherwise, places
from tests.support.statements.facts import CENTRAL, DISCOVERY, LOCAL, planned_facts

from tacit.errors import TacitError
from tacit.parsing import strict_json
from tacit.privacy import Tree
from tacit.privacy.measured_participation import realised_participation
from tacit.statements.statement import Facts, checksum, formats, leaves, statement
from tacit.statements.verify import verify

TRUE: dict[str, Facts] = {
    **STATEMENTS,
    "planned": planned_facts(Tree()),
    "words": DISCOVERY,
    "evaluation, central": CENTRAL,
    "evaluation, local": LOCAL,
}
RECORDS = {name: json.loads(statement(facts).to_json()) for name, facts in TRUE.items()}
IMPOSSIBLE = (-1, -0.5, True, None, "3", "nan", "-inf", "inf", [], {}, 10**20, math.nan)
LARGE = str(10**20)
# What no rule forbids, by the last parts of the name: a norm or noise of any size; no bound where there is no noise;
# what an audit showed, if anything yet.
ALLOWED = {
    ("mechanism.clip_norm", LARGE),
    ("mechanism.clip_norm", "inf"),
    ("mechanism.noise_multiplier", LARGE),
    ("clip_inflation", LARGE),
    ("audited.mu_shown", LARGE),
    ("audited.mu_shown", "None"),
}


def numbers(record: Any) -> list[tuple[Any, ...]]:
    """The place of every number."""

    def at(path: tuple[Any, ...]) -> Any:
        value = record
        for key in path:
            value = value[key]
        return value

    return [path for path in places(record) if type(at(path)) in (int, float)]


def put(record: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    record = copy.deepcopy(record)
    holder: Any = record
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new
    return record


def restated(facts: dict[str, Any], kind: str) -> str | None:
    """The complaint about these facts; None where a statement follows from them."""
    try:
        statement(formats()[kind].FACTS.from_record(facts)).to_json()
    except TacitError as error:
        return str(error)
    return None


@pytest.mark.parametrize("which", ["words", "evaluation, central", "evaluation, local", "planned"])
def test_every_number_changed_by_hand_fails(which: str) -> None:
    """Those of runs that train: tests/statements/test_verify.py changes every place, text too."""
    record = RECORDS[which]
    for path in numbers(record):
        value = record
        for key in path:
            value = value[key]
        assert any(not line.holds for line in verify(put(record, path, otherwise(value)))), path


@pytest.mark.parametrize("which", TRUE)
def test_no_number_of_the_facts_may_be_impossible(which: str) -> None:
    """Whoever makes the checksums and all that follows anew is still refused, by the facts alone."""
    record = RECORDS[which]
    assert restated(record["facts"], record["format"]) is None
    passed = {
        (".".join(str(part) for part in path), str(wrong))
        for path in numbers(record["facts"])
        for wrong in IMPOSSIBLE
        if restated(put(record["facts"], path, wrong), record["format"]) is None
    }
    allowed = {
        (name, wrong) for name, wrong in passed for end, value in ALLOWED if name.endswith(end) and wrong == value
    }
    assert passed == allowed


def contradicted(facts: Facts, **changes: Any) -> str:
    """The complaint of `verify` about a statement whose facts were changed, and all that follows from them anew."""
    record = json.loads(statement(facts).to_json())
    for name, value in changes.items():
        record = put(record, ("facts", *(int(key) if key.isdigit() else key for key in name.split("__"))), value)
    record["checksums"] = {name: checksum(name, value) for name, value in leaves(record["facts"])}
    (last,) = [line for line in verify(record) if line.name == "facts"]
    assert last.complaint is not None
    return last.complaint


ONCE = {"min_separation": 180, "max_participations": 1, "rounds": 180}


@pytest.mark.parametrize(
    ("facts", "changes", "says"),
    [
        (FACTS, {"population": 40, "report_goal": 9}, "90,000 participations of 40 clients are more than 5"),
        (FACTS, {"realised": ONCE, "population": 80_000}, "90,000 participations of 80,000 clients are more than 1"),
        (FACTS, {"realised__max_participations": 6}, "nobody comes 6 times in 180 rounds, 40 rounds apart"),
        (FACTS, {"realised__max_participations": 1}, "nobody came twice, and yet 40 of 180 rounds"),
        (FACTS, {"realised__rounds": 201}, "201 rounds were released of 200 planned"),
        (FACTS, {"participations": 179}, "no whole number from 180"),
        (FACTS, {"participations": None}, "counted in the log of a run that was made"),
        (FACTS, {"report_goal": 100_001}, "above the population"),
        (FACTS, {"population": 0}, "no whole number from 1"),
        (planned_facts(Tree()), {"population": 2_000_000}, "take 13,000,000 participations, and 2,000,000 clients"),
        (planned_facts(Tree()), {"simulated__max_participations": 1}, "nobody came twice"),
        (STATEMENTS["devices"], {"separation__rounds": 32}, "devices keep .*rounds=32.*, and what was planned is"),
        (STATEMENTS["devices"], {"separation__rounds": None}, "keep no separation"),
        (STATEMENTS["devices"], {"realised__min_separation": 30}, "devices that keep .*rounds=31.* came with"),
        (STATEMENTS["devices"], {"realised__max_participations": 7}, "nobody comes 7 times|devices that keep"),
        (STATEMENTS["devices"], {"realised__max_participations": 5}, "devices that keep .*rounds=31.* came with"),
        (STATEMENTS["devices that count"], {"separation__most": 5}, "devices keep .*most=5.*, and what was planned is"),
        (STATEMENTS["devices that count"], {"separation__most": 0}, "most=0"),
        (STATEMENTS["devices that count"], {"realised__max_participations": 3}, "devices that keep .* came with"),
        (STATEMENTS["devices"], {"participations": 179}, "no whole number from 180"),
        (STATEMENTS["devices with timers"], {"separation__timer_seconds": -1.0}, "timer_seconds=-1"),
        (STATEMENTS["devices with timers"], {"realised__max_participations": 6}, "nobody comes 6 times"),
        (STATEMENTS["several sequences"], {"also_released__0__what": "model update"}, "one stands there twice"),
        (STATEMENTS["several sequences"], {"also_released__0__what": "counts"}, "no theorem is known of"),
        (STATEMENTS["several sequences"], {"also_released__0__mechanism__clip_norm": 0.4}, "a bit minus 1/2 has norm"),
        (STATEMENTS["several sequences"], {"also_released__0__realised__rounds": 179}, "beside model updates with"),
        (CENTRAL, {"asked": 19}, "the releases are of more"),
        (CENTRAL, {"asked": 39}, "40 participations of 39 clients"),
        (CENTRAL, {"releases__1__round": 2}, "lie beyond|the steps"),
        (CENTRAL, {"participation": {"rounds": 3, "min_separation": 3, "max_participations": 1}}, "3 steps were taken"),
        (CENTRAL, {"releases__0__dropped": -1, "releases__0__reports": 21}, "dropped=-1"),
        (CENTRAL, {"releases__0__clip_norm": 3.5, "releases__1__clip_norm": 3.5}, "root of a number of histograms"),
        (LOCAL, {"releases__1__first_user": 20}, "asked in histogram 1"),
        (DISCOVERY, {"population": 8499}, "asked of a population of 8499|was asked of a population"),
        (DISCOVERY, {"releases__1__layer": 3}, "layers of pass 1 are numbered"),
        (DISCOVERY, {"releases__2__turn": 3}, "passes are numbered"),
        (DISCOVERY, {"releases__1__words": 2000}, "which cannot be"),
        (DISCOVERY, {"releases__0__least_votes": 7000}, "which cannot be"),
    ],
)
def test_what_cannot_have_happened_is_refused_though_all_else_was_made_to_fit(
    facts: Facts, changes: dict[str, Any], says: str
) -> None:
    import re

    assert re.search(says, contradicted(facts, **changes)), contradicted(facts, **changes)


def test_a_participation_that_a_log_can_have_is_none_of_these() -> None:
    """Against every log of three clients and three rounds in which somebody comes to each round."""
    from itertools import product

    from tacit.statements.contradictions import check_came

    rounds = [[c for c in range(3) if mask >> c & 1] for mask in range(1, 8)]
    for log in product(rounds, repeat=3):
        rows = [(at, client) for at, clients in enumerate(log) for client in clients]
        came = realised_participation(3, [at for at, _ in rows], [client for _, client in rows])
        check_came(came, len(rows), 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "key 'a' twice"),
        ('{"b": [{"a": 1, "c": 0, "a": 1}]}', "key 'a' twice"),
        ('{"a": NaN}', "no finite number"),
        ('{"a": -Infinity}', "no finite number"),
        ('{"a": 1e999}', "no finite number"),
        ("[" * 100_000, "nested too deep"),
        ("1" * 5000, "none of more than 300"),
    ],
)
def test_json_that_two_programs_read_differently_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        strict_json(text)


def test_a_delta_that_allows_publishing_stands_on_the_first_line() -> None:
    for facts in (
        replace(FACTS, delta=1e-5),
        replace(DISCOVERY, central_delta=1 / 9000),
        replace(CENTRAL, delta=0.025),
    ):
        made = statement(facts)
        assert made.labels[0].name == "DELTA TOO LARGE" and "of one of" in made.labels[0].meaning
    assert not statement(replace(FACTS, delta=9.9e-6)).labels and not statement(LOCAL).labels
    bare = statement(replace(STATEMENTS["without noise"], delta=0.5))
    assert [each.name for each in bare.labels] == ["NON-PRIVATE"]
