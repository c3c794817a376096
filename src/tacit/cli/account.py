"""`tacit account`: what a mechanism promises, from its parameters; what a run promises, from its folder."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import console, print_json, speaks_plainly
from tacit.cli.statement import reading, rounded_up, run_figures
from tacit.errors import InputError
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Blt, Independent, Record, Strategy, Tree
from tacit.runs import Run

app = typer.Typer(
    no_args_is_help=True,
    help="What a mechanism promises: exact sensitivity, zCDP, and epsilon at a delta.",
)

Rounds = Annotated[int, typer.Option(help="Rounds of the whole run.")]
Between = Annotated[
    int | None,
    typer.Option(help="Rounds strictly between two participations of a client: the papers' MinS."),
]
Separation = Annotated[
    int | None,
    typer.Option(help="Distance in rounds between two participations of a client: b = MinS + 1."),
]
MostTimes = Annotated[
    int | None,
    typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
]
Noise = Annotated[
    float | None,
    typer.Option(help="Standard deviation of each seed, in clip norms; else --zcdp or --epsilon."),
]
Zcdp = Annotated[float | None, typer.Option(help="The rho to reach; the noise multiplier for it is computed.")]
Epsilon = Annotated[
    float | None,
    typer.Option(help="The epsilon to reach at --delta; the noise multiplier for it is computed."),
]
Delta = Annotated[float, typer.Option(help="The delta at which epsilon is given.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command("tree")
@speaks_plainly
def account_tree(
    rounds: Rounds,
    rounds_between: Between = None,
    min_separation: Separation = None,
    max_participations: MostTimes = None,
    restarts: Annotated[str, typer.Option(help="Rounds at which a new tree begins, counted from 0: 128,1152.")] = "",
    noise_multiplier: Noise = None,
    zcdp: Zcdp = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-10,
    as_json: Json = False,
) -> None:
    """Binary-tree aggregation, one seed per node; exact over all participation patterns."""
    participation = _participation(rounds, rounds_between, min_separation, max_participations)
    strategy = Tree(restarts=tuple(_whole(restarts, "restarts")))
    _show(_guarantee(strategy, participation, noise_multiplier, zcdp, epsilon, delta), delta, as_json)


@app.command("blt")
@speaks_plainly
def account_blt(
    rounds: Rounds,
    rounds_between: Between = None,
    min_separation: Separation = None,
    max_participations: MostTimes = None,
    strategy: Annotated[str | None, typer.Option(help=f"Published parameters: {', '.join(PUBLISHED_BLT)}.")] = None,
    theta: Annotated[str, typer.Option(help="Or decays of the buffers, in (0, 1]: 0.99,0.7.")] = "",
    omega: Annotated[str, typer.Option(help="With their weights, above 0: 0.1,0.2.")] = "",
    noise_multiplier: Noise = None,
    zcdp: Zcdp = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-10,
    as_json: Json = False,
) -> None:
    """A buffered linear Toeplitz strategy, as given: published parameters or your own."""
    participation = _participation(rounds, rounds_between, min_separation, max_participations)
    blt = _blt(strategy, theta, omega)
    _show(_guarantee(blt, participation, noise_multiplier, zcdp, epsilon, delta), delta, as_json)


@app.command("gaussian")
@speaks_plainly
def account_gaussian(
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run; 1 is a single release.")] = 1,
    rounds_between: Between = None,
    min_separation: Separation = None,
    max_participations: MostTimes = None,
    noise_multiplier: Noise = None,
    zcdp: Zcdp = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-10,
    as_json: Json = False,
) -> None:
    """Independent noise every round; with one round (no separation needed), the conversion of a single
    release.
    """
    if rounds == 1 and rounds_between is None and min_separation is None:
        min_separation = 1
    participation = _participation(rounds, rounds_between, min_separation, max_participations)
    guarantee = _guarantee(Independent(), participation, noise_multiplier, zcdp, epsilon, delta)
    _show(guarantee, delta, as_json)


@app.command("run")
@speaks_plainly
def account_run(
    run: Annotated[Path, typer.Argument(help="A run folder, finished or not.")],
    delta: Annotated[
        float | None, typer.Option(help="The delta at which epsilon is given; left out, the recipe's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a run promises by what happened: MinS and MaxP from its log, the mechanism from its ledger."""
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta {delta} is not a probability between 0 and 1; give for example 1e-10.")
    with Run.open(run) as found, reading(found):
        figures = run_figures(found, delta)
    if as_json:
        print_json(figures)
        return
    _show_run(figures)


