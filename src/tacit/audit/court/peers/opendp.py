"""OpenDP: randomized response on bit vectors, and noise on a sum of squared deviations of large floats."""

import importlib.metadata
import json
import sys
from typing import Any

import opendp.prelude as dp

LAST, FIRST = b"\x80", b"\x01"  # of eight bits, of which the first is the lowest
FAR, PEOPLE = 2.0**50, 1024


def bit_vector(runs: int) -> dict[str, Any]:
    measure = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5)

    def scores(vector: bytes) -> list[int]:
        released = [measure(vector)[0] for _ in range(runs)]
        return [(byte >> 7) - (byte & 1) for byte in released]

    return {
        "case": "bit-vector",
        "subject": "randomized response on a bit vector, its last bit",
        "threat_model": "one device's report is seen",
        "claim": measure.map(1),
        "delta": 0.0,
        "absent": scores(FIRST),
        "present": scores(LAST),
    }


def deviations(runs: int) -> dict[str, Any]:
    domain = dp.vector_domain(dp.atom_domain(bounds=(FAR, FAR + 1), nan=False), size=PEOPLE)
    squares = dp.t.make_sum_of_squared_deviations(domain, dp.symmetric_distance())
    measure = squares >> dp.m.then_laplace(scale=squares.map(2))
    numbers = [FAR + 0.25] * PEOPLE
    replaced = [FAR + 0.5, *numbers[1:]]
    return {
        "case": "deviations",
        "subject": "Laplace noise on a sum of squared deviations of floats near 2^50",
        "threat_model": "the noisy sum is seen; one number is replaced",
        "claim": measure.map(2),
        "delta": 0.0,
        "absent": [measure(numbers) for _ in range(runs)],
        "present": [measure(replaced) for _ in range(runs)],
    }


settings = json.load(sys.stdin)
dp.enable_features("contrib")
cases = [{"measure": "epsilon", "law": "any", **case(settings["runs"])} for case in (bit_vector, deviations)]
package = f"opendp {importlib.metadata.version('opendp')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
