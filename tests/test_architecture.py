"""The house rules that a machine can check: who imports whom, open doors, budgets, nothing left behind."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import get_args

from tests.conftest import REPOSITORY

from tacit.code_digest import DEVICE_ROOMS
from tacit.federation.kinds import FEDERATED, KINDS, FederatedKind, loaded

PACKAGE = REPOSITORY / "src" / "tacit"
# docs/architecture.md shows the same table. A room may always import itself, and what is in OPEN.
OPEN = {
    "doors",
    "errors",
    "progress",
    "records",
    "parsing",
    "plurals",
    "local_times",
    "files",
    "folders",
    "compiled",
    "extras",
    "version",
    "code_digest",
    "process_limits",
}
MAY_IMPORT: dict[str, set[str]] = {
    "privacy": set(),
    "federation": {"aggregation", "privacy"},
    "runs": {"federation"},
    "compute": set(),
    "aggregation": set(),
    "text": set(),
    "networks": {"text"},
    "keyboard": {"text", "networks"},
    "data": set(),
    "mechanisms": {"privacy"},
    "design": {"privacy"},
    "population": {"privacy"},
    "randomizers": {"privacy"},
    "statements": {"privacy", "federation", "runs"},
    "training": {
        "privacy",
        "federation",
        "statements",
        "runs",
        "mechanisms",
        "aggregation",
        "secure_aggregation",
        "data",
        "population",
        "compute",
    },
    "discovery": {
        "privacy",
        "federation",
        "statements",
        "data",
        "randomizers",
        "aggregation",
        "secure_aggregation",
        "text",
    },
    "evaluation": {
        "aggregation",
        "privacy",
        "federation",
        "statements",
        "text",
        "networks",
        "keyboard",
        "data",
        "randomizers",
        "compute",
        "secure_aggregation",
    },
    "recipe": {
        "privacy",
        "design",
        "networks",
        "population",
        "training",
        "evaluation",
        "compute",
        "secure_aggregation",
    },
    "planning": {"privacy", "design", "population", "recipe", "data", "evaluation", "federation", "text"},
    "reports": {
        "federation",
        "privacy",
        "statements",
        "runs",
        "text",
        "networks",
        "keyboard",
        "evaluation",
        "planning",
        "population",
    },
    "secure_aggregation": {"privacy", "aggregation"},
    "integrations": set(),
}
MAY_IMPORT["jobs"] = set(MAY_IMPORT)  # every room above, and no front
MAY_IMPORT["protocol"] = {"aggregation", "federation", "privacy", "randomizers", "secure_aggregation", "text"}
MAY_IMPORT["device"] = {
    "data",
    "design",
    "discovery",
    "evaluation",
    "federation",
    "keyboard",
    "networks",
    "privacy",
    "protocol",
    "randomizers",
    "secure_aggregation",
    "text",
    "training",
}
MAY_IMPORT["contributor"] = {"device", "federation", "mechanisms", "privacy", "protocol", "secure_aggregation"}
MAY_IMPORT["server"] = {
    "aggregation",
    "contributor",
    "data",
    "discovery",
    "evaluation",
    "federation",
    "jobs",
    "networks",
    "privacy",
    "protocol",
    "recipe",
    "runs",
    "secure_aggregation",
    "statements",
    "text",
    "training",
}
# Attacks on all of it: above the jobs that it runs and the device that it watches.
MAY_IMPORT["audit"] = set(MAY_IMPORT) - {"contributor", "server"}
# Live pages of run folders: they show what reports say, by the reports' own functions, and write nothing.
MAY_IMPORT["view"] = {
    "design",
    "device",
    "federation",
    "jobs",
    "keyboard",
    "networks",
    "planning",
    "privacy",
    "recipe",
    "reports",
    "runs",
    "statements",
}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
FRONTS = {"cli"}
ABOVE = {"audit", "jobs", "view"}  # what a front may call

# What a phone has to carry: all that `tacit.device` reaches, late imports and doors counted, and what each kind names
# for it. No search for a design, no statement, no simulated population runs there.
NOT_ON_A_DEVICE = {
    "contributor",
    "jobs",
    "mechanisms",
    "planning",
    "population",
    "recipe",
    "reports",
    "runs",
    "server",
    "statements",
}
# The table of kinds names these by strings, which no import shows.
NAMED_FOR_A_DEVICE = sorted(
    {part.partition(":")[0] for kind in FEDERATED.values() for part in (kind.device, kind.question)}
)
# Of them 330 lines are a list of cells, and 220 fit the weights of a user's own caches (`keyboard.own_text`).
DEVICE_FILES, DEVICE_LINES = 158, 19_500
# The files of a room that computes which say what one device does.
ONE_DEVICE = {"device_part", "in_plan", "report_encoding"}

# A front declares and shows; what it takes from the rooms below `jobs` are types and values, no functions, no modules.
# How a figure is written; every front needs it.
FORMATTING = {"tacit.privacy.rounding.rounded_up", "tacit.reports.release.said"}

CHECKING = "TYPE_CHECKING"
NO_STORY = {"utils", "util", "core", "common", "internal", "helpers", "base", "misc"}
FILE_LINES = 800  # most are far shorter: from 600 on, a reader asks whether a file tells one story
FUNCTION_LINES = 80  # without the docstring; from 60 on, the same
DOOR_NAMES = 10

SOURCES = sorted(PACKAGE.rglob("*.py"))
DOORS = sorted(path.parent for path in PACKAGE.glob("*/**/__init__.py"))
CLI = sorted((PACKAGE / "cli").rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def room_of(path: Path) -> str:
    """The room (or top-level file) that a source file belongs to; the package's own __init__ is `tacit`."""
    first = path.relative_to(PACKAGE).parts[0]
    return "tacit" if first == "__init__.py" else first.removesuffix(".py")


