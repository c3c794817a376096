"""`tacit.sweep`: a run with each of several values, one after another, and one page of all of them.

OUT/KEY=VALUE/         a run folder like any other; of several keys the product: OUT/KEY=VALUE,KEY=VALUE/
OUT/simulation/        the page that compares them, with exact accuracies: not to be published

What is finished there is not done again, what was interrupted goes on; more values add runs.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, RunError, TrainingError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.changed_recipe import any_recipe, grid_of
from tacit.jobs.result import JobResult
from tacit.progress import Noted, Progress, Warned, silent
from tacit.records import json_ready

if TYPE_CHECKING:  # JAX comes with them
    from tacit.jobs.train.job import TrainingResult
    from tacit.jobs.train.mixture import MixtureResult
    from tacit.recipe import Recipe
    from tacit.recipe.mixture import MixtureRecipe
    from tacit.reports.blocks import Block
    from tacit.reports.page import ReportFiles

MOST = 26  # a comparison has a letter for each
ROOM = 100  # letters of a folder's name
CODE = "sweep"  # of the event that says how many runs there will be
_ELSE = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True, kw_only=True)
class SweepResult(JobResult):
    """All runs of a sweep in their order, and the page that lays them side by side."""

    folder: Path
    runs: Mapping[str, Path]  # by what was changed
    record: dict[str, Any] = field(repr=False)
    report: "ReportFiles" = field(repr=False)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit train --set KEY=A,B --json` prints."""
        page = {"page": str(self.report.html)}
        return {"schema": "tacit.sweep", "version": 1, "folder": str(self.folder), **page, **json_ready(self.record)}

    def blocks(self) -> "list[Block]":
        """What people read of it: the table of runs, what they cost together, what is left to do, where the page is."""
        from tacit.reports.blocks import Paragraph
        from tacit.reports.sweep import left_to_do, summary

        left = [str(self.folder / name) for name in self.record["unfinished"]]
        return [
            *summary(self.record),
            *left_to_do(left),
            Paragraph(f"read (exact, keep it to yourself): {self.report.html}"),
        ]


def sweep(
    recipe: "Recipe | MixtureRecipe | PathLike",
    out: PathLike,
    grid: Mapping[str, Sequence[Any]],
    *,
    anyway: bool = False,
    progress: Progress = silent,
    **given: Any,
) -> SweepResult:
    """Train a recipe once for each value, or each combination of values, of the keys in `grid`, one after another.

    On clients' text each run is a release of its own, and their costs add: the page says how much. A run whose model
    diverges is warned of, and the others go on.

    recipe: a Recipe or a MixtureRecipe, the path of its file, or the name of a shipped one.
    out: the folder whose subfolders are the runs; called again, it goes on.
    grid: {"rounds.rounds": [50, 100], "privacy.epsilon": [1, 2]}, by dotted keys of the TOML.
    anyway: train even what the noise is estimated to leave nothing of.
    given: as `train` or `train_mixture` takes it.
    progress: gets events in this thread.

    Raises: RecipeError, InputError before anything is computed, where one of the runs could not be; RunError where
    `out` is something else.
    """
    of_type("grid", grid, Mapping)
    folder = as_path("out", out)
    base = any_recipe(recipe)
    places = _places(folder, grid)
    recipes = {
        name: base.changed(changes).changed(_named(base.name, name, changes)) for name, changes in places.items()
    }
    _check_folder(folder, recipes)
    progress(Noted(CODE, _announced(grid, recipes)))
    _check_budget(folder, recipes, given)
    asked = {**given, "anyway": anyway}
    failed = {name for name, each in recipes.items() if not _one(each, folder / name, name, asked, progress)}
    record = _record(folder, places, failed)
    from tacit.reports.page import SIMULATION, write
    from tacit.reports.sweep import page

    report = write(folder / SIMULATION, page(record, _compared(folder, recipes), folder=str(folder)))
    return SweepResult(folder=folder, runs={name: folder / name for name in places}, record=record, report=report)


