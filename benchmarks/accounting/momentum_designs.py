"""Designed for what a server with momentum makes of the means, noise in its models is a tenth to a third smaller.

Every mechanism at one guarantee, designed for the rms error of prefix sums and for that of the server's models: the rms
error over all rounds' models and the last model's, in units of the learning rate and of the clip norm at 1/2-zCDP. A
tree has no such design: its row is the baseline. Exact figures: nothing is drawn.

    python benchmarks/accounting/momentum_designs.py  402 rounds, separation 67, 6 times
    ... --rounds 2052 --min-separation 342 --without blt --without banded-inverse

Prints one JSON line for each mechanism and cooldown, with the seconds (CPU time) that the design took.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from typing import Any

from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import Errors, workload_errors
from tacit.design.objective import Objective
from tacit.design.workload import Workload
from tacit.mechanisms.tree import TreeStream
from tacit.privacy import Participation, Tree
from tacit.privacy.sensitivity import sensitivity, sensitivity_bound_squared
from tacit.privacy.strategy import Strategy

FAMILIES: dict[str, dict[str, Any]] = {
    "banded": {},
    "banded-toeplitz": {},
    "square-root": {},
    "inverse-square-root": {},
    "blt": {"buffers": 4},
    "banded-inverse": {"bands": 5},
    "lambda-cgd": {},
}
OBJECTIVE: Objective = "rms"


def of_tree(served: Participation, workload: Workload) -> Errors:
    """The errors of a variance-reduced tree, by the matrix of its stream."""
    variances = (workload.models(TreeStream(Tree(variance_reduced=True)).dense(served.rounds)) ** 2).sum(axis=1)
    scale = sensitivity(Tree(), served)
    return Errors(*(scale * math.sqrt(each) for each in (variances.max(), variances.mean(), variances[-1])))


def of(strategy: Strategy, served: Participation, workload: Workload) -> Errors:
    """Its errors at 1/2-zCDP."""
    scale = math.sqrt(sensitivity_bound_squared(strategy, served)[0])
    return Errors(*(scale * each for each in workload_errors(strategy, workload, served.rounds)))


def compared(served: Participation, workload: Workload, without: list[str]) -> Iterator[dict[str, Any]]:
    """A row for the tree and each mechanism."""
    yield {"mechanism": "tree-variance-reduced", "prefix": of_tree(served, workload)._asdict()}
    for name, parameters in FAMILIES.items():
        if name in without:
            continue
        mechanism = MECHANISMS[name]
        given = mechanism.parameters_from(parameters)
        plain = of(mechanism.strategy(served, OBJECTIVE, given), served, workload)
        begun = time.process_time()
        strategy = mechanism.strategy(served, OBJECTIVE, given, workload=workload)
        seconds = time.process_time() - begun
        designed = of(strategy, served, workload)
        pairs = zip(Errors._fields, plain, designed, strict=True)
        saved = {error: round(1 - after / before, 4) for error, before, after in pairs}
        yield {
            "mechanism": name,
            "memory": strategy.memory(served.rounds),
            "prefix": plain._asdict(),
            "designed": designed._asdict(),
            "saved": saved,
            "seconds": round(seconds, 2),
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=402)
    parser.add_argument("--min-separation", type=int, default=67)
    parser.add_argument("--max-participations", type=int, default=6)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--cooldowns", type=float, nargs="+", default=[0.0, 0.3])
    parser.add_argument("--without", action="append", default=[], choices=FAMILIES)
    options = parser.parse_args()
    served = Participation(
        rounds=options.rounds,
        min_separation=options.min_separation,
        max_participations=options.max_participations,
    )
    for cooldown in options.cooldowns:
        workload = Workload(momentum=options.momentum, cooldown=cooldown)
        for row in compared(served, workload, options.without):
            print(json.dumps({"rounds": served.rounds, "cooldown": cooldown, **row}), flush=True)


if __name__ == "__main__":
    main()
