"""What a tuning leaves: trials.csv, tuning.json, the figure, production.toml, and what it cost in privacy."""

import csv
import io
import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.files import write_whole
from tacit.jobs.plan.job import columns_of
from tacit.jobs.result import JobResult
from tacit.planning.told_apart import ComparedSetting, compared
from tacit.planning.trial_recipes import planned
from tacit.planning.tuning import SCHEMA, VERSION, Choice, Measured, TrialOutcome, at_the_edge
from tacit.plurals import quantity
from tacit.privacy import gaussian
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.recipe import Recipe
from tacit.records import json_ready
from tacit.reports.blocks import Block, Paragraph
from tacit.reports.drawing import render
from tacit.reports.figure import Figure
from tacit.reports.figure_files import svg_file
from tacit.reports.page import SIMULATION, Page, ReportFiles, to_json
from tacit.reports.record_files import Records, write_run
from tacit.reports.tune import both, page
from tacit.runs import Run

PAPER = "we do not account for privacy cost of modest amount of hyperparameter tuning"  # arXiv:2305.18465, Section 3


@dataclass(frozen=True, kw_only=True)
class TuningCost:
    """What all trials cost together, and what becomes of it.

    zcdp: the sum of what each trial released (zCDP composes by addition; an upper bound, because the client with the
    worst case of one trial need not be that of another). public: why nobody of the production population is concerned,
    in the user's words; None: the trials read the same clients.
    """

    trials: int
    zcdp: float
    delta: float
    public: str | None
    fixed_seed: bool

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[TrialOutcome], public: str | None) -> "TuningCost":
        """Of all trials that released anything, failed and unfinished ones too."""
        return cls(
            trials=len(outcomes),
            zcdp=math.fsum(each.zcdp for each in outcomes),
            delta=outcomes[0].delta,
            public=public,
            fixed_seed=any(each.fixed_seed for each in outcomes),
        )

    @property
    def epsilon(self) -> float:
        """Of all trials together."""
        return gaussian.epsilon(self.zcdp, self.delta)

    def words(self) -> str:
        """What must stand beside the production run's own figures."""
        if self.public is not None:
            return (
                f"The trials are excluded from the production run's privacy statement, because what they were tuned on "
                f"is not its clients' text: {self.public}. That is the word of whoever ran this, nothing checks it."
            )
        if not math.isfinite(self.zcdp):
            cost = f"{_the(self.trials)} added no noise, so no figure bounds what is told"
        else:
            cost = (
                f"{_the(self.trials)} cost zCDP {rounded_up(self.zcdp)} together (epsilon "
                f"{rounded_up(self.epsilon)} at delta {self.delta:g}) to clients that trained in all of them"
            )
        seed = ", had their seed not been fixed: whoever knows it can take the noise away" if self.fixed_seed else ""
        return (
            f"{cost}{seed}. The production run's privacy statement does not include that, as arXiv:2305.18465 does "
            f'not ("{PAPER}", Section 3); where production trains the same clients, its zCDP and this one add. The '
            "validation clients, whose accuracies were compared without noise, have no guarantee."
        )

    def to_plain(self) -> Record:
        """Plain values for JSON, a part of the tuning's."""
        return {
            "trials": self.trials,
            "zcdp": self.zcdp,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "fixed_seed": self.fixed_seed,
            "excluded_as_public": self.public,
            "in_production_statement": False,
            "words": self.words(),
        }


def _the(trials: int) -> str:
    return "The one trial" if trials == 1 else f"The {trials:,} trials"


