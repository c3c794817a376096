"""A few small trials with an adaptive clip norm, then the recipe for production with a fixed one.

arXiv:2305.18465, Section 2.5 (6). A tuning is a run whose trials are runs below it:

    FOLDER/runs/lr0.5-q0.5-try1/    a run folder like any other: `tacit report` and `tacit account run` read it

What is finished there is not done again, what was interrupted goes on. What to try, which to take and how it scales is
decided in `planning/tuning.py`, recipes are made in `planning/trial_recipes.py`.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tacit.compute import Hardware
from tacit.errors import InputError, RunError, TacitError, TrainingError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.account.budget import commit
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.run_start import of_this_process
from tacit.jobs.tune.result import FILES, TuningCost, TuningResult, write_tuning
from tacit.planning.trial_recipes import (
    planned,
    production_recipe,
    trial_base,
    trial_names,
    trial_recipe,
    trial_report_goal,
)
from tacit.planning.tuning import DIVERGED, Choice, TrialName, TrialOutcome, TuningSettings, choose
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.progress import Advanced, Event, Noted, Progress, StageBegan, StageEnded, Warned, silent
from tacit.recipe import Recipe
from tacit.records import from_plain, to_plain
from tacit.reports.page import FOR_READERS
from tacit.reports.summary import validated_by
from tacit.runs import Run
from tacit.runs.budget import PopulationBudget
from tacit.runs.budget_book import Cost
from tacit.runs.diagnostics import clipping_failure
from tacit.runs.draft import SETTINGS
from tacit.runs.journal import RESTORE
from tacit.runs.metadata import TuningMetadata
from tacit.runs.reconciliation import reconciled
from tacit.statements.accounts import accounts_of, reading
from tacit.statements.run_folder import TRIALS

ASKED, RECIPE = "asked", "recipe"  # notes: what was asked last, and for which recipe
DESIGN = "designing the mechanism of production"


def tune(
    recipe: Recipe | str | Path,
    out: str | Path,
    settings: TuningSettings = TuningSettings(),  # noqa: B008  (frozen)
    *,
    population: PathLike | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> TuningResult:
    """Try server learning rates and clipping quantiles small, and write the recipe for production into `out`.

    If `out` holds a tuning, it is resumed: other rates or quantiles add trials, and the settings that only read trials
    (`choose_by`, `large_report_goal`, `public`) may change.

    recipe: of the production run, or the path of its file.
    out: the folder to make.
    settings: the rates, quantiles and sizes of the trials.
    population: replaces the recipe's; its budget pays for each trial.
    hardware: changes the speed, never the result.

    Raises: InputError, RecipeError, AccountingError, ParticipationError, CacheError before anything is written;
    RunError where `out` is something else, or its trials are other experiments, naming the keys.
    """
    of_type("settings", settings, TuningSettings)
    folder = as_path("out", out)
    wanted = Recipe.from_argument(recipe)
    if wanted.deployment is not None:
        raise InputError(
            f"the recipe {wanted.name!r} is for real devices ([deployment]), and every trial would ask them again; "
            "drop the section to tune on the training clients of a cache, and give it back for the run."
        )
    if population is not None:
        wanted = wanted.with_population(as_path("population", population))
    if wanted.privacy.epsilon is not None and wanted.privacy.delta is None:  # how much noise is that population's
        wanted = wanted.with_delta(wanted.privacy.delta_for(len(open_cache(wanted.data.cache).clients("train"))))
    names = trial_names(wanted, settings)
    if wanted.privacy.needs_design:
        progress(StageBegan(DESIGN))
    base = trial_base(wanted, settings)
    _check_production(wanted, names, trial_report_goal(wanted, settings), settings.large_report_goal)
    if wanted.privacy.needs_design:
        progress(StageEnded(DESIGN))
    _check_folder(folder)
    _check_budget(base, [name for name in names if not (_place(folder, name) / "run.db").is_file()])
    hardware.apply()
    with _begun(folder, base, names, hardware, progress) as run, run.locked():
        for name, value in ((RECIPE, wanted.to_toml()), (ASKED, to_plain(settings)), ("finished", False)):
            run.note(name, value)
        carried_out = _carried_out(folder, base, names, hardware, progress)
        earlier = [outcome_of(folder, name) for name in existing_trials(folder) if name not in names]
        trials = tuple(sorted([*carried_out, *earlier], key=lambda each: each.name))
        run.note(TRIALS, {str(each.name): _seal(each.path) for each in trials})
        choice = choose([each.trial(settings.choose_by) for each in trials if each.ended], settings.choose_by)
        result = write_tuning(
            TuningResult(
                run=run,
                trials=trials,
                by=settings.choose_by,
                cost=TuningCost.from_outcomes(trials, settings.public),
                choice=choice,
                production=None if choice is None else production_recipe(wanted, choice, settings.large_report_goal),
                trial_report_goal=trial_report_goal(wanted, settings),
                trial_noise_multiplier=base.guarantee().noise_multiplier,
            )
        )
        run.keep_files(*FOR_READERS, *FILES)
        run.finish()
    return replace(result, run=Run.open(folder))


def resume_tuning(
    run: Run | str | Path,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> TuningResult:
    """Go on with a tuning, as it was asked for last. Raises: as `tune`; InputError for a run of another kind."""
    found = run if isinstance(run, Run) else Run.open(as_path("run", run))
    found.of_kind(TuningMetadata, "`tacit resume {run}` goes on with it")
    where = f"what was asked of '{found.path}'"
    notes = found.notes
    if not isinstance(notes.get(RECIPE), str):
        raise RunError(f"{where} is not in its journal; {RESTORE}.")
    recipe = Recipe.from_toml(notes[RECIPE], where=where)
    settings = from_plain(TuningSettings, notes.get(ASKED), error=RunError, where=where)
    return tune(recipe, found.path, settings, hardware=hardware, progress=progress)


def existing_trials(folder: Path) -> list[TrialName]:
    """The trials that were begun in a tuning folder, in order."""
    if not (folder / "runs").is_dir():
        return []
    named = [TrialName.from_folder(each.name) for each in (folder / "runs").iterdir() if (each / "run.db").is_file()]
    return sorted(name for name in named if name is not None)


def outcome_of(folder: Path, name: TrialName) -> TrialOutcome:
    """What the run folder of a trial says now. Raises: RunError, UnknownRelease."""
    path = folder / "runs" / str(name)
    with Run.open(path) as run, reading(reconciled(run)):
        rows, accounts = run.steps(), accounts_of(run)
        last = {m.name: m.value for m in run.metrics() if m.split == "validation" and m.step == len(rows)}
        measures = [row.measures for row in rows]
        rounds = accounts.participation.rounds
        found = clipping_failure(measures) if len(rows) == rounds else None
        failure, reason = (None, None) if found is None else (found.name, found.meaning)
        if DIVERGED in run.notes:
            failure, reason = DIVERGED, str(run.notes[DIVERGED])
        realised = accounts.realised
        return TrialOutcome(
            name=name,
            path=path,
            planned_rounds=rounds,
            rounds=len(rows),
            metrics=last if run.finished else {},
            clip_norms=tuple(each["clip_norm"] for each in measures),
            clip_estimates=tuple(each["clip_estimate"] for each in measures),
            zcdp=0.0 if realised is None else realised.zcdp,
            epsilon=0.0 if realised is None else realised.epsilon(accounts.delta),
            delta=accounts.delta,
            fixed_seed=run.metadata.key_source != OPERATING_SYSTEM,
            failure=failure,
            reason=reason,
            validated=validated_by(run),
        )


# -- refusals ----------------------------------------------------------------------------------------------------------


def _check_production(recipe: Recipe, names: Sequence[TrialName], small: int, large: int) -> None:
    """Refuse now what could not be written after hours of trials."""
    if large <= small:
        raise InputError(
            f"--large-report-goal {large} is not above the {small} reports of a trial, so there is nothing to scale up "
            "to; give a larger one, or a smaller --report-goal."
        )
    some = Choice(setting=names[0].setting, score=0.0, trials=1, clip_norm=recipe.privacy.clip_norm)
    planned(production_recipe(recipe, some, large))


def _check_budget(base: Recipe, names: Sequence[TrialName]) -> None:
    """BudgetError where the population's budget does not allow all trials that are to be begun."""
    if base.privacy.population is not None and names:
        each = planned(base).zcdp
        PopulationBudget.open(base.privacy.population).check(Cost(zcdp=len(names) * each))


