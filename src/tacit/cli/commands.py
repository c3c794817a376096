"""The command `tacit`: every sub-command in the file named after its subject, imported when it is used.

`data.py` brings text in, `vocab.py` and `discover.py` find its words, `plan.py` and `simulate.py` weigh privacy against
computation and population, `design.py` chooses a mechanism, `account.py` proves and `verify.py` checks what it proved,
`audit.py` looks for what leaks all the same, `pretrain.py` makes a first model from public text, `ngram.py` a counted
one, `recipe.py` writes recipes, `tune.py` finds settings in small trials, `train.py` trains and resumes, `evaluate.py`
and `personalize.py` ask devices how a model does, `ladder.py` says what it has to beat, `count.py` what their text is
like, `type.py` types with two of them, `demo.py` is the main job, `report.py` shows and compares, `view.py` shows live
pages, `suggest.py` asks a model for next words, `export.py` writes it for phones, `keyboard.py` lets somebody type with
one, `decryptor.py` is what a third party runs for secure sums, `serve.py` a server of real devices, `device.py` is one
of them, `publish.py` enters a page that is one into a log, and `docs.py` opens the documentation.
"""

from typing import Annotated

import typer

import tacit
from tacit.cli.groups import at, late_app

# What is printed where nothing was asked: how to begin.
FIRST = (
    ("tacit demo", "a private model of text that is on this machine, in minutes"),
    ("tacit data import FILE.parquet --out CACHE", "your own text: columns client_id, text, timestamp"),
    (
        "tacit recipe new --data CACHE --epsilon 8 --out RECIPE.toml",
        "a recipe for so many clients, each value explained",
    ),
    ("tacit train RECIPE.toml --out RUN", "a model of it, with a statement of what it promises"),
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"tacit {tacit.__version__}")
        raise typer.Exit


def _begin(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo("tacit learns from what people type without seeing it. Begin with one of these:\n")
        for line, meaning in FIRST:
            typer.echo(f"  {line}\n      {meaning}")
        typer.echo("\n`tacit --help` lists all commands, `tacit COMMAND --help` says what one takes.")
        typer.echo("`tacit docs` opens the pages that they name.")


COMMANDS = {
    "demo": at(
        "demo:demo",
        "Private models from nothing: people, public models, counts and rounds at epsilon 1, and what each is worth.",
    ),
    "data": at("data:app", "Bring clients' text in, and look at what came."),
    "vocab": at("vocab:app", "Make and extend vocabularies."),
    "discover": at(
        "discover:discover_words",
        "Find frequent unknown words under local differential privacy, layer by layer of a trie.",
    ),
    "pretrain": at("pretrain:pretrain", "Train a model on public text; `tacit train --init OUT` begins from it."),
    "ngram": at(
        "ngram:ngram", "Count a Kneser-Ney model of public text: words, pairs and longer n-grams in small tables."
    ),
    "tune": at(
        "tune:tune", "Try server learning rates and clipping quantiles small, then write the production recipe."
    ),
    "recipe": at("recipe:app", "Write a recipe for the clients of a cache, or copy a shipped one."),
    "train": at("train:train", "Train a model by the recipe and leave a run folder."),
    "resume": at(
        "train:resume", "Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one."
    ),
    "finish": at(
        "train:finish",
        "End an unfinished training with the rounds that it has: its last model is released, with its statement.",
    ),
    "suggest": at(
        "suggest:suggest", "The likeliest next words after each prompt, words of the model's vocabulary alone."
    ),
    "export": at(
        "export:export",
        "Write a model as graphs, weights, words and a dictionary (--out), or as a dictionary alone (--dictionary).",
    ),
    "keyboard": at(
        "keyboard:keyboard",
        "Type with a model in this terminal: next words, corrections and phrases as a phone shows them.",
    ),
    "evaluate": at(
        "evaluate:evaluate",
        "Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another.",
    ),
    "ladder": at(
        "ladder:ladder",
        "Models beside every baseline on the same simulated clients: what is free, and n-grams of clients' text.",
    ),
    "count": at(
        "count:count",
        "Count statistics of clients' text, by cuts and slices or word by word, and release them with a guarantee.",
    ),
    "mix": at(
        "mix:mix",
        "Bend a public n-gram model by private counts, and mix it with a network; one promise covers all of it.",
    ),
    "personalize": at(
        "personalize:personalize",
        "Fine-tune a model on each client's own text, count who gains and loses, and release that with a guarantee.",
    ),
    "type": at(
        "type:type_ab",
        "Have simulated users type held-out text on two keyboards, and say whether B is improved, neutral or worse.",
    ),
    "plan": at("plan:app", "Plan a run before it is run: privacy, client visits and days."),
    "simulate": at(
        "simulate:simulate",
        "Who would come, how often, and how long it would take: realised MinS and MaxP, days, wasted work.",
    ),
    "design": at("design:app", "Choose a mechanism's parameters for the least error at equal privacy."),
    "account": at("account:app", "What a mechanism promises: exact sensitivity, zCDP, and epsilon at a delta."),
    "verify": at(
        "verify:verify_statement",
        "Recompute every figure, label and sentence of a statement from its facts; exit code 1 if a line fails.",
    ),
    "audit": at(
        "audit:app",
        "How much leaks at least, with a confidence, beside what is promised.",
    ),
    "report": at(
        "report:report",
        "Write RUN/report, which may be published (the statement is in it), and RUN/simulation, which has all numbers.",
    ),
    "compare": at(
        "report:compare",
        "Runs side by side: accuracy of known words, privacy at one delta, what differs, a page with all curves.",
    ),
    "view": at(
        "view:view", "Show runs in a browser while they go on: answers, curves, words, people, a keyboard and a plan."
    ),
    "decryptor": at(
        "decryptor:decryptor",
        "Keep shares of clients' keys, and open the sum of one agreed set a round: by HTTP, or by base64 lines.",
    ),
    "serve": at(
        "serve:serve",
        "Serve devices until every recipe is trained: coordinators make the rounds, workers answer, both are watched.",
    ),
    "publish": at(
        "publish:publish",
        "Enter the bundle of a built page into a transparency log, and write the log beside it.",
    ),
    "device": at(
        "device:device",
        "Be one device: take part in rounds where the owner's policy and the device's record allow it.",
    ),
    "doctor": at(
        "doctor:doctor",
        "Versions, processors, memory, and whether what tacit stands on works here; nothing private, for bug reports.",
    ),
    "docs": at("docs:docs", "Open the documentation in a browser, from this machine, and say where it is."),
}

# As `tacit --help` and docs/cli.md group them: every command under one heading, in the order of their use.
PANELS = {
    "First steps": ("demo", "view", "docs", "doctor"),
    "Data": ("data", "vocab"),
    "Models": (
        "pretrain",
        "ngram",
        "recipe",
        "tune",
        "train",
        "resume",
        "finish",
        "mix",
        "suggest",
        "keyboard",
        "export",
    ),
    "Discovery and personalization": ("discover", "count", "personalize"),
    "Judging": ("evaluate", "ladder", "type", "report", "compare"),
    "Privacy": ("plan", "simulate", "design", "account", "verify", "audit"),
    "Deployment": ("serve", "device", "decryptor", "publish"),
}

app = late_app(
    COMMANDS,
    panels=PANELS,
    begin=_begin,
    name="tacit",
    help="Learn from what people type without seeing it.",
    pretty_exceptions_enable=False,
)
