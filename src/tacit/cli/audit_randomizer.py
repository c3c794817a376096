"""`tacit audit randomizer`: what local randomizers leak through the functions that devices run."""

from typing import Annotated

import typer

from tacit.cli.audit_shown import show_findings
from tacit.cli.display import display
from tacit.cli.options import Json, command


@command
def randomizer(
    names: Annotated[
        list[str] | None, typer.Argument(help="subset-selection, projective-geometry, k-ary; left out, all of them.")
    ] = None,
    campaigns: Annotated[int, typer.Option(help="Discoveries whose outputs are looked at for rare words.")] = 1_000,
    shuffles: Annotated[int, typer.Option(help="Shuffled sums of each of two data sets.")] = 30_000,
    confidence: Annotated[float, typer.Option(help="Of all rows together.")] = 0.99,
    seed: Annotated[int, typer.Option(help="Of all randomness, so that the audit can be repeated.")] = 0,
    json: Json = False,
) -> None:
    """What local randomizers leak: every choice of small domains, likelihood ratios of large ones, shuffled sums, and
    words that too few typed.
    """
    from tacit.audit.randomizer.job import audit_randomizer
    from tacit.randomizers.registry import RANDOMIZERS

    with display(quiet=json) as progress:
        found = audit_randomizer(
            names=names or tuple(RANDOMIZERS),
            campaigns=campaigns,
            shuffles=shuffles,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
    show_findings(found, json)
