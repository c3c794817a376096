"""A statement verifies as it was written, and whatever is changed in it by hand fails by its name."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.separation import DeviceSeparation
from tacit.statements import TrainingFacts
from tacit.statements.statement import checksum, leaves, statement
from tacit.statements.train_facts import Extrapolation, SideRelease
from tacit.statements.verify import verify

PLAN = Participation.from_rounds_between(rounds=200, rounds_between=30, max_participations=6)
HAPPENED = Participation(rounds=180, min_separation=40, max_participations=5)
PROMISE = Guarantee(participation=PLAN, strategy=Tree(restarts=(128,)), clip_norm=5.0, noise_multiplier=7.0)
FACTS = TrainingFacts(
    planned=PROMISE,
    realised=PROMISE.with_participation(HAPPENED),
    delta=1e-10,
    population=100_000,
    report_goal=500,
    participations=90_000,
    cohort_rule="exactly the report goal",
    vocabulary_kind="public",
    vocabulary_description="the 10,000 most frequent words of public novels",
    released="the final model",
    looked_at=("evaluation on validation clients",),
    public_data=("public novels",),
    verify_command="tacit account run runs/novels",
)
LITTLE = replace(PROMISE, noise_multiplier=0.05, strategy=Blt(theta=(0.9, 0.5), omega=(0.3, 0.1)), clip_inflation=1.01)
BITS = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=0.5, noise_multiplier=50.0)
COUNTS = Guarantee(participation=replace(PLAN, rounds=20), strategy=Independent(), clip_norm=1.0, noise_multiplier=9.0)
BARE = Guarantee(participation=PLAN, strategy=None, clip_norm=math.inf, noise_multiplier=0.0)
STATEMENTS = {
    "usual": FACTS,
    "every label": replace(
        FACTS,
        planned=LITTLE.with_participation(replace(HAPPENED, rounds=200)),
        realised=LITTLE,
        participations=100_000,
        vocabulary_kind="private",
        key_source="fixed seed 7",
        unit="client",
        extrapolation=Extrapolation(report_goal=6500, noise_multiplier=0.65),
    ),
    "several sequences": replace(
        FACTS,
        also_released=(
            SideRelease(what="clip estimate", planned=BITS, realised=BITS.with_participation(HAPPENED)),
            SideRelease(what="evaluation histogram", planned=COUNTS, realised=COUNTS),
        ),
    ),
    "devices": replace(
        FACTS,
        planned=PROMISE.with_participation(Participation.worst_case(rounds=200, min_separation=31)),
        realised=PROMISE.with_participation(Participation.worst_case(rounds=180, min_separation=31)),
        separation=DeviceSeparation(rounds=31),
    ),
    "devices that count": replace(
        FACTS,
        planned=PROMISE.with_participation(Participation(rounds=200, min_separation=31, max_participations=4)),
        realised=PROMISE.with_participation(Participation(rounds=180, min_separation=31, max_participations=4)),
        separation=DeviceSeparation(rounds=31, most=4),
    ),
    "devices with timers": replace(FACTS, separation=DeviceSeparation(timer_seconds=48 * 3600.0), population=12_000),
    "without noise": replace(FACTS, planned=BARE, realised=BARE.with_participation(HAPPENED)),
}


def written(facts: TrainingFacts) -> dict[str, Any]:
    """The record as it comes back from a file."""
    return dict(json.loads(json.dumps(statement(facts).to_record(), allow_nan=False)))


RECORDS = {name: written(facts) for name, facts in STATEMENTS.items()}


def failing(record: Any) -> list[str]:
    return [line.name for line in verify(record) if not line.holds]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every plain value, those inside lists too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield path
        return
    for key, each in inner:
        yield from places(each, (*path, key))


def changed(record: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    record = copy.deepcopy(record)
    holder: Any = record
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = new(holder[path[-1]])
    return record


def otherwise(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 1.001 or 1.0
        case str():
            return value.replace("8", "9") if "8" in value else value + "x"
        case _:
            return "something"


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