def _participation(
    rounds: int, rounds_between: int | None, min_separation: int | None, max_participations: int | None
) -> Participation:
    if rounds_between is not None and min_separation is None:
        return Participation.from_rounds_between(
            rounds=rounds, rounds_between=rounds_between, max_participations=max_participations
        )
    if min_separation is not None and rounds_between is None:
        worst = Participation.worst_case(rounds, min_separation)
        if max_participations is None:
            return worst
        return Participation(rounds=rounds, min_separation=min_separation, max_participations=max_participations)
    given = "neither" if rounds_between is None else f"both ({rounds_between} and {min_separation})"
    raise InputError(
        f"{given} of --rounds-between and --min-separation given; give exactly one: --rounds-between is the "
        "papers' "
        "MinS, --min-separation is MinS + 1."
    )


def _guarantee(
    strategy: Strategy,
    participation: Participation,
    noise_multiplier: float | None,
    zcdp: float | None,
    epsilon: float | None,
    delta: float,
) -> Guarantee:
    """With clip norm 1: what is promised does not depend on it."""
    given = [value for value in (noise_multiplier, zcdp, epsilon) if value is not None]
    if len(given) != 1:
        raise InputError(
            f"{len(given)} of --noise-multiplier, --zcdp and --epsilon given; give exactly one, the others follow."
        )
    if noise_multiplier is not None:
        return Guarantee(
            participation=participation, strategy=strategy, clip_norm=1.0, noise_multiplier=noise_multiplier
        )
    rho = zcdp if zcdp is not None else zcdp_for_epsilon(given[0], delta)
    return Guarantee.for_zcdp(rho, participation=participation, strategy=strategy, clip_norm=1.0)


def _blt(strategy: str | None, theta: str, omega: str) -> Blt:
    if strategy is None and theta and omega:
        return Blt(theta=tuple(_real(theta, "theta")), omega=tuple(_real(omega, "omega")))
    if strategy is None or theta or omega:
        raise InputError("give either --strategy, or --theta together with --omega; exactly one of the two ways.")
    if strategy not in PUBLISHED_BLT:
        raise InputError(f"strategy {strategy!r} is none of {', '.join(PUBLISHED_BLT)}; or give --theta and --omega.")
    return PUBLISHED_BLT[strategy]


def _real(text: str, name: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of numbers; write for example 0.99,0.7.") from error


def _whole(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"--{name} {text!r} is not a list of rounds; write for example 128,1152.") from error


def _show(guarantee: Guarantee, delta: float, as_json: bool) -> None:
    served = guarantee.participation
    strategy: Record = guarantee.strategy.to_record() if guarantee.strategy else {}
    figures: Record = {
        "mechanism": strategy.pop("kind", None),
        **strategy,
        "rounds": served.rounds,
        "rounds_between": served.rounds_between,
        "min_separation": served.min_separation,
        "max_participations": served.max_participations,
        "noise_multiplier": guarantee.noise_multiplier,
        "sensitivity_squared": guarantee.sensitivity_squared,
        "sensitivity": guarantee.sensitivity,
        "zcdp": guarantee.zcdp,
        "mu": guarantee.mu,
        "epsilon": guarantee.epsilon(delta),
        "delta": delta,
    }
    if as_json:
        print_json(figures)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), shown)
    console.print(table)
    console.print("Exact, zero-out adjacency, for clients that keep the participation limits and the clip norm.")


def _show_run(figures: Record) -> None:
    columns = [name for name in ("planned", "realised") if figures[name]]
    table = Table("", *columns, box=None, pad_edge=False)
    for name in figures["planned"]:
        table.add_row(name.replace("_", " "), *(_shown(name, figures[column][name]) for column in columns))
    console.print(table)
    console.print(f"{figures['released_rounds']} of {figures['planned']['rounds']} rounds are released.")
    if not figures["private"]:
        console.print("NON-PRIVATE: no noise was added, so nothing is promised.")
    if figures["extrapolated"]:
        larger = figures["extrapolated"]
        console.print(
            f"EXTRAPOLATED, not a guarantee of this run: with {larger['report_goal']} reports a round, "
            f"realised zCDP {_shown('zcdp', larger['realised']['zcdp'])}, "
            f"epsilon {_shown('epsilon', larger['realised']['epsilon'])}.",
            soft_wrap=True,
        )


def _shown(name: str, value: float) -> str:
    if name in {"zcdp", "epsilon"}:
        return rounded_up(value, 6)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
