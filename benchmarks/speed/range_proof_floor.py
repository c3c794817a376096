"""What a proof that a sealed report is no longer than its bound would cost at least: bytes, time, and how far off.

Nothing here is a protocol: these are the parts that any such proof by shares is made of, in the field of the shares
and at the size of a report. Each row is CPU time of one thread, the least of a few turns.

Of K decryptors, T may hold a seed of 32 bytes instead of shares: T shares of a polynomial are any numbers.

masked      tests like those of the report's check, of numbers in place of errors: what they bound, in the sum's slots
shares      the numbers themselves in shares, as many in an element as a quorum leaves: bytes for each decryptor, the
            client's sharing; then `TESTS` random sums of them with signs -1, 0, 1, by client and decryptor. Of the
            64 sums a client would prove by their bits that each is small; what that bounds, in honest norms
bits        every bit of every number in shares: bytes for each decryptor, the client's sharing
ciphertexts the same random sums by the ciphertexts, which are there: the client's key in shares modulo q, bits of
            the sums, and for each test the transforms of a sum over all polynomials, by each decryptor and the server

    python benchmarks/speed/range_proof_floor.py
    python benchmarks/speed/range_proof_floor.py --parameters 20000 --turns 1       a smoke test

Prints one JSON line a row.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.privacy.encoding_choice import encoding_within
from tacit.secure_aggregation.discrete_gaussian import WIDTH
from tacit.secure_aggregation.one_message.lattice import public_polynomial, published
from tacit.secure_aggregation.one_message.report_check import PICKS, TESTS
from tacit.secure_aggregation.one_message.slots import Slots
from tacit.secure_aggregation.residues import packed_bytes
from tacit.secure_aggregation.secrets import seeded
from tacit.secure_aggregation.shares import Elements, split

CLIP_NORM, REPORT_GOAL, INFLATION = 5.0, 6_500, 1.01
DECRYPTORS, CORRUPT = 3, 1
QUORUM = (DECRYPTORS + CORRUPT) // 2 + 1
PACKED = QUORUM - CORRUPT
SHARES = DECRYPTORS - CORRUPT  # that are no seeds
POINTS = [index + 1 for index in range(DECRYPTORS)]
TAIL = math.sqrt(2 * math.log(2.0) * (3 + math.log2(TESTS) + 64))  # of a subgaussian sum, but for 2^-64 of all reports
Words = npt.NDArray[np.uint64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=2_380_000)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    turns = arguments.turns
    encoding = encoding_within(arguments.parameters, CLIP_NORM, REPORT_GOAL, inflation=INFLATION)
    largest, norm = 2 * encoding.largest, encoding.scale * CLIP_NORM * INFLATION
    slots = Slots(published("willow-16384"), encoding.dimension, largest, REPORT_GOAL)
    chance = np.random.default_rng(0)
    numbers = chance.integers(0, largest, encoding.dimension, np.uint32, endpoint=True)
    body = slots.polynomials * packed_bytes(slots.parameters.ring)
    report = body + DECRYPTORS * 4 * -(-slots.parameters.degree // PACKED)
    say("report", numbers=numbers.size, largest=largest, honest_norm=round(norm), bytes=report, load=os.getloadavg()[0])

    masked = 2 * (TESTS - 1) * PICKS * largest
    say("masked", more_bytes=0, bound_of_a_number=masked, of_a_slots_range=masked / (largest * REPORT_GOAL))

    columns = -(-numbers.size // PACKED)
    packed = np.zeros((PACKED, columns), np.uint32)
    packed.ravel()[: numbers.size] = numbers
    draw = seeded(bytes(32))
    sharing = least(lambda: split(packed, POINTS, CORRUPT + 1, draw, packed=PACKED), turns)
    share = split(packed, POINTS, CORRUPT + 1, draw, packed=PACKED)[0]
    signs = np.frombuffer(draw(16 * numbers.size), "<u8").reshape(2, numbers.size)
    own = least(lambda: signed_sums(numbers, *signs), turns)
    held = least(lambda: [signed_sums(share, *signs[:, row * columns :][:, :columns]) for row in range(PACKED)], turns)
    each = 4 * columns
    say(
        "shares",
        bytes_each=each,
        more_bytes=SHARES * each / report,
        client_sharing_s=sharing,
        client_sums_s=own,
        decryptor_sums_s=held,
        norm_at_most=slack(proved=True),
        norm_at_most_by_masks=slack(proved=False),
    )

    width = largest.bit_length()
    shared = least(lambda: split(packed & np.uint32(1), POINTS, CORRUPT + 1, draw, packed=PACKED), turns)
    say("bits", bytes_each=each * width, more_bytes=SHARES * each * width / report, client_sharing_s=shared * width)

    parameters = slots.parameters
    bits = parameters.ring.modulus.bit_length()
    of_key = SHARES * -(-parameters.degree // PACKED) * bits / 8
    error = float(WIDTH) * TAIL * math.sqrt(slots.polynomials * parameters.degree / 2)
    of_slot, of_error = (math.ceil(math.log2(2 * each)) for each in (TAIL * math.sqrt(0.5) * norm, error))
    of_bits = SHARES * -(-TESTS * (slots.per_coefficient * of_slot + of_error) // PACKED) * bits / 8
    polynomial = public_polynomial(parameters, bytes(32), 0)
    prepared, total = parameters.ring.prepared(polynomial.copy()), np.zeros_like(polynomial)

    def one_test() -> None:
        for _ in range(slots.polynomials):
            parameters.ring.transform(polynomial)
            parameters.ring.add_product(total, polynomial, prepared)

    say(
        "ciphertexts",
        more_bytes=(of_key + of_bits) / report,
        key_bytes=of_key / report,
        client_server_and_decryptor_each_s=least(one_test, turns) * TESTS,
        norm_at_most=slack(proved=True),
    )


def slack(*, proved: bool) -> float:
    """How many honest norms a vector may be long that passes a test with probability 1/2, so all with 2^-TESTS.

    A sum with signs (variance 1/2) of an honest vector stays within S = TAIL sqrt(1/2) norms. proved: each sum is
    shown to do so, from -S to S; else it is masked, and known within 126 S. By the normal density, which is what many
    numbers of one size come to: an interval has at most its length / (deviation sqrt(2 pi)).
    """
    window = (2 if proved else 2 * (TESTS - 1)) * TAIL * math.sqrt(0.5)
    return window / (0.5 * math.sqrt(2 * math.pi) * math.sqrt(0.5))


@compiled
def signed_sums(numbers: Elements, plus: Words, minus: Words) -> npt.NDArray[np.int64]:
    """(64,): for each bit of the words the sum of the numbers, times a bit of `plus` less one of `minus`.

    Sums of fewer than 2^31 elements of the field fit; who needs them in the field reduces them.
    """
    found = np.zeros(64, np.int64)
    for at in range(numbers.size):
        number, one, other = np.int64(numbers[at]), plus[at], minus[at]
        for test in range(64):
            shift = np.uint64(test)
            found[test] += number * (
                np.int64((one >> shift) & np.uint64(1)) - np.int64((other >> shift) & np.uint64(1))
            )
    return found


def least(run: Callable[[], object], turns: int) -> float:
    """Seconds of processor time, of the quickest turn; the first, which may compile, does not count."""
    run()
    found = []
    for _ in range(turns):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def say(row: str, **figures: float) -> None:
    rounded = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in figures.items()}
    print(json.dumps({"row": row, **rounded}), flush=True)


if __name__ == "__main__":
    main()
