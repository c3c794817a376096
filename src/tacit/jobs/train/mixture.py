"""`tacit.train_mixture`: a whole predictor by one recipe, from public text and private counts to one promise.

    begin the folder, rehearsed -> begin the rounds, if any -> count -> train -> mix -> measure -> pages

Each step is a job of its own that goes on where it was killed, so this one only calls them in their order.
"""

from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.compute import Hardware
from tacit.errors import InputError, RecipeError, RunError, of_type
from tacit.files import PathLike, as_path, read_bounded
from tacit.jobs.result import JobResult
from tacit.networks.models import PROMISE
from tacit.parsing import parsed_json
from tacit.progress import Progress, StageBegan, StageEnded, Warned, silent
from tacit.records import json_ready

if TYPE_CHECKING:  # JAX comes with them
    from tacit.jobs.train.job import TrainingResult
    from tacit.jobs.train.mixture_folder import Begun
    from tacit.recipe import Recipe
    from tacit.recipe.mixture import MixtureRecipe
    from tacit.reports.blocks import Block
    from tacit.reports.page import ReportFiles
    from tacit.statements.composed import ComposedPromise

MEASURING = "measuring what each part adds"  # the stage


@dataclass(frozen=True, kw_only=True)
class MixtureResult(JobResult):
    """A run that makes a mixture, finished or as far as was asked: what it promises, and what each part added."""

    folder: Path
    promise: "ComposedPromise" = field(repr=False)  # of what was released so far, where it is not finished
    record: dict[str, Any] = field(repr=False)  # of the exact page; without what is exact, where there is none yet
    report: "ReportFiles | None" = field(repr=False)  # None: there are rounds left to do

    @property
    def epsilon(self) -> float:
        """Of everything together."""
        return self.promise.epsilon

    @property
    def arms(self) -> list[dict[str, Any]]:
        """What each part added on test clients, exact: its values, and its change with a 95% interval; none before the
        end.
        """
        exact = self.record["simulation_only"]
        found: list[dict[str, Any]] = [] if exact is None else exact["arms"]
        return found

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit train --json` prints of it. Shares and nats are of known words."""
        where = {
            "run": str(self.folder),
            "report": None if self.report is None else str(self.report.html),
            "simulation": None if self.report is None else str(self.report.everything.html),
        }
        record: dict[str, Any] = json_ready({"schema": "tacit.mixture.run", "version": 1, **where, **self.record})
        return record

    def blocks(self, *, profile: bool = False) -> "list[Block]":
        """What people read of it: what each part added, the promise, where the pages are, and what next.

        profile: also where the time of the rounds went, if there were any.
        """
        from tacit.reports.blocks import Paragraph
        from tacit.reports.mixture import stopped, tables

        if self.report is None:
            return [*stopped(self.record), *(_profile(self.folder) if profile else ())]
        return [
            *tables(self.record),
            *(_profile(self.folder) if profile else ()),
            Paragraph(f"Privacy: {self.promise.says()}."),
            *self.report.where(),
            Paragraph(f"Ask it for next words: tacit suggest {self.folder} 'I will'"),
        ]


def _profile(out: Path) -> "list[Block]":
    from tacit.compute.profile import PHASES
    from tacit.jobs.train.mixture_folder import TRAINING
    from tacit.reports import summary_lines
    from tacit.reports.blocks import Paragraph
    from tacit.runs import Run
    from tacit.runs.journal import DATABASE

    if not (out / TRAINING / DATABASE).is_file():
        return [Paragraph("The recipe has no rounds, and the time of those alone is counted.")]
    with Run.open(out / TRAINING) as run:
        return summary_lines.of_profile(run.notes["profile"][-1], PHASES)


def train_any(
    recipe: "Recipe | MixtureRecipe | PathLike", out: PathLike, **given: Any
) -> "TrainingResult | MixtureResult":
    """What `tacit train` does: rounds, or a mixture where the recipe has [mixture]. given: as both jobs take it."""
    from tacit.jobs.changed_recipe import any_recipe
    from tacit.jobs.train.job import train
    from tacit.recipe import Recipe

    found = any_recipe(recipe)
    if isinstance(found, Recipe):
        return train(found, out, **given)
    return train_mixture(found, out, **given)


def train_mixture(
    recipe: "MixtureRecipe | PathLike",
    out: PathLike,
    *,
    data: PathLike | None = None,
    init: PathLike | None = None,
    population: PathLike | None = None,
    seed: int | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    cluster: str | None = None,
    until: int | None = None,
    anyway: bool = False,
    stop_if_diverged: bool = False,
    progress: Progress = silent,
) -> MixtureResult:
    """Make a predictor by a recipe with [mixture] (a value, or the path of one) and leave a run folder at `out`.

    If `out` holds a run with the same recipe, that is gone on with; its model is the same to the byte as without the
    interruption.

    recipe: a recipe with [mixture], or the path of its file.
    out: the run folder to make.
    data, init, population, seed: replace the recipe's cache, network, population (whose budget pays for counts and
    rounds) and seed.
    hardware: changes the speed, never the result.
    cluster, until, anyway, stop_if_diverged: of the rounds, as in `tacit.train`; what was counted before them is
    released.

    Raises: as that one and `tacit.count`, before anything is released; RunError where `out` is another run.
    """
    from tacit.recipe.mixture import MixtureRecipe

    of_type("seed", seed, Integral, NoneType)
    if seed is not None and seed < 0:
        raise RecipeError(f"--seed {seed} must be 0 or more.")
    changed = MixtureRecipe.from_argument(recipe)
    for section, key, value in (
        ("data", "cache", None if data is None else as_path("data", data)),
        ("mixture", "network", None if init is None else as_path("init", init)),
        ("privacy", "population", None if population is None else as_path("population", population)),
        ("run", "seed", seed),
    ):
        if value is not None:
            changed = changed.model_copy(update={section: getattr(changed, section).model_copy(update={key: value})})
    asked = _Asked(hardware, cluster, until, anyway, stop_if_diverged)
    return _to_the_end(changed, as_path("out", out), asked, progress)


def resume_mixture(
    run: Path,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    cluster: str | None = None,
    until: int | None = None,
    stop_if_diverged: bool = False,
    progress: Progress = silent,
) -> MixtureResult:
    """Go on with a run of `train_mixture`; a finished one has its pages written again. Raises: as that."""
    from tacit.jobs.train.mixture_folder import RECIPE
    from tacit.recipe.mixture import MixtureRecipe

    recipe = MixtureRecipe.load(run / RECIPE)
    return _to_the_end(recipe, run, _Asked(hardware, cluster, until, True, stop_if_diverged), progress)


def finish_mixture(
    run: Path,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> MixtureResult:
    """End the rounds of a run of `train_mixture` with those that are done, and make the rest. Raises: as that;
    InputError where it is finished, or has no rounds that are not.
    """
    from tacit.jobs.train.job import resume_training
    from tacit.jobs.train.mixture_folder import RECIPE, TRAINING
    from tacit.recipe.mixture import MixtureRecipe
    from tacit.runs import Run
    from tacit.runs.journal import DATABASE

    if finished_record(run) is not None:
        raise InputError(f"'{run}' is finished already; `tacit report {run}` shows it.")
    recipe = MixtureRecipe.load(run / RECIPE)
    if recipe.training is None:
        raise InputError(f"'{run}' has no rounds to leave out; `tacit resume {run}` makes the rest of it.")
    if not (run / TRAINING / DATABASE).is_file():
        raise RunError(f"'{run}' has no round that is done, so there is no model to release; `tacit resume {run}`.")
    with Run.open(run / TRAINING) as rounds:
        finished = rounds.finished
    if not finished:
        resume_training(run / TRAINING, hardware=hardware, end=True, progress=progress).run.close()
    return _to_the_end(recipe, run, _Asked(hardware, anyway=True), progress)


class _Asked(NamedTuple):
    """How the rounds are done."""

    hardware: Hardware
    cluster: str | None = None
    until: int | None = None
    anyway: bool = False
    stop_if_diverged: bool = False


def _to_the_end(recipe: "MixtureRecipe", out: Path, asked: _Asked, progress: Progress) -> MixtureResult:
    from tacit.jobs.train.mixture_folder import begin

    _check_asked(recipe, asked)
    asked.hardware.apply()
    begun = begin(recipe, out, progress)
    settled = begun.settled(recipe)
    finished = finished_record(out)
    if finished is not None:
        progress(Warned("finished already", f"'{out}' is finished already; its pages are written again."))
    elif not _parts(settled, begun, out, asked, progress):
        return _stopped(out)
    else:
        finished = _measured(settled, begun, out, progress)
    promise = promise_in(out)
    return MixtureResult(folder=out, promise=promise, record=finished, report=write_pages(out, finished, promise))


def _check_asked(recipe: "MixtureRecipe", asked: _Asked) -> None:
    """Raises: InputError for what is of rounds where there are none, and for more rounds than there will be."""
    from tacit.jobs.train.job import check_until

    of_type("until", asked.until, Integral, NoneType)
    if recipe.training is not None:
        rounds = recipe.rounds(1)
        assert rounds is not None  # there is [training]
        check_until(asked.until, rounds)
        return
    given = {
        "cluster": asked.cluster is not None,
        "until": asked.until is not None,
        "stop_if_diverged": asked.stop_if_diverged,
    }
    for name in (name for name, there in given.items() if there):
        raise InputError(f"{name} is of rounds, and the recipe has no [training]; leave it out.")


def _stopped(out: Path) -> MixtureResult:
    """Of a run that has rounds left to do."""
    from tacit.jobs.train.mixture_summary import mixture_summary

    found = mixture_summary(out)
    account = found.account(found.delta)
    record: dict[str, Any] = json_ready(
        {
            "run": str(out),
            "name": found.name,
            "says": found.promise.says(),
            **account["realised"],
            "parts": [{"part": part, **each} for part, each in account["parts"].items()],
            "rounds": found.rounds,
            "planned_rounds": found.planned_rounds,
            "simulation_only": None,
        }
    )
    return MixtureResult(folder=out, promise=found.promise, record=record, report=None)


def _parts(recipe: "MixtureRecipe", begun: "Begun", out: Path, asked: _Asked, progress: Progress) -> bool:
    """Everything that costs privacy, then the model; whether it is there, or rounds are left to do.

    The budget is asked for all of it before any is spent.
    """
    from tacit.jobs.count.job import count
    from tacit.jobs.train import mixture_folder as folder
    from tacit.jobs.train.run import begin
    from tacit.runs.journal import DATABASE

    rounds = recipe.rounds(begun.clients)
    if not any((out / part / DATABASE).is_file() for part in (folder.COUNTS, folder.TRAINING)):
        folder.check_budget(recipe, begun.clients)
    if rounds is not None:  # entered in the budget, and rehearsed, before anything is counted
        hardware, anyway = asked.hardware, asked.anyway
        begin(rounds, out / folder.TRAINING, hardware=hardware, progress=progress, anyway=anyway).close()
    count(
        begun.opened("cache"),
        out / folder.COUNTS,
        settings=folder.settings_of(recipe, out),
        release=folder.price_of(recipe, begun.clients),
        population=recipe.privacy.population,
        seed=recipe.run.seed,
        progress=progress,
    )
    if rounds is not None and not _trained(rounds, out / folder.TRAINING, asked, progress):
        return False
    if not (out / folder.MIXED).is_dir():  # it is there whole or not at all
        make(out, recipe, begun, out / folder.MIXED, progress)
    return True


def _trained(rounds: "Recipe", out: Path, asked: _Asked, progress: Progress) -> bool:
    """Whether all rounds are done. Raises: RunError where they stopped before what was asked."""
    from tacit.jobs.train.job import train

    found = train(rounds, out, **asked._asdict(), progress=progress)
    finished, done = found.run.finished, found.run.steps_done
    found.run.close()
    if not finished and (asked.until is None or done < asked.until):
        raise RunError(f"the rounds in '{out}' stopped before their end; `tacit resume {out.parent}` goes on.")
    return finished


def make(out: Path, recipe: "MixtureRecipe", begun: "Begun", to: Path, progress: Progress = silent) -> None:
    """The mixture of the parts in the run folder `out`, into `to`: a function of them alone.

    A public network to which public text gives the weight 0 is left out.
    """
    from tacit.jobs.mix import mix
    from tacit.jobs.train import mixture_folder as folder

    beside: dict[str, Any] = {}
    if recipe.training is not None:
        beside["network"] = out / folder.TRAINING
    elif recipe.mixture.network is not None and begun.weight != 0:
        beside["network"] = out / folder.NETWORK
    models = folder.counted_models(out)
    if beside and begun.weight is not None:
        beside["weight"] = begun.weight
    if len(models) > 1 or (beside and begun.weight is None):
        beside["public"] = begun.opened("public")
    mix(models, to, counts=out / folder.COUNTS, **beside, progress=progress)


def promise_in(out: Path) -> "ComposedPromise":
    """Of the mixture in a run folder. Raises: RunError where it is not what was written."""
    from tacit.statements.composed import ComposedPromise

    file = out / "model" / PROMISE
    try:
        record = parsed_json(read_bounded(file))
        return ComposedPromise(statements=record["statements"], public=record["public"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"'{file}' is not what was written ({error}); restore a copy.") from error


def finished_record(out: Path) -> dict[str, Any] | None:
    """The record of the exact page, where that is written and everything before it done; else None."""
    from tacit.reports.page import PUBLISHED, SIMULATION

    if not (out / PUBLISHED / PROMISE).is_file():  # the last file
        return None
    try:
        record: dict[str, Any] = parsed_json(read_bounded(out / SIMULATION / "report.json"))
    except (OSError, ValueError) as error:
        raise RunError(
            f"the report of '{out}' cannot be read ({error}); remove '{out / PUBLISHED}', and go on."
        ) from error
    return record


def _measured(recipe: "MixtureRecipe", begun: "Begun", out: Path, progress: Progress) -> dict[str, Any]:
    from tacit.jobs.train.mixture_folder import added

    progress(StageBegan(MEASURING))
    found = added(out, recipe, begun.opened("cache"), begun.opened("public"))
    progress(StageEnded(MEASURING))
    promise = promise_in(out)
    labels = {each["name"]: each for record in promise.statements.values() for each in record["labels"]}
    record: dict[str, Any] = json_ready(
        {
            "name": recipe.name,
            "says": promise.says(),
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "zcdp": promise.composition.zcdp,
            "labels": [{"name": each["name"], "meaning": each["meaning"]} for each in labels.values()],
            "parts": [
                {"part": part, "zcdp": cost, "statement": f"{folder}/report/statement.json"}
                for (part, cost), folder in zip(promise.costs().items(), ("counts", "training"), strict=False)
            ],
            "network_weight": begun.weight if recipe.training is None else _weight_in(out),
            "simulation_only": found,
        }
    )
    return record


def _weight_in(out: Path) -> float:
    """The network's, in the mixture that was made."""
    from tacit.networks.model_files import read_files

    return float(read_files(out).settings["network_weight"])


def write_pages(out: Path, record: dict[str, Any], promise: "ComposedPromise") -> "ReportFiles":
    from tacit.reports.mixture import page, released_page
    from tacit.reports.page import to_json, write_both

    return write_both(
        out, published=released_page(record), whole=page(record), files={PROMISE: to_json(promise.to_record())}
    )
