"""Federated training from a recipe to a finished run folder, begun or resumed."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.compute import Hardware
from tacit.errors import InputError, RecipeError, RunError, of_type
from tacit.files import as_path
from tacit.jobs.result import JobResult
from tacit.progress import Progress, Warned, silent
from tacit.runs import Run, TrainingMetadata
from tacit.runs.history import History, history_of

if TYPE_CHECKING:  # what these need is loaded when something is trained
    import os

    from tacit.federation.collector import Collector
    from tacit.jobs.account.run import RunAccount
    from tacit.jobs.train.stopping import Looks, Rule, StopRule
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.networks.language_model import LanguageModel
    from tacit.recipe import Recipe
    from tacit.reports.blocks import Block
    from tacit.reports.page import ReportFiles
    from tacit.reports.summary import RunSummary
    from tacit.training.client import ClientAlgorithm
    from tacit.training.hooks import Hooks
    from tacit.training.rounds import OwnOptimizer
    from tacit.training.sampling import CohortSampler

    PathLike = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class TrainingResult(JobResult):
    """A training run, finished or as far as was asked, read from its folder."""

    run: Run
    # What may be published, and everything beside it; None: there are rounds left to do, or it failed, as was warned.
    report: "ReportFiles | None"

    @property
    def rounds(self) -> int:
        """How many are done."""
        return self.run.steps_done

    @property
    def test(self) -> Mapping[str, float]:
        """The metrics of the released model on clients never trained on, exact; empty before the last round."""
        return {metric.name: metric.value for metric in self.run.metrics() if metric.split == "test"}

    @property
    def profile(self) -> Mapping[str, Any] | None:
        """Where the time of the last call that did rounds went; None before."""
        profiles: list[Mapping[str, Any]] = self.run.notes.get("profile", [])
        return profiles[-1] if profiles else None

    @property
    def account(self) -> "RunAccount":
        """What the run promises, as planned and as realised."""
        from tacit.jobs.account.run import account_run

        return account_run(self.run)

    def summary(self) -> "RunSummary":
        """What reports and comparisons show of the run, its accounts among it."""
        from tacit.reports.summary import summarise

        return summarise(self.run)

    def model(self) -> "TrainedModel":
        """The released model. Raises: InputError before the last round."""
        from tacit.keyboard.model_folder import load_model

        return load_model(self.run.path)

    def history(self) -> History:
        """What was measured round by round, as columns."""
        return history_of(self.run)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit train --json` prints. `privacy` is None while nothing is released.

        `test`: top-1, top-3 and cross-entropy of known words, over words; all-token accuracy of all tokens;
        `client_accuracy_q50` and its like over clients, each counting alike; `oov_rate` of all words typed.
        """
        stated = self.summary().statement
        return {
            "schema": "tacit.training",
            "version": 1,
            "run": str(self.run.path),
            "rounds": self.rounds,
            "report": None if self.report is None else str(self.report.html),
            "simulation": None if self.report is None else str(self.report.everything.html),
            "test": dict(self.test),
            "privacy": None if stated is None else stated.figures,
            **({} if self.profile is None else {"profile": self.profile}),
        }

    def blocks(self, *, profile: bool = False) -> "list[Block]":
        """What people read of it in a few lines: accuracy, price, where the time went if asked, where the pages are."""
        from tacit.compute.profile import PHASES
        from tacit.reports import summary_lines

        blocks = summary_lines.of_training(self.summary(), self.test, self.rounds)
        if profile and self.profile is not None:
            blocks += summary_lines.of_profile(self.profile, PHASES)
        return blocks if self.report is None else [*blocks, *self.report.where()]

    def __repr__(self) -> str:
        measured = "".join(f", {name} {value:.4g}" for name, value in self.test.items() if name == "top1_accuracy")
        return f"TrainingResult({str(self.run.path)!r}: {self.rounds:,} rounds{measured})"

    def _repr_html_(self) -> str:
        """What a notebook shows: labels first, then what was learned at what price, and its curve."""
        from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Tiles
        from tacit.reports.judgement import opening
        from tacit.reports.page import to_html_fragment
        from tacit.reports.train import figures, labels, tiles

        summary = self.summary()
        blocks: list[Block] = [Heading(summary.name), Labels(labels(summary))]
        blocks += [Paragraph(opening(summary)), Tiles(tuple(tiles(summary).items()))]
        blocks.extend(FigureOf(figure) for figure in figures(summary)[:1])
        return to_html_fragment(blocks)


