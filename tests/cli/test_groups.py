"""The first minutes at the command: what it says to nothing, to a misspelling, to --version and to a shell's Tab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import COMMANDS, FIRST, PANELS
from tacit.cli.commands import app as command
from tacit.cli.groups import LateGroup
from tacit.recipe.shipped_recipes import shipped


def asked(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(command, list(words), prog_name="tacit")
    return result.exit_code, result.stdout, result.stderr


def test_the_version_alone() -> None:
    assert asked("--version") == (0, f"tacit {tacit.__version__}\n", "")


def test_nothing_asked_says_how_to_begin() -> None:
    code, said, complaint = asked()
    assert (code, complaint) == (0, "")
    assert len(FIRST) == 4 and all(line in said for line, _ in FIRST)
    assert max(map(len, said.splitlines())) <= 80


def test_help_lists_every_command_once_under_its_heading() -> None:
    assert sorted(name for names in PANELS.values() for name in names) == sorted(COMMANDS)
    code, said, complaint = asked("--help")
    headings = [line.removesuffix(":") for line in said.splitlines() if line.endswith(":") and line[0] != " "]
    assert (code, complaint, headings) == (0, "", ["Options", *PANELS])


@pytest.mark.parametrize("group", ["data", "account", "plan", "recipe", "design"])
def test_a_group_without_a_command_shows_its_help_line_by_line(group: str) -> None:
    code, said, complaint = asked(group)
    assert (code, said) == (2, "")
    assert complaint == asked(group, "--help")[1]


def test_each_of_the_first_commands_is_one_with_the_options_it_names() -> None:
    for line, _ in FIRST:
        made = typer.main.get_command(command)
        words = line.split()[1:]
        while isinstance(made, LateGroup):
            made = made.made(words.pop(0))
        options = {name for parameter in made.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options
        if line.startswith("tacit train"):
            assert words[0] in ("RECIPE.toml", *shipped())


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("acount", "No such command: acount; did you mean account? `tacit --help`"),
        ("eval x", "No such command: eval; did you mean evaluate? `tacit --help`"),
        ("data imprt", "No such command: imprt; did you mean import? `tacit data --help`"),
        ("plan prod", "No such command: prod; did you mean production? `tacit plan --help`"),
        ("imprt", "No such command: imprt; did you mean data import? `tacit --help`"),
        ("version", "No such command: version; did you mean --version? `tacit --help`"),
        ("account version", "No such command: version. `tacit account --help`"),
        ("xyzzy", "No such command: xyzzy. `tacit --help`"),
        ("train x.toml --ot y", "No such option: --ot; did you mean --out? `tacit train --help`"),
        ("account tree --round 4", "No such option: --round; did you mean --rounds? `tacit account tree --help`"),
        ("train --xyzzy", "No such option: --xyzzy. `tacit train --help`"),
        (
            "train x.toml --epsilon 3",
            "No such option: --epsilon; it is a key of the recipe, so write --set privacy.epsilon=VALUE. `tacit train "
            "--help`",
        ),
        (
            "plan recipe x.toml --report-gaol 3",
            "No such option: --report-gaol; it is a key of the recipe, so write --set rounds.report_goal=VALUE. `tacit "
            "plan recipe --help`",
        ),
        ("finish --until 3", "No such option: --until; `tacit train` has it. `tacit finish --help`"),
        ("account tree --epsilom 3", "No such option: --epsilom; did you mean --epsilon? `tacit account tree --help`"),
    ],
)
def test_the_nearest_name_is_offered(typed: str, sentence: str) -> None:
    assert asked(*typed.split()) == (2, "", f"error: {sentence} shows what it takes.\n")


def test_only_near_names_are_offered_for_an_option_and_else_a_command_that_has_it() -> None:
    """`--json` was once offered for `--epsilon`, which shares three letters with it."""
    for typed, own in (("recipe list", "`tacit recipe new` and "), ("demo", "`tacit recipe new` and "), ("mix", "")):
        complaint = asked(*typed.split(), "--epsilon", "3")[2]
        assert "did you mean" not in complaint and f"No such option: --epsilon; {own}" in complaint
        named = complaint.partition("`tacit ")[2].partition("`")[0].split()
        assert "--epsilon" in asked(*named, "--help")[1]


def shell_at(line: str) -> dict[str, str]:
    """What bash says to a command of which it asks what may stand at the end of the line."""
    return {"_TACIT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}


def test_a_shell_completes_commands_and_options() -> None:
    for line, offered in (("tacit data im", "import"), ("tacit account tree --min", "--min-separation")):
        result = CliRunner().invoke(command, [], prog_name="tacit", env=shell_at(line))
        assert (result.stdout.split(), result.stderr) == ([offered], ""), result.output
    command_line = [sys.executable, "-m", "tacit"]
    asked = os.environ | shell_at("tacit tr")
    done = subprocess.run(command_line, env=asked, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["train"], "")


def test_completion_is_installed_where_it_says(tmp_path: Path) -> None:
    home = os.environ | {"HOME": str(tmp_path)}
    install = ["bash", "-c", f"{sys.executable} -m tacit --install-completion; true"]  # the shell it is asked in
    done = subprocess.run(install, env=home, capture_output=True, text=True, check=True)
    script = tmp_path / ".bash_completions" / "tacit.sh"
    assert str(script) in done.stdout and "complete" in script.read_text(encoding="utf-8")
    assert str(script) in (tmp_path / ".bashrc").read_text(encoding="utf-8")
