"""The tables of mechanisms in two pages, made from the catalogue; `make rendered` writes them between their marks."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

from tests.conftest import REPOSITORY

from tacit.design.best import BEST
from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import Mechanism

BEGIN, END = "<!-- from the catalogue, by make rendered -->\n", "<!-- end -->\n"


def recipe_rows() -> Iterator[tuple[str, ...]]:
    """What a recipe may say of each."""
    yield "name", "what it is, and its parameters"
    for each in (BEST, *MECHANISMS.values()):
        yield f"`{each.name}`", " ".join([each.explains, *parameters(each)])


def parameters(mechanism: Mechanism) -> Iterator[str]:
    """Each with its meaning, as the command's help has it."""
    hints = get_type_hints(mechanism.parameters, include_extras=True)
    for each in fields(mechanism.parameters):
        yield f"`{each.name}`: {get_args(hints[each.name])[1]}"


def mechanism_rows() -> Iterator[tuple[str, ...]]:
    """What can be had of each."""
    yield "name", "in short", "after its rounds", "a server's models", "several participations", "adaptive clip norm"
    for each in MECHANISMS.values():
        yield (
            f"`{each.name}`",
            each.says,
            "goes on" if each.matrix is None else "refuses",
            *("yes" if can else "no" for can in (each.any_workload, each.robust is not None, each.adapts)),
        )


TABLES: dict[Path, Callable[[], Iterator[tuple[str, ...]]]] = {
    REPOSITORY / "docs" / "recipes.md": recipe_rows,
    REPOSITORY / "docs" / "mechanisms.md": mechanism_rows,
}


def rendered(page: Path) -> str:
    """The page with its table as the catalogue has it now."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    head, *rows = ("| " + " | ".join(row) + " |\n" for row in TABLES[page]())
    rule = "|" + "---|" * (head.count("|") - 1) + "\n"
    return "".join([before, BEGIN, "\n", head, rule, *rows, "\n", END, after])


def main() -> None:
    """Write both pages."""
    for page in TABLES:
        page.write_text(rendered(page), encoding="utf-8")


if __name__ == "__main__":
    main()
