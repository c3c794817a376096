"""`tacit demo`: the main job from end to end on text that every machine with Python has."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import console, say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.data import VocabularyChoice
from tacit.data.vocabulary_choice import MANUALS

VOCABULARY = 5_000  # the manuals have too few words for the papers' 10,000


@command
def demo(
    out: Annotated[Path, typer.Option(help="The run folder; an unfinished demo there is continued.")] = Path(
        "runs/demo"
    ),
    json: Json = False,
) -> None:
    """Import a population, train a private next-word model, evaluate it, write report and statement."""
    from tacit.jobs.begin import check_place
    from tacit.jobs.import_data import import_data
    from tacit.jobs.train import train
    from tacit.recipe import Recipe

    cache = out.with_name(f"{out.name}-data")
    check_place(out)
    if not (out / "run.db").exists():
        if not json:
            console.print("clients: the modules of this Python; their text: docstrings. Vocabulary: public manuals.")
        public = VocabularyChoice(public=(MANUALS,))
        with display(quiet=json) as progress:
            import_data("docstrings", cache, vocabulary=public, vocabulary_size=VOCABULARY, progress=progress)
    recipe = Recipe.from_toml((files("tacit") / "demo.toml").read_text(encoding="utf-8"), where="demo.toml")
    with display(json, out) as progress:
        result = train(recipe, out, data=cache, progress=progress)
    say_blocks(result, json)
