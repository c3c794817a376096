"""`tacit demo`: the main job from end to end on text that every machine with Python has."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.bars import import_bar
from tacit.cli.console import console, speaks_plainly
from tacit.cli.train import finish
from tacit.data import VocabularyChoice
from tacit.data.vocabulary_choice import MANUALS
from tacit.jobs.import_data import import_data
from tacit.runs import Run

VOCABULARY = 5_000  # the manuals have too few words for the papers' 10,000


@speaks_plainly
def demo(
    out: Annotated[Path, typer.Option(help="The run folder; an unfinished demo there is continued.")] = Path(
        "runs/demo"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Import a population, train a private next-word model, evaluate it, write report and statement."""
    from tacit.compute import Hardware
    from tacit.jobs.train import begin  # JAX is loaded here; see train.py
    from tacit.recipe import Recipe

    hardware = Hardware()
    hardware.apply()
    if (out / "run.db").exists():
        with Run.open(out) as run:
            finish(run, hardware, json=json)
        return
    recipe = Recipe.from_toml((files("tacit") / "demo.toml").read_text(encoding="utf-8"), where="demo.toml")
    cache = out.with_name(f"{out.name}-data")
    if not json:
        console.print("clients: the modules of this Python; their text: docstrings. Vocabulary: public manuals.")
    with import_bar(shown=not json) as progress:
        import_data(
            "docstrings",
            cache,
            vocabulary=VocabularyChoice(public=(MANUALS,)),
            vocabulary_size=VOCABULARY,
            progress=progress,
        )
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"cache": cache})})
    with begin(recipe, out) as run:
        finish(run, hardware, json=json)
