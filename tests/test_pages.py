"""Every command of README and docs/ is one, and runs as printed where a reader stands: any folder after `tacit demo`.

The blocks of a page run in their order, Python and commands, in one copy of that folder; with the files of a clone in
it only where the page says that it needs them. Sizes are those of tests/small_sizes.py; `make pages` takes the printed
ones, each command by a shell of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests import small_sizes
from tests.conftest import REPOSITORY
from tests.support.pages import PAGES, WITH_COMMANDS, Block, Command, blocks, commands, commands_of, differs
from typer.testing import CliRunner

# What no test runs, by how the command begins, and why. That it is a command is checked all the same.
NOT_RUN = {
    "make": "it sets an environment up; `make demo` is `tacit demo`, from which every page begins",
    "pip install": "it needs a package index",
    "npm": "the same; tests/web does both, and more",
    "python benchmarks/": "an hour and more, or corpora that are not shipped",
    "python after/benchmarks/": "the same",
    "git worktree": "part of such a benchmark",
    "export RAY": "it belongs to the next two",
    "ray": "it needs the machines of a cluster; tests/training/test_workers_ray_run.py trains on one of this machine",
    "tacit train chat-private --out runs/first --cluster": "the same",
    "tacit serve": "it goes on until devices end it; tests/server/test_quick_start.py plays them both",
    "for client": "those devices",
    "tacit device --server https": "one of them, of a server with TLS",
    "tacit verify served": "what they leave",
    "tacit verify published --log": "of a run that was served",
    "tacit account run served": "the same",
    "tacit view runs": "it goes on until it is interrupted; tests/view looks at all of it",
    "tacit keyboard": "somebody types into it; tests/cli/test_keyboard.py does",
}
# What needs a server of somebody's, and libraries that nothing else here needs; in api.md, what is run elsewhere.
SHOWN = {"api.md": {"py"}, "integrations.md": {"py"}, "your-own-model.md": {"py"}, "deploy.md": {"nginx"}}
# Pages that name files of the repository; whoever installed the wheel has none, so they say that a clone is needed.
IN_A_CLONE = {"browser.md", "for-ml-engineers.md"}
# Pages between whose commands every kind of job is run once; the others are for `make nightly` and `make pages`.
IN_LONG = {
    "README",
    "api",
    "deploy",
    "for-ml-engineers",
    "for-operators",
    "for-privacy-engineers",
    "for-researchers",
    "mixture",
    "personalization",
    "word-discovery",
}
NOT_OF_A_CLONE = (".*", "__pycache__", "*.egg-info", "build", "dist", "runs", "caches")
ALL = [command for page in PAGES for command in commands(page)]
PROGRAMS = {
    "tacit",
    "make",
    "python",
    "pip",
    "npm",
    "git",
    "ray",
    "rsync",
    "docker",
    "sed",
    "cp",
    "cat",
    "ls",
    "mkdir",
    "export",
    "for",
    "openssl",
}


def reason_not_to_run(command: Command) -> str | None:
    return next((why for begins, why in NOT_RUN.items() if command.text.startswith(begins)), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_hides_from_the_tests(page: Path) -> None:
    """Commands stand in `console` blocks behind `$ `: neither in a shell script nor as an indented line."""
    text = page.read_text(encoding="utf-8")
    fences = set(re.findall(r"^```(\w*)$", text, flags=re.MULTILINE)) - {""}
    assert fences <= {"console", "json", "python", "text", "toml"} | SHOWN.get(page.name, set()), page.name
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ +\$? ?(?:tacit|pip|make|python|git) .*$", outside, flags=re.MULTILINE), page.name


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.text[:60])
def test_every_command_is_one(command: Command) -> None:
    """The program, its sub-command, its options and values, and the files of this repository that it names."""
    program, *words = command.words
    assert program in PROGRAMS, f"{command.place}: what is {program}?"
    if program == "tacit":
        understood(words[: words.index(">")] if ">" in words else words)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(words) <= set(targets), command.place
    elif program == "python" and "benchmarks/" in words[0]:
        script = REPOSITORY / words[0].removeprefix("after/")
        options = script.read_text(encoding="utf-8")
        names = re.findall(r"^(?:import|from) (\w+)", options, re.MULTILINE)  # it may import those of other folders
        beside = [each for name in names for each in (REPOSITORY / "benchmarks").glob(f"*/{name}.py")]
        options += "".join(each.read_text(encoding="utf-8") for each in beside)
        missing = [word for word in words if word.startswith("--") and f'"{word}"' not in options]
        assert not missing, f"{command.place}: {missing}"
    shipped = [word for word in words if word.startswith(("recipes/", "benchmarks/", "examples/"))]
    assert not [path for path in shipped if not (REPOSITORY / path).exists()], command.place


def understood(words: list[str]) -> None:
    """Raises what the command line does where a command, an option or a value of one is unknown."""
    from tacit.cli.commands import app

    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words, "a group of commands, and none named"
        if words[0].startswith("-") and "steps" not in command.commands:
            assert words[0] in {option for parameter in command.params for option in parameter.opts}
            return
        name, *words = words if not words[0].startswith("-") else ["steps", *words]  # of `tacit plan`
        assert name in command.commands, f"tacit has no command {name}"
        command = command.made(name) if hasattr(command, "made") else command.commands[name]
    command.make_context("tacit", words)


def test_a_page_that_needs_a_clone_says_so() -> None:
    for name in IN_A_CLONE:
        assert "in a clone" in (REPOSITORY / "docs" / name).read_text(encoding="utf-8").lower(), name


def test_what_is_not_run_stands_on_a_page() -> None:
    """No reason outlives its command, and there are few: at most one command in five of the pages that are run."""
    told = [command.text for command in ALL]
    assert not [begins for begins in NOT_RUN if not any(text.startswith(begins) for text in told)]
    here = [command for page in WITH_COMMANDS for command in commands(page)]
    assert sum(reason_not_to_run(command) is not None for command in here) <= len(here) / 5


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not small_sizes.AS_PRINTED:
            small_sizes.made_small(patch, tmp_path_factory.mktemp("shipped"))
        yield


@pytest.fixture(scope="module")
def after_demo(small: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was empty, and in it what `tacit demo` leaves."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, _, said = run(["tacit", "demo"], "tacit demo")
        assert code == 0, said
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page.stem in IN_LONG else pytest.mark.nightly)
        for page in WITH_COMMANDS
    ],
)
def test_blocks_run_in_order(page: Path, after_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tacit"
    shutil.copytree(after_demo, folder, symlinks=True)
    if page.name in IN_A_CLONE:
        shutil.copytree(
            REPOSITORY, folder, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_OF_A_CLONE)
        )
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page, "python", "console"):
        if block.language == "python":
            run_python(block, page, names)
        else:
            for command in commands_of(page, block):
                if reason_not_to_run(command) is None:
                    run_command(command)


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    padded = "\n" * (block.line - 1) + block.text  # a failure then points at the page's own line
    exec(compile(padded, str(page), "exec"), names)


def run_command(command: Command) -> None:
    code, printed, said = run(command.words, command.text)
    assert code == command.code, f"{command.place}\nended with {code}\n{printed}{said}"
    exactly = command.words[0] == "tacit" and not small_sizes.is_smaller(command.words[1:])
    wrong = differs(command.shown, printed + said * (command.code == 2), exactly=exactly)
    assert wrong is None, f"{command.place}\n{wrong}"


def run(words: list[str], text: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error; `tacit` at its small size in this process, the rest by a shell."""
    if words[0] == "tacit" and not small_sizes.AS_PRINTED:
        from tacit.cli.commands import app

        words, into = (words[: words.index(">")], words[-1]) if ">" in words else (words, None)
        result = CliRunner().invoke(app, small_sizes.small(words[1:]))
        if into:
            Path(into).write_text(result.stdout, encoding="utf-8")
        return result.exit_code, result.stdout, result.stderr
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = os.environ | {"PATH": path, "COLUMNS": str(small_sizes.WIDTH)}
    done = subprocess.run(["bash", "-c", text], env=shell, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr
