"""The tree drawn atop errors.py is the tree of classes, and each branch says what it is."""

import inspect
import re

import pytest

from tacit import errors
from tacit.errors import TacitError

STEP = 4  # characters of drawing for each level


def drawn_tree() -> dict[str, str]:
    """class name -> parent's name, read from the drawing; the root's parent is Exception."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        node = re.match(r"^([│├└─ ]*)([A-Z]\w+)  +\S", line)
        if node is None:
            continue
        depth = len(node[1]) // STEP
        assert len(node[1]) % STEP == 0, f"this line of the drawing is crooked: {line!r}"
        path = [*path[:depth], node[2]]
        parents[node[2]] = path[depth - 1] if depth else "Exception"
    return parents


def real_tree() -> dict[str, str]:
    classes = [found for _, found in inspect.getmembers(errors, inspect.isclass) if found.__module__ == "tacit.errors"]
    return {found.__name__: found.__bases__[0].__name__ for found in classes}


def test_the_drawing_is_the_tree() -> None:
    assert drawn_tree() == real_tree()


@pytest.mark.parametrize("name", sorted(real_tree()))
def test_every_error_is_ours_and_says_what_it_means(name: str) -> None:
    found = getattr(errors, name)
    assert issubclass(found, TacitError)
    assert found.__doc__
    assert str(found("a sentence")) == "a sentence"