def package_of(path: Path) -> str:
    return ".".join(["tacit", *path.relative_to(PACKAGE).parent.parts])


def imports(tree: ast.AST, package: str) -> Iterator[tuple[str, str | None]]:
    """Each import anywhere in the tree, inside functions too: (module with its full dotted name, name taken from it).

    `package` resolves relative imports; the name is None where the module itself is imported.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules of `imports`; `from tacit import runs` counts as `tacit.runs`."""
    for module, name in imports(tree, package):
        yield f"tacit.{name}" if module == "tacit" and name else module


def rooms_imported_by(path: Path) -> set[str]:
    modules = imported_modules(tree_of(path), package_of(path))
    inside = {module.split(".")[1] for module in modules if module.startswith("tacit.")}
    return inside - {"__version__"}


def test_imports_point_downwards() -> None:
    crossing = set()
    for path in SOURCES:
        room, imported = room_of(path), rooms_imported_by(path)
        if room == "tacit":  # the door: names for type checkers only, as tests/test_api.py shows
            assert not imported & FRONTS
            continue
        if room in OPEN:
            assert not imported - OPEN, f"{named(path)} is open to all and must stay free: it imports no room"
            continue
        if named(path) == "__main__.py":  # `python -m tacit`: the command
            assert imported <= {"cli"}
            continue
        assert room in MAY_IMPORT, f"{named(path)} is in no known room; give it a row in the import table"
        crossing |= {(named(path), extra) for extra in imported - MAY_IMPORT[room] - OPEN - {room}}
    assert not crossing, f"{sorted(crossing)}; see docs/architecture.md"


