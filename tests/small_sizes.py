"""The pages' commands at sizes that a test can afford: fewer clients, rounds and devices, a smaller network.

`PAGES=as-printed` (which is `make pages`) runs what is printed instead; that takes the time that README names.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.conftest import BLANK
from tests.support.jobs.few_shipped import few_shipped

from tacit.cli.console import console
from tacit.data.formats import manuals
from tacit.data.formats.docstrings import Docstrings
from tacit.jobs import demo
from tacit.planning import noise_forecast
from tacit.recipe import Recipe
from tacit.reports import drawing
from tacit.reports.figure import Figure

AS_PRINTED = os.environ.get("PAGES") == "as-printed"

WIDTH = 150  # columns of the terminal that pages show
SENTENCES = 600  # of public text
PEOPLE = 400  # of those whose text tacit ships
PACKAGES = ("asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging", "unittest")

# At most so much of these keys of a recipe, whoever wrote it.
AT_MOST: dict[str, dict[str, int]] = {
    "model": {"embedding": 8, "units": 8},
    "client": {"sentences": 4, "words": 8, "epochs": 1},
    "rounds": {"rounds": 4, "report_goal": 40, "min_separation": 2},
    "evaluation": {"every": 2, "clients": 8, "test_clients": 8, "sentences": 8},
}

LEAST_EPSILON = 8  # noise that so few clients bear, and trials of tuning with fewer still

# In place of what is printed, where the option is given.
INSTEAD: dict[str, dict[str, str]] = {
    "discover": {"--users-per-layer": "2000", "--prefixes": "100"},
    "personalize runs/mixture": {"--clients": "8"},  # no SGD
    "personalize": {"--clients": "8", "--batch-size": "5", "--learning-rate": "0.1"},
    "plan production": {"--population": "42100", "--report-goal-max": "65"},
    "pretrain": {"--embedding": "8", "--units": "8"},
    "type": {"--users": "4", "--sentences": "2"},
    "simulate": {"--population": "20000", "--report-goal": "30", "--rounds": "60"},
    "tune": {
        "--report-goal": "20",
        "--large-report-goal": "40",
        "--server-learning-rates": "1,2",
        "--quantiles": "0.5",
    },
}

# And these besides, where the page leaves them out.
BESIDES: dict[str, dict[str, str]] = {
    "discover": {"--depth": "6"},
    "demo": {"--quick": ""},
    "evaluate": {"--clients": "8", "--sentences": "4"},
    "personalize runs/mixture": {"--clients": "8"},
    "personalize": {"--clients": "8", "--batch-size": "5", "--learning-rate": "0.1"},
    "plan production": {"--small-report-goal": "5", "--small-noise-multiplier": "0.54", "--rounds": "300"},
    "type": {"--users": "4", "--sentences": "2"},
    "pretrain": {"--embedding": "8", "--units": "8", "--sentences": "200", "--every": "100", "--held-out": "4"},
}


def small(words: list[str]) -> list[str]:
    """The words behind `tacit` with smaller sizes."""
    name = next((name for name in {**INSTEAD, **BESIDES} if words[: len(name.split())] == name.split()), "")
    instead, besides = INSTEAD.get(name, {}), BESIDES.get(name, {})
    given = [instead.get(option, word) for option, word in zip(["", *words], words, strict=False)]
    more = [word for option, value in besides.items() if option not in words for word in (option, value)]
    return [*given, *(word for word in more if word)]


def is_smaller(words: list[str]) -> bool:
    """Whether other numbers than the printed ones are to be expected: whatever learns from clients."""
    if words[0] == "account":
        return words[1] in {"run", "log", "population"}
    return words[0] not in {"design", "plan"} or words[1] == "production"


def small_recipe(text: str) -> str:
    """The same recipe of a smaller experiment; what is no TOML stays what it is."""
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text
    for section, most in AT_MOST.items():
        found = values.get(section, {})
        if isinstance(found, dict):
            found |= {key: min(found[key], value) for key, value in most.items() if isinstance(found.get(key), int)}
            if section in ("model", "client"):  # their defaults are larger
                values[section] = {**{key: value for key, value in most.items() if key != "epochs"}, **found}
    privacy = values.get("privacy", {})
    if "epsilon" in privacy:
        privacy["epsilon"] = max(privacy["epsilon"], LEAST_EPSILON)
    mechanism = privacy.get("mechanism", {})
    if isinstance(mechanism, dict):
        mechanism.pop("bands", None)  # as many as the smaller separation
    values.get("rounds", {}).pop("max_participations", None)
    return tomli_w.dumps(values)


def made_small(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """From here on every recipe is small, this Python has few modules, and tacit ships few people's text.

    folder: for that text.
    """
    few_shipped(patch, folder, people=PEOPLE, characters=80)
    read, find = Recipe.from_toml.__func__, Docstrings._find  # type: ignore[attr-defined]

    def from_toml(cls: type[Recipe], text: str, *, where: str = "recipe") -> Recipe:
        recipe: Recipe = read(cls, small_recipe(text), where=where)
        return recipe

    def few(self: Docstrings) -> Iterator[tuple[str, Path]]:
        return ((name, path) for name, path in find(self) if name.split(".")[0] in PACKAGES)

    patch.setattr(console, "_width", WIDTH)
    patch.setattr(demo, "PUBLIC_SENTENCES", SENTENCES)
    for fewest in ("FEWEST_ROUNDS", "FEWEST_ROUNDS_OF_PUBLIC"):  # a page shows what is foretold of its many rounds
        patch.setattr(noise_forecast, fewest, AT_MOST["rounds"]["rounds"])
    patch.setattr(Recipe, "from_toml", classmethod(from_toml))
    patch.setattr(Docstrings, "_find", few)
    files = manuals._files
    patch.setattr(manuals, "_files", lambda root: files(root)[:200])  # help topics and descriptions besides
    figures_once(patch)


def figures_once(patch: pytest.MonkeyPatch) -> None:
    """Of figures of one name the first is printed, in each form, and the others are composed: pages show the same ones
    again and again, and to print them was a quarter of their time.
    """
    draw, printed, seen = drawing._draw, drawing.printed, set[tuple[str, str]]()

    def draw_named(canvas: Any, figure: Figure) -> None:
        draw(canvas, figure)
        canvas.set_label(figure.name)

    def print_first(canvas: Any, form: str) -> bytes:
        if (canvas.get_label(), form) in seen:
            return BLANK[form]
        seen.add((canvas.get_label(), form))
        return printed(canvas, form)  # type: ignore[arg-type]

    patch.setattr(drawing, "_draw", draw_named)
    patch.setattr(drawing, "printed", print_first)
