"""The command `tacit`: every sub-command in the file named after its subject.

`data.py` brings text in, `vocab.py` and `discover.py` find its words, `plan.py` and `simulate.py` weigh privacy
against computation and people, `design.py` and `factorizations.py` choose a mechanism, `account.py` proves and
`verify.py` checks what it proved, `pretrain.py` makes a first model from public text, `tune.py` finds settings in
small trials, `strategy.py` walks from a population to a production recipe, `train.py` trains and resumes (`trainer.py`
does the work, `progress.py` shows it), `evaluate.py` and `personalize.py` ask devices how a model does, `demo.py` is
the main job, `report.py` shows and compares.
"""

import typer

from tacit.cli import (
    account,
    data,
    demo,
    discover,
    evaluate,
    factorizations,
    personalize,
    plan,
    pretrain,
    report,
    simulate,
    strategy,
    train,
    tune,
    verify,
    vocab,
)

app = typer.Typer(
    name="tacit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn from what people type without seeing it.",
)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.add_typer(vocab.app, name="vocab")
app.command("discover")(discover.discover_words)
app.command("pretrain")(pretrain.pretrain)
app.command("tune")(tune.tune)
app.command("train")(train.train)
app.command("resume")(train.resume)
app.command("evaluate")(evaluate.evaluate)
app.command("personalize")(personalize.personalize)
app.add_typer(plan.app, name="plan")
app.command("simulate")(simulate.simulate)
app.command("strategy")(strategy.strategy)
app.add_typer(factorizations.app, name="design")
app.add_typer(account.app, name="account")
app.command("verify")(verify.verify_statement)
app.command("report")(report.report)
app.command("compare")(report.compare)


def main() -> None:
    """The entry point of the `tacit` script."""
    app()