def train_with(
    recipe: PathLike, out: PathLike, sets: Sequence[str], **given: Any
) -> "TrainingResult | MixtureResult | SweepResult":
    """What `tacit train --set KEY=VALUE` does: one run, or a sweep where a key has several values."""
    from tacit.jobs.train.mixture import train_any

    grid = grid_of(sets)
    if any(len(values) > 1 for values in grid.values()):
        return sweep(recipe, out, grid, **given)
    base = any_recipe(recipe)
    changed = base.changed({key: value for key, (value,) in grid.items()}) if grid else base
    return train_any(changed, out, **given)


def _places(folder: Path, grid: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """{name of a run's folder: what is changed in it}. Raises: InputError for one run, or more than have letters."""
    for key, values in grid.items():
        of_type(f"grid[{key!r}]", values, list, tuple)
        if not values:
            raise InputError(f"{key} has no value to try; give one at least.")
    count = math.prod(len(values) for values in grid.values())
    if not 1 < count <= MOST:
        raise InputError(
            f"{' x '.join(str(len(values)) for values in grid.values()) or 'no values'} make {count:,} runs, and a "
            f"sweep has 2 to {MOST}; give fewer values, or several sweeps."
        )
    swept = [key for key, values in grid.items() if len(values) > 1]
    found: dict[str, dict[str, Any]] = {}
    for combination in itertools.product(*grid.values()):
        changes = dict(zip(grid, combination, strict=True))
        name = folder_name({key: changes[key] for key in swept})
        if name in found:
            raise InputError(f"a sweep of {', '.join(swept)} has {name} twice; give each value once.")
        found[name] = changes
    return found


def folder_name(changes: Mapping[str, Any]) -> str:
    """`rounds.rounds=50,privacy.epsilon=2`: what is no name of a folder becomes `_`, with a digest that tells it from
    others.
    """
    said = {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in changes.items()}
    plain = {key: _ELSE.sub("_", value) for key, value in said.items()}
    name = ",".join(f"{key}={value}" for key, value in plain.items())
    if plain == said and len(name) <= ROOM:
        return name
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:8]
    return f"{name[:ROOM]}-{digest}"


def _named(base: str, name: str, changes: Mapping[str, Any]) -> dict[str, str]:
    """The name by which reports tell it from the others, unless that is what changes."""
    return {} if "name" in changes else {"name": f"{base}, {name}"}


