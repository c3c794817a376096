"""A statement verifies as it was written, and whatever is changed in it by hand fails by its name."""

import copy
import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statements.every_training import STATEMENTS, otherwise, places

from tacit.errors import InputError
from tacit.statements import TrainingFacts
from tacit.statements.statement import checksum, leaves, statement
from tacit.statements.verify import verify


def written(facts: TrainingFacts) -> dict[str, Any]:
    """The record as it comes back from a file."""
    return dict(json.loads(json.dumps(statement(facts).to_record(), allow_nan=False)))


RECORDS = {name: written(facts) for name, facts in STATEMENTS.items()}


def failing(record: Any) -> list[str]:
    return [line.name for line in verify(record) if not line.holds]


def changed(record: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    record = copy.deepcopy(record)
    holder: Any = record
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new(holder[path[-1]])
    return record


def names(path: tuple[Any, ...], failed: str) -> bool:
    """Whether the name of a failing line is that of the changed place; a list of plain values is one line."""
    place = ".".join(map(str, path))
    if path[0] == "checksums":
        place = "facts" + place.removeprefix("checksums")
    return failed == place or (isinstance(path[-1], int) and failed == ".".join(map(str, path[:-1])))


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_what_was_written_verifies(record: dict[str, Any]) -> None:
    lines = verify(record)
    assert all(line.holds for line in lines), [line for line in lines if not line.holds]
    checked = {line.name for line in lines}
    assert {"planned.zcdp", "realised.epsilon", "items.7.text", "facts.mechanism.noise_multiplier"} <= checked


@pytest.mark.parametrize("which", RECORDS)
def test_every_place_changed_by_hand_fails_by_its_name(which: str) -> None:
    record = RECORDS[which]
    for path in places(record):
        if path == ("format",):
            continue
        failed = failing(changed(record, path, otherwise))
        assert any(names(path, each) for each in failed), f"{path} was changed, and only {failed} fail"


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_other_value_anywhere_fails_by_its_name(data: st.DataObject) -> None:
    record = RECORDS[data.draw(st.sampled_from(sorted(RECORDS)))]
    path = data.draw(st.sampled_from([each for each in places(record) if each != ("format",)]))
    anything = (
        st.none()
        | st.booleans()
        | st.integers(-1000, 10_000)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
        | st.just([])
    )
    new = data.draw(anything)
    tampered = changed(record, path, lambda _: new)
    if dict(leaves(tampered)) == dict(leaves(record)):
        return
    failed = failing(tampered)
    assert any(each.startswith(tuple(part for part in (_line(path), _line(path[:-1])) if part)) for each in failed)


def _line(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, ("facts", *path[1:]) if path[:1] == ("checksums",) else path))


@pytest.mark.parametrize(
    ("fact", "new", "fails"),
    [
        ("mechanism.noise_multiplier", 7.7, {"planned.zcdp", "planned.epsilon", "realised.mu", "items.7.text"}),
        ("mechanism.clip_norm", 6.0, {"planned.clip_norm", "items.6.text"}),
        ("realised.min_separation", 36, {"realised.min_separation", "realised.sensitivity_squared"}),
        ("key_source", "fixed seed 3", {"labels.0.name", "key_source"}),
        ("vocabulary_kind", "private", {"labels.0.name", "items.7.text"}),
        ("population", 50_000, {"items.1.text"}),
    ],
)
def test_a_fact_changed_with_its_checksum_fails_by_what_should_follow(fact: str, new: Any, fails: set[str]) -> None:
    path = ("facts", *fact.split("."))
    record = changed(RECORDS["usual"], path, lambda _: new)
    record["checksums"][fact] = checksum(fact, new)
    failed = set(failing(record))
    assert f"facts.{fact}" not in failed
    assert fails <= failed


@pytest.mark.parametrize("label", range(5))
def test_a_warning_left_out_is_missed(label: int) -> None:
    record = copy.deepcopy(RECORDS["every label"])
    names = [each["name"] for each in record["labels"]]
    assert names == [
        "VOCABULARY FROM PRIVATE TEXT",
        "FIXED SEED",
        "WEAKER THAN PLANNED",
        "VERY LARGE EPSILON",
        "EXTRAPOLATED",
    ]
    del record["labels"][label]
    assert any(name.startswith("labels.") for name in failing(record))


def test_what_is_added_or_left_out_fails() -> None:
    assert failing({**RECORDS["usual"], "endorsed": True}) == ["endorsed"]
    record = copy.deepcopy(RECORDS["usual"])
    del record["planned"]["epsilon"]
    assert failing(record) == ["planned.epsilon"]
    record = copy.deepcopy(RECORDS["usual"])
    del record["facts"]["population"]
    assert failing(record) == ["facts.population", "facts"]


def test_facts_that_contradict_each_other_are_a_failing_line() -> None:
    record = changed(RECORDS["usual"], ("facts", "unit"), lambda _: "example")
    assert failing(record) == ["facts.unit", "facts"]


def test_the_last_bits_of_another_machine_do_not_matter() -> None:
    assert not failing(changed(RECORDS["usual"], ("planned", "epsilon"), lambda value: value * (1 + 1e-13)))
    assert failing(changed(RECORDS["usual"], ("planned", "epsilon"), lambda value: value * (1 + 1e-7)))


def test_a_program_that_writes_whole_numbers_without_a_point_changes_nothing() -> None:
    record = RECORDS["usual"]
    for path in places(record):
        value = record
        for key in path:
            value = value[key]
        if isinstance(value, float) and value.is_integer():
            assert not failing(changed(record, path, int)), path


def test_of_a_long_text_the_place_is_shown_where_it_was_changed() -> None:
    record = copy.deepcopy(RECORDS["usual"])
    text = record["items"][7]["text"]
    record["items"][7]["text"] = text.replace("As realised", "As it happened")
    (line,) = (line for line in verify(record) if not line.holds)
    assert line.name == "items.7.text" and line.complaint is not None
    assert "As it happened" in line.complaint and "As realised" in line.complaint
    assert len(line.complaint) < 400 < 2 * len(text)


@pytest.mark.parametrize("nothing", [None, [], 3, "text", {}, {"format": "tacit statement 0"}])
def test_what_is_no_statement_is_refused(nothing: Any) -> None:
    with pytest.raises(InputError, match="no statement of the format"):
        verify(nothing)


@pytest.mark.parametrize("part", ["facts", "checksums"])
def test_a_statement_without_its_facts_is_refused(part: str) -> None:
    record = copy.deepcopy(RECORDS["usual"])
    del record[part]
    with pytest.raises(InputError, match="lacks its facts"):
        verify(record)


def test_no_module_that_a_statement_names_is_imported() -> None:
    """Recipes name mechanisms of their own as module:NAME; a statement's text is of somebody whom nobody trusts."""
    modules = set(sys.modules)
    for which, facts in STATEMENTS.items():
        record = RECORDS[which]
        for path in places(record):
            forged = changed(record, path, lambda _: "antigravity:MECHANISM")
            if path[0] == "facts" and (name := ".".join(map(str, path[1:]))) in record["checksums"]:
                forged["checksums"][name] = checksum(name, "antigravity:MECHANISM")
            with suppress(InputError):
                verify(forged)
        assert written(facts) == record
    assert "antigravity" not in set(sys.modules) - modules
