"""Documents: strict, bounded, the same after a journey."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.support.server.documents import ASSIGNMENT, a_plan, a_task

from tacit.protocol.messages import Answer, Assignment, CheckIn, ComeBack, Plan, RoundTask, SignedTask
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.train import TrainDocument

CHECK_IN = {
    "version": 1,
    "population": "keyboards-es",
    "versions": {"train": 1},
    "token": None,
}


def test_documents_are_the_same_after_a_journey() -> None:
    plan, task = a_plan(), a_task(encoded=True, asked=True)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert RoundTask.model_validate_json(task.model_dump_json()) == task
    assert (
        task.question(TrainDocument).encoded is not None
        and task.question(TrainDocument).encoded.encoding().parameters == task.question(TrainDocument).parameters
    )


def test_an_answer_is_one_of_two() -> None:
    key = OperatorKey(bytes(32))
    given = Assignment(assignment=ASSIGNMENT, secret="78" * 32, signed_task=key.task(a_task()))
    answers = TypeAdapter(Answer)
    for answer in (given, ComeBack(after_s=10, before_s=60)):
        assert answers.validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"population": "../etc/passwd"},
        {"population": "a\r\nSet-Cookie: b"},
        {"population": "name\n"},
        {"versions": {"dance": 1}},
        {"versions": {"train": 0}},
        {"plans": []},
        {"token": "0"},
        {"token": "00" * 5000},
        {"who": "me"},
    ],
    ids=repr,
)
def test_a_check_in_outside_its_bounds_is_refused(changed: dict[str, object]) -> None:
    CheckIn.model_validate_json(json.dumps(CHECK_IN))
    with pytest.raises(ValidationError):
        CheckIn.model_validate_json(json.dumps(CHECK_IN | changed))


def test_a_document_lacks_nothing_and_numbers_are_finite() -> None:
    task = a_task().model_dump_json()
    for wrong in (
        task.replace('"clip_norm":1.5', '"clip_norm":NaN'),
        task.replace('"clip_norm":1.5', '"clip_norm":1e999'),
        task.replace('"clip_norm":1.5,', ""),
        task.replace('"deadline":2000.0', '"deadline":1000.0'),
        task.replace("/v1/models/", "/v1/models/../../"),
    ):
        assert wrong != task
        with pytest.raises(ValidationError):
            RoundTask.model_validate_json(wrong)


def test_a_task_does_not_contradict_itself() -> None:
    with pytest.raises(ValidationError, match="what is sealed is encoded"):
        a_task(sealed="00")
    with pytest.raises(ValidationError, match="another number of parameters"):
        TrainDocument.model_validate(a_task(encoded=True).asks.model_dump() | {"parameters": 41})
    assert isinstance(SignedTask(task=a_task(), signature="00" * 64), SignedTask)
