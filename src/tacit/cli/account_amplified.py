"""`tacit account amplified`: a banded mechanism in a data centre, where the server draws who takes part."""

from typing import Annotated

import typer

from tacit.cli.account_options import Json, Mechanism
from tacit.cli.account_show import mechanism_of, show
from tacit.cli.console import complaints, speaks_plainly
from tacit.cli.options import with_options
from tacit.privacy.amplification import CyclicSampling, amplified, bands_of

NOTE = (
    "Zero-out adjacency, for cyclic Poisson sampling by the server. NOT valid for federated learning on devices, "
    "where the server does not choose who comes."
)


@speaks_plainly
@with_options
def account_amplified(
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")],
    population: Annotated[int, typer.Option(help="Members of the population.")],
    batch: Annotated[float, typer.Option(help="How many a round draws in expectation.")],
    noise_multiplier: Annotated[float, typer.Option(help="Standard deviation of each seed, in clip norms.")],
    mechanism: Mechanism,
    cycle: Annotated[
        int | None, typer.Option(help="Parts that take turns; left out, the bands of the strategy.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is given.")] = 1e-10,
    as_json: Json = False,
) -> None:
    """A banded mechanism with cyclic Poisson sampling: for data centres, NOT for devices."""
    strategy = mechanism.made()
    parts = bands_of(strategy, rounds) if cycle is None else cycle
    sampling = CyclicSampling(population=population, batch=batch, cycle=parts)
    made = amplified(strategy, sampling, rounds=rounds, noise_multiplier=noise_multiplier)
    with complaints.status("composing privacy loss distributions"):
        epsilon = made.epsilon(delta)
    figures = {
        **mechanism_of(strategy),
        "rounds": rounds,
        "cycle": parts,
        "sampling_probability": sampling.probability,
        "compositions": made.compositions,
        "column_norm": made.column_norm,
        "noise_multiplier": noise_multiplier,
        "sampled_noise_multiplier": made.sampled_noise_multiplier,
        "zcdp_without_sampling": made.zcdp_without_sampling,
        "epsilon_without_sampling": made.epsilon_without_sampling(delta),
        "epsilon": epsilon,
        "delta": delta,
    }
    show(figures, as_json, note=NOTE)
