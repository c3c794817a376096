"""Starting costs less than a second: `import tacit` nothing, `tacit --help` the drawing, an account its mathematics.

Runs each case in fresh processes and prints one JSON line for each: medians of CPU seconds and of wall seconds, and the
largest peak memory. What compiles to machine code or draws is not loaded where it is not used (tests/test_start_up.py).
Beside it, if they are installed: `flwr --help`, and the import of jax-privacy's accounting.

    python benchmarks/speed/start_up.py
    python benchmarks/speed/start_up.py --peer-python PATH    the peers live in another environment
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

TREE = ("--rounds", "2000", "--min-separation", "400", "--noise-multiplier", "7")
GOALS = {  # CPU seconds on two cores of an AMD EPYC
    "import tacit": 0.05,
    "tacit --help": 0.3,
    "tacit account tree": 0.7,
    "tacit verify": 0.8,
}


class Cost(NamedTuple):
    """Of one process, from its start to its end."""

    cpu_seconds: float
    seconds: float
    peak_mib: float


def cost_of(command: Sequence[str]) -> Cost | None:
    """None if the command does not succeed: a peer that is not installed."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return None
    return Cost(used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1024)


def write_statement(path: Path) -> None:
    """That of a planned run: what `tacit verify` recomputes takes as long as for a run that was made."""
    from tacit.privacy import Guarantee, Participation, Tree
    from tacit.statements import TrainingFacts
    from tacit.statements.statement import statement

    facts = TrainingFacts(
        planned=Guarantee(
            participation=Participation(rounds=2000, min_separation=400, max_participations=5),
            strategy=Tree(),
            clip_norm=0.5,
            noise_multiplier=7.0,
        ),
        delta=1e-10,
        population=4_210_000,
        report_goal=6500,
        cohort_rule="every device keeps a timer of 48 hours",
        vocabulary_kind="public",
        vocabulary_description="counted in public text",
        released="the model after every round",
        looked_at=(),
        verify_command="tacit verify statement.json",
    )
    path.write_text(statement(facts).to_json(), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has flwr or jax-privacy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stated = Path(folder) / "statement.json"
        # In a process of its own: a child begins with the peak memory of its parent, so this one stays small.
        writer = multiprocessing.get_context("spawn").Process(target=write_statement, args=(stated,))
        writer.start()
        writer.join()
        tacit = (sys.executable, "-m", "tacit")
        cases = {
            "python": (sys.executable, "-c", ""),
            "import numpy": (sys.executable, "-c", "import numpy"),
            "import tacit": (sys.executable, "-c", "import tacit"),
            "tacit --help": (*tacit, "--help"),
            "tacit account tree": (*tacit, "account", "tree", *TREE),
            "tacit verify": (*tacit, "verify", str(stated)),
            "tacit design blt": (*tacit, "design", "blt", "--rounds", "2000", "--min-separation", "400"),
            "flwr --help": (options.peer_python, "-c", "from flwr.cli.app import app; app()", "--help"),
            "import jax_privacy": (options.peer_python, "-c", "import jax_privacy.accounting"),
        }
        for name, command in cases.items():
            costs = [cost for _ in range(options.runs) if (cost := cost_of(command))]
            found: dict[str, Any]
            if costs:
                found = {
                    "cpu_seconds": round(median(cost.cpu_seconds for cost in costs), 3),
                    "seconds": round(median(cost.seconds for cost in costs), 3),
                    "peak_mib": round(max(cost.peak_mib for cost in costs), 1),
                }
            else:
                found = {"skipped": f"`{' '.join(command)}` does not succeed here"}
            goal = {"goal_cpu_seconds": GOALS[name]} if name in GOALS else {}
            print(json.dumps({"benchmark": "start_up", "case": name, **found, **goal, "runs": len(costs)}), flush=True)


if __name__ == "__main__":
    main()
