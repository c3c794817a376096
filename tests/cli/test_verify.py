"""`tacit verify`: every line is shown, a change by hand is found by its name, and exit codes tell the cases apart."""

import json
from pathlib import Path
from typing import Any

import typer
from click.testing import Result
from typer.testing import CliRunner

from tacit.cli.verify import verify_statement
from tacit.privacy import Guarantee, Participation, Tree
from tacit.statements import TrainingFacts
from tacit.statements.statement import statement

PLAN = Participation(rounds=100, min_separation=20, max_participations=4)
PROMISE = Guarantee(participation=PLAN, strategy=Tree(), clip_norm=1.0, noise_multiplier=3.0)
FACTS = TrainingFacts(
    planned=PROMISE,
    realised=PROMISE,
    delta=1e-8,
    population=1000,
    report_goal=10,
    participations=1000,
    cohort_rule="drawn [at random]",
    vocabulary_kind="public",
    vocabulary_description="public words",
    released="the final model",
    looked_at=(),
    verify_command="tacit account run runs/a",
)
app = typer.Typer()
app.command()(verify_statement)


def verified(path: Path, *options: str) -> Result:
    return CliRunner().invoke(app, [str(path), *options])


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**statement(FACTS).to_record(), **changes}))
    return path


def test_a_statement_as_written_verifies(tmp_path: Path) -> None:
    path = write(tmp_path / "statement.json")
    result = verified(path, "--verbose")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "ok     planned.zcdp" in lines and "ok     items.7.text" in lines
    assert not any(line.startswith("FAILS") for line in lines)
    assert "follow from the facts" in lines[-1]
    shown = json.loads(verified(path, "--json").stdout)
    assert (shown["verified"], shown["failed"], shown["checked"]) == (True, [], len(lines) - 1)


def test_what_holds_is_a_line_for_each_kind_and_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "statement.json", key_source="the [clock]")
    lines, every = (verified(path, *options).stdout.splitlines() for options in ((), ("--verbose",)))
    of_facts = sum(line.startswith("ok     facts.") for line in every)
    rest = len(every) - of_facts - 2
    assert every[0].startswith("FAILS  key_source: ")
    assert lines == [
        every[0],
        f"ok     {of_facts} facts as their checksums say",
        f"ok     {rest} figures, labels and sentences that follow from the facts",
        every[-1],
    ]


def test_a_change_by_hand_is_named_and_the_exit_code_is_one(tmp_path: Path) -> None:
    path = write(tmp_path / "statement.json", key_source="the [clock]")
    result = verified(path)
    assert result.exit_code == 1
    assert "FAILS  key_source: stated 'the [clock]', recomputed 'operating system'" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 of ")
    as_json = verified(path, "--json")
    assert as_json.exit_code == 1
    assert [each["line"] for each in json.loads(as_json.stdout)["failed"]] == ["key_source"]


def test_what_cannot_be_read_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    result = verified(tmp_path / "statement.json")
    assert result.exit_code == 2
    assert "there is no statement" in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""
