"""`tacit account log`: what a mechanism promises by the times at which its rounds finished, and a timer.

A device that waits for the timer between two participations cannot come twice within fewer rounds than were ever
finished in such a stretch: MinS and MaxP follow from the log of the rounds, without knowing who took part.
"""

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.account_options import Json, Mechanism, Noise
from tacit.cli.account_show import figures_of_mechanism, show
from tacit.cli.console import speaks_plainly
from tacit.cli.options import with_options
from tacit.errors import InputError
from tacit.jobs.account import read_round_times
from tacit.privacy.participation import Clock, Participation

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@speaks_plainly
@with_options
def account_log(
    rounds: Annotated[
        Path, typer.Argument(help="A CSV file with the columns round and finished (ISO 8601, or Unix seconds).")
    ],
    timer: Annotated[str, typer.Option(help="How long a device waits before it takes part again: 48h, 90m, 2d.")],
    mechanism: Mechanism,
    noise: Noise,
    clock: Annotated[
        Clock,
        typer.Option(
            help="When a device's timer starts: when its round finishes, as the papers count, or already at its upload."
        ),
    ] = "finish",
    as_json: Json = False,
) -> None:
    """What happened, from a log of round times: MinS and MaxP as the timer enforced them, and the guarantee."""
    waited = seconds_of(timer)
    participation = Participation.from_round_times(read_round_times(rounds), timer=waited, clock=clock)
    guarantee = noise.guarantee(mechanism.made(), participation)
    figures = figures_of_mechanism(guarantee, noise.delta)
    show({**figures, "timer_seconds": waited, "timer_starts_at": clock}, as_json)


def seconds_of(duration: str) -> float:
    """The seconds of "48h", "90m", "2d", "1.5h", "30s" or "1w"; InputError for anything else, and for none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", duration)
    if found is None:
        raise InputError(
            f"--timer {duration!r} is no duration; write a number and a unit (s, m, h, d, w): 48h, 90m, 2d."
        )
    seconds = float(found[1]) * SECONDS[found[2]]
    if not 0 < seconds < math.inf:
        raise InputError(f"--timer {duration!r} keeps nobody from coming at once; give a time above 0.")
    return seconds
