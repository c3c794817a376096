"""What starting costs: nothing is loaded that the answer does not need."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tacit.cli.commands import app
from tacit.cli.groups import LateGroup
from tacit.design.catalogue import MECHANISMS
from tacit.privacy import Guarantee, Participation, Tree
from tacit.statements import TrainingFacts
from tacit.statements.statement import statement

# What compiles, draws or serves. SciPy is light beside it, and still a third of a short command where it is not needed.
HEAVY = {"jax", "numba", "optax", "torch", "matplotlib", "pyarrow", "ray", "starlette"}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh process has loaded after this."""
    at_the_end = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    done = subprocess.run([sys.executable, "-c", f"{at_the_end}\n{code}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def loaded_by_command(*arguments: str) -> set[str]:
    code = f"sys.argv = {['tacit', *arguments]!r}\nfrom tacit.cli import main\ntry: main()\nexcept SystemExit as end: "
    return loaded_by(code + "assert not end.code, end.code")


@pytest.mark.parametrize("module", ["tacit", "tacit.errors", "tacit.progress", "tacit.records"])
def test_the_package_loads_nothing(module: str) -> None:
    assert not loaded_by(f"import {module}") & (HEAVY | {"numpy", "scipy", "pydantic"})


@pytest.mark.parametrize("module", ["tacit.privacy", "tacit.statements"])
def test_accounting_needs_no_accelerator(module: str) -> None:
    assert not loaded_by(f"import {module}") & HEAVY


def test_help_loads_no_command() -> None:
    assert not loaded_by_command("--help") & (HEAVY | {"numpy", "scipy", "pydantic", "rich"})


def every_command(group: typer.core.TyperGroup, *above: str) -> Iterator[tuple[str, ...]]:
    """The path of every command, groups among them."""
    yield above
    for name, listed in group.commands.items():
        made = group.made(name) if isinstance(group, LateGroup) else listed
        if isinstance(made, typer.core.TyperGroup):
            yield from every_command(made, *above, name)
        else:
            yield *above, name


ALIKE = ("account", "design")  # their commands are made alike, one for each mechanism: of these a few
COMMANDS = [
    path
    for path in every_command(typer.main.get_command(app))
    if path[:1] not in [(name,) for name in ALIKE] or len(path) == 1 or path[-1] not in MECHANISMS or path[-1] == "blt"
]


def test_commands_of_every_depth_are_found() -> None:
    assert {("personalize",), ("account", "blt"), ("account", "shuffle"), ("plan", "run")} <= set(COMMANDS)


# One process says what each help is the first to load.
EVERY_HELP = """
import contextlib, io, json, sys
from tacit.cli import main
heavy, loaded = set(json.loads(sys.argv[1])), {}
for command in json.loads(sys.argv[2]):
    sys.argv, said = ["tacit", *command, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            main()
    except SystemExit as end:
        assert not end.code and "Usage: " in said.getvalue(), (command, end.code)
    loaded[" ".join(command)] = sorted(heavy & sys.modules.keys())
    heavy -= sys.modules.keys()
print(json.dumps(loaded))
"""


def test_help_computes_nothing() -> None:
    """Options come from settings, and settings load what checks or computes only when they are made."""
    asked = [json.dumps(sorted(HEAVY | {"scipy"})), json.dumps(COMMANDS)]
    done = subprocess.run([sys.executable, "-c", EVERY_HELP, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert len(loaded) == len(COMMANDS) and {name: each for name, each in loaded.items() if each} == {}


ASCII_WORDS = """
from tacit.keyboard.suggest import TypingSession
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.text.words import pieces
words = Vocabulary(words=("one", "two"), provenance=Provenance(kind="public", description="numbers"))
assert pieces("one two") == ["one", "two"]
"""


def test_words_are_cut_without_a_library() -> None:
    assert not loaded_by(f"{ASCII_WORDS}assert pieces('trois caf\u00e9s') == ['trois', 'caf\u00e9s']") & HEAVY


def rooms(modules: set[str]) -> set[str]:
    """The rooms of tacit among the modules."""
    return {name.split(".")[1] for name in modules if name.startswith("tacit.")}


TREE = ("account", "tree", "--rounds", "100", "--min-separation", "10", "--noise-multiplier", "1")
BLT = ("design", "blt", "--rounds", "60", "--min-separation", "10", "--buffers", "1")


def test_an_account_needs_no_scipy_and_no_search() -> None:
    modules = loaded_by_command(*TREE)
    assert not modules & (HEAVY | {"scipy"})
    assert not rooms(modules) & {"planning", "population", "recipe", "reports", "runs", "statements", "training"}
    assert not modules & {f"tacit.design.{name}" for name in ("banded", "blt", "dense", "losses", "toeplitz")}


def test_a_statement_is_verified_without_scipy(tmp_path: Path) -> None:
    served = Participation(rounds=100, min_separation=20, max_participations=4)
    facts = TrainingFacts(
        planned=Guarantee(participation=served, strategy=Tree(), clip_norm=1.0, noise_multiplier=3.0),
        delta=1e-8,
        population=1000,
        report_goal=10,
        cohort_rule="drawn at random",
        vocabulary_kind="public",
        vocabulary_description="public words",
        released="the final model",
        looked_at=(),
        verify_command="tacit verify statement.json",
    )
    file = tmp_path / "statement.json"
    file.write_text(statement(facts).to_json(), encoding="utf-8")
    modules = loaded_by_command("verify", str(file))
    assert not modules & (HEAVY | {"scipy"})
    said = {
        "cli",
        "doors",
        "errors",
        "federation",
        "files",
        "folders",
        "jobs",
        "networks",
        "parsing",
        "plurals",
        "privacy",
        "process_limits",
        "progress",
        "records",
        "runs",
        "statements",
        "version",
    }
    assert rooms(modules) <= said


def test_a_design_loads_no_accelerator() -> None:
    assert not loaded_by_command(*BLT) & HEAVY


def late_groups(group: LateGroup, path: str) -> Iterator[tuple[str, LateGroup]]:
    """The group, and every group below it whose sub-commands are imported when they are called."""
    yield path, group
    for name in group.table:
        made = group.made(name)
        if isinstance(made, LateGroup):
            yield from late_groups(made, f"{path} {name}")


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    groups = dict(late_groups(typer.main.get_command(app), "tacit"))
    assert {"tacit", "tacit account", "tacit design"} <= groups.keys()
    for path, group in groups.items():
        for name, later in group.table.items():
            first = " ".join(group.made(name).help.partition("\n\n")[0].split())
            assert first.startswith(later.line), f"`{path} --help` says otherwise of {name}"