@dataclass(frozen=True, kw_only=True)
class TuningResult(JobResult):
    """The outcome of all trials of a run: `choice` and `production` are None where every one failed."""

    run: Run
    trials: tuple[TrialOutcome, ...]
    by: Measured
    cost: TuningCost
    choice: Choice | None
    production: Recipe | None
    trial_report_goal: int
    trial_noise_multiplier: float
    report: ReportFiles | None = None

    @property
    def settings(self) -> tuple[ComparedSetting, ...]:
        """Each setting that could be chosen, beside the chosen one."""
        return compared([each.trial(self.by) for each in self.trials if each.ended], self.choice, self.by)

    @property
    def edge(self) -> tuple[str, ...]:
        """See `at_the_edge`."""
        if self.choice is None:
            return ()
        return at_the_edge(self.choice, [each.trial(self.by) for each in self.trials])

    def production_record(self) -> Record | None:
        """What production would promise as planned, alone and after the trials on the same clients."""
        if self.production is None or self.choice is None:
            return None
        recipe = self.production
        promise, limits = planned(recipe), recipe.rounds
        both = promise.zcdp + self.cost.zcdp
        delta = self.cost.delta if recipe.privacy.delta is None else recipe.privacy.delta
        same = {"zcdp": both, "epsilon": gaussian.epsilon(both, delta)}
        return {
            "recipe": "production.toml",
            "report_goal": limits.report_goal,
            "noise_multiplier": promise.noise_multiplier,
            "clip_norm": promise.clip_norm,
            "server_learning_rate": recipe.server.learning_rate,
            "mechanism": recipe.privacy.mechanism_name,
            "clients_needed": limits.report_goal * promise.participation.effective.min_separation,
            "planned": {"zcdp": promise.zcdp, "epsilon": promise.epsilon(delta), "delta": delta},
            "with_trials_on_the_same_clients": None if self.cost.public is not None else same,
        }

    def to_record(self) -> Record:
        """What tuning.json says."""
        chosen = self.choice
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "run": str(self.run.path),
            "chosen_by": self.by,
            "chosen": None
            if chosen is None
            else {
                "server_learning_rate": chosen.setting.server_learning_rate,
                "quantile": chosen.setting.quantile,
                "score": chosen.score,
                "trials": chosen.trials,
                "clip_norm": chosen.clip_norm,
                "clip_norm_is": "the median of the estimates after the last quarter of the rounds, three digits",
                "clip_norm_drift": chosen.drift,
                "clip_norm_settled": chosen.settled,
                "at_the_edge": list(self.edge),
            },
            "settings": [each.to_record() for each in self.settings],
            "trial_report_goal": self.trial_report_goal,
            "trial_noise_multiplier": self.trial_noise_multiplier,
            "production": self.production_record(),
            "privacy_of_tuning": self.cost.to_plain(),
            "trials": [each.to_record() for each in self.trials],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the trials, for a data frame."""
        return columns_of([each.to_record() for each in self.trials])

    def found(self) -> Record:
        """What its page is made from: see `reports.tune.page`."""
        return {
            "tuning": self.to_record(),
            "clip_estimates": [list(each.clip_estimates) for each in self.trials],
            "failures": [each.failure for each in self.trials],
        }

    def page(self) -> Page:
        """The report."""
        return page(json_ready(self.found()))

    def blocks(self) -> tuple[Block, ...]:
        """What people read of it, and where the recipe and the report are."""
        out, blocks = self.run.path, self.page().blocks
        if self.production is None:
            return blocks
        where = f"recipe: {out / 'production.toml'}   read (exact): {out / SIMULATION / 'report.html'}"
        return (*blocks, Paragraph(where))

    def figure(self) -> Figure:
        """The scores against what was tried, and the clip norm estimates."""
        record = json_ready(self.found())
        trials = [each.trial(self.by) for each in self.trials]
        return both(trials, self.choice, record["tuning"])

    def why_nothing(self) -> str:
        """Why no trial can be taken to production, and what to do."""
        out, reasons = self.run.path, Counter(each.failure or "unfinished" for each in self.trials)
        said = ", ".join(f"{count} {name}" for name, count in reasons.items())
        return (
            f"no trial of {len(self.trials)} can be taken to production ({said}); '{out / 'trials.csv'}' says why of "
            "each. Give smaller --server-learning-rates, which are added to this folder; or begin another with a "
            "smaller --initial-clip-norm, a larger --report-goal (its noise goes with it) or more --rounds. Nothing is "
            "lost."
        )


FILES = ("trials.csv", "tuning.png", "tuning.svg", "tuning.json", "production.toml")  # of its folder


def write_tuning(tuning: TuningResult) -> TuningResult:
    """The result with its report, after all files of its folder; production.toml only where something was chosen."""
    out = tuning.run.path
    records = [each.to_record() for each in tuning.trials]
    table = io.StringIO()
    rows = csv.DictWriter(table, list(records[0]), lineterminator="\n")
    rows.writeheader()
    rows.writerows(records)
    drawn = tuning.figure()
    written = {
        "trials.csv": table.getvalue().encode(),
        "tuning.png": render(drawn, "png"),
        "tuning.svg": svg_file(drawn),
        "tuning.json": to_json(tuning.to_record()),
    }
    if tuning.production is not None:
        written["production.toml"] = production_text(tuning).encode()
    for name, content in written.items():
        write_whole(out / name, content)
    if tuning.production is None:
        (out / "production.toml").unlink(missing_ok=True)  # of an earlier choice, which no longer holds
    kind = tuning.run.kind
    return replace(tuning, report=write_run(out, kind, Records.from_values(kind, exact=tuning.found())))


def production_text(tuning: TuningResult) -> str:
    """The recipe, and above it in comments where its values come from and what its statement leaves out."""
    assert tuning.production is not None and tuning.choice is not None
    setting, record = tuning.choice.setting, tuning.production_record() or {}
    noise = (
        "mechanism 'none' adds none, and promises nothing"
        if tuning.production.privacy.mechanism is None
        else "grown with the report goal, so that the noise on the mean stays as it was asked"
    )
    lines = [
        f"Written by `tacit tune`: the best of {quantity(tuning.cost.trials, 'trial')} with "
        f"{quantity(tuning.trial_report_goal, 'report')} a round (arXiv:2305.18465, Section 2.5 (6)).",
        f"server.learning_rate: the best held-out {tuning.by} ({tuning.choice.score:.4g}), at quantile "
        f"{setting.quantile:g}.",
        "privacy.clip_norm: the median of that setting's estimates after the last quarter of its rounds, fixed.",
        f"noise: {noise}.",
        f"population: at least {record['clients_needed']:,} clients at this min_separation; raise it where more come.",
        f"privacy of the tuning: {tuning.cost.words()}",
    ]
    comments = (textwrap.fill(line, 118, initial_indent="# ", subsequent_indent="#   ") for line in lines)
    return "\n".join(comments) + "\n\n" + tuning.production.to_toml()
