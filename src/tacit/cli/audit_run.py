"""`tacit audit RECIPE`, which is `tacit audit run RECIPE`: canaries in one training."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.audit.one_run.settings import CanarySettings
from tacit.cli.audit_shown import show_findings
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.compute import Hardware


@command
def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML, or the name of a shipped one (docs/recipes.md).")],
    settings: CanarySettings,
    hardware: Hardware,
    out: Annotated[
        Path | None, typer.Option(help="The run folder to make, or to go on with; left out, runs/audit-RECIPE.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    init: Annotated[
        Path | None, typer.Option(help="Begin from this model of `tacit pretrain`, in place of the recipe's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Fix canaries and noise; left out, the noise has a fresh key.")
    ] = None,
    json: Json = False,
) -> None:
    """Train once with canaries among the clients, and say how much of them leaked at least, beside the claim."""
    from tacit.audit.one_run.job import audit_run

    with display(json) as progress:  # `tacit resume` does not go on with it
        found = audit_run(
            recipe,
            settings=settings,
            out=out,
            data=data,
            init=init,
            seed=seed,
            hardware=hardware,
            progress=progress,
        )
    show_findings(found, json)
