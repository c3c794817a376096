"""The command `tacit`: every sub-command in the file named after its subject, imported when it is used.

`data.py` brings text in, `vocab.py` and `discover.py` find its words, `plan.py` and `simulate.py` weigh privacy
against computation and population, `design.py` chooses a mechanism, `account.py` proves and `verify.py` checks what it
proved, `pretrain.py` makes a first model from public text, `tune.py` finds settings in small trials, `train.py` trains
and resumes, `evaluate.py` and `personalize.py` ask devices how a model does, `demo.py` is the main job, `report.py`
shows and compares.
"""

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Place(NamedTuple):
    """Where a sub-command stands, and the line that `tacit --help` shows of it: a test compares it with the command."""

    module: str
    name: str  # of the function, or of the Typer app that has sub-commands of its own
    line: str


COMMANDS = {
    "demo": Place(
        "demo", "demo", "Import a population, train a private next-word model, evaluate it, write report and statement."
    ),
    "data": Place("data", "app", "Bring clients' text in, and look at what came."),
    "vocab": Place("vocab", "app", "Make and extend vocabularies."),
    "discover": Place(
        "discover",
        "discover_words",
        "Find frequent unknown words under local differential privacy, layer by layer of a trie.",
    ),
    "pretrain": Place("pretrain", "pretrain", "Train a model on public text; `tacit train --init OUT` begins from it."),
    "tune": Place(
        "tune", "tune", "Try server learning rates and clipping quantiles small, then write the production recipe."
    ),
    "train": Place("train", "train", "Train a model by the recipe and leave a run folder."),
    "resume": Place(
        "train",
        "resume",
        "Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one.",
    ),
    "evaluate": Place(
        "evaluate",
        "evaluate",
        "Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another.",
    ),
    "personalize": Place(
        "personalize",
        "personalize",
        "Fine-tune a model on each client's own text, count who gains and loses, and release that with a guarantee.",
    ),
    "plan": Place("plan", "app", "Plan a run before it is run: privacy, client visits and days."),
    "simulate": Place(
        "simulate",
        "simulate",
        "Who would come, how often, and how long it would take: realised MinS and MaxP, days, wasted work.",
    ),
    "design": Place("design", "app", "Choose a mechanism's parameters for the least error at equal privacy."),
    "account": Place("account", "app", "What a mechanism promises: exact sensitivity, zCDP, and epsilon at a delta."),
    "verify": Place(
        "verify",
        "verify_statement",
        "Recompute every figure, label and sentence of a statement from its facts; exit code 1 if a line fails.",
    ),
    "report": Place(
        "report",
        "report",
        "Write RUN/report: report.html, report.md, report.json, statement.json (for `tacit verify`) and the figures.",
    ),
    "compare": Place(
        "report",
        "compare",
        "Two runs side by side: accuracy, privacy, settings that differ, and a figure of both curves.",
    ),
}


@cache
def command(name: str) -> Any:
    """A sub-command with its options, its module imported. Any: its class is click's or Typer's, by Typer's version."""
    place = COMMANDS[name]
    found = getattr(import_module(f"tacit.cli.{place.module}"), place.name)
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """The sub-commands of the table: listed by their lines, imported when one is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, place in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=place.line)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, command(name) if name else None, rest


app = typer.Typer(
    name="tacit", cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def tacit() -> None:
    """Learn from what people type without seeing it."""


def main() -> None:
    """The entry point of the `tacit` script."""
    app(prog_name="tacit")
