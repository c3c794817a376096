"""`tacit tune`: a few small trials with an adaptive clip norm, then the recipe for production with a fixed one.

arXiv:2305.18465, Section 2.5 (6). What to try, which to take and how it scales is decided in `planning/tuning.py`;
recipes are made in `tune_recipes.py`, trials done in `tune_trials.py`, outcomes written in `tune_outcome.py`.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.options import Json, with_options
from tacit.cli.tables import print_table
from tacit.cli.train import Chunk, Multiply, Workers
from tacit.cli.values import numbers
from tacit.errors import InputError, RunError, TrainingError
from tacit.jobs.tune import TrialOutcome, existing_trials, outcome_of, refuse_other_trials, run_trials
from tacit.jobs.tune_recipes import Asked, TrialName, planned, production_recipe, trial_base
from tacit.jobs.tuning_result import FILES, Tuning, TuningCost, status_of, write_tuning
from tacit.planning.tuning import Choice, choose, grid
from tacit.privacy.rounding import rounded_up
from tacit.recipe import Recipe

LARGE = 6500  # paper 1's report goal in production
AROUND = (0.5, 1.0, 2.0)  # times the recipe's server learning rate, where no list is given


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What is tried, and how small."""

    server_learning_rates: Annotated[
        str, typer.Option(help="With commas; left out: half, once and twice the recipe's.")
    ] = ""
    quantiles: Annotated[
        str, typer.Option(help="Shares of clients whose update is not clipped, with commas; left out: the recipe's.")
    ] = ""
    seeds: Annotated[int, typer.Option(help="Trials of each pair; their mean counts.")] = 1
    report_goal: Annotated[
        int | None, typer.Option(help="Clients of a trial's round; left out: the recipe's. The noise goes with it.")
    ] = None
    rounds: Annotated[int | None, typer.Option(help="Rounds of a trial; left out: the recipe's.")] = None
    min_separation: Annotated[int | None, typer.Option(help="Of a trial; left out: the recipe's.")] = None
    initial_clip_norm: Annotated[
        float | None,
        typer.Option(help="Where the estimates begin; left out: clipping.initial, or a tenth of privacy.clip_norm."),
    ] = None
    data: Annotated[Path | None, typer.Option(help="A cache to tune on, in place of the recipe's.")] = None
    choose_by: Annotated[
        Literal["accuracy", "cross-entropy"], typer.Option(help="Of validation clients, after the last round.")
    ] = "accuracy"

    def names(self, recipe: Recipe) -> list[TrialName]:
        """The trials that are asked for, in the order in which they are done. Raises: InputError."""
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds} leaves nothing to try; give at least 1.")
        usual = tuple(factor * recipe.server.learning_rate for factor in AROUND)
        rates = numbers(self.server_learning_rates, "server-learning-rates") if self.server_learning_rates else usual
        of_recipe = 0.5 if recipe.clipping is None else recipe.clipping.quantile
        quantiles = numbers(self.quantiles, "quantiles") if self.quantiles else (of_recipe,)
        pairs = grid(rates, quantiles)
        return [TrialName(setting=pair, number=n) for n in range(1, self.seeds + 1) for pair in pairs]

    def asked(self, recipe: Recipe) -> Asked:
        """How the trials differ from the recipe."""
        return Asked(
            recipe=recipe,
            report_goal=self.report_goal,
            rounds=self.rounds,
            min_separation=self.min_separation,
            initial_clip_norm=self.initial_clip_norm,
            data=self.data,
        )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Changes the speed, never the result."""

    workers: Workers = 0
    chunk: Chunk = 0
    products: Multiply = "tensorfloat32"


@speaks_plainly
@with_options
def tune(
    recipe: Annotated[Path, typer.Argument(help="The recipe of the run that is wanted in the end.")],
    out: Annotated[
        Path, typer.Option(help="The folder; the same command continues it, another grid adds trials to it.")
    ],
    tried: Tried,
    machine: Machine,
    large_report_goal: Annotated[int, typer.Option(help="Clients of a round in production.")] = LARGE,
    public: Annotated[
        str | None,
        typer.Option(
            help="Why the trials cost the production clients nothing, in your words ('docstrings, public text', "
            "'another population: ...'); left out, they are taken to be the same clients."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Try server learning rates and clipping quantiles small, then write the production recipe."""
    wanted = Recipe.load(recipe)
    names, asked = tried.names(wanted), tried.asked(wanted)
    if wanted.privacy.is_wish and not json:
        complaints.print(f"designing the mechanism of production, {wanted.privacy.mechanism_name}")
    base = trial_base(asked)
    _check_production(wanted, names, asked.trial_report_goal, large_report_goal)
    if public is not None and not public.strip():
        raise InputError("--public is empty; say in words why the trials cost the production clients nothing.")
    _check_folder(out)
    refuse_other_trials(out, base)
    outcomes = _all_outcomes(out, base, names, machine, quiet=json)
    ended = [each.trial(tried.choose_by) for each in outcomes if each.ended]
    choice = choose(ended, tried.choose_by)
    tuning = Tuning(
        outcomes=tuple(outcomes),
        by=tried.choose_by,
        cost=TuningCost.of(outcomes, public),
        choice=choice,
        production=None if choice is None else production_recipe(wanted, choice, large_report_goal),
        trial_report_goal=asked.trial_report_goal,
        trial_noise_multiplier=base.guarantee().noise_multiplier,
    )
    write_tuning(out, tuning)
    if json and choice is not None:
        print_json({"out": str(out), **tuning.to_record()})
        return
    if not json:
        _show(out, tuning)
    if choice is None:
        raise TrainingError(_all_failed(out, outcomes))


