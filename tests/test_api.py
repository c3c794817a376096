"""`import tacit`: what it offers, that each name is there and documented, and that it costs nothing."""

import ast
import importlib
import inspect
import re
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY
from tests.render_api import examples, explained, parameters

import tacit

DOOR = REPOSITORY / "src" / "tacit" / "__init__.py"
EXAMPLED = dict(examples())


def test_all_is_sorted_and_names_what_is_loaded_on_use() -> None:
    assert tacit.__all__ == sorted(tacit.__all__)
    assert set(tacit.__all__) == set(tacit._HOME)
    assert set(tacit.__all__) <= set(dir(tacit))


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    (guarded,) = [node for node in ast.parse(DOOR.read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    seen.pop("Any")
    assert seen == tacit._HOME


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_name_is_there_with_a_docstring_and_annotations(name: str) -> None:
    value = getattr(tacit, name)
    assert inspect.getdoc(value), f"tacit.{name} says nothing of itself"
    if inspect.isfunction(value):
        hints = inspect.signature(value)
        bare = [each.name for each in hints.parameters.values() if each.annotation is inspect.Parameter.empty]
        assert not bare and hints.return_annotation is not inspect.Signature.empty, f"tacit.{name}: {bare}"


def test_no_room_hides_a_name() -> None:
    """A sub-package becomes an attribute of `tacit` when it is imported, and would take the place of a function."""
    rooms = {path.parent.name for path in DOOR.parent.glob("*/__init__.py")} | {
        path.stem for path in DOOR.parent.glob("*.py")
    }
    assert not rooms & set(tacit.__all__)
    for room in sorted(rooms - {"cli", "__init__", "__main__"}):
        importlib.import_module(f"tacit.{room}")
    assert all(not inspect.ismodule(getattr(tacit, name)) for name in tacit.__all__)


def test_every_name_stands_on_the_page_and_the_page_names_no_other() -> None:
    page = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`tacit\.(\w+)`\]\(#tacit(\w+)\) \|", page, re.MULTILINE)
    assert sorted(name for name, _ in listed) == tacit.__all__
    assert all(name.lower() == heading for name, heading in listed)
    assert re.findall(r"^### `tacit\.(\w+)`$", page, re.MULTILINE) == tacit.__all__


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_parameter_is_explained_and_every_name_has_an_example(name: str) -> None:
    silent = [each.name for each in parameters(name) if not each.meaning]
    assert not silent, f"tacit.{name} does not say what {silent} are: a sentence `NAME: what` of its docstring does"
    assert EXAMPLED[name].text, f"no page calls tacit.{name}; docs/api.md#examples may"


def test_a_docstring_is_taken_apart() -> None:
    said = explained(
        "What it does.\n\nOf note: it is so. a, b: what: they are. c: the last\none; d: another. Raises: Both: all.",
        ["a", "b", "c", "d"],
    )
    assert said.whole == ["What it does.", "Of note: it is so."]
    assert said.parameters == {"a": "what: they are.", "b": "what: they are.", "c": "the last one;", "d": "another."}
    assert said.raises == "Both: all."


def test_an_unknown_name_is_an_attribute_error_that_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trian'; it has Address"):
        _ = tacit.trian  # type: ignore[attr-defined]


def test_importing_tacit_loads_nothing() -> None:
    code = "import sys, tacit; print(sorted(set(sys.modules) & {'numpy', 'jax', 'typer', 'rich', 'pydantic', 'scipy'}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
