"""What starting costs: nothing is loaded that the answer does not need."""

import subprocess
import sys

import pytest

from tacit.cli import COMMANDS, command

HEAVY = {"jax", "numba", "optax", "torch", "matplotlib", "pyarrow", "tokenizers", "ray", "fastapi"}


def loaded_by(code: str) -> set[str]:
    """The packages that a fresh process has loaded after this."""
    at_the_end = "import atexit, sys; atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}))"
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
    assert not loaded_by_command("--help") & (HEAVY | {"numpy", "scipy", "pydantic"})


TREE = ("account", "tree", "--rounds", "100", "--min-separation", "10", "--noise-multiplier", "1")
BLT = ("design", "blt", "--rounds", "60", "--min-separation", "10", "--buffers", "1")


@pytest.mark.parametrize("arguments", [TREE, BLT], ids=" ".join)
def test_a_command_loads_what_it_needs(arguments: tuple[str, ...]) -> None:
    assert not loaded_by_command(*arguments) & HEAVY


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for name, place in COMMANDS.items():
        assert command(name).get_short_help_str(200) == place.line, f"cli/__init__.py lists `tacit {name}` otherwise"
