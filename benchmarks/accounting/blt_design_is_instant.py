"""A BLT is designed at the same or a lower loss with at least a hundred times less CPU time than by jax-privacy.

Both choose four buffers for the least max loss at the same participations; each design is made in a fresh process of
its own, imports left out, in turns. Both results are judged by the same closed form, `tacit.design.losses`. A figure is
the CPU time of the process (all its threads), a ratio the median over the turns of their own ratios.

jax-privacy compiles its loss at every call. Its time with and without that are both shown: the compilation is taken
to be what the same call costs when it is allowed one optimiser step, so that step counts as compilation too.

    python benchmarks/accounting/blt_design_is_instant.py                          with jax-privacy installed
    python benchmarks/accounting/blt_design_is_instant.py --peer-python PATH  jax-privacy lives in another environment
    python benchmarks/accounting/blt_design_is_instant.py --without-peers          tacit alone
    python benchmarks/accounting/blt_design_is_instant.py --pairs 1                a smoke test, two minutes

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
from datetime import UTC, datetime
from typing import Any

BUFFERS = 4
CASES = ((2052, 342, 6), (2000, 400, 5), (2000, 100, 10), (20000, 4000, 5))
LARGE = ((10**3, 10**2, 10), (10**6, 10**5, 10), (10**9, 10**8, 10), (10**9, 10**5, 10**4))
SAME = 1e-6  # relative: two designs closer than that are one optimum


# -- a worker: one design in its own process --------------------------------------------------------------------------


def design_by_tacit(rounds: int, separation: int, times: int) -> dict[str, Any]:
    from tacit.design.blt import design_blt
    from tacit.privacy import Participation

    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    begin, clock = time.process_time(), time.perf_counter()
    blt = design_blt(served, buffers=BUFFERS, objective="max")
    spent, seconds = time.process_time() - begin, time.perf_counter() - clock
    return {"cpu_seconds": spent, "seconds": seconds, "theta": blt.theta, "omega": blt.omega}


def design_by_jax_privacy(rounds: int, separation: int, times: int) -> dict[str, Any]:
    from jax_privacy.matrix_factorization import buffered_toeplitz

    def design(**limits: Any) -> tuple[Any, float, float]:
        begin, clock = time.process_time(), time.perf_counter()
        loss = buffered_toeplitz.LossFn.build_min_sep(
            n=rounds, error="max", min_sep=separation, max_participations=times
        )
        blt, _ = buffered_toeplitz.optimize_loss(loss, num_buffers=BUFFERS, **limits)
        return blt, time.process_time() - begin, time.perf_counter() - clock

    design(max_optimizer_steps=1)  # the runtime starts
    _, compiling, _ = design(max_optimizer_steps=1)
    blt, spent, seconds = design()
    theta, omega = ([float(each) for each in row] for row in (blt.buf_decay, blt.output_scale))
    return {
        "cpu_seconds": spent,
        "cpu_seconds_compiling": compiling,
        "seconds": seconds,
        "theta": theta,
        "omega": omega,
    }


SYSTEMS = {"tacit": design_by_tacit, "jax-privacy": design_by_jax_privacy}


# -- the comparison ---------------------------------------------------------------------------------------------------


def made(system: str, python: str, case: tuple[int, int, int]) -> dict[str, Any]:
    """What a worker answers."""
    command = [python, __file__, "--worker", system, "--case", *map(str, case)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"the {system} process failed; its message stands above.")
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def loss_of(answer: dict[str, Any], case: tuple[int, int, int]) -> float:
    """By one closed form for both; what a library leaves at a theta just above 1 is taken as 1."""
    from tacit.design.losses import losses
    from tacit.privacy import Blt, Participation

    rounds, separation, times = case
    blt = Blt(theta=tuple(min(theta, 1.0) for theta in answer["theta"]), omega=tuple(answer["omega"]))
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    return losses(blt, served).max_loss


def compare(case: tuple[int, int, int], pairs: int, peer: str) -> None:
    pythons = {"tacit": sys.executable, "jax-privacy": peer}
    answers: dict[str, list[dict[str, Any]]] = {system: [] for system in SYSTEMS}
    for turn in range(pairs):
        for system in list(SYSTEMS)[:: 1 if turn % 2 == 0 else -1]:
            answers[system].append(made(system, pythons[system], case))
    losses = {system: loss_of(each[0], case) for system, each in answers.items()}
    for system, each in answers.items():
        figure("blt_design", system=system, case=case, buffers=BUFFERS, max_loss=losses[system], **times_of(each))
    ours = [answer["cpu_seconds"] for answer in answers["tacit"]]
    whole = [answer["cpu_seconds"] for answer in answers["jax-privacy"]]
    compiled = [each["cpu_seconds"] - each["cpu_seconds_compiling"] for each in answers["jax-privacy"]]
    figure(
        "times_less_cpu_than_jax_privacy",
        case=case,
        with_compilation=ratio(whole, ours),
        without_compilation=ratio(compiled, ours),
        loss_over_theirs=losses["tacit"] / losses["jax-privacy"],
        same_or_lower_loss=losses["tacit"] <= losses["jax-privacy"] * (1 + SAME),
    )


def times_of(answers: list[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in answers[0] if "seconds" in name]
    return {name: round(statistics.median(answer[name] for answer in answers), 4) for name in names}


def ratio(theirs: list[float], ours: list[float]) -> float:
    return round(statistics.median(one / other for one, other in zip(theirs, ours, strict=True)), 1)


def figure(name: str, **facts: Any) -> None:
    print(json.dumps({"figure": name, **facts}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3, help="turns in which each system designs once")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has jax-privacy")
    parser.add_argument("--without-peers", action="store_true", help="tacit alone")
    parser.add_argument("--worker", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(SYSTEMS[options.worker](*options.case)))
        return
    figure(
        "machine",
        processor=platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        load=[round(load, 2) for load in os.getloadavg()],
        date=datetime.now(UTC).date().isoformat(),
    )
    for case in LARGE:
        answers = [made("tacit", sys.executable, case) for _ in range(options.pairs)]
        figure("blt_design_at_any_length", case=case, buffers=BUFFERS, **times_of(answers))
    if options.without_peers:
        return
    probe = [options.peer_python, "-c", "import jax_privacy"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        raise SystemExit(
            f"{options.peer_python} has no jax-privacy: pip install jax-privacy, or give --peer-python an environment "
            "that has it, or time tacit alone with --without-peers."
        )
    for case in CASES:
        compare(case, options.pairs, options.peer_python)


if __name__ == "__main__":
    main()
