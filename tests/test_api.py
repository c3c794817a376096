"""`import tacit`: what it offers, that each name is there and documented, and that it costs nothing."""

import ast
import importlib
import inspect
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY

import tacit

DOOR = REPOSITORY / "src" / "tacit" / "__init__.py"


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
    listed = [line.split("`")[1].removeprefix("tacit.") for line in page.splitlines() if line.startswith("| `tacit.")]
    assert sorted(listed) == tacit.__all__


def test_an_unknown_name_is_an_attribute_error_that_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trian'; it has Address"):
        _ = tacit.trian  # type: ignore[attr-defined]


def test_importing_tacit_loads_nothing() -> None:
    code = "import sys, tacit; print(sorted(set(sys.modules) & {'numpy', 'jax', 'typer', 'rich', 'pydantic', 'scipy'}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
