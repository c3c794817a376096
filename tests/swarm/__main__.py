"""`python -m tests.swarm`: so many simulated devices against a server, until a time is over or Ctrl-C."""

import argparse
import json
import signal
import sys
import threading
from functools import lru_cache
from pathlib import Path

from tests.swarm import DrawnReports, Fault, Reports, Swarm, SwarmFaults, SwarmLog, SwarmSettings, Trained
from tests.swarm.faults import ANYWHERE

from tacit.device.own_text import OwnText
from tacit.errors import InputError, TacitError
from tacit.records import visible

TEXTS = 1000  # clients whose text is open at a time


def main() -> int:
    """Be the swarm that the command line describes. Returns the exit code."""
    given = _parser().parse_args()
    try:
        settings = _settings(given)
        swarm, stop = Swarm(settings), threading.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: stop.set())
        log = swarm.run(given.seconds, until=stop.is_set)
    except TacitError as error:
        sys.stderr.write(f"error: {visible(str(error))}\n")
        return 2
    sys.stdout.write((json.dumps(log.to_record()) if given.json else _said(log)) + "\n")
    return 0


def _settings(given: argparse.Namespace) -> SwarmSettings:
    """Raises: InputError; CacheError."""
    kinds = [Fault[name.upper().replace("-", "_")] for name in given.kinds] if given.kinds else ANYWHERE
    faults = SwarmFaults(
        die=given.die,
        byzantine=given.byzantine,
        kinds=kinds,
        lose=given.lose,
        delay_s=given.delay,
        skew_s=given.skew,
    )
    return SwarmSettings(
        server=given.server,
        operator_key=given.operator_key,
        population=given.population,
        devices=given.devices,
        seed=given.seed,
        faults=faults,
        reports=_reports(given),
        arrive_s=given.arrive,
        waits=given.waits,
        at_once=given.at_once,
        tasks=given.tasks,
        codes=() if given.enrolment_codes is None else _codes(given.enrolment_codes),
    )


def _reports(given: argparse.Namespace) -> Reports:
    """Raises: CacheError; InputError."""
    if given.data is None:
        return DrawnReports(given.seed, distinct=given.distinct)
    OwnText(given.data, split=None, client=given.devices - 1)  # refused here rather than by a device
    return Trained(lru_cache(TEXTS)(lambda device: OwnText(given.data, split=None, client=device)), given.seed)


def _codes(file: Path) -> list[str]:
    """Raises: InputError."""
    try:
        return file.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--enrolment-codes '{file}' cannot be read ({error}); give a code in each line.") from None


def _said(log: SwarmLog) -> str:
    """As people read it."""
    record = log.to_record()
    how = ", ".join(f"{count:,} {name}" for name, count in sorted(record["how"].items())) or "none"
    lines = [
        f"{record['idle_check_ins']:,} check-ins were told when to come back; {record['requests_unanswered']:,} "
        "requests were not answered",
        f"{record['assignments']:,} tasks were given, in {len(record['rounds'])} rounds: {how}",
    ]
    return "\n".join([*lines, *(f"{count:>9,}  {what}" for what, count in record["answers"].items())])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.swarm",
        description="Try a server of `tacit serve` with many simulated devices. They follow the protocol and keep the "
        "server's waiting times; what goes wrong with them is drawn from the seed.",
    )
    add = parser.add_argument
    add("--server", required=True, help="http://127.0.0.1:8470, or https://HOST")
    add("--operator-key", required=True, help="64 hexadecimal digits, as `tacit serve` says them")
    add("--population", required=True, help="the recipe's deployment.population")
    add("--devices", type=int, default=100, help="how many (100)")
    add("--seconds", type=float, default=1e9, help="for how long; until Ctrl-C without it")
    add("--data", type=Path, help="a cache: device i trains on the text of its client i; without it, updates are drawn")
    add("--distinct", type=int, help="draw so many updates a round for all devices, where one each takes too long")
    add("--seed", type=int, default=0)
    add("--die", type=float, default=0.0, help="share of tasks in which the device dies, between any two steps")
    add("--byzantine", type=float, default=0.0, help="share of devices that lie")
    names = [kind.name.lower().replace("_", "-") for kind in Fault]
    add(
        "--kinds", nargs="+", choices=names, metavar="KIND", help=f"how they lie (all in any round): {', '.join(names)}"
    )
    add("--lose", type=float, default=0.0, help="share of requests whose answer is lost")
    add("--delay", type=float, default=0.0, help="seconds before each request, on average")
    add("--skew", type=float, default=0.0, help="standard deviation of devices' clocks, in seconds")
    add("--arrive", type=float, default=1.0, help="seconds within which devices come for the first time (1)")
    add("--waits", type=float, default=1.0, help="share of the server's waiting times that devices keep (1)")
    add("--at-once", type=int, default=16, help="devices that have a model and a report in memory at a time (16)")
    add("--tasks", type=int, help="a device comes no more after so many tasks; it goes on without it")
    add("--enrolment-codes", type=Path, help="a code in each line, one for each device, that shows tokens then")
    add("--json", action="store_true", help="the result as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
