"""Devices' reports at a thousand times the rate of multi-freq-ldpy's client, and votes of 10^8 devices in seconds.

Subset Selection, the same randomizer on both sides, one core. Each figure is CPU time of this process:

client      reports made, users a second: `encode`, in batches of a few megabytes; the peer's `SS_Client`, user by user
            (compiled, too; it sends the own value first when it sends it, which tells it: ours are sorted)
server      reports counted, users a second: `votes`; the peer's `SS_Aggregator_MI`
joint law   seconds for the votes of so many devices at once: `sample_votes`
short       the same for Projective Geometry Response, whose reports have two dozen bits
shuffle     seconds for both bounds on the central epsilon: `shuffle_epsilon`

Peer and tacit run in turns, each in its own process; a ratio is the median of the turns' ratios. Without --peer-python
the peer's rates are those measured once, elsewhere, and the line says so.

    python benchmarks/speed/local_randomizers.py --peer-python PY     PY has multi-freq-ldpy 0.2.5
    python benchmarks/speed/local_randomizers.py --turns 1 --quick    a smoke test

Prints one JSON line per figure. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import numpy as np

CASES = ((1_000, 4.0), (10_000, 6.0), (100_000, 8.0))
WANTED = 1_000  # times the peer's rate at a domain of 100,000
# One core of a 2.1 GHz server, CPython 3.11, multi-freq-ldpy 0.2.5: users a second.
RECORDED = {(1_000, 4.0): (53_800, 199_081), (10_000, 6.0): (2_603, 94_846), (100_000, 8.0): (200, 6_856)}
JOINT = ((100_001, 8.0, 10**8), (100_001, 4.0, 10**8), (1_000_001, 8.0, 10**8), (1_000_001, 4.0, 10**8))
SHUFFLED = ((6.0, 10**8, 1e-10), (1.0, 10**8, 1e-6), (10.0, 10**8, 1e-10), (4.0, 10**5, 1e-6))

PEER = """
import json, sys, time
import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client, SS_Aggregator_MI
domain, epsilon, users = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
values = np.random.default_rng(0).integers(0, domain, users)
SS_Client(int(values[0]), domain, epsilon)
begun = time.process_time()
reports = [SS_Client(int(value), domain, epsilon) for value in values]
client = users / (time.process_time() - begun)
begun = time.process_time()
SS_Aggregator_MI(reports, domain, epsilon)
print(json.dumps({"client": client, "server": users / (time.process_time() - begun)}))
"""


def cpu_seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def ours(domain: int, epsilon: float, users: int, short: bool) -> dict[str, float]:
    """Users a second, reports made and counted batch by batch."""
    from tacit.randomizers import ProjectiveGeometryResponse, SubsetSelection

    of_kind = ProjectiveGeometryResponse if short else SubsetSelection
    randomizer = of_kind(domain, epsilon)
    generator = np.random.default_rng(0)
    batch = max(1, min(users, (1 << 20) // (randomizer.size if isinstance(randomizer, SubsetSelection) else 1)))
    randomizer.votes(randomizer.encode(np.arange(2), generator))  # compiles
    values = generator.integers(0, domain, batch)
    client = server = 0.0
    batches = -(-users // batch)
    for _ in range(batches):
        begun = time.process_time()
        reports = randomizer.encode(values, generator)
        client += time.process_time() - begun
        server += cpu_seconds(partial(randomizer.votes, reports))
    return {"client": batches * batch / client, "server": batches * batch / server}


def in_process(arguments: list[str]) -> dict[str, float]:
    made = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return dict(json.loads(made.stdout.strip().splitlines()[-1]))


def rates(turns: int, quick: bool, peer: str | None) -> None:
    for domain, epsilon in CASES:
        users = 20_000 if quick else 2_000_000
        peer_users = max(20, min(20_000, 2_000_000 // domain * 10))
        mine: list[dict[str, float]] = []
        short: list[dict[str, float]] = []
        theirs: list[dict[str, float]] = []
        runs = [
            (mine, [sys.executable, __file__, "--worker", f"{domain},{epsilon},{users},0"]),
            (short, [sys.executable, __file__, "--worker", f"{domain},{epsilon},{users},1"]),
        ]
        if peer:
            runs.append((theirs, [peer, "-c", PEER, str(domain), str(epsilon), str(peer_users)]))
        for turn in range(turns):
            for found, command in runs if turn % 2 == 0 else reversed(runs):
                found.append(in_process(command))
        if not peer:
            client, server = RECORDED[domain, epsilon]
            theirs = [{"client": client, "server": server}] * turns
        for part in ("client", "server"):
            ratio = statistics.median(a[part] / b[part] for a, b in zip(mine, theirs, strict=True))
            print_line(
                figure=part,
                domain=domain,
                epsilon=epsilon,
                users_a_second=median_of(mine, part),
                short_users_a_second=median_of(short, part),
                peer_users_a_second=median_of(theirs, part),
                peer="multi-freq-ldpy, side by side" if peer else "multi-freq-ldpy 0.2.5, recorded elsewhere",
                ratio=ratio,
                **({"wanted": WANTED, "reached": ratio >= WANTED} if part == "client" and domain == 100_000 else {}),
            )


def joint_law(turns: int, quick: bool) -> None:
    from tacit.randomizers import SubsetSelection, sample_votes

    for domain, epsilon, devices in JOINT[: 1 if quick else None]:
        randomizer, generator = SubsetSelection(domain, epsilon), np.random.default_rng(1)
        falling = 1 / np.arange(1, domain + 1)
        holders = generator.multinomial(devices, falling / falling.sum())
        seconds = [cpu_seconds(partial(sample_votes, randomizer, holders, generator)) for _ in range(turns)]
        print_line(
            figure="joint law", domain=domain, epsilon=epsilon, devices=devices, seconds=statistics.median(seconds)
        )


def shuffle(turns: int) -> None:
    from tacit.privacy.local_shuffling import shuffle_epsilon

    for local, reports, delta in SHUFFLED:
        for kind in ("subset-selection", "projective-geometry", "k-ary", "unary", "rappor", "any"):
            bounds = partial(shuffle_epsilon, local, reports, delta, kind, 100_001)
            made = bounds()
            seconds = [cpu_seconds(bounds) for _ in range(turns)]
            print_line(
                figure="shuffle",
                randomizer=kind,
                local_epsilon=local,
                reports=reports,
                delta=delta,
                epsilon_upper=made.epsilon_upper,
                epsilon_lower=made.epsilon_lower,
                seconds=statistics.median(seconds),
                wanted=0.5,
            )


def median_of(rows: list[dict[str, float]], part: str) -> float:
    return statistics.median(row[part] for row in rows)


def print_line(**values: object) -> None:
    where = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    print(json.dumps({**values, **where, "at": datetime.now(UTC).isoformat(timespec="seconds")}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="a Python that has multi-freq-ldpy")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few users")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        domain, epsilon, users, short = given.worker.split(",")
        print(json.dumps(ours(int(domain), float(epsilon), int(users), short == "1")))
        return
    rates(given.turns, given.quick, given.peer_python)
    joint_law(given.turns, given.quick)
    shuffle(given.turns)


if __name__ == "__main__":
    main()
