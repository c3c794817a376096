"""What `tacit serve` may be given, kind by kind: which job its coordinator runs, and with which collector.

A file whose first key is `kind` is a query of that kind; one without is a recipe of training.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tacit.errors import InputError
from tacit.federation.kinds import FEDERATED, loaded
from tacit.files import PathLike, as_path, read_bounded
from tacit.parsing import parsed_toml
from tacit.recipe import Recipe
from tacit.server.served import ServedJob
from tacit.server.train import ServedTraining

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # messages.Name
QUERIES = tuple(name for name in FEDERATED if name != "train")  # whose files say their kind


def job_of(text: str, *, where: str) -> ServedJob:
    """That of a file's text. Raises: InputError, RecipeError."""
    try:
        kind = parsed_toml(text).get("kind")
    except ValueError:
        kind = None  # the recipe's reader says where
    if kind is None:
        return ServedTraining.from_toml(text, where=where)
    if not isinstance(kind, str) or kind not in QUERIES:
        raise InputError(
            f"{where} begins with kind = {kind!r}, and what is served is of kind {', '.join(QUERIES)}; a recipe of "
            "training has no kind."
        )
    job: ServedJob = loaded(FEDERATED[kind].server).from_toml(text, where=where)
    return job


def jobs_of(files: Sequence[PathLike | Recipe], data: Path | None) -> dict[str, ServedJob]:
    """What is to be served, by name; data: a cache in place of their own. Raises: InputError; CacheError."""
    found: dict[str, ServedJob] = {}
    for file in files:
        job = ServedTraining(file) if isinstance(file, Recipe) else _read(file)
        if not NAME.fullmatch(job.name):
            raise InputError(
                f"devices know a run by its name, and {job.name!r} is none for that: give up to 100 letters, digits "
                "and ._-, with a letter or a digit first."
            )
        if job.name in found:
            raise InputError(f"two runs are called {job.name!r}, by which devices tell runs apart; rename one.")
        found[job.name] = job.placed(data)
    return found


def _read(file: PathLike) -> ServedJob:
    """A file, or else a shipped recipe."""
    path = as_path("recipes", file)
    try:
        text = read_bounded(path).decode("utf-8-sig")  # some editors begin a file with a mark
    except (OSError, UnicodeDecodeError):
        return ServedTraining(Recipe.from_argument(path))  # whose complaint it is
    return job_of(text, where=str(path))
