"""The house rules that a machine can check: who imports whom, open doors, budgets, nothing left behind."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "src" / "tacit"
# docs/architecture.md shows the same table. A room may always import itself, and what is in OPEN.
OPEN = {"errors", "progress", "records", "files", "compiled"}
MAY_IMPORT: dict[str, set[str]] = {
    "privacy": set(),
    "runs": set(),
    "compute": set(),
    "aggregation": set(),
    "keyboard": set(),
    "data": set(),
    "mechanisms": {"privacy"},
    "design": {"privacy"},
    "population": {"privacy"},
    "randomizers": {"privacy"},
    "statements": {"privacy", "runs"},
    "training": {"privacy", "statements", "runs", "mechanisms", "aggregation", "data", "population", "compute"},
    "discovery": {"privacy", "statements", "data", "randomizers"},
    "evaluation": {"privacy", "statements", "keyboard", "data", "randomizers", "compute"},
    "recipe": {"privacy", "design", "keyboard", "population", "training", "compute"},
    "planning": {"privacy", "design", "population", "recipe"},
    "reports": {"privacy", "statements", "runs", "evaluation", "planning", "population"},
    "secure_aggregation": {"privacy"},
    "audit": {"privacy", "statements", "mechanisms", "training", "data", "keyboard"},
}
MAY_IMPORT["jobs"] = set(MAY_IMPORT)  # every room above, and no front
MAY_IMPORT["cli"] = set(MAY_IMPORT)
MAY_IMPORT["dashboard"] = {"jobs", "reports", "runs", "planning", "privacy"}
MAY_IMPORT["deployment"] = {
    "jobs",
    "recipe",
    "runs",
    "statements",
    "training",
    "discovery",
    "evaluation",
    "keyboard",
    "randomizers",
    "aggregation",
    "secure_aggregation",
    "privacy",
}
FRONTS = {"cli", "dashboard", "deployment"}
# What the move has not yet taken apart: (file, room that it still reaches into). Only ever shorter.
STILL_CROSSING: set[tuple[str, str]] = {
    ("jobs/discover.py", "cli"),
    ("jobs/evaluation_promise.py", "cli"),
    ("jobs/train.py", "cli"),
    ("jobs/tune.py", "cli"),
    ("planning/production_simulation.py", "cli"),
    ("reports/tuning.py", "cli"),
    ("reports/tuning.py", "jobs"),
    ("reports/tuning.py", "recipe"),
    ("reports/tuning_figures.py", "jobs"),
}

NO_STORY = {"utils", "util", "core", "common", "internal", "helpers", "base", "misc"}
FILE_LINES = 400
FUNCTION_LINES = 60  # without the docstring; most are far shorter
DOOR_NAMES = 10

SOURCES = sorted(PACKAGE.rglob("*.py"))
DOORS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    """The room (or top-level file) that a source file belongs to; the package's own __init__ is `tacit`."""
    first = path.relative_to(PACKAGE).parts[0]
    return "tacit" if first == "__init__.py" else first.removesuffix(".py")


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """Every module that is imported anywhere in the tree, inside functions too, with its full dotted name.

    `package` resolves relative imports. `from tacit import runs` counts as `tacit.runs`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield module
            if module == "tacit":
                yield from (f"tacit.{alias.name}" for alias in node.names)


def rooms_imported_by(path: Path) -> set[str]:
    package = ".".join(["tacit", *path.relative_to(PACKAGE).parent.parts])
    modules = imported_modules(ast.parse(path.read_text(encoding="utf-8")), package)
    inside = {module.split(".")[1] for module in modules if module.startswith("tacit.")}
    return inside - {"__version__"}


def test_imports_point_downwards() -> None:
    crossing = set()
    for path in SOURCES:
        room, imported = room_of(path), rooms_imported_by(path)
        if room in OPEN | {"tacit"}:
            assert not imported - OPEN, f"{named(path)} is open to all and must stay free: it imports no room"
            continue
        assert room in MAY_IMPORT, f"{named(path)} is in no known room; give it a row in the import table"
        crossing |= {(named(path), extra) for extra in imported - MAY_IMPORT[room] - OPEN - {room}}
    assert not crossing - STILL_CROSSING, f"{sorted(crossing - STILL_CROSSING)}; see docs/architecture.md"
    assert not STILL_CROSSING - crossing, f"{sorted(STILL_CROSSING - crossing)} cross no longer: take them off the list"


def test_nobody_imports_a_front() -> None:
    for room, targets in MAY_IMPORT.items():
        assert not targets & FRONTS, f"the import table lets {room} import {sorted(targets & FRONTS)}"


def test_imports_inside_functions_and_relative_ones_are_seen() -> None:
    code = "def f():\n    from tacit import runs\n    import tacit.cli.data\n    from ..keyboard import cifg\n"
    found = set(imported_modules(ast.parse(code), "tacit.training"))
    assert {"tacit.runs", "tacit.cli.data", "tacit.keyboard"} <= found


def test_architecture_page_shows_the_import_table() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room, targets in MAY_IMPORT.items():
        row = f"| `{room}` | {', '.join(f'`{target}`' for target in sorted(targets)) or 'nothing'} |"
        assert row in page, f"docs/architecture.md lacks the row\n{row}"


def test_every_room_has_a_door() -> None:
    without = {named(path.parent) for path in SOURCES} - {named(door) for door in DOORS} - {"."}
    assert not without, f"{sorted(without)} have no __init__.py: a paragraph and at most ten names"


@pytest.mark.parametrize("path", DOORS, ids=lambda path: path.name)
def test_doors_open(path: Path) -> None:
    """`__all__` is sorted, has at most ten names, and is just what the file binds."""
    room = importlib.import_module(f"tacit.{path.name}")
    assert room.__doc__, f"tacit.{path.name} needs a paragraph that says what it is for"
    if path.name == "cli":  # a command, not a library: its door is `main`
        return
    listed = getattr(room, "__all__", [])
    assert list(listed) == sorted(listed), f"tacit.{path.name}.__all__ is not sorted"
    assert len(listed) <= DOOR_NAMES, f"tacit.{path.name}.__all__ has {len(listed)} names, at most {DOOR_NAMES}"
    assert set(listed) == public_names(path / "__init__.py")
    assert all(hasattr(room, name) for name in listed)


def public_names(door: Path) -> set[str]:
    """What a door's file binds by import, definition or assignment, _private names left out."""
    names: set[str] = set()
    for node in ast.parse(door.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_files_and_functions_fit_their_budget(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    assert lines <= FILE_LINES, f"{named(path)} has {lines} lines, at most {FILE_LINES}: split it by story"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = body_lines(node)
            assert length <= FUNCTION_LINES, (
                f"{named(path)}:{node.lineno} {node.name} has {length} lines, at most {FUNCTION_LINES}"
            )


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = ast.get_docstring(function, clean=False)
    documented = docstring.count("\n") + 1 if docstring else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - documented


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_names_tell_a_story_and_nothing_is_left_behind(path: Path) -> None:
    assert not NO_STORY & {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts}
    text = path.read_text(encoding="utf-8")
    left = [mark for mark in ("TODO", "FIXME", "XXX", "NotImplementedError") if mark in text]
    assert not left, f"{named(path)} still says {left}"
    broad = [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler) and swallows_everything(node)
    ]
    assert not broad, f"{named(path)} catches everything at lines {broad}; name what can happen"


def swallows_everything(handler: ast.ExceptHandler) -> bool:
    """`except:` or `except (Base)Exception:` that does not raise again."""
    broad = handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in {"Exception", "BaseException"}
    )
    return broad and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


@pytest.mark.parametrize("module", ["tacit", "tacit.errors", "tacit.privacy"])
def test_accounting_needs_no_accelerator(module: str) -> None:
    heavy = {"jax", "optax", "torch", "matplotlib", "pyarrow", "tokenizers", "fastapi"}
    code = f"import sys, {module}; loaded = {heavy!r} & sys.modules.keys(); assert not loaded, loaded"
    subprocess.run([sys.executable, "-c", code], check=True)
