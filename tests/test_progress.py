"""Events of a counted stage: what is told, and when."""

import pytest

from tacit.progress import ANOTHER, COMPILING, Advanced, Event, StageBegan, StageEnded, compiling, counted, together


def test_a_counted_stage_begins_advances_and_ends() -> None:
    told: list[Event] = []
    assert list(counted("ab", "reading", told.append, total=2)) == ["a", "b"]
    assert told == [StageBegan("reading", 2), Advanced("reading", 1), Advanced("reading", 2), StageEnded("reading")]


def test_several_listeners_hear_the_same() -> None:
    first: list[Event] = []
    second: list[Event] = []
    tell = together(first.append, second.append)
    tell(StageEnded("reading"))
    assert first == second == [StageEnded("reading")]


def test_compiling_is_said_once_of_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.progress._compiled", set())
    program = object()
    assert compiling("training", program, 2) == COMPILING
    assert compiling("training", program, 3) == ANOTHER, "how long it takes is said once a process"
    assert compiling("training", program, 2) == ""