def _check_folder(out: Path) -> None:
    """RunError where something else lives."""
    if out.exists() and not out.is_dir():
        raise RunError(f"'{out}' is a file; choose a folder for --out.")
    if (out / "run.db").is_file():
        with Run.open(out) as run:
            if isinstance(run.metadata, TuningMetadata):
                return
        raise RunError(f"'{out}' is no folder of `tacit tune` (it has 'run.db'); choose another --out.")
    foreign = sorted(each.name for each in out.iterdir() if not each.name.startswith(".")) if out.is_dir() else []
    if foreign:
        raise RunError(f"'{out}' is no folder of `tacit tune` (it has '{foreign[0]}'); choose another --out.")


def _refuse_other_trials(run: Run, base: Recipe, name: TrialName) -> None:
    """RunError naming the keys in which the trials of the folder are other experiments than those asked now."""
    begun = Recipe.from_toml(run.settings, where=str(run.path / SETTINGS))
    if changed := trial_recipe(begun, name).differences(trial_recipe(base, name)):
        raise RunError(
            f"the trials in '{run.path}' were begun with other settings ({'; '.join(changed)}), and only trials that "
            "differ in server learning rate and quantile can be compared; give the settings they were begun with, "
            "or choose another --out."
        )


# -- trials ------------------------------------------------------------------------------------------------------------


