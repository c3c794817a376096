"""A training run's folder as reports need it: settings, progress, quality and cost.

Read once, then shown as a page by `train.py`, or laid beside another by `comparison.py`. `train_record.py` has it as
plain values.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.evaluation.comparison_models import START, ComparisonModels
from tacit.plurals import quantity
from tacit.privacy.strategy import Record
from tacit.records import from_plain
from tacit.runs import Run, TrainingMetadata
from tacit.runs.diagnostics import clipping_failure, worse_than_start
from tacit.runs.folder import MISSING
from tacit.statements import Statement
from tacit.statements.accounts import Accounts, Spent, accounts_of, figures_of, reading, spent, trained
from tacit.statements.ledger import MODEL_UPDATE
from tacit.statements.run_facts import created, resume_command
from tacit.statements.statement import PLANNED, Label, statement
from tacit.statements.train_run_facts import training_facts

Series = dict[int, float]  # by the number of rounds done
PRICES = 20  # told along a run, besides those of its evaluations
# notes that `jobs.baselines` writes at the end of a run
COMPARISON_MODELS, SUGGESTIONS = "comparison_models", "suggestions"


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """What was measured in each released round; each array is (rounds,)."""

    seconds: NDArray[np.float64]
    participants: NDArray[np.int64]  # the cohort, dropped clients included
    dropped: NDArray[np.int64]
    loss: NDArray[np.float64]
    clipped: NDArray[np.float64]
    clip_norm: NDArray[np.float64]  # in force; of a fixed one, that
    clip_estimate: NDArray[np.float64] | None  # after the round; None: the clip norm is fixed
    private_loss: NDArray[np.float64] | None  # the mean training loss as released; None: it was not

    @property
    def clients_per_second(self) -> NDArray[np.float64]:
        """(rounds,)"""
        return self.participants / np.maximum(self.seconds, 1e-9)

    @property
    def totals(self) -> dict[str, float]:
        """Over the whole run; nothing where no round was released."""
        if not self.seconds.size:
            return {}
        seconds = float(self.seconds.sum())
        return {
            "clients_per_second": float(self.participants.sum()) / max(seconds, 1e-9),
            "training_seconds": seconds,
            "participations": int(self.participants.sum()),
            "dropped_clients": int(self.dropped.sum()),
            **(self._of_simulations if self.simulated else {}),
        }

    @property
    def simulated(self) -> bool:
        """Whether losses and clipped updates were seen, as only a simulation sees them; else they are not numbers."""
        return not bool(np.isnan(self.loss).any())

    @property
    def _of_simulations(self) -> dict[str, float]:
        return {
            "clipped_first_round": float(self.clipped[0]),
            "clipped_last_round": float(self.clipped[-1]),
            "loss_first_round": float(self.loss[0]),
            "loss_last_round": float(self.loss[-1]),
        }


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run. `statement` is None while nothing is released; `labels` stand before everything else.

    `failed` are labels too, but ones that exact losses speak. They and whatever has a default are not for what may be
    published: a summary of what was published lacks them.
    """

    path: str
    name: str
    metadata: TrainingMetadata
    finished: bool
    settings: Mapping[str, Any]  # "section.key" of settings.toml
    created: str
    resume: str
    planned: Record  # prices at `delta`, see `statements.accounts.figures_of`
    realised: Record | None  # None while nothing is released
    delta: float
    released: int  # rounds
    private: bool
    statement: Statement | None
    labels: tuple[Label, ...]
    spent: tuple[Spent, ...]
    rounds: Rounds
    suggestions: Mapping[str, tuple[tuple[str, float], ...]]  # by prompt: (word, probability); empty before the end
    failed: tuple[Label, ...] = ()
    curves: Mapping[str, Series] = field(default_factory=dict)  # of the validation clients, by metric
    test: Mapping[str, float] = field(default_factory=dict)  # of the test clients; empty before the end
    # the same client by client, and what it is held against; None before the end
    tested: ComparisonModels | None = None
    validated: ComparisonModels | None = None  # what it is held against, on validation clients
    trigram: bool = False  # whether n-grams of public text are among them
    public_text: str = ""  # which that is, or why there is none
    rungs: Mapping[str, str] = field(default_factory=dict)  # of the ladder of baselines, and what was chosen for each

    @property
    def deployed(self) -> bool:
        """Whether real devices trained it."""
        return self.metadata.deployment is not None

    @property
    def holds(self) -> tuple[str, Record] | None:
        """("realised" or "planned", the prices that hold); None while nothing is released.

        Planned ones hold of a run that a rule ended by what was released: its number of rounds was not fixed before.
        """
        if self.realised is None or self.statement is None:
            return None
        which = self.statement.figures.get("holds", "realised")
        return which, self.planned if which == "planned" else self.realised

    @property
    def planned_rounds(self) -> int:
        return int(self.planned["rounds"])

    @property
    def last_validation(self) -> dict[str, float]:
        """The last evaluation during training; empty if there was none."""
        return {name: series[max(series)] for name, series in self.curves.items() if series}

    def start(self, metric: str) -> float | None:
        """The metric of the model before the first round, on test clients where they were asked, else on the others."""
        known = None if self.tested is None else self.tested.value(START, metric)
        return self.curves.get(metric, {}).get(0) if known is None else known

    def by_rounds(self, metric: str) -> list[tuple[float, float]]:
        """(rounds done, value) of a metric on validation clients, in order."""
        return sorted(self.curves.get(metric, {}).items())

    def by_zcdp(self, metric: str) -> list[tuple[float, float]]:
        """The metric over the zCDP that was spent when it was measured."""
        cost: dict[float, float] = {each.rounds: each.zcdp for each in self.spent}
        return [(cost[rounds], value) for rounds, value in self.by_rounds(metric) if rounds in cost]


