"""The trials of a tuning folder: done one after another, read from their run folders, shown as one bar.

    FOLDER/runs/lr0.5-q0.5-try1/    a run folder like any other: `tacit report` and `tacit account run` read it

The folders are all the state there is: what is finished there is not done again, what was interrupted goes on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints
from tacit.errors import RunError, TrainingError
from tacit.jobs.tune_recipes import TrialName, trial_recipe
from tacit.planning.tuning import Measured, Trial
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.progress import Advanced, Evaluated, Event
from tacit.recipe import Recipe
from tacit.reports.summary import summarise
from tacit.reports.training import write_report
from tacit.runs import Run
from tacit.runs.diagnostics import clipping_failure
from tacit.runs.folder import SETTINGS
from tacit.statements.accounts import accounts_of, reading, trained

if TYPE_CHECKING:  # JAX would come with it
    from tacit.compute import Hardware

METRIC: dict[Measured, str] = {"accuracy": "top1_accuracy", "cross-entropy": "cross_entropy"}
DIVERGED = "diverged"  # the fact of a run that could not be carried to its end, with what was said


@dataclass(frozen=True, kw_only=True)
class TrialOutcome:
    """What a trial's run folder says."""

    name: TrialName
    path: Path
    planned_rounds: int
    rounds: int  # released
    metrics: dict[str, float]  # of validation clients after the last round; empty before
    clip_norms: tuple[float, ...]  # (rounds,) in force
    clip_estimates: tuple[float, ...]  # (rounds,) after each
    zcdp: float  # realised; of everything that the run released
    epsilon: float
    delta: float
    fixed_seed: bool
    failure: str | None  # in a few words; None: it works so far
    reason: str | None  # the whole sentence

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do."""
        return (self.rounds == self.planned_rounds and bool(self.metrics)) or self.failure == DIVERGED

    def trial(self, by: Measured) -> Trial:
        """As the choice sees it."""
        return Trial(
            setting=self.name.setting,
            score=self.metrics.get(METRIC[by], math.nan),
            clip_estimates=self.clip_estimates,
            failure=self.failure,
        )


def existing_trials(folder: Path) -> list[TrialName]:
    """Those begun in a tuning folder, in order."""
    if not (folder / "runs").is_dir():
        return []
    named = [TrialName.of(each.name) for each in (folder / "runs").iterdir() if (each / "run.db").is_file()]
    return sorted(name for name in named if name is not None)


def refuse_other_trials(folder: Path, base: Recipe) -> None:
    """RunError naming the keys in which the trials begun in the folder are other experiments than those asked now."""
    for name in existing_trials(folder):
        with Run.open(folder / "runs" / str(name)) as run:
            begun = Recipe.from_toml(trained(run).asked, where=str(run.path / SETTINGS))
        if changed := begun.differences(trial_recipe(base, name)):
            raise RunError(
                f"the trials in '{folder}' were begun with other settings ({'; '.join(changed)}), and only trials that "
                "differ in server learning rate and quantile can be compared; give the settings they were begun with, "
                "or choose another --out."
            )


def outcome_of(folder: Path, name: TrialName) -> TrialOutcome:
    """What the run folder of a trial says now. Raises: RunError, UnknownRelease."""
    path = folder / "runs" / str(name)
    with Run.open(path) as run, reading(run):
        rows, accounts = run.steps(), accounts_of(run)
        last = {m.name: m.value for m in run.metrics() if m.split == "validation" and m.step == len(rows)}
        measures = [row.measures for row in rows]
        planned = accounts.participation.rounds
        found = clipping_failure(measures) if len(rows) == planned else None
        failure, reason = (None, None) if found is None else (found.name, found.meaning)
        if DIVERGED in run.notes:
            failure, reason = DIVERGED, str(run.notes[DIVERGED])
        realised = accounts.realised
        return TrialOutcome(
            name=name,
            path=path,
            planned_rounds=planned,
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
        )


def run_trials(
    folder: Path, base: Recipe, names: Sequence[TrialName], *, hardware: "Hardware", quiet: bool
) -> list[TrialOutcome]:
    """Do what the trials lack, in order, and return what came of all of them."""
    with TuningProgress(names, base.rounds.rounds, quiet=quiet) as progress:
        found = []
        for name in names:
            progress.begin(name)
            _carry_trial(folder, trial_recipe(base, name), name, hardware, progress)
            found.append(outcome_of(folder, name))
            progress.ended(found[-1])
    return found


def _carry_trial(
    folder: Path, recipe: Recipe, name: TrialName, hardware: "Hardware", progress: "TuningProgress"
) -> None:
    """One trial from wherever it stands to its end. A model that diverges ends it, and the run folder says so."""
    from tacit.jobs.training_run import begin, carry_on

    path = folder / "runs" / str(name)
    with Run.open(path) if (path / "run.db").is_file() else begin(recipe, path) as run:
        progress.done(run.steps_done)
        ended = run.finished or DIVERGED in run.notes
        if ended and (path / "report" / "report.html").is_file():
            return
        try:
            if not ended:
                carry_on(run, hardware=hardware, progress=progress.heard)
        except TrainingError as error:
            with run.locked():
                run.note(DIVERGED, str(error))
                run.destroy_noise_key()  # nobody will carry it on, so this and the buffers go as at a run's end
                for checkpoint in (path / "steps").iterdir():
                    checkpoint.unlink()
        write_report(summarise(run))


class TuningProgress:
    """Of all trials: one bar over the rounds of all; elsewhere than on a terminal, a line a trial."""

    def __init__(self, names: Sequence[TrialName], rounds: int, *, quiet: bool) -> None:
        self._names, self._rounds, self._quiet = list(names), rounds, quiet
        self._at, self._in_trial, self._accuracy = -1, 0, math.nan
        self._bar = counting_bar(quiet=quiet, says=True)
        self._task = self._bar.add_task("rounds", total=len(names) * rounds, shown="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, name: TrialName) -> None:
        """The next trial."""
        self._at, self._accuracy = self._names.index(name), math.nan
        self.done(0)

    def done(self, rounds: int) -> None:
        """So many rounds of the trial are there."""
        self._in_trial = rounds
        shown = str(self._names[self._at])  # short: all of the bar fits into 80 columns
        if not math.isnan(self._accuracy):
            shown += f" {self._accuracy:.2%}"
        self._bar.update(self._task, completed=self._at * self._rounds + rounds, shown=shown)

    def heard(self, event: Event) -> None:
        """What the training of a trial says."""
        if isinstance(event, Advanced):
            self.done(event.done)
        elif isinstance(event, Evaluated) and event.split == "validation":
            self._accuracy = event.metrics["top1_accuracy"]
            self.done(self._in_trial)

    def ended(self, outcome: TrialOutcome) -> None:
        """All that is to come of a trial is there."""
        self.done(self._rounds)
        if self._quiet:
            return
        said = f"FAILED, {outcome.failure}" if outcome.failure else f"accuracy {outcome.metrics['top1_accuracy']:.2%}"
        if self._bar.disable or outcome.failure:
            complaints.print(f"trial {self._at + 1}/{len(self._names)} {outcome.name}: {said}", markup=False)