def _begun(folder: Path, base: Recipe, names: Sequence[TrialName], hardware: Hardware, progress: Progress) -> Run:
    """The tuning at `folder`, or a new one, whose first trial is begun: what no trial can do leaves no folder."""
    from tacit.jobs.train.run import begin

    if (folder / "run.db").is_file():
        run = Run.open(folder)
        _refuse_other_trials(run, base, names[0])
        return run
    run = Run.create(
        folder, base.to_toml(), TuningMetadata(**of_this_process(base.run.seed)), b""
    )  # each trial has a key
    try:
        first = trial_recipe(base, names[0])
        begin(first, _place(folder, names[0]), hardware=hardware, progress=progress, anyway=True).close()
    except (TacitError, OSError):
        run.close()
        shutil.rmtree(folder)
        raise
    return run


def _place(folder: Path, name: TrialName) -> Path:
    return folder / "runs" / str(name)


def _carried_out(
    folder: Path, base: Recipe, names: Sequence[TrialName], hardware: Hardware, progress: Progress
) -> list[TrialOutcome]:
    """Do what the trials lack, in order; what came of all of them."""
    found = []
    for number, name in enumerate(names, start=1):
        stage = f"trial {number}/{len(names)} {name}"
        _carry_out(trial_recipe(base, name), _place(folder, name), hardware, _renamed(stage, progress))
        found.append(outcome_of(folder, name))
        if found[-1].failure is not None:
            progress(Warned("trial failed", f"{name} failed: {found[-1].reason}"))
    return found


def _carry_out(recipe: Recipe, path: Path, hardware: Hardware, progress: Progress) -> None:
    """One trial from wherever it stands to its end. A model that diverges ends it, and the run folder says so."""
    from tacit.jobs.rehearsal import Spared
    from tacit.jobs.train.release import write_reports
    from tacit.jobs.train.run import begin, carry_on

    with begin(recipe, path, hardware=hardware, progress=progress, anyway=True) as run:  # that it drowns is an answer
        ended = run.finished or DIVERGED in run.notes
        if ended and (path / "report" / "report.html").is_file():
            return
        try:
            if not ended:
                carry_on(run, hardware=hardware, progress=progress)
        except TrainingError as error:
            with run.locked():
                run.note(DIVERGED, str(error))
                commit(run)
                run.tidy()  # nobody will carry it on, so the key and the buffers go as at a run's end
        write_reports(run, Spared(run, progress, ends=True))


def _seal(path: Path) -> str:
    with Run.open(path) as run:
        return run.seal


def _renamed(stage: str, progress: Progress) -> Progress:
    """A listener to one training, which tells it under the name of the trial."""

    from tacit.training.loop import STAGE

    def heard(event: Event) -> None:
        if isinstance(event, StageBegan | Advanced | StageEnded) and event.stage == STAGE:
            event = replace(event, stage=stage)
            if isinstance(event, StageBegan):
                event = replace(event, part=True)
        if not isinstance(event, Noted):  # what is foreseen of each trial, its result says better
            progress(event)

    return heard
