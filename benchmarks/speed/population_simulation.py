"""16.6 million devices, 2,000 rounds of 6,500 reports: simulated in under two minutes and 6 GB on two cores.

target     that run and its exact realised MinS and MaxP, each timer in a process of its own: seconds and CPU seconds
           with imports (and, the first time on a machine, compilation), rounds a second, memory (ru_maxrss).
twin       the same rounds by the obvious twin of the tests (tests/support/population/slow_devices.py), which looks at
           every device in every check-in period, at a size that it finishes: same clients, same times, and the median
           of the pairs' own ratios of CPU time.
table      arXiv:2305.18465, Tables 1 and 2: the printed population, timer, rounds and MinS beside that realised here
           with the default settings, and what would explain the printed one: so many times the devices, or a longer
           pause between rounds. Populations and report goal are divided by --scale, which changes MinS little (it
           counts rounds); `--scale 1` takes hours.

    python benchmarks/speed/population_simulation.py                 all three
    python benchmarks/speed/population_simulation.py target          one of them
    python benchmarks/speed/population_simulation.py --smoke         seconds: tiny sizes

Prints one JSON line per figure. Run it on an otherwise idle machine.
"""

import argparse
import json
import math
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

# arXiv:2305.18465, Table 1 (NWP), Table 2 (OTF): name, rounds, MinS, timer in hours, estimated population in millions.
TABLE = (
    ("de-DE", 930, 212, 48, 3.24),
    ("en-GB", 980, 226, 72, 2.38),
    ("fr-FR", 1280, 180, 72, 2.79),
    ("it-IT", 1620, 303, 72, 3.32),
    ("pt-PT", 530, 54, 48, 0.83),
    ("es-ES", 1900, 526, 144, 4.21),
    ("es-ES*", 1750, 349, 144, 4.21),
    ("en-US", 2800, 371, 48, 13.0),
    ("en-US*", 1360, 622, 144, 13.0),
    ("pt-BR", 3600, 909, 144, 16.6),
    ("en-IN", 1290, 170, 96, 7.72),
    ("es-MX", 1980, 343, 96, 9.96),
    ("es-AR", 640, 90, 96, 4.09),
    ("de-DE OTF", 1170, 206, 48, 3.24),
    ("en-GB OTF", 1220, 206, 72, 2.38),
    ("es-ES OTF", 1280, 197, 48, 4.21),
    ("fr-FR OTF", 1300, 290, 72, 2.79),
    ("it-IT OTF", 1360, 188, 48, 3.32),
    ("ru-RU OTF", 870, 327, 48, 6.63),
    ("pt-PT OTF", 430, 54, 48, 0.83),
)
GOAL = 6500
STEPS = 5  # of a bisection: to 2%