def summarise(run: Run) -> RunSummary:
    """Everything about a run. Raises: RunError where the folder is damaged, UnknownRelease, InputError."""
    with reading(run):
        return _summarise(run)


def _summarise(run: Run) -> RunSummary:
    accounts = accounts_of(run)
    curves: dict[str, Series] = {}
    test: dict[int, dict[str, float]] = {}
    for metric in run.metrics():
        if metric.split == "validation":
            curves.setdefault(metric.name, {})[metric.step] = metric.value
        elif metric.split == "test":
            test.setdefault(metric.step, {})[metric.name] = metric.value
    settings = settings_of(run)
    stated = statement(training_facts(run, accounts))  # of the plan alone, while nothing is released
    planned = figures_of(accounts.planned, accounts.delta)
    assert planned is not None  # a plan promises something, if only nothing
    return RunSummary(
        path=str(run.path),
        name=str(settings.get("name", run.path.name)),
        metadata=trained(run),
        finished=run.finished,
        settings=settings,
        created=created(run),
        resume=resume_command(run),
        planned=planned,
        realised=figures_of(accounts.realised, accounts.delta),
        delta=accounts.delta,
        released=accounts.released,
        private=accounts.planned.private,
        statement=stated if accounts.released else None,
        labels=(*_unfinished(run, accounts), *(each for each in stated.labels if each != PLANNED)),
        failed=_failed(run, curves.get("cross_entropy", {})),
        spent=tuple(spent(accounts, _priced(accounts.released, curves.get("top1_accuracy", {})))),
        rounds=_rounds(run, accounts),
        curves=curves,
        test=test[max(test)] if test else {},
        **_notes(run),
    )


def _priced(released: int, evaluated: Series) -> set[int]:
    """The rounds after which the price is told: those with an accuracy beside it, and some, evenly, between."""
    return {*evaluated, *np.linspace(0, released, PRICES + 1).round().astype(int).tolist()}