def _check_folder(folder: Path, recipes: Mapping[str, Any]) -> None:
    """RunError where something else lives, or a run there was begun with another recipe."""
    from tacit.jobs.train.mixture_run import is_mixture_run
    from tacit.jobs.train.refusals import begun_at
    from tacit.recipe import Recipe
    from tacit.reports.page import SIMULATION
    from tacit.training.hooks import Hooks

    if folder.exists() and not folder.is_dir():
        raise RunError(f"'{folder}' is a file; choose a folder for --out.")
    there = [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []
    foreign = [each.name for each in there if each.name != SIMULATION and not _is_run(each)]
    if foreign:
        raise RunError(f"'{folder}' is no folder of a sweep (it has '{sorted(foreign)[0]}'); choose another --out.")
    for name, recipe in recipes.items():
        if isinstance(recipe, Recipe) and _is_run(folder / name) and not is_mixture_run(folder / name):
            begun_at(recipe, folder / name, Hooks()).close()


def _is_run(path: Path) -> bool:
    from tacit.jobs.train.mixture_run import is_mixture_run

    return "=" in path.name and ((path / "run.db").is_file() or is_mixture_run(path))


def _announced(grid: Mapping[str, Sequence[Any]], recipes: Mapping[str, Any]) -> str:
    tried = " x ".join(f"{key} = {', '.join(map(str, values))}" for key, values in grid.items() if len(values) > 1)
    return (
        f"{len(recipes)} runs, one after another: {tried}. Each is a release of its own on the clients' text, and what "
        "they cost adds up."
    )


def _check_budget(folder: Path, recipes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """BudgetError where the population's budget does not allow all runs that are to be begun together."""
    from tacit.jobs.opened_cache import open_cache
    from tacit.recipe import Recipe
    from tacit.runs.budget import PopulationBudget
    from tacit.runs.budget_book import Cost

    costs: dict[Path, float] = {}
    for name, recipe in recipes.items():
        population = recipe.privacy.population if given.get("population") is None else given["population"]
        if population is None or _is_run(folder / name):
            continue
        cache = recipe.data.cache if given.get("data") is None else given["data"]
        clients = len(open_cache(cache).clients("train"))
        if isinstance(recipe, Recipe):
            planned = recipe.designed().with_delta(recipe.privacy.delta_for(clients))
            cost = planned.guarantee(recipe.matrix()).zcdp
        else:
            cost = recipe.privacy.rho(clients)
        costs[Path(population)] = costs.get(Path(population), 0.0) + cost
    for population, cost in costs.items():
        PopulationBudget.open(population).check(Cost(zcdp=cost))


def _one(recipe: Any, path: Path, name: str, given: Mapping[str, Any], progress: Progress) -> bool:
    """One run from wherever it stands to its end, or as far as was asked; whether its model did not diverge: such a run
    is warned of, and keeps its folder.
    """
    from tacit.jobs.train.mixture import train_any

    if _is_done(path):
        return True
    progress(Noted(CODE, f"run {name}:"))
    try:
        result = train_any(recipe, path, progress=progress, **given)
    except TrainingError as error:
        progress(Warned("run failed", f"{name} failed: {error}"))
        return False
    run = getattr(result, "run", None)
    if run is not None:
        run.close()
    return True


def _is_done(path: Path) -> bool:
    """Whether nothing is left to do there, its report written too."""
    from tacit.jobs.train.mixture_run import is_mixture_run
    from tacit.runs import Run

    if not _is_run(path) or is_mixture_run(path) or not (path / "report" / "report.html").is_file():
        return False
    with Run.open(path) as run:
        return run.finished


def _record(folder: Path, places: Mapping[str, Mapping[str, Any]], failed: Set[str]) -> dict[str, Any]:
    """What the runs say of themselves, and what they cost together. failed: whose models diverged."""
    from tacit.privacy import gaussian

    rows = [{"run": name, "changed": dict(changes), **_row(folder / name)} for name, changes in places.items()]
    released = [each for each in rows if each["zcdp"] is not None]
    delta = min((each["delta"] for each in released), default=None)
    zcdp = math.fsum(each["zcdp"] for each in released)
    return {
        "runs": rows,
        "unfinished": [each["run"] for each in rows if not each["finished"] and each["run"] not in failed],
        "together": {
            "released": len(released),
            "zcdp": zcdp,
            "delta": delta,
            "epsilon": None if delta is None or not math.isfinite(zcdp) else gaussian.epsilon(zcdp, delta),
        },
    }


def _row(path: Path) -> dict[str, Any]:
    from tacit.jobs.train.mixture_run import is_mixture_run
    from tacit.networks.metrics import TOP1
    from tacit.runs import Run

    if is_mixture_run(path):
        from tacit.jobs.train.mixture_summary import mixture_summary

        found = mixture_summary(path)
        account = found.account(found.delta)
        released = account["realised"] if account["parts"] else {"zcdp": None, "epsilon": None}
        return {"top1": found.test.get(TOP1), **released, "delta": found.delta, "finished": found.finished}
    from tacit.statements.accounts import accounts_of

    with Run.open(path) as run:
        accounts = accounts_of(run)
        test = {each.name: each.value for each in run.metrics() if each.split == "test"}
        realised = accounts.realised
        return {
            "top1": test.get(TOP1),
            "zcdp": None if realised is None else realised.zcdp,
            "delta": accounts.delta,
            "epsilon": None if realised is None else realised.epsilon(accounts.delta),
            "finished": run.finished,
        }


def _compared(folder: Path, recipes: Mapping[str, Any]) -> "list[Block]":
    """The runs side by side, as `tacit compare` lays them."""
    from tacit.jobs.report import compared

    found = compared([folder / name for name in recipes])
    return [*found.blocks(), *found.drawing]