def say(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def target(devices: int, goal: int, rounds: int) -> None:
    """The size that was asked for, behind timers that leave the population abundant and scarce."""
    for hours in (48, 144):
        command = [sys.executable, __file__, "--one", str(devices), str(goal), str(rounds), str(hours)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        say(figure="target", **json.loads(done.stdout))


def one(devices: int, goal: int, rounds: int, hours: int) -> None:
    """A run in this process, which has imported nothing of tacit yet."""
    began = time.process_time(), time.perf_counter()
    from tacit.population.devices import Population, RoundRules
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import simulate

    rules = RoundRules(report_goal=goal, timer_hours=hours)
    run = simulate(SimulationSettings(population=Population(devices=devices), rules=rules, rounds=rounds))
    simulated = time.perf_counter() - began[1]
    realised, promised = run.realised, run.promised
    seconds, cpu = time.perf_counter() - began[1], time.process_time() - began[0]
    say(
        devices=devices,
        report_goal=goal,
        rounds=rounds,
        timer_hours=hours,
        seconds=seconds,
        cpu_seconds=cpu,
        rounds_per_second=rounds / simulated,
        gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        realised_min_separation=realised.min_separation,
        promised_min_separation=promised.min_separation,
        max_participations=realised.max_participations,
        days=run.days,
        starved=int(run.underfilled.size),
    )


def twin(devices: int, goal: int, rounds: int, pairs: int) -> None:
    """Bit for bit the same rounds, and how many times faster."""
    sys.path.insert(0, str(REPOSITORY))
    from tests.support.population.slow_devices import SlowDevices

    from tacit.population.devices import Population, RoundRules
    from tacit.population.simulated_cohorts import SimulatedCohorts

    population, rules = Population(devices=devices), RoundRules(report_goal=goal, timer_hours=48)

    def fast(seed: int) -> list[tuple[list[int], int]]:
        cohorts, found = SimulatedCohorts(population, rules, seed=seed), []
        clock = cohorts.start()
        for number in range(rounds):
            each, clock = cohorts.next_cohort(clock, number)
            found.append((each.clients.tolist(), each.finished))
        return found

    def slow(seed: int) -> list[tuple[list[int], int]]:
        happened = SlowDevices(population, rules, seed).run(rounds)
        return [(each["clients"], each["finished"]) for each in happened]  # type: ignore[misc]

    fast(0)  # compiled
    ratios, seconds = [], []
    for seed in range(1, pairs + 1):
        took = []
        results = []
        for run in (slow, fast):
            began = time.process_time()
            results.append(run(seed))
            took.append(time.process_time() - began)
        assert results[0] == results[1], f"seed {seed}: the twins disagree"
        ratios.append(took[0] / took[1])
        seconds.append(took)
    say(
        figure="twin",
        devices=devices,
        report_goal=goal,
        rounds=rounds,
        pairs=pairs,
        same_bits=True,
        slow_cpu_seconds=statistics.median(each[0] for each in seconds),
        fast_cpu_seconds=statistics.median(each[1] for each in seconds),
        ratio=statistics.median(ratios),
        slowest_ratio=min(ratios),
    )


def table(scale: float, rows: int) -> None:
    """The papers' rows beside the simulator's."""
    from tacit.errors import ParticipationError
    from tacit.population.devices import Population, RoundRules
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import Simulation, simulate

    for name, rounds, printed, hours, millions in TABLE[:rows]:
        rules = RoundRules(report_goal=round(GOAL / scale), timer_hours=hours, most_days=150.0)

        def run(times: float = 1.0, pause: float = 2.0) -> Simulation | None:
            who = Population(devices=round(times * millions * 1e6 / scale))  # noqa: B023
            how = replace(rules, pause_minutes=pause)  # noqa: B023
            try:
                return simulate(SimulationSettings(population=who, rules=how, rounds=rounds))  # noqa: B023
            except ParticipationError:
                return None

        def between(found: Simulation | None) -> int:
            return 0 if found is None else found.realised.rounds_between

        plain = run()
        times = crossing(lambda times: between(run(times)) - printed, 1.0, between(plain) - printed)  # noqa: B023
        pause = None  # a longer pause explains only a smaller separation
        if between(plain) > printed:
            pause = crossing(lambda pause: printed - between(run(pause=pause)), 2.0, printed - between(plain))  # noqa: B023
        slower = None if pause is None else run(pause=pause)
        say(
            figure="table",
            scale=scale,
            model=name,
            population_millions=millions,
            timer_hours=hours,
            rounds=rounds,
            limit=int(millions * 1e6 / GOAL),
            printed_rounds_between=printed,
            simulated_rounds_between=between(plain),
            simulated_days=None if plain is None else plain.days,
            simulated_starved=None if plain is None else int(plain.underfilled.size),
            explained_by_times_the_devices=times,
            explained_by_pause_minutes=pause,
            days_with_that_pause=None if slower is None else slower.days,
        )


def crossing(rises: Callable[[float], float], start: float, there: float) -> float | None:
    """Where a function that rises with its argument crosses 0, from its value `there` at `start`; None if far away."""
    low = high = start
    for _ in range(4):
        if there < 0 and rises(high := 2 * high) >= 0:
            low = high / 2
            break
        if there >= 0 and rises(low := low / 2) < 0:
            high = 2 * low
            break
    else:
        return None
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rises(middle) >= 0 else (middle, high)
    return math.sqrt(low * high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", help="target, twin, table; all without any")
    parser.add_argument(
        "--scale", type=float, default=100.0, help="of the table: populations and report goal over this"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    parser.add_argument("--one", type=int, nargs=4, help=argparse.SUPPRESS)  # a run of `target`, in this process
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    chosen = options.figures or ["target", "twin", "table"]
    say(figure="machine", python=platform.python_version(), machine=platform.machine(), smoke=options.smoke)
    if "target" in chosen:
        target(*((200_000, 100, 100) if options.smoke else (16_600_000, GOAL, 2000)))
    if "twin" in chosen:
        twin(*((300, 5, 10, 1) if options.smoke else (3000, 20, 60, 5)))
    if "table" in chosen:
        table(*((500.0, 1) if options.smoke else (options.scale, len(TABLE))))


if __name__ == "__main__":
    main()
