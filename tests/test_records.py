"""Values to plain records and back: a property over nested dataclasses, and one sentence for each way to be wrong."""

import json
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, UnknownRelease
from tacit.records import first_difference, from_plain, json_ready, to_plain


@dataclass(frozen=True)
class Circle:
    kind: ClassVar[str] = "circle"
    radius: float


@dataclass(frozen=True)
class Box:
    kind: ClassVar[str] = "box"
    sides: tuple[float, ...]
    name: str | None = None


@dataclass(frozen=True)
class Drawing:
    shapes: tuple[Circle | Box, ...]
    title: str
    size: tuple[int, int] = (3, 4)
    by_round: dict[int, float] = field(default_factory=dict)
    colour: Literal["red", "blue"] = "red"
    visible: bool = True


reals = st.floats(allow_nan=False, width=64)
shapes = st.one_of(
    st.builds(Circle, radius=reals),
    st.builds(Box, sides=st.lists(reals).map(tuple), name=st.none() | st.text()),
)
drawings = st.builds(
    Drawing,
    shapes=st.lists(shapes, max_size=4).map(tuple),
    title=st.text(),
    size=st.tuples(st.integers(), st.integers()),
    by_round=st.dictionaries(st.integers(), reals, max_size=3),
    colour=st.sampled_from(["red", "blue"]),
    visible=st.booleans(),
)


@given(drawings)
def test_what_was_written_is_read_again(drawing: Drawing) -> None:
    assert from_plain(Drawing, to_plain(drawing)) == drawing
    assert from_plain(Drawing, json.loads(json.dumps(json_ready(drawing)))) == drawing


def test_defaults_may_be_missing() -> None:
    assert from_plain(Drawing, {"shapes": [], "title": "t"}) == Drawing((), "t")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"extra": 1}, "the unknown key 'extra'"),
        ({"title": None}, r"drawing.title is None, and text was expected"),
        ({"shapes": 3}, "drawing.shapes is 3, and a list was expected"),
        ({"shapes": [{"kind": "circle", "radius": "x"}]}, r"drawing.shapes\[0\].radius is 'x', and a number"),
        ({"shapes": [{"kind": "star"}]}, "none of circle, box"),
        ({"size": [1]}, "has 1 values, and 2 were expected"),
        ({"size": [1, True]}, "whole number was expected"),
        ({"by_round": []}, "a table of values was expected"),
        ({"colour": "green"}, "may be 'red', 'blue'"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], sentence: str) -> None:
    record = {"shapes": [], "title": "t", **change}
    with pytest.raises(UnknownRelease, match=sentence):
        from_plain(Drawing, record, error=UnknownRelease, where="drawing")


def test_missing_keys_and_foreign_kinds_are_named() -> None:
    with pytest.raises(InputError, match="lacks 'title'"):
        from_plain(Drawing, {"shapes": []})
    with pytest.raises(InputError, match="of the kind 'box', and 'circle'"):
        from_plain(Circle, {"kind": "box", "radius": 1.0})
    with pytest.raises(InputError, match="a table of values"):
        from_plain(Circle, [1])


def test_the_first_difference_is_named() -> None:
    assert first_difference({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}) == "a.c was 2 and is now 3"
    assert first_difference({"a": 1}, {"a": 1}) is None