def test_nobody_imports_a_front() -> None:
    for room, targets in MAY_IMPORT.items():
        assert not targets & FRONTS, f"the import table lets {room} import {sorted(targets & FRONTS)}"
    read = [path for folder in ("docs", "examples", "benchmarks") for path in (REPOSITORY / folder).rglob("*")]
    imported = re.compile(rf"(?:from|import) +tacit\.(?:{'|'.join(FRONTS)})\b")
    behind = {
        path.relative_to(REPOSITORY).as_posix()
        for path in [*read, REPOSITORY / "README.md"]
        if path.suffix in {".md", ".py", ".ipynb"} and imported.search(text_of(path))
    }
    assert not behind, f"{sorted(behind)}: import `tacit` or a room"


def test_pages_and_benchmarks_of_the_server_alone_look_into_it() -> None:
    """The protocol's page shows its documents, and what loads the server speaks them; all else calls `tacit`."""
    may = {"docs/protocol.md", "benchmarks/deployment/deployment_load.py", "benchmarks/deployment/deployment_store.py"}
    read = [path for folder in ("docs", "examples", "benchmarks") for path in (REPOSITORY / folder).rglob("*")]
    imported = re.compile(r"^ *(?:from|import) +tacit\.(?:server|device|protocol)\b", re.MULTILINE)
    looking = {
        path.relative_to(REPOSITORY).as_posix()
        for path in read
        if path.suffix in {".md", ".py", ".ipynb"} and imported.search(text_of(path))
    }
    assert looking == may


OF_TESTS = re.compile(r"^\W*(?:from|import) (tests[.\w]*)(?: import ([\w, ]+))?", re.MULTILINE)
TEST_MODULE = re.compile(r"tests[.\w]*?\.test_\w+")


def imported_test_modules(text: str) -> set[str]:
    """Those of code that it has another process run too."""
    imported = [f"{module}.{name}" for module, names in OF_TESTS.findall(text) for name in names.split(",")]
    return {found[0] for each in imported if (found := TEST_MODULE.match(each.replace(" ", "")))}


def test_no_test_module_imports_another() -> None:
    """What several need stands beside them, or in tests/support where they are in several folders."""
    crossing = set()
    for path in sorted([*(REPOSITORY / "tests").rglob("*.py"), *(REPOSITORY / "benchmarks").rglob("*.py")]):
        itself = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        crossing |= {(itself, each) for each in imported_test_modules(text_of(path)) - {itself}}
    assert not crossing, f"{sorted(crossing)}: a module of what they share, or a fixture, says it once"


def test_a_test_module_is_seen_however_it_is_imported() -> None:
    test = "test" + "_train"
    for way in (
        f"from tests.jobs.{test} import a, b",
        f"    import tests.jobs.{test} as c",
        f'x = """\nfrom tests.jobs import d, {test}',
    ):
        assert imported_test_modules(f"import pytest\n{way}\n") == {f"tests.jobs.{test}"}
    assert not imported_test_modules("from tests.support.waiting import until\nfrom tests.jobs import test\n")


TAKEN = re.compile(r"^ *from (tacit\.[\w.]+) import ([\w, ]+|\([^)]+\))", re.MULTILINE)


def test_what_benchmarks_import_is_there() -> None:
    """No test runs most of them, so a name that moved would not be missed before somebody does."""
    missing = [
        (path.name, f"{module}.{name}")
        for path in (REPOSITORY / "benchmarks").rglob("*.py")
        for module, names in TAKEN.findall(re.sub(r"#.*", "", text_of(path)))
        for name in re.findall(r"(\w+)(?: as \w+)?", names)
        if not binds(module, name)
    ]
    assert not missing, f"{missing}: moved, or misspelt"


def binds(module: str, name: str) -> bool:
    """Whether a module of tacit has a submodule or binds something of that name."""
    file = PACKAGE.joinpath(*module.split(".")[1:])
    if (file / f"{name}.py").exists() or (file / name / "__init__.py").exists():
        return True
    path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    return path.exists() and name in bound_names(path)


