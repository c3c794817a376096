"""Documents: strict, bounded, open to keys of later versions, the same after a journey."""

import copy
import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError
from tests.support.server.documents import ASSIGNMENT, a_plan, a_task

from tacit.errors import InputError
from tacit.protocol.fields import Document
from tacit.protocol.messages import Answer, Assignment, CheckIn, ComeBack, Plan, Problem, Receipt, RoundTask, Signed
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.train import TrainDocument

CHECK_IN = {
    "version": 2,
    "population": "keyboards-es",
    "versions": {"train": 1},
    "token": None,
}


def test_documents_are_the_same_after_a_journey() -> None:
    plan, task = a_plan(), a_task(encoded=True, asked=True)
    assert Plan.from_json(plan.to_json()) == plan
    assert RoundTask.from_json(task.to_json()) == task
    assert (
        task.question(TrainDocument).encoded is not None
        and task.question(TrainDocument).encoded.encoding().parameters == task.question(TrainDocument).parameters
    )


def test_an_answer_is_one_of_two() -> None:
    key = OperatorKey(bytes(32))
    given = Assignment(answer="assignment", assignment=ASSIGNMENT, secret="78" * 32, signed_task=key.signed(a_task()))
    answers = TypeAdapter(Answer)
    for answer in (given, ComeBack(answer="come_back", after_s=10, before_s=60)):
        assert answers.validate_json(answer.model_dump_json()) == answer
        with pytest.raises(ValidationError, match="a key of version 2"):
            answers.validate_json(json.dumps(answer.model_dump() | {"critical": ["answer"]}))


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"population": "../etc/passwd"},
        {"population": "a\r\nSet-Cookie: b"},
        {"population": "name\n"},
        {"versions": {"Dance": 1}},
        {"versions": {"dance\n": 1}},
        {"versions": {"train": 0}},
        {"versions": {f"kind-{number}": 1 for number in range(65)}},
        {"token": "0"},
        {"token": "00" * 5000},
        {"critical": ["who"]},
        {"critical": "who"},
        {"critical": ["version"]},
        {"critical": ["critical"]},
        {"critical": [f"key-{number}" for number in range(33)]},
    ],
    ids=repr,
)
def test_a_check_in_outside_its_bounds_is_refused(changed: dict[str, object]) -> None:
    CheckIn.from_json(json.dumps(CHECK_IN))
    with pytest.raises(InputError):
        CheckIn.from_json(json.dumps(CHECK_IN | changed))


@pytest.mark.parametrize("received", ["1", "1.0", "0", "false", '"true"', "null"])
def test_a_receipt_says_true_and_no_number(received: str) -> None:
    text = f'{{"assignment": "{ASSIGNMENT}", "sha256": "{"ab" * 32}", "received": @}}'
    assert Receipt.from_json(text.replace("@", "true")).received is True
    with pytest.raises(InputError, match="received"):
        Receipt.from_json(text.replace("@", received))


@pytest.mark.parametrize("version", ["2.0", "2e0", "true", "3"])
def test_the_version_of_a_plan_is_an_integer(version: str) -> None:
    said = a_plan().to_json()
    with pytest.raises(InputError, match="version"):
        Plan.from_json(said.replace('"version":2', f'"version":{version}'))


def test_a_check_in_of_a_later_version_is_understood() -> None:
    later = CHECK_IN | {"versions": {"train": 2, "dance": 1}, "who": "me", "critical": []}
    assert CheckIn.from_json(json.dumps(later)).versions == {"train": 2, "dance": 1}


def test_a_document_lacks_nothing_and_numbers_are_finite() -> None:
    task = a_task().to_json()
    for wrong in (
        task.replace('"clip_norm":1.5', '"clip_norm":NaN'),
        task.replace('"clip_norm":1.5', '"clip_norm":1e999'),
        task.replace('"clip_norm":1.5', f'"clip_norm":{"9" * 5000}'),
        task.replace('"clip_norm":1.5,', ""),
        task.replace('"clip_norm":1.5', '"clip_norm":1.5,"clip_norm":1.5'),
        task.replace('"deadline":2000.0', '"deadline":1000.0'),
        task.replace("/v1/models/", "/v1/models/../../"),
        task.replace("}", "}" + "]" * 100, 1),
        task[:-1],
        task[:-1] + ',"later":' + "[" * 100_000 + "]" * 100_000 + "}",
        task[:-1] + ',"later":"\\ud800"}',
    ):
        assert wrong != task
        with pytest.raises(InputError):
            RoundTask.from_json(wrong)


def test_a_task_does_not_contradict_itself() -> None:
    with pytest.raises(ValidationError, match="what is sealed is encoded"):
        a_task(sealed="00")
    with pytest.raises(ValidationError, match="another number of parameters"):
        TrainDocument.model_validate(a_task(encoded=True).asks.model_dump() | {"parameters": 41})


# -- keys of later versions --------------------------------------------------------------------------------------------