def train(
    recipe: "Recipe | PathLike",
    out: "PathLike",
    *,
    data: "PathLike | None" = None,
    init: "PathLike | None" = None,
    population: "PathLike | None" = None,
    seed: int | None = None,
    model: "LanguageModel | None" = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    cluster: str | None = None,
    collector: "Collector | None" = None,
    sampler: "CohortSampler | None" = None,
    algorithm: "ClientAlgorithm | None" = None,
    optimizer: "OwnOptimizer | None" = None,
    until: int | None = None,
    stop: "StopRule | None" = None,
    stop_looks_at: "Looks" = "released",
    anyway: bool = False,
    stop_if_diverged: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Train a model by a recipe, and leave a run folder at `out` with its report.

    If `out` holds a run with the same settings, that run is resumed; its result is the same to the bit as without the
    interruption.

    recipe: a Recipe, the path of its file, or the name of a shipped one.
    out: the run folder to make.
    data: a cache in place of the recipe's.
    init: the model to begin from, in place of the recipe's: a run folder of `tacit.pretrain`.
    population: whose budget pays for the run, in place of the recipe's.
    seed: fixes all randomness, in place of the recipe's; whoever knows it can take the noise away.
    model: a network of your own, in place of the recipe's.
    hardware, cluster: change the speed, never the result; cluster is the address of one of Ray, or "auto".
    collector, sampler, algorithm, optimizer: your own parts (docs/extending.md), which the run records by name.
    until: stop after so many rounds.
    stop: a rule that is asked after each round, with a `RunState`, whether the run ends there: its last model is
    released, and the statement says so.
    stop_looks_at: by what the rule decides: "released" models, or "exact", where it also reads `state.metrics`.
    anyway: train even where the noise is estimated to leave nothing of the model.
    stop_if_diverged: stop after a round whose model does worse than one that knows nothing.
    progress: gets events in this thread; an exception that it raises stops training after the last committed round.

    Raises: RecipeError, InputError, CacheError, ParticipationError, BudgetError: before anything is written; RunError
    where `out` is another run, or is trained by another process; TrainingError where the model diverges.
    """
    from tacit.jobs.train.run import begin
    from tacit.jobs.train.stopping import Rule, check_rule
    from tacit.training.hooks import Hooks

    of_type("until", until, Integral, NoneType)
    hooks = Hooks(collector=collector, sampler=sampler, algorithm=algorithm, optimizer=optimizer)
    changed = as_called(recipe, data=data, init=init, population=population, seed=seed, model=model)
    check_until(until, changed)
    check_rule(stop, stop_looks_at)
    hardware.apply()
    _refuse_a_silent_cluster(cluster, hooks)
    run = begin(changed, as_path("out", out), hooks=hooks, hardware=hardware, progress=progress, anyway=anyway)
    rule = None if stop is None else Rule(stop, stop_looks_at)
    return _to_the_end(run, hardware, cluster, hooks, until, stop_if_diverged, progress, rule=rule)


def resume_training(
    run: "Run | PathLike",
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    cluster: str | None = None,
    collector: "Collector | None" = None,
    sampler: "CohortSampler | None" = None,
    algorithm: "ClientAlgorithm | None" = None,
    optimizer: "OwnOptimizer | None" = None,
    until: int | None = None,
    stop: "StopRule | None" = None,
    stop_looks_at: "Looks" = "released",
    end: bool = False,
    stop_if_diverged: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Go on with a training run; a finished one has its report written again.

    Whatever parts of its own it was begun with are given again; a rule `stop` may be another. end: the model of the
    last round that is done is released, and no further device is asked: of a run that its budget stopped, say. Raises:
    as `train`.
    """
    from tacit.jobs.train.stopping import Rule, check_rule
    from tacit.recipe import Recipe
    from tacit.statements.audited import AUDIT
    from tacit.training.hooks import Hooks

    hooks = Hooks(collector=collector, sampler=sampler, algorithm=algorithm, optimizer=optimizer)
    check_rule(stop, stop_looks_at)
    hardware.apply()
    _refuse_a_silent_cluster(cluster, hooks)
    found = run if isinstance(run, Run) else Run.open(as_path("run", run))
    found.of_kind(TrainingMetadata, "`tacit resume {run}` goes on with it")
    if not found.finished and AUDIT in found.notes:
        raise InputError(
            f"'{found.path}' has canaries in it, of which an audit keeps more than a training does; go on with "
            f"`{found.notes[AUDIT]['command']} --out {found.path}`."
        )
    of_type("until", until, Integral, NoneType)
    if until is not None:
        check_until(until, Recipe.from_toml(found.settings, where=str(found.path)))
    if found.finished:
        progress(Warned("finished already", f"'{found.path}' is finished already; its report is written again."))
    rule = None if stop is None else Rule(stop, stop_looks_at)
    return _to_the_end(found, hardware, cluster, hooks, until, stop_if_diverged, progress, end=end, rule=rule)


def _to_the_end(
    run: Run,
    hardware: Hardware,
    cluster: str | None,
    hooks: "Hooks",
    until: int | None,
    stop_if_diverged: bool,
    progress: Progress,
    *,
    end: bool = False,
    rule: "Rule | None" = None,
) -> TrainingResult:
    from tacit.jobs.rehearsal import Spared, as_it_is
    from tacit.jobs.train.release import write_reports
    from tacit.jobs.train.run import carry_on

    ended = run.finished
    carry_on(
        run,
        hardware=hardware,
        hooks=hooks,
        cluster=cluster,
        until=until,
        end=end,
        stop_if_diverged=stop_if_diverged,
        rule=rule,
        progress=progress,
    )
    report = None
    if run.finished:
        report = write_reports(run, as_it_is if ended else Spared(run, progress, ends=True))
    return TrainingResult(run=run, report=report)


def as_called(
    recipe: "Recipe | PathLike",
    *,
    data: "PathLike | None",
    init: "PathLike | None",
    population: "PathLike | None",
    seed: int | None,
    model: "LanguageModel | None",
) -> "Recipe":
    """The recipe with what the call gives in its place. Raises: RecipeError."""
    from tacit.recipe import Recipe
    from tacit.recipe.model_section import section_for

    of_type("seed", seed, Integral, NoneType)
    changed = Recipe.from_argument(recipe)
    if seed is not None and seed < 0:
        raise RecipeError(f"--seed {seed} must be 0 or more.")
    if data is not None:
        changed = changed.model_copy(update={"data": changed.data.model_copy(update={"cache": as_path("data", data)})})
    if model is not None:
        section = section_for(model).model_copy(update={"init": changed.model.init})
        changed = changed.model_copy(update={"model": section})
    if init is not None:
        changed = changed.model_copy(update={"model": changed.model.model_copy(update={"init": as_path("init", init)})})
    if population is not None:
        changed = changed.with_population(as_path("population", population))
    if seed is not None:
        changed = changed.model_copy(update={"run": changed.run.model_copy(update={"seed": seed})})
    return changed


def check_until(until: int | None, recipe: "Recipe") -> None:
    """Raises: InputError for fewer rounds than none, and for more than there will be."""
    planned = recipe.rounds.rounds
    if until is not None and not 0 <= until <= planned:
        raise InputError(
            f"until={until:,} is not between 0 and the {planned:,} rounds of the recipe; give one of those."
        )


def _refuse_a_silent_cluster(cluster: str | None, hooks: "Hooks") -> None:
    """Refuse a cluster that does not answer, while there is no run folder to be left empty."""
    if cluster is None:
        return
    if hooks.collector is not None:
        raise RunError("a collector asks its devices by itself, so cluster= would change nothing; drop it.")
    from tacit.training.workers_ray import check_cluster

    check_cluster(cluster)
