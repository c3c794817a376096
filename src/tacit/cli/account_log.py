"""`tacit account log`: what a mechanism promises by the times at which its rounds finished, and a timer.

A device that waits for the timer between two participations cannot come twice within fewer rounds than were ever
finished in such a stretch: MinS and MaxP follow from the log of the rounds, without knowing who took part.
"""

import csv
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.account_options import Json, Mechanism, Noise
from tacit.cli.account_show import figures_of_mechanism, show
from tacit.cli.console import speaks_plainly
from tacit.cli.options import with_options
from tacit.errors import InputError
from tacit.privacy.participation import Clock, Participation

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = ("round", "finished")
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


def read_round_times(path: Path) -> list[float]:
    """When each round finished, in seconds, in the order of the rounds.

    InputError naming the line where the header lacks a column, a round is missing, repeated or out of order, a
    time cannot be read, or a round finished before the one before it. The first round is numbered 0 or 1.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _round_times(csv.reader(file), path)
    except FileNotFoundError:
        raise InputError(f"there is no log of rounds '{path}'; give a CSV file with 'round' and 'finished'.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"'{path}' is not CSV in UTF-8 ({error}); save it as that.") from error


def _round_times(rows: "Reader", path: Path) -> list[float]:
    header = [name.strip().lower() for name in next(rows, [])]
    if any(header.count(name) != 1 for name in COLUMNS):
        raise InputError(f"'{path}' begins with the columns {header}; give a header line with 'round' and 'finished'.")
    at = [header.index(name) for name in COLUMNS]
    times: list[float] = []
    first = 0
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        where = f"line {rows.line_num} of '{path}'"
        if len(row) <= max(at):
            raise InputError(f"{where} has {len(row)} columns and the header {len(header)}; complete the line.")
        number, time = _round(row[at[0]], where), _time(row[at[1]], where)
        first = number if not times else first
        _check_next(number, time, first, times, where)
        times.append(time)
    if not times:
        raise InputError(f"'{path}' holds no round; log at least one.")
    return times


def _check_next(number: int, time: float, first: int, times: list[float], where: str) -> None:
    if first not in (0, 1) or number != first + len(times):
        expected = "0 or 1" if not times else str(first + len(times))
        raise InputError(
            f"{where} is round {number} where {expected} belongs; list every round once, in order: "
            "a round that is left out would make the separation look larger than it was."
        )
    if times and time < times[-1]:
        raise InputError(f"{where}: round {number} finished before the round before it; mend the times.")


def _round(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InputError(
            f"{where}: the round {text!r} is not a whole number; number the rounds 0, 1, 2, ..."
        ) from error


def _time(text: str, where: str) -> float:
    """Seconds since 1970; a time without a zone is taken as UTC."""
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"{where}: the time {text!r} is neither ISO 8601 nor Unix seconds; write 2026-05-01T12:00:00Z, say."
            ) from None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise InputError(f"{where}: the time {text!r} is not a moment; write 2026-05-01T12:00:00Z, say.")
    return seconds