@cache
def bound_names(path: Path) -> set[str]:
    """What a file binds by import, definition or assignment, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_a_name_that_a_module_lacks_is_missed() -> None:
    assert binds("tacit.data.manifest", "FileRecord") and binds("tacit.data", "manifest")
    assert not binds("tacit.data.manifest", "sha256_of") and not binds("tacit.nothing", "at_all")


def test_imports_inside_functions_and_relative_ones_are_seen() -> None:
    code = "def f():\n    from tacit import runs\n    import tacit.cli.data\n    from ..keyboard import cifg\n"
    found = set(imported_modules(ast.parse(code), "tacit.training"))
    assert {"tacit.runs", "tacit.cli.data", "tacit.keyboard"} <= found


def test_a_front_takes_types_and_values_from_below_the_jobs() -> None:
    taken = set()
    for path in SOURCES:
        room = room_of(path)
        for module, name in imports(tree_of(path), package_of(path)) if room in FRONTS else ():
            below = module.split(".")[1:2]
            if module.split(".")[0] == "tacit" and below and below[0] not in OPEN | ABOVE | {room}:
                what = f"{module}.{name}" if name else module
                if (name is None or kind_of(module, name) in ("function", "module")) and what not in FORMATTING:
                    taken.add((named(path), what))
    assert not taken, f"{sorted(taken)}: call a job instead"


def kind_of(module: str, name: str) -> str:
    """What a name of a module of tacit is: class, function, value or module; doors are looked through."""
    file = PACKAGE.joinpath(*module.split(".")[1:])
    if (file / f"{name}.py").exists() or (file / name / "__init__.py").exists():
        return "module"
    path = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return "class" if isinstance(node, ast.ClassDef) else "function"
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module and node.module.startswith("tacit"):
                    return kind_of(node.module, alias.name)
    return "value"


def test_a_function_is_told_from_a_type_through_a_door() -> None:
    assert kind_of("tacit.runs", "Run") == "class"
    assert kind_of("tacit.privacy.rounding", "rounded_up") == "function"
    assert kind_of("tacit", "privacy") == "module"
    assert kind_of("tacit.progress", "Progress") == "value"


def reached_from(*begin: str) -> dict[str, str]:
    """The modules that these import, directly or not, late imports and doors counted; by the one that reached each.

    What type checkers alone read is not imported; a late door opens to the file that the name is in.
    """
    reached, left = {}, [(module, "") for module in begin]
    while left:
        module, by = left.pop(0)
        if module in reached:
            continue
        reached[module] = by
        left += [(each, module) for each in run_time_imports(module)]
        if module.count(".") > 1:
            left.append((module.rpartition(".")[0], module))
    return reached


@cache
def run_time_imports(module: str) -> frozenset[str]:
    path = file_of(module)
    assert path is not None
    tree, found = tree_of(path), set()
    for_checkers = {id(node) for block in checkers_blocks(tree) for each in block for node in ast.walk(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in for_checkers:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_checkers:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found |= {inside} if file_of(inside) else {node.module, *behind_the_door(node.module, alias.name)}
    return frozenset(each for each in found if each.startswith("tacit.") and file_of(each))


def checkers_blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """What stands behind `if TYPE_CHECKING:`."""
    return [node.body for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == CHECKING]


def behind_the_door(room: str, name: str) -> set[str]:
    """The file that a late door takes a name from."""
    door = file_of(room)
    if room == "tacit" or door is None or door.name != "__init__.py":
        return set()
    behind = [node for block in checkers_blocks(tree_of(door)) for node in block if isinstance(node, ast.ImportFrom)]
    return {node.module or "" for node in behind if name in {alias.asname or alias.name for alias in node.names}}


def file_of(module: str) -> Path | None:
    """The file of a module of tacit."""
    file = PACKAGE.joinpath(*module.split(".")[1:])
    return next((each for each in (file.with_suffix(".py"), file / "__init__.py") if each.is_file()), None)


def test_a_device_carries_what_it_needs() -> None:
    reached = reached_from("tacit.device.device", *NAMED_FOR_A_DEVICE)
    rooms = {module: module.split(".")[1] for module in reached}
    strange = {module: reached[module] for module, room in rooms.items() if room in NOT_ON_A_DEVICE | FRONTS}
    assert not strange, f"a phone would have to carry {strange} (each with who imports it)"
    lines = sum(len(text_of(path).splitlines()) for path in map(file_of, reached) if path)
    assert (len(reached), lines) <= (DEVICE_FILES, DEVICE_LINES) and lines <= DEVICE_LINES, (len(reached), lines)


def test_the_code_of_a_device_is_what_a_device_reaches() -> None:
    """Whole rooms: what else is in them may change the digest, and nothing that a device runs may be left out."""
    reached = reached_from("tacit.device.device", *NAMED_FOR_A_DEVICE)
    rooms = {module.split(".")[1] for module in reached if "." in module}
    files = {room if (PACKAGE / room).is_dir() else f"{room}.py" for room in rooms}
    assert files == set(DEVICE_ROOMS)


def test_what_a_door_opens_late_is_reached() -> None:
    assert behind_the_door("tacit.training", "RoundPlan") == {"tacit.training.rounds"}
    assert "tacit.statements.ledger" in reached_from("tacit.training.rounds")
    assert "tacit.training.rounds" not in reached_from("tacit.training")


def test_a_device_takes_of_rooms_that_compute_what_one_device_does() -> None:
    taken = {
        (named(path), module)
        for path in SOURCES
        if room_of(path) == "device"
        for module, _ in imports(tree_of(path), package_of(path))
        if module.split(".")[1:2] in (["training"], ["discovery"], ["evaluation"])
    }
    assert {module.rpartition(".")[2] for _, module in taken} <= ONE_DEVICE, taken


def test_the_command_is_thin() -> None:
    busy = {named(path) for path in CLI if re.search(r"\bopen\(|\bimport numpy\b|\bfrom numpy\b", text_of(path))}
    busy -= {"cli/streams.py"}  # whose files are the standard streams
    assert not busy, f"{sorted(busy)} count with NumPy or open files: that is a job"


def test_architecture_page_shows_the_import_table() -> None:
    page = text_of(REPOSITORY / "docs" / "architecture.md")
    for room, targets in MAY_IMPORT.items():
        row = f"| `{room}` | {', '.join(f'`{target}`' for target in sorted(targets)) or 'nothing'} |"
        assert row in page, f"docs/architecture.md lacks the row\n{row}"


def test_every_room_has_a_door() -> None:
    without = {named(path.parent) for path in SOURCES if not (path.parent / "__init__.py").is_file()}
    assert not without, f"{sorted(without)} have no __init__.py: a paragraph and at most ten names"


def test_doors_open() -> None:
    """`__all__` is sorted, has at most ten names, and is just what the file binds."""
    wrong = []
    for path in DOORS:
        room = importlib.import_module(".".join(["tacit", *path.relative_to(PACKAGE).parts]))
        if not room.__doc__:
            wrong.append(f"tacit.{path.name} needs a paragraph that says what it is for")
        if path.name == "cli":  # a command, not a library: its door is `main`
            continue
        listed = list(getattr(room, "__all__", []))
        if listed != sorted(listed) or len(listed) > DOOR_NAMES:
            wrong.append(f"tacit.{path.name}.__all__: {len(listed)} names, at most {DOOR_NAMES}, and sorted")
        if set(listed) != public_names(path / "__init__.py") or not all(hasattr(room, name) for name in listed):
            wrong.append(f"tacit.{path.name}.__all__ is not what the file binds")
    assert not wrong, "\n".join(wrong)


def public_names(door: Path) -> set[str]:
    """What a door's file binds by import, definition or assignment, _private names left out."""
    names: set[str] = set()
    tree = tree_of(door)
    late = [node for block in checkers_blocks(tree) for node in block]  # names of a late door
    for node in [*tree.body, *late]:
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "tacit.doors"):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_files_and_functions_fit_their_budget() -> None:
    long = []
    for path in SOURCES:
        lines = len(text_of(path).splitlines())
        if lines > FILE_LINES:
            long.append(f"{named(path)} has {lines} lines, at most {FILE_LINES}: split it by story")
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > FUNCTION_LINES:
                long.append(f"{named(path)}:{node.lineno} {node.name}: {body_lines(node)} lines, not {FUNCTION_LINES}")
    assert not long, "\n".join(long)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = ast.get_docstring(function, clean=False)
    documented = docstring.count("\n") + 1 if docstring else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - documented


