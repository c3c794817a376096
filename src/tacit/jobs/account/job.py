"""The guarantee of a mechanism before anything is spent, and from the times at which rounds finished."""

import csv
import io
import math
from datetime import datetime, tzinfo
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, of_type
from tacit.files import read_bounded
from tacit.local_times import LATEST, moment_of, zone_called
from tacit.parsing import MOST_JSON, parsed_json
from tacit.privacy.amplification import Amplified, CyclicSampling, amplified, bands_of
from tacit.privacy.delta import PAPERS_DELTA, default_delta
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.measured_participation import Clock, timed_participation
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy, strategy_from_record

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = ("round", "finished")


def delta_or_default(delta: float | None, clients: int | None) -> float:
    """The delta at which epsilon is given: the one that is asked for, that of a run with so many training clients, or
    the papers'. Raises: InputError where both are given, or there is no client.
    """
    if delta is not None and clients is not None:
        raise InputError("--delta and --clients both say at which delta epsilon is given; drop one of them.")
    if clients is not None:
        return default_delta(clients)
    return PAPERS_DELTA if delta is None else delta


def account(
    strategy: Strategy,
    participation: Participation,
    *,
    noise_multiplier: float | None = None,
    zcdp: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    clients: int | None = None,
    clip_inflation: float = 1.0,
) -> Guarantee:
    """What a strategy promises to clients who keep the participation limits.

    Of the three prices exactly one is given, and the others follow: the noise multiplier in clip norms, rho of zCDP, or
    epsilon at a delta. With clip norm 1: what is promised does not depend on it.

    strategy: the matrix by which noise is correlated, as `tacit.design_mechanism` gives it.
    participation: how often, and how far apart, a client takes part.
    noise_multiplier: the standard deviation of the noise, in clip norms.
    zcdp: rho.
    epsilon: at `delta`.
    delta: left out, that of a run with so many training `clients`, or else the papers' 1e-10.
    clients: how many train.
    clip_inflation: the factor by which encoding for secure sums lengthens a clipped update (`privacy.encoding`).

    Raises: InputError unless there is one price, or where a value is none; AccountingError where no sensitivity is
    known.
    """
    if isinstance(strategy, str):
        raise InputError(
            f"strategy={strategy!r} is a name; give the strategy itself, such as Tree() of tacit.privacy, or "
            f"tacit.design_mechanism({strategy!r}, participation).strategy."
        )
    of_type("strategy", strategy, Strategy)
    of_type("participation", participation, Participation)
    costs = {"noise_multiplier": noise_multiplier, "zcdp": zcdp, "epsilon": epsilon}
    given = [value for value in costs.values() if value is not None]
    for name, value in {**costs, "delta": delta, "clients": clients, "clip_inflation": clip_inflation}.items():
        of_type(name, value, Real, NoneType)
    if len(given) != 1:
        raise InputError(
            f"{len(given)} of noise_multiplier, zcdp and epsilon given; give exactly one, the others follow."
        )
    at = delta_or_default(delta, clients)
    shared: dict[str, Any] = {
        "participation": participation,
        "strategy": strategy,
        "clip_norm": 1.0,
        "clip_inflation": clip_inflation,
    }
    if noise_multiplier is not None:
        return Guarantee(noise_multiplier=noise_multiplier, **shared)
    return Guarantee.for_zcdp(zcdp if zcdp is not None else zcdp_for_epsilon(given[0], at), **shared)


def account_amplified(
    strategy: Strategy,
    *,
    rounds: int,
    population: int,
    batch: float,
    noise_multiplier: float,
    cycle: int | None = None,
) -> Amplified:
    """What a banded strategy promises in a data centre, where the server draws who takes part: never for devices.

    cycle: parts that take turns; left out, as many as the strategy has bands. batch: how many a round draws in
    expectation. Raises: InputError, AccountingError where the strategy has more bands than the cycle parts.
    """
    parts = bands_of(strategy, rounds) if cycle is None else cycle
    sampling = CyclicSampling(population=population, batch=batch, cycle=parts)
    return amplified(strategy, sampling, rounds=rounds, noise_multiplier=noise_multiplier)


def strategy_from_file(path: Path) -> Strategy:
    """The strategy of a JSON file: its record alone, or under the key "strategy" of something larger."""
    try:
        content = read_bounded(path, MOST_JSON)
    except FileNotFoundError:
        raise InputError(f"there is no strategy file '{path}'; write one with `tacit design ... --out`.") from None
    try:
        record = parsed_json(content)
    except ValueError as error:
        raise InputError(f"'{path}' is not JSON ({error}); write one with `tacit design ... --out`.") from error
    if isinstance(record, dict) and "kind" not in record:
        record = record.get("strategy")
    if not isinstance(record, dict):
        raise InputError(
            f"'{path}' holds no record of a strategy (an object with the key 'kind'); "
            "write one with `tacit design ... --out`."
        )
    return strategy_from_record(record)


# -- round times -------------------------------------------------------------------------------------------------------


def participation_in_log(path: Path, *, timer: float, clock: Clock, time_zone: str | None = None) -> Participation:
    """What a timer (seconds) allowed in a run whose rounds finished as `read_round_times` says."""
    return timed_participation(read_round_times(path, time_zone=time_zone), timer=timer, clock=clock)


def read_round_times(path: Path, *, time_zone: str | None = None) -> list[float]:
    """When each round finished, in seconds, in the order of the rounds.

    time_zone: whose clocks showed the times that say no offset; None: each must say one. A day of local time has 23 or
    25 hours where clocks are changed, and a separation counted in it is another than the timer's.

    InputError naming the line where the header lacks a column, a round is missing, repeated or out of order, a
    time cannot be read, or a round finished before the one before it. The first round is numbered 0 or 1.
    """
    zone = None if time_zone is None else zone_called(time_zone)
    try:
        content = read_bounded(path)
    except FileNotFoundError:
        raise InputError(f"there is no log of rounds '{path}'; give a CSV file with 'round' and 'finished'.") from None
    try:
        return _round_times(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")), path, zone)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"'{path}' is not CSV in UTF-8 ({error}); save it as that.") from error


def _round_times(rows: "Reader", path: Path, zone: tzinfo | None) -> list[float]:
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
        number, time = _round(row[at[0]], where), _time(row[at[1]], where, zone)
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


def _time(text: str, where: str, zone: tzinfo | None) -> float:
    """Seconds since 1970."""
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        return _moment(text, where, zone).timestamp()
    if not math.isfinite(seconds):
        raise InputError(f"{where}: the time {text!r} is not a moment; write 2026-05-01T12:00:00Z, say.")
    if seconds >= LATEST:
        raise InputError(
            f"{where}: the time {text!r} is after the year 2100 in seconds since 1970, so it was counted in a smaller "
            "unit; divide all times by 1,000 if they are milliseconds."
        )
    return seconds


def _moment(text: str, where: str, zone: tzinfo | None) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{where}: the time {text!r} is neither ISO 8601 nor Unix seconds; write 2026-05-01T12:00:00Z, say."
        ) from None
    if moment.tzinfo:
        return moment
    if zone is None:
        raise InputError(
            f"{where}: the time {text!r} says no time zone, and a day has 23 or 25 hours where clocks are changed; "
            f"write {text}Z if it is UTC, or say whose clocks showed it, --time-zone Europe/Madrid."
        )
    try:
        return moment_of(moment, zone)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