def _check_production(recipe: Recipe, names: list[TrialName], small: int, large: int) -> None:
    """Refuse now what could not be written after hours of trials."""
    if large <= small:
        raise InputError(
            f"--large-report-goal {large} is not above the {small} reports of a trial, so there is nothing to scale up "
            "to; give a larger one, or a smaller --report-goal."
        )
    some = Choice(setting=names[0].setting, score=0.0, trials=1, clip_norm=recipe.privacy.clip_norm)
    planned(production_recipe(recipe, some, large))


def _check_folder(out: Path) -> None:
    """RunError where something else lives."""
    if out.exists() and not out.is_dir():
        raise RunError(f"'{out}' is a file; choose a folder for --out.")
    foreign = sorted(each.name for each in out.iterdir() if each.name not in {"runs", *FILES}) if out.is_dir() else []
    foreign = [name for name in foreign if not name.startswith(".")]
    if foreign:
        raise RunError(f"'{out}' is no folder of `tacit tune` (it has '{foreign[0]}'); choose another --out.")


def _all_outcomes(
    out: Path, base: Recipe, names: list[TrialName], machine: Machine, *, quiet: bool
) -> list[TrialOutcome]:
    """Of what is asked, done now where it was not, and of what was tried in this folder before."""
    from tacit.compute import Hardware

    hardware = Hardware(**vars(machine))
    hardware.apply()
    asked = run_trials(out, base, names, hardware=hardware, quiet=quiet)
    earlier = [outcome_of(out, name) for name in existing_trials(out) if name not in names]
    return sorted([*asked, *earlier], key=lambda each: each.name)


def _all_failed(out: Path, outcomes: list[TrialOutcome]) -> str:
    reasons = Counter(each.failure or "unfinished" for each in outcomes)
    said = ", ".join(f"{count} {name}" for name, count in reasons.items())
    return (
        f"no trial of {len(outcomes)} can be taken to production ({said}); '{out / 'trials.csv'}' says why of each. "
        "Give smaller --server-learning-rates, which are added to this folder; or begin another with a smaller "
        "--initial-clip-norm, a larger --report-goal (its noise goes with it) or more --rounds. Nothing is lost."
    )


def _show(out: Path, tuning: Tuning) -> None:
    """The trials as a table, what is chosen, what it scales to, what it cost."""
    console.print(
        f"{len(tuning.outcomes)} trials with {tuning.trial_report_goal} reports a round"
        + (f", noise multiplier {tuning.trial_noise_multiplier:g}" if tuning.trial_noise_multiplier else ", no noise")
    )
    print_table(
        ("server rate", "quantile", "try", "accuracy", "cross-entropy", "clip estimate", "zCDP", "status"),
        [_row(each, tuning.choice) for each in tuning.outcomes],
    )
    for each in tuning.outcomes:
        if each.reason is not None:
            console.print(f"{each.name} failed: {each.reason}", markup=False)
    if tuning.choice is None:
        console.print(tuning.cost.words(), markup=False)
        return
    choice, record = tuning.choice, tuning.production_record() or {}
    console.print(
        f"chosen: server learning rate {choice.setting.server_learning_rate:g}, clip norm {choice.clip_norm:g} (the "
        f"median of its estimates over the last quarter of the rounds, quantile {choice.setting.quantile:g})"
    )
    if not choice.settled:
        console.print(
            f"its estimates still moved by a factor of {choice.drift:.3g} in those rounds: try more --rounds before "
            "relying on it"
        )
    for edge in tuning.edge:
        console.print(f"it is {edge} that was tried: a better one may lie beyond; add some to the list")
    planned = record["planned"]
    noise = (
        f"noise multiplier {record['noise_multiplier']:.4g}, {record['mechanism']}; planned zCDP "
        f"{rounded_up(planned['zcdp'])}, epsilon {rounded_up(planned['epsilon'])} at delta {planned['delta']:g}"
        if record["mechanism"] != "none"
        else "NON-PRIVATE, no noise"
    )
    console.print(f"production: {record['report_goal']:,} reports a round, {noise}")
    console.print(tuning.cost.words(), markup=False)
    console.print(f"recipe: {out / 'production.toml'}   figure: {out / 'tuning.png'}", soft_wrap=True)


def _row(each: TrialOutcome, choice: Choice | None) -> tuple[str, ...]:
    chosen = choice is not None and each.name.setting == choice.setting
    found = each.metrics
    return (
        f"{each.name.setting.server_learning_rate:g}",
        f"{each.name.setting.quantile:g}",
        str(each.name.number),
        f"{found['top1_accuracy']:.2%}" if found else "",
        _nats(found["cross_entropy"]) if found else "",
        f"{each.clip_estimates[-1]:.3g}" if each.clip_estimates else "",
        rounded_up(each.zcdp),
        "chosen" if chosen else status_of(each),
    )


def _nats(value: float) -> str:
    """Three decimals; of a model that was destroyed, its size only."""
    return f"{value:.3f}" if value < 1000 else f"{value:.0e}"
