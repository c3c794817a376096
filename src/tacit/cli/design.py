"""`tacit design NAME`: the parameters of a mechanism that cost least, and what they cost; a command for each mechanism.

The commands are made from the catalogue, each with an option for each parameter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.groups import late_app
from tacit.cli.mechanism_options import ParticipationOptions, of_every_mechanism
from tacit.cli.options import Json, command
from tacit.cli.values import whole_numbers
from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import ChosenMechanism
from tacit.design.workload import Workload
from tacit.files import check_file
from tacit.privacy.participation import Participation

if TYPE_CHECKING:
    from tacit.jobs.design_results import Design, RobustDesign

Objected = Annotated[
    str | None,
    typer.Option(help="The loss to minimise: max (of the worst round) or rms; left out, rms for matrices, else max."),
]
Out = Annotated[Path | None, typer.Option(help="Write the strategy there, as JSON that `tacit account` reads.")]


@dataclass(frozen=True, kw_only=True)
class One(ParticipationOptions):
    """One participation."""

    def participations(self) -> tuple[Participation, ...]:
        """Just one; InputError where nobody could take part like that."""
        from tacit.jobs.design import limits_of

        separation = replace(self, max_participations=None).participation().min_separation
        return (limits_of(self.rounds, separation, self.max_participations),)


@dataclass(frozen=True, kw_only=True)
class Several:
    """One participation, or several at once."""

    rounds: Annotated[str, typer.Option(help="Rounds of the whole run: 2000; several 1000,2000; a range 1000:4000.")]
    min_separation: Annotated[
        str | None,
        typer.Option(
            help="Distance in rounds between two participations of a client, b = MinS + 1; several or a range."
        ),
    ] = None
    rounds_between: Annotated[
        str | None,
        typer.Option(help="Or the rounds strictly between two participations: the papers' MinS; several or a range."),
    ] = None
    max_participations: Annotated[
        int | None,
        typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
    ] = None

    def participations(self) -> tuple[Participation, ...]:
        """All combinations."""
        from tacit.jobs.design import several_limits

        return several_limits(whole_numbers(self.rounds, "rounds"), self._separations(), self.max_participations)

    def _separations(self) -> Sequence[int]:
        """In the convention of `--min-separation`; InputError unless it is given in just one of the two."""
        apart = whole_numbers(self.min_separation, "min-separation") if self.min_separation is not None else None
        between = whole_numbers(self.rounds_between, "rounds-between") if self.rounds_between is not None else None
        if between is None or apart is not None:
            both = None if between is None else between[0]
            ParticipationOptions(
                rounds=1, min_separation=None if apart is None else apart[0], rounds_between=both
            ).participation()
            return apart or []
        found = [ParticipationOptions(rounds=1, rounds_between=each).participation().min_separation for each in between]
        return range(found[0], found[-1] + 1) if isinstance(between, range) else found


@dataclass(frozen=True, kw_only=True)
class OfServer:
    """What a server makes of the releases."""

    momentum: Annotated[float, typer.Option(help="Tell the errors of a server's models too, and lower them: 0.9.")] = (
        0.0
    )
    nesterov: Annotated[bool, typer.Option("--nesterov", help="Its momentum looks one step ahead.")] = False
    cooldown: Annotated[
        float, typer.Option(help="The share of the rounds, the last ones, over which its rate falls to zero.")
    ] = 0.0
    workload: Annotated[
        str | None, typer.Option(help="Whose errors are lowered all the same: prefix (sums of the releases) or server.")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """As the jobs take it. InputError for a server that is none."""
        server = Workload(momentum=self.momentum, nesterov=self.nesterov, cooldown=self.cooldown)
        return {"server": server, "workload": self.workload}


def _one(
    limits: One,
    chosen: ChosenMechanism,
    server: OfServer,
    objective: Objected = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    _design(chosen, limits.participations(), server, objective, out, as_json)


def _several(
    limits: Several,
    chosen: ChosenMechanism,
    server: OfServer,
    objective: Objected = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """With several rounds or separations, one strategy for all: the one whose worst ratio to the least loss possible
    at each combination is least. A range stands for three values at equal ratios.
    """
    _design(chosen, limits.participations(), server, objective, out, as_json)


def _design(
    chosen: ChosenMechanism,
    cases: tuple[Participation, ...],
    server: OfServer,
    objective: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    from tacit.jobs.design import design_mechanism, design_robust_mechanism

    if out is not None:
        check_file("--out", out)
    said: dict[str, Any] = {"objective": objective, **server.arguments(), **chosen.parameters.to_plain()}
    with display(quiet=as_json) as progress:
        found: Design | RobustDesign
        if len(cases) > 1:
            found = design_robust_mechanism(chosen.name, cases, progress=progress, **said)
        else:
            found = design_mechanism(chosen.name, cases[0], progress=progress, **said)
    if out is not None:
        found.save(out)
    say_blocks(found, as_json)


ROBUST = {name: _several for name, each in MECHANISMS.items() if each.robust is not None}
app = late_app(
    of_every_mechanism(_one, **ROBUST), help="Choose a mechanism's parameters for the least error at equal privacy."
)


@app.command("compare")
@command
def compare(
    limits: One,
    server: OfServer,
    objective: Annotated[str, typer.Option(help="The loss to minimise: max (of the worst round) or rms.")] = "max",
    slow: Annotated[bool, typer.Option(help="Matrices for these rounds too: seconds to minutes.")] = False,
    as_json: Json = False,
) -> None:
    """All mechanisms side by side: their losses at equal privacy, and what each must remember."""
    from tacit.jobs.design import compare_mechanisms

    (participation,) = limits.participations()
    with display(quiet=as_json) as progress:
        said: dict[str, Any] = {"objective": objective, "slow": slow, **server.arguments()}
        found = compare_mechanisms(participation, progress=progress, **said)
    say_blocks(found, as_json)