def validated_by(run: Run) -> ComparisonModels | None:
    """What the released model and its baselines did on validation clients; None before the end of a run.

    Raises: RunError where that is damaged.
    """
    return _compared(run, "validation")


def _compared(run: Run, split: str) -> ComparisonModels | None:
    noted = run.notes.get(COMPARISON_MODELS, {})
    where = f"what '{run.path}' notes of its baselines"
    return from_plain(ComparisonModels, noted[split], error=RunError, where=where) if split in noted else None


def _notes(run: Run) -> dict[str, Any]:
    """What was noted at the end of the run; of one that is not at its end, or of an older one, nothing."""
    noted, suggested = run.notes.get(COMPARISON_MODELS, {}), run.notes.get(SUGGESTIONS, [])
    return {
        "tested": _compared(run, "test"),
        "validated": validated_by(run),
        "trigram": noted.get("counted", False),
        "public_text": noted.get("trigram", ""),
        "rungs": noted.get("rungs", {}),
        "suggestions": {each["prompt"]: tuple((word, share) for word, share in each["words"]) for each in suggested},
    }


def _unfinished(run: Run, accounts: Accounts) -> tuple[Label, ...]:
    released, planned = accounts.released, accounts.participation.rounds
    of_all = quantity(planned, "round")
    if run.finished and released == planned:
        return ()
    if run.finished:
        were = "was" if released == 1 else "were"
        return (Label("ENDED EARLY", f"{released:,} of {of_all} {were} done when the run was ended."),)
    if not released:
        meaning = f"none of {of_all} is done and nothing was released; begin with `{resume_command(run)}`."
        return (Label("NOTHING RELEASED YET", meaning),)
    meaning = f"{released:,} of {of_all} {'is' if released == 1 else 'are'} done; go on with `{resume_command(run)}`."
    return (Label("UNFINISHED", meaning),)


def _failed(run: Run, losses: Series) -> tuple[Label, ...]:
    failure = clipping_failure([row.measures for row in run.steps()])
    worse = worse_than_start(losses, trained(run).data.vocabulary_size)
    failed = [] if failure is None else [Label(f"ADAPTIVE CLIPPING FAILED, {failure.name}", failure.advice)]
    missing = [Label("NOT DONE", f"{said}.") for said in run.notes.get(MISSING, {}).values()]
    return (*failed, *([] if worse is None else [Label(worse.name.upper(), worse.meaning)]), *missing)


def _rounds(run: Run, accounts: Accounts) -> Rounds:
    rows, released = run.steps()[: accounts.released], accounts.released
    seconds = [seconds for round, _, seconds in run.times() if round < released]
    updates = [each for each in accounts.ledger.noised_sums if each.what == MODEL_UPDATE]
    estimates = [row.measures["clip_estimate"] for row in rows if "clip_estimate" in row.measures]
    losses = [row.measures["private_loss"] for row in rows if "private_loss" in row.measures]
    return Rounds(
        seconds=np.array(seconds, np.float64),
        participants=accounts.log.counts(released),
        dropped=np.array([each.dropped for each in updates], np.int64),
        loss=np.array([row.measures.get("loss", math.nan) for row in rows], np.float64),
        clipped=np.array([row.measures.get("clipped", math.nan) for row in rows], np.float64),
        clip_norm=np.array([each.clip_norm for each in updates], np.float64),
        clip_estimate=np.array(estimates, np.float64) if estimates else None,
        private_loss=np.array(losses, np.float64) if losses else None,
    )


def settings_of(run: Run) -> dict[str, Any]:
    """settings.toml, flattened."""
    return flattened(run.settings_table)


def flattened(settings: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """Nested tables as one: {"name": ..., "rounds.report_goal": ..., "privacy.mechanism.name": ...}."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= flattened(value, f"{section}{key}.") if isinstance(value, Mapping) else {f"{section}{key}": value}
    return flat
