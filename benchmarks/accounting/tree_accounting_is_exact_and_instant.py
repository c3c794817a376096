"""The exact sensitivity of a tree takes a fraction of a millisecond where the published program takes minutes.

Beside tacit runs the dynamic program of TensorFlow Privacy's `tree_aggregation_accountant` as the supplementary colab
of arXiv:2103.00039 (Appendix D.2) prints it for a production model: written out below from its text, plain Python,
the same recursion, pruning and buffer. Both answer the same cases and must give the same number; times are CPU time,
a fresh search each time (tacit's median of many, the program's single run or median of pairs).

    python benchmarks/accounting/tree_accounting_is_exact_and_instant.py          reduced cases, under a minute
    python benchmarks/accounting/tree_accounting_is_exact_and_instant.py --full   and T=2000, MinS=313, MaxP=6: minutes
    python benchmarks/accounting/tree_accounting_is_exact_and_instant.py --pairs 1

The reduced cases halve the colab's rounds and separation (T=1000, MinS=156; T=500, MinS=78; T=250, MinS=39): half the
size costs the program 8 to 9 times less. Prints one JSON line per case, then one for tacit's own large cases. Run it
on an otherwise idle machine.
"""

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial

from tacit.privacy import Participation
from tacit.privacy.sensitivity_tree import tree_sensitivity_squared

# (rounds, MinS, MaxP): MinS counts the rounds strictly between two participations.
REDUCED = [(16, 2, 5), (100, 9, 12), (250, 39, 6), (500, 78, 6), (1000, 156, 6)]
COLAB = (2000, 313, 6)
LARGE = [(20_000, 312, 64), (200_000, 312, 640), (200_000, 311, 640), (200_000, 1, 640)]


# -- the published program -----------------------------------------------------------------------------------------


def possible(visits: int, between: int, start: int, end: int, steps: int) -> bool:
    """Whether `visits` participations fit into `steps` after `start`, leaving `end` free beyond them."""
    return start + (between + 1) * visits <= steps + end


def square_sum(
    visits: int, between: int, start: int, end: int, steps: int, buffer: dict[tuple[int, int, int, int], float]
) -> float:
    """The colab's `_tree_sensitivity_square_sum`."""
    key = (visits, start, end, steps)
    if key in buffer:
        return buffer[key]
    if not possible(visits, between, start, end, steps):
        value = -math.inf
    elif visits == 0:
        value = 0.0
    elif visits == 1 and steps == 1:
        value = 1.0
    else:
        power = math.floor(math.log2(steps))
        value = 0.0
        if power == math.log2(steps):
            value = float(visits**2)
            power -= 1
        candidates = []
        for right in range(visits + 1):
            for right_start in range(between + 1):
                left_sum = square_sum(visits - right, between, start, right_start, 2**power, buffer)
                if math.isinf(left_sum):
                    candidates.append(-math.inf)
                    continue
                right_sum = square_sum(right, between, right_start, end, steps - 2**power, buffer)
                candidates.append(left_sum + right_sum)
        value += max(candidates)
    buffer[key] = value
    return value


def published(rounds: int, between: int, most: int) -> float:
    """The colab's `_max_tree_sensitivity_square_sum`."""
    while not possible(most, between, 0, between, rounds):
        most -= 1
    buffer: dict[tuple[int, int, int, int], float] = {}
    return max(square_sum(visits, between, 0, between, rounds, buffer) for visits in range(1, most + 1))


# -- tacit ---------------------------------------------------------------------------------------------------------


def ours(rounds: int, between: int, most: int) -> int:
    """tacit's answer to the same question."""
    return tree_sensitivity_squared(
        Participation.from_rounds_between(rounds=rounds, rounds_between=between, max_participations=most)
    )


# -- the comparison ------------------------------------------------------------------------------------------------


def cpu_seconds(work: Callable[[], float]) -> tuple[float, float]:
    """(what it answers, the CPU seconds it took)."""
    begin = time.process_time()
    answer = work()
    return answer, time.process_time() - begin


def median_of_many(work: Callable[[], float], repetitions: int = 21) -> tuple[float, float]:
    """(what it answers, the median of many CPU times), for work too short for one clock reading."""
    return work(), statistics.median(cpu_seconds(work)[1] for _ in range(repetitions))


def compare(case: tuple[int, int, int], pairs: int) -> dict[str, object]:
    """Both programs on one case, in turns."""
    rounds, between, most = case
    theirs_seconds, our_seconds = [], []
    for _ in range(pairs):
        theirs, seconds = cpu_seconds(partial(published, rounds, between, most))
        theirs_seconds.append(seconds)
        mine, seconds = median_of_many(partial(ours, rounds, between, most))
        our_seconds.append(seconds)
    ratios = [slow / fast for slow, fast in zip(theirs_seconds, our_seconds, strict=True)]
    return {
        "case": {"rounds": rounds, "min_s": between, "max_p": most},
        "published_sens2": theirs,
        "tacit_sens2": mine,
        "same": theirs == mine,
        "published_cpu_s": statistics.median(theirs_seconds),
        "tacit_cpu_s": statistics.median(our_seconds),
        "ratio": statistics.median(ratios),
        "pairs": pairs,
    }


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also the colab's own case, once: minutes")
    parser.add_argument("--pairs", type=int, default=3, help="measured pairs of each reduced case (default 3)")
    options = parser.parse_args()
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    for case in REDUCED:
        print(json.dumps(compare(case, options.pairs) | machine), flush=True)
    if options.full:
        print(json.dumps(compare(COLAB, 1) | machine), flush=True)
    for rounds, between, most in LARGE:
        answer, seconds = cpu_seconds(partial(ours, rounds, between, most))
        facts = {"rounds": rounds, "min_s": between, "max_p": most}
        print(json.dumps({"case": facts, "tacit_sens2": answer, "tacit_cpu_s": seconds} | machine), flush=True)


if __name__ == "__main__":
    main()
