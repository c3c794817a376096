"""What `tacit serve` may be given, kind by kind: which job its coordinator runs, and with which collector.

A file whose first key is `kind` is a query of that kind (`JOBS`); one without is a recipe of training.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.train.job import train
from tacit.jobs.train.run import begin
from tacit.progress import Progress
from tacit.recipe import Recipe
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run
from tacit.server.count_files import ServedEvaluation, ServedPersonalization
from tacit.server.discover import ServedWords
from tacit.server.plans import check_servable
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.train import ServedCollector
from tacit.training.hooks import Hooks

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # messages.Name


class ServedJob(Protocol):
    """One run for real devices, as its file says it."""

    collector: ClassVar[type[ServedRounds]]  # asks devices

    @property
    def name(self) -> str:
        """By which devices know it."""
        ...

    @property
    def deployment(self) -> DeploymentSection:
        """Who the devices are, and how rounds wait."""
        ...

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """What `to_toml` wrote, or somebody. Raises: InputError, RecipeError naming the key."""
        ...

    def to_toml(self) -> str:
        """All of it."""
        ...

    def placed(self, data: Path | None) -> Self:
        """The same with whole paths to files that can be used; data: a cache in place of its own. Raises: InputError,
        CacheError.
        """
        ...

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """The open run folder, new or gone on with; no device is asked yet. Raises: as the job."""
        ...

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """Do the job to its end. Raises: as the job."""
        ...


@dataclass(frozen=True)
class ServedTraining:
    """A recipe that real devices train."""

    collector: ClassVar[type[ServedRounds]] = ServedCollector
    recipe: Recipe

    def __post_init__(self) -> None:
        if self.recipe.deployment is None:
            raise InputError(
                f"the recipe {self.recipe.name!r} has no section [deployment], so it says nothing of real devices; add "
                "one (docs/recipes.md), or simulate it with `tacit train`."
            )
        check_servable(self.recipe)

    @property
    def name(self) -> str:
        """See ServedJob."""
        return self.recipe.name

    @property
    def deployment(self) -> DeploymentSection:
        """See ServedJob."""
        assert self.recipe.deployment is not None  # it was made with one
        return self.recipe.deployment

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        return cls(Recipe.from_toml(text, where=where))

    def to_toml(self) -> str:
        """See ServedJob."""
        return self.recipe.to_toml()

    def placed(self, data: Path | None) -> Self:
        """See ServedJob."""
        own = open_cache(self.recipe.data.cache if data is None else data)
        section = self.recipe.data.model_copy(update={"cache": own.path.absolute()})
        return type(self)(self.recipe.model_copy(update={"data": section}))

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        assert isinstance(collector, ServedCollector)  # as it was asked for
        return begin(self.recipe, out, hooks=Hooks(collector=collector), progress=progress)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        assert isinstance(collector, ServedCollector)
        train(self.recipe, out, collector=collector, progress=progress)


JOBS: Mapping[str, type[ServedJob]] = {  # by the first key of a file
    "discover": ServedWords,
    "evaluate": ServedEvaluation,
    "personalize": ServedPersonalization,
}


def job_of(text: str, *, where: str) -> ServedJob:
    """That of a file's text. Raises: InputError, RecipeError."""
    try:
        kind = tomllib.loads(text).get("kind")
    except tomllib.TOMLDecodeError:
        kind = None  # the recipe's reader says where
    if kind is None:
        return ServedTraining.from_toml(text, where=where)
    if not isinstance(kind, str) or kind not in JOBS:
        raise InputError(
            f"{where} begins with kind = {kind!r}, and what is served is of kind {', '.join(JOBS)}; a recipe of "
            "training has no kind."
        )
    return JOBS[kind].from_toml(text, where=where)


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
        text = path.read_bytes().decode("utf-8-sig")  # some editors begin a file with a mark
    except (OSError, UnicodeDecodeError):
        return ServedTraining(Recipe.given(path))  # whose complaint it is
    return job_of(text, where=str(path))
