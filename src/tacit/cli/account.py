"""`tacit account`: what a mechanism promises, from its parameters.

What happened instead of what was planned: a run folder in `account_run.py`, a log of round times in
`account_log.py`. With sampling that the server controls: `account_amplified.py`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.account_amplified import account_amplified
from tacit.cli.account_log import account_log
from tacit.cli.account_options import (
    Coefficients,
    Json,
    Limits,
    Noise,
    Omega,
    Published,
    Restarts,
    Theta,
    blt_from,
    reals,
    rounds_listed,
    strategy_from_file,
)
from tacit.cli.account_run import run
from tacit.cli.account_show import figures_of_mechanism, show
from tacit.cli.account_shuffle import account_person, account_populations, account_shuffle
from tacit.cli.console import speaks_plainly
from tacit.cli.options import with_options
from tacit.privacy.strategy import BandedInverse, BandedToeplitz, Independent, Strategy, Tree

app = typer.Typer(
    no_args_is_help=True,
    help="What a mechanism promises: exact sensitivity, zCDP, and epsilon at a delta.",
)
app.command("run")(run)
app.command("log")(account_log)
app.command("amplified")(account_amplified)
app.command("shuffle")(account_shuffle)
app.command("populations")(account_populations)
app.command("person")(account_person)


@dataclass(frozen=True, kw_only=True)
class SingleReleaseOrLimits(Limits):
    """A single release needs no limits."""

    rounds: Annotated[int, typer.Option(help="Rounds of the whole run; 1 is a single release.")] = 1


@app.command("tree")
@speaks_plainly
@with_options
def account_tree(limits: Limits, noise: Noise, restarts: Restarts = "", as_json: Json = False) -> None:
    """Binary-tree aggregation, one seed per node; exact over all participation patterns."""
    _account(Tree(restarts=rounds_listed(restarts, "restarts")), limits, noise, as_json)


@app.command("blt")
@speaks_plainly
@with_options
def account_blt(
    limits: Limits,
    noise: Noise,
    strategy: Published = None,
    theta: Theta = "",
    omega: Omega = "",
    as_json: Json = False,
) -> None:
    """A buffered linear Toeplitz strategy, as given: published parameters or your own."""
    _account(blt_from(strategy, theta, omega), limits, noise, as_json)


@app.command("gaussian")
@speaks_plainly
@with_options
def account_gaussian(limits: SingleReleaseOrLimits, noise: Noise, as_json: Json = False) -> None:
    """Independent noise every round; with one round (no separation needed), the conversion of a single
    release.
    """
    if limits.rounds == 1 and limits.rounds_between is None and limits.min_separation is None:
        limits = replace(limits, min_separation=1)
    _account(Independent(), limits, noise, as_json)


@app.command("banded-toeplitz")
@speaks_plainly
@with_options
def account_banded_toeplitz(limits: Limits, noise: Noise, coefficients: Coefficients, as_json: Json = False) -> None:
    """A banded Toeplitz strategy: the coefficients of C, and zeros after them."""
    _account(BandedToeplitz(coefficients=reals(coefficients, "coefficients")), limits, noise, as_json)


@app.command("banded-inverse")
@speaks_plainly
@with_options
def account_banded_inverse(limits: Limits, noise: Noise, coefficients: Coefficients, as_json: Json = False) -> None:
    """A banded inverse: the coefficients of C^{-1}, and zeros after them; `1,-0.9` is DP-lambdaCGD."""
    _account(BandedInverse(coefficients=reals(coefficients, "coefficients")), limits, noise, as_json)


@app.command("strategy")
@speaks_plainly
@with_options
def account_strategy(
    file: Annotated[Path, typer.Argument(help="A JSON file with a strategy, as `tacit design ... --out` writes it.")],
    limits: Limits,
    noise: Noise,
    as_json: Json = False,
) -> None:
    """Any strategy from a file; where only a bound is proved, says so."""
    _account(strategy_from_file(file), limits, noise, as_json)


def _account(strategy: Strategy, limits: Limits, noise: Noise, as_json: bool) -> None:
    guarantee = noise.guarantee(strategy, limits.participation())
    show(figures_of_mechanism(guarantee, noise.delta), as_json)
