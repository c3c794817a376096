"""`tacit account`: what a mechanism promises, from its parameters: a sub-command for each of the catalogue.

What happened instead of what was planned: `account_run.py`; local randomizers: `account_local.py`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from tacit.cli.console import complaints, console, say, say_loudly
from tacit.cli.display import display
from tacit.cli.groups import at, late_app
from tacit.cli.mechanism_options import AnyMechanism, Noise, ParticipationOptions, of_every_mechanism
from tacit.cli.options import Json, OwnDelta, command
from tacit.cli.values import seconds
from tacit.design.mechanism import ChosenMechanism
from tacit.errors import InputError
from tacit.jobs.account.job import account_amplified, participation_in_log, strategy_from_file
from tacit.jobs.account.mechanism import MechanismAccount
from tacit.privacy.delta import DELTA_TOO_LARGE
from tacit.privacy.measured_participation import Clock
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class SingleReleaseOrLimits(ParticipationOptions):
    """A single release needs no limits."""

    rounds: Annotated[int, typer.Option(help="Rounds of the whole run; 1 is a single release.")] = 1


def _independent(chosen: ChosenMechanism, limits: SingleReleaseOrLimits, noise: Noise, as_json: Json = False) -> None:
    """With one round the conversion of a single release, which no separation is needed for."""
    if limits.rounds == 1 and limits.rounds_between is None and limits.min_separation is None:
        limits = replace(limits, min_separation=1)
    _mechanism(chosen, limits, noise, as_json)


def _mechanism(chosen: ChosenMechanism, limits: ParticipationOptions, noise: Noise, as_json: Json = False) -> None:
    participation = limits.participation()
    guarantee = noise.guarantee(_strategy(chosen, participation, as_json), participation)
    say(MechanismAccount.from_guarantee(guarantee, noise.read_at), as_json, _show)


ASKED = {
    "run": at(
        "account_run:run",
        "What a run promises as realised, from its ledger and its log; a mixture also what each part of it does.",
    ),
    "population": at(
        "account_population:population",
        "What every run took of a population's budget; with --clients and what is allowed, begin one.",
    ),
    "shuffle": at(
        "account_local:shuffle", "From a local to a central guarantee: upper and lower bounds, valid ones only."
    ),
    "populations": at(
        "account_local:populations",
        "What a population of each size can find at what epsilon, and what is promised centrally.",
    ),
    "user": at(
        "account_local:user", "One of K words at the whole epsilon, or all K at epsilon / K: which estimates better?"
    ),
    **of_every_mechanism(_mechanism, independent=_independent),
}
app = late_app(ASKED, help="What a mechanism promises: exact sensitivity, zCDP, and epsilon at a delta.")


@app.command("strategy")
@command
def account_strategy(
    file: Annotated[Path, typer.Argument(help="A JSON file with a strategy, as `tacit design ... --out` writes it.")],
    limits: ParticipationOptions,
    noise: Noise,
    as_json: Json = False,
) -> None:
    """Any strategy from a file; where only a bound is proved, says so."""
    guarantee = noise.guarantee(strategy_from_file(file), limits.participation())
    say(MechanismAccount.from_guarantee(guarantee, noise.read_at), as_json, _show)


@app.command("log")
@command
def account_log(
    rounds: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with the columns round and finished (ISO 8601 with its zone, or Unix seconds)."
        ),
    ],
    timer: Annotated[str, typer.Option(help="How long a device waits before it takes part again: 48h, 90m, 2d.")],
    mechanism: AnyMechanism,
    noise: Noise,
    clock: Annotated[
        Clock,
        typer.Option(
            help="When a device's timer starts: when its round finishes, as the papers count, or already at its upload."
        ),
    ] = "finish",
    time_zone: Annotated[
        str | None,
        typer.Option(help="Whose clocks showed the times of the log that say no zone: UTC, Europe/Madrid."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What happened, from a log of round times: MinS and MaxP as the timer enforced them, and the guarantee."""
    waited = seconds(timer, "timer")
    participation = participation_in_log(rounds, timer=waited, clock=clock, time_zone=time_zone)
    guarantee = noise.guarantee(_strategy(mechanism.chosen(), participation, as_json), participation)
    happened = MechanismAccount.from_guarantee(guarantee, noise.read_at, timer_seconds=waited, timer_starts_at=clock)
    say(happened, as_json, _show)


@app.command("amplified")
@command
def amplified(
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")],
    population: Annotated[int, typer.Option(help="Members of the population.")],
    batch: Annotated[float, typer.Option(help="How many a round draws in expectation.")],
    noise_multiplier: Annotated[float, typer.Option(help="Standard deviation of each seed, in clip norms.")],
    mechanism: AnyMechanism,
    cycle: Annotated[
        int | None, typer.Option(help="Parts that take turns; left out, the bands of the strategy.")
    ] = None,
    delta: OwnDelta = None,
    as_json: Json = False,
) -> None:
    """A banded mechanism with cyclic Poisson sampling: for data centres, NOT for devices."""
    chosen = mechanism.chosen()
    if isinstance(chosen, ChosenMechanism) and chosen.needs_design and cycle is None:
        raise InputError(f"--mechanism {chosen.name} is to be designed; give its numbers, or --cycle for its bands.")
    strategy = _strategy(chosen, Participation.worst_case(rounds, cycle or 1).of_a_run(), as_json)
    made = account_amplified(
        strategy, rounds=rounds, population=population, batch=batch, noise_multiplier=noise_multiplier, cycle=cycle
    )
    with complaints.status("composing privacy loss distributions"):
        result = MechanismAccount.from_sampling(made, strategy, rounds=rounds, delta=delta)
    say(result, as_json, _show)
    if result.warning:
        say_loudly(f"{DELTA_TOO_LARGE}: {result.warning}")


def _strategy(chosen: ChosenMechanism | Path, participation: Participation, as_json: bool) -> Strategy:
    """Of a file, or of the catalogue, designed where it is a wish."""
    if isinstance(chosen, Path):
        return strategy_from_file(chosen)
    with display(quiet=as_json) as progress:
        return chosen.strategy(participation, progress=progress)


def _show(made: MechanismAccount) -> None:
    """The figures, then what they hold for."""
    table = Table(Column(overflow="fold"), Column(overflow="fold"), box=None, show_header=False, pad_edge=False)
    for name, value in made.figures.items():
        if name != "exact":
            table.add_row(name.replace("_", " "), _shown(name, value))
    console.print(table)
    console.print(made.note)


def _shown(name: str, value: Any) -> str:
    if isinstance(value, list) and len(value) > 8:
        return f"{len(value)} numbers: {', '.join(f'{number:.6g}' for number in value[:4])}, ..."
    if isinstance(value, float) and name.startswith(("zcdp", "epsilon")):
        return rounded_up(value, 6)  # as a statement has it: the same guarantee is the same figure in both
    return f"{value:.6g}" if isinstance(value, float) else str(value)