# Strings that are kinds' names and something else there: functions of `import tacit`, and commands.
NO_KINDS = {"__init__.py", "cli/commands.py"}


def test_kinds_stand_in_one_table() -> None:
    """Whatever differs from kind to kind is a part in `KINDS`: nowhere else is there a table or a chain by kind."""
    found = {named(path): names for path in SOURCES if len(names := kinds_told_apart(tree_of(path))) > 1}
    assert not found.keys() - NO_KINDS, f"{found}: make it a part of the kind (federation/kinds.py)"


def kinds_told_apart(tree: ast.AST) -> set[str]:
    """Names of kinds by which one table, `match` or function tells kinds apart; the largest such set of a file."""
    sets = [set[str]()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            sets.append(kind_names(node.keys))
        elif isinstance(node, ast.Match):
            sets.append(kind_names(each for case in node.cases for each in ast.walk(case.pattern)))
        elif isinstance(node, ast.FunctionDef):
            compared = (each for each in ast.walk(node) if isinstance(each, ast.Compare))
            sets.append(kind_names(part for each in compared for part in ast.walk(each)))
    return max(sets, key=len)


def kind_names(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {str(each.value) for each in nodes if isinstance(each, ast.Constant) and each.value in KINDS}


def test_a_table_by_kind_is_found() -> None:
    for code in (
        "T = {'train': 1, 'evaluate': 2}",
        "match kind:\n    case 'train': pass\n    case 'discover' | 'tune': pass",
        "def f(kind):\n    return 1 if kind == 'train' else 2 if 'personalize' == kind else 3",
        "def f(kind):\n    return kind in ('evaluate', 'personalize')",
    ):
        assert len(kinds_told_apart(ast.parse(code))) > 1, code
    assert len(kinds_told_apart(ast.parse("T = {'train': 1, 'test': 2}\nif kind == 'train': pass"))) < 2


def test_every_part_of_every_kind_is_there() -> None:
    for name, kind in KINDS.items():
        assert kind.name == name and loaded(kind.metadata).kind == name
        parts = {field.name: getattr(kind, field.name) for field in fields(kind)}
        for field, part in parts.items():
            if isinstance(part, str) and part.startswith("tacit."):
                assert callable(loaded(part)) == (":" in part), f"{field} of {name}"
        assert (kind.statement is None) != (kind.unstated is None), f"{name} says what it promises, or why nothing"
        if isinstance(kind, FederatedKind):
            assert get_args(loaded(kind.question).model_fields["kind"].annotation) == (name,)


def test_names_tell_a_story() -> None:
    vague = [named(path) for path in SOURCES if NO_STORY & set(re.split("[/.]", named(path)))]
    assert not vague, f"{vague}: name a file after the thing that is in it"


def test_nothing_is_left_behind() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError")
    left = [(named(path), mark) for path in SOURCES for mark in marks if mark in text_of(path)]
    assert not left, f"{left}: finish it"


def test_what_json_prints_says_what_it_is() -> None:
    """The record of a result begins with `schema` and `version`; docs/api.md lists them."""
    page = text_of(REPOSITORY / "docs" / "api.md")
    named_in = r'(?:"schema": |^SCHEMA, VERSION = )"([a-z.]+)"'
    schemas = {text for path in SOURCES for text in re.findall(named_in, text_of(path), re.MULTILINE)}
    assert {"tacit.account.run", "tacit.verification", "tacit.tuning"} <= schemas
    assert not (unlisted := {name for name in schemas if f"`{name}`" not in page}), f"docs/api.md lacks {unlisted}"
    silent = {
        f"{named(path)} {node.name}"
        for path in SOURCES
        if room_of(path) == "jobs"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "to_record" and not says_what_it_is(method)
    }
    assert not silent, f"{sorted(silent)}: begin the record with `schema` and `version`"


def says_what_it_is(to_record: ast.FunctionDef) -> bool:
    """Whether an object in it begins so, or nothing is in it: what all results have in common."""
    if not any(isinstance(node, ast.Return) for node in ast.walk(to_record)):
        return True
    objects = [node for node in ast.walk(to_record) if isinstance(node, ast.Dict)]
    return ["'schema'", "'version'"] in [[ast.unparse(key) for key in each.keys[:2] if key] for each in objects]


# What reading text raises says something of the text, so it must not decide what a device does.
WHATEVER_IT_IS = {
    "evaluation/counts/device_part.py",
    "device/report_body.py",
    "device/child.py",
    "audit/device/watched.py",  # what ends a device is seen
}


def test_no_handler_swallows_everything() -> None:
    broad = [
        f"{named(path)}:{node.lineno}"
        for path in SOURCES
        if named(path) not in WHATEVER_IT_IS
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and swallows_everything(node)
    ]
    assert not broad, f"{broad} catch everything; name what can happen"


def swallows_everything(handler: ast.ExceptHandler) -> bool:
    """`except:` or `except (Base)Exception:` that does not raise again."""
    broad = handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in {"Exception", "BaseException"}
    )
    return broad and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def without_encoding(tree: ast.AST) -> list[str]:
    """Calls that read or write text in the encoding of whatever locale there is."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or "encoding" in {keyword.arg for keyword in node.keywords}:
            continue
        method = isinstance(node.func, ast.Attribute)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [*node.args[: 1 if method else 2], *(each.value for each in node.keywords if each.arg == "mode")]
        said = [each.value for each in modes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        match name:
            case "open" if method:  # of a path: `Run.open(folder)` is another
                text = (not modes or said) and "b" not in "".join(said)
            case "open":
                text = "b" not in "".join(said)
            case "fdopen" | "TextIOWrapper" | "NamedTemporaryFile":
                text = not any("b" in str(getattr(each, "value", "")) for each in node.args[1:] or node.args)
            case "read_text":
                text = not node.args
            case "write_text":
                text = len(node.args) == 1
            case "run" | "Popen" | "check_output" | "check_call" | "call":
                text = bool({"text", "universal_newlines"} & {keyword.arg for keyword in node.keywords})
            case _:
                text = False
        if text:
            found.append(ast.unparse(node))
    return found


def test_text_is_utf8_whatever_the_locale() -> None:
    """What is written on one machine is read on another."""
    silent = {named(path): calls for path in SOURCES if (calls := without_encoding(tree_of(path)))}
    assert not silent, f"{silent}: give encoding='utf-8'"


def test_a_file_without_an_encoding_is_found() -> None:
    wrong = ("open(path)", "open(path, 'a+')", "path.open()", "path.open('w')", "path.read_text()", "a.write_text(b)")
    wrong += ("os.fdopen(descriptor, 'w')", "subprocess.run(command, text=True)")
    right = (
        "open(path, 'rb')",
        "path.open('wb')",
        "Run.open(path)",
        "path.read_text('utf-8')",
        "subprocess.run(command)",
    )
    right += ("open(path, encoding='utf-8')", "a.write_text(b, encoding='ascii')", "os.fdopen(descriptor, 'wb')")
    assert all(without_encoding(ast.parse(code)) for code in wrong)
    assert not [code for code in right if without_encoding(ast.parse(code))]
