"""`tacit recipe list` and `tacit recipe show`: the recipes that come with the package, and copies of them to change."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.files import PathLike, as_path, check_file
from tacit.jobs.plan.new_recipe import write_recipe
from tacit.jobs.result import JobResult
from tacit.parsing import parsed_toml

if TYPE_CHECKING:
    from tacit.reports.blocks import Block


@dataclass(frozen=True, kw_only=True)
class ShippedRecipe(JobResult):
    """One of them, as it is written."""

    name: str
    toml: str
    made_by: str  # the command that makes its cache
    path: Path | None = None  # where a copy was written

    @property
    def about(self) -> str:
        """What it is for: its first line."""
        return self.toml.partition("\n")[0].removeprefix("# ")

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit recipe show --json` prints."""
        path = None if self.path is None else str(self.path)
        return {"schema": "tacit.recipe.shipped", "version": 1, "path": path, **self.values()}

    def values(self) -> dict[str, str]:
        """What it says, without where a copy is."""
        return {"name": self.name, "about": self.about, "made_by": self.made_by, "toml": self.toml}

    def blocks(self) -> "list[Block]":
        """What people read where a copy was written."""
        from tacit.reports.blocks import Paragraph

        return [
            Paragraph(f"{self.path} is {self.name}, to change as you like"),
            Paragraph(f"its clients' text: {self.made_by}"),
            Paragraph(f"next: tacit plan recipe {self.path}, then tacit train {self.path} --out RUN"),
        ]


@dataclass(frozen=True)
class ShippedRecipes(JobResult):
    """All of them, in the order of names."""

    recipes: tuple[ShippedRecipe, ...]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit recipe list --json` prints."""
        listed = [each.values() for each in self.recipes]
        return {"schema": "tacit.recipe.list", "version": 1, "recipes": listed}

    def blocks(self) -> "list[Block]":
        """What people read of it."""
        from tacit.reports.blocks import Paragraph, Table

        rows = tuple((each.name, each.made_by) for each in self.recipes)
        way = "tacit train NAME --out RUN trains by one; tacit recipe show NAME --out FILE writes a copy to change"
        return [Table(rows, ("recipe", "what makes its clients' text")), Paragraph(way)]


def shipped_recipes() -> ShippedRecipes:
    """The recipes that come with the package."""
    return ShippedRecipes(tuple(_all().values()))


def shipped_recipe(name: str, *, out: PathLike | None = None) -> ShippedRecipe:
    """The shipped recipe of a name. out: the file for a copy; None writes none.

    Raises: InputError where there is none of that name, or `out` is there and says something else.
    """
    known = _all()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"no shipped recipe is called '{name}'; {meant}They are: {', '.join(known)}.")
    found = known[name]
    if out is None:
        return found
    path = as_path("out", out)
    check_file("--out", path)
    write_recipe(path, found.toml)
    return ShippedRecipe(name=name, toml=found.toml, made_by=found.made_by, path=path)


def _all() -> Mapping[str, ShippedRecipe]:

    from tacit.recipe.shipped_recipes import caches, shipped  # pydantic comes with it

    made_by = caches()
    return {
        name: ShippedRecipe(name=name, toml=text, made_by=made_by[parsed_toml(text)["data"]["cache"]])
        for name, text in shipped().items()
    }