NEW_KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(lambda text: "new " + text)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NEW_KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS: dict[str, tuple[type[Document], Any]] = {
    "plan": (Plan, json.loads(a_plan().to_json())),
    "task": (RoundTask, json.loads(a_task(encoded=True, asked=True).to_json())),
    "check-in": (CheckIn, CHECK_IN),
    "receipt": (Receipt, {"assignment": ASSIGNMENT, "sha256": "ab" * 32, "received": True}),
    "problem": (Problem, {"type": "tacit:late", "title": "late", "status": 410, "detail": "late"}),
    "signed": (Signed, {"document": "{}", "signature": "00" * 64}),
}


def objects_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of the objects that are documents; `versions` has kinds for keys."""
    found = [path] if isinstance(value, dict) else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [each for key, held in inner if key != "versions" for each in objects_in(held, (*path, key))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@given(data=st.data(), name=st.sampled_from(sorted(DOCUMENTS)))
def test_keys_that_are_not_known_change_nothing_wherever_they_stand(data: st.DataObject, name: str) -> None:
    kind, said = DOCUMENTS[name]
    meant, more = kind.from_json(json.dumps(said)), copy.deepcopy(said)
    for path in objects_in(said):
        at(more, path).update(data.draw(st.dictionaries(NEW_KEYS, VALUES, max_size=2)))
    found = kind.from_json(json.dumps(more))
    assert found == meant and found.to_json() == meant.to_json()


@given(data=st.data(), name=st.sampled_from(sorted(DOCUMENTS)))
def test_one_that_is_critical_is_refused_wherever_it_stands(data: st.DataObject, name: str) -> None:
    kind, said = DOCUMENTS[name]
    changed = copy.deepcopy(said)
    place = at(changed, data.draw(st.sampled_from(objects_in(said))))
    place |= {"pace": data.draw(VALUES), "critical": ["pace"]}
    with pytest.raises(InputError, match="its key 'pace' is critical, and this version of tacit does not know it"):
        kind.from_json(json.dumps(changed))


@given(data=st.data(), name=st.sampled_from(sorted(DOCUMENTS)))
def test_a_known_key_keeps_its_type_whatever_else_there_is(data: st.DataObject, name: str) -> None:
    kind, said = DOCUMENTS[name]
    changed = copy.deepcopy(said)
    place = at(changed, data.draw(st.sampled_from(objects_in(said))))
    key = data.draw(st.sampled_from(sorted(set(place) - {"versions"})))
    place |= {"new": 1, key: {"of": "no type that a key has"}}
    with pytest.raises(InputError):
        kind.from_json(json.dumps(changed))


@given(data=st.data(), name=st.sampled_from(sorted(DOCUMENTS)))
def test_a_key_that_stands_twice_is_refused_wherever_and_whatever_it_is(data: st.DataObject, name: str) -> None:
    kind, said = DOCUMENTS[name]
    changed = copy.deepcopy(said)
    place = at(changed, data.draw(st.sampled_from(objects_in(said))))
    place["new"] = 1
    key = data.draw(st.sampled_from(sorted(place)))
    place["twice"] = place[key]
    with pytest.raises(InputError, match=f"an object has the key '{key}' twice"):
        kind.from_json(json.dumps(changed).replace('"twice":', f"{json.dumps(key)}:"))


class Later(CheckIn):
    """A check-in with a key more, as a later version has it."""

    pace: Annotated[int, Field(ge=0)] | None = None


def test_a_later_version_reads_this_one_and_knows_its_own_critical_key() -> None:
    assert Later.from_json(json.dumps(CHECK_IN)).pace is None
    assert Later.from_json(json.dumps(CHECK_IN | {"pace": 3, "critical": ["pace"]})).pace == 3
    for wrong, why in (
        ({"critical": ["pace"]}, "its key 'pace' is critical, and is not there"),
        ({"pace": 3, "critical": ["pace", "pace"]}, "a key is critical twice"),
        ({"pace": "3"}, "pace: "),
    ):
        with pytest.raises(InputError, match=why):
            Later.from_json(json.dumps(CHECK_IN | wrong))


def test_a_kind_that_is_not_known_is_named() -> None:
    task = json.loads(a_task().to_json())
    task["asks"] = {"kind": "dance", "steps": 3}
    with pytest.raises(InputError, match="asks: it is of the kind 'dance', and this version of tacit does not know"):
        RoundTask.from_json(json.dumps(task))
    assert Plan.from_json(json.dumps(json.loads(a_plan().to_json()) | {"kind": "dance"})).kind == "dance"


def test_no_document_is_written_without_its_keys() -> None:
    """All keys of version 2 are always there; a later one has a default."""

    def with_defaults(cls: type[Document]) -> set[str]:
        found = {f"{cls.__name__}.{name}" for name, field in cls.model_fields.items() if not field.is_required()}
        subclasses = [each for each in cls.__subclasses__() if each.__module__.startswith("tacit.")]
        return found.union(*map(with_defaults, subclasses))

    found = with_defaults(Document)
    assert {each for each in found if not each.endswith(".critical")} == set()
    assert "critical" not in a_plan().to_json()
