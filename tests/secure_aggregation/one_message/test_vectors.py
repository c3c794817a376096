"""Test vectors of rounds of one message: from which another program checks its own, byte for byte.

tests/golden/one_message_protocol.json was written by
`python -m tests.secure_aggregation.one_message.test_vectors`
when version 5 of the messages was fixed. A change of it is another version of the protocol. What is long is given by
its SHA-256 and its first bytes.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.conftest import REPOSITORY

from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.discrete_gaussian import sample, thresholds
from tacit.secure_aggregation.noise import contribution
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor
from tacit.secure_aggregation.one_message.lattice import PUBLISHED, public_polynomial
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.one_message.ring import primitive_root
from tacit.secure_aggregation.one_message.server import OneMessageServer
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import Identity

GOLDEN = REPOSITORY / "tests" / "golden" / "one_message_protocol.json"
LARGEST, CLIENTS, DIMENSION, DECRYPTORS = 100, 3, 5, 4
NOISE, MARGIN, BITS = ([-700, 3, 0, 700, -1], [50, -50, 1, -600, -1]), 700, 14  # of two contributors
FIRST = 32


def long(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "first": data[:FIRST].hex(), "sha256": hashlib.sha256(data).hexdigest()}


def parts() -> dict[str, Any]:
    """Each function of the protocol once."""
    seed = b"\x03" * 32
    table = thresholds()
    found: dict[str, Any] = {
        "thresholds": {"count": len(table), "first": hex(table[0]), "middle": hex(table[len(table) // 2])},
        "thresholds_sha256": hashlib.sha256(b"".join(each.to_bytes(16, "little") for each in table)).hexdigest(),
        "numbers": sample(40, secrets.seeded(seed)).tolist(),
        "sets": {},
    }
    for name, each in PUBLISHED.items():
        ring = each.ring
        ramp = ring.transform(ring.reduced(np.arange(ring.degree, dtype=np.int64) - 5))
        public = public_polynomial(each, seed, 1)
        found["sets"][name] = {
            "psi": [primitive_root(prime, each.degree) for prime in each.primes],
            "transform_of_minus_5_to_N_minus_6": [row[:3].tolist() for row in ramp],
            "transform_packed": long(pack(ring, ramp)),
            "public_polynomial_1": [row[:3].tolist() for row in public],
            "public_polynomial_1_packed": long(pack(ring, public)),
        }
    return found


def transcript(folder: Path) -> dict[str, Any]:
    """A round of three clients, two contributors of noise, and four decryptors, of whom three answer."""
    private, decryptors = b"\x10" * 32, []
    for index in range(DECRYPTORS):
        make_decryptor(folder / str(index), draw=secrets.seeded(bytes([0x40 + index]) * 32))
        decryptors.append(Decryptor(folder / str(index), least_reports=2))
    identities = [Identity(bytes([0x20 + party]) * 32) for party in range(CLIENTS + len(NOISE))]
    settings = OneMessageRound(
        parameters=b"willow-4096",
        dimension=DIMENSION,
        largest=LARGEST,
        report_goal=2,
        most_reports=10,
        corrupt=1,
        decryptors=tuple(each.identity for each in decryptors),
        boxes=tuple(each.box for each in decryptors),
        server=secrets.public_key(private),
        seed=b"\x11" * 32,
        plan=b"\x12" * 32,
        round_index=7,
        series=1,
        contributors=tuple(each.public for each in identities[CLIENTS:]),
        margin=MARGIN,
    )
    server = OneMessageServer(settings, private)
    vectors = [(np.arange(DIMENSION) * (client + 7) + 20).astype(np.uint32) for client in range(CLIENTS)]
    words = [np.array(noise).astype(np.uint32) & np.uint32(2**BITS - 1) for noise in NOISE]
    vectors += [contribution(each, bits=BITS, margin=MARGIN) for each in words]
    reports, deposits = [], []
    for party, (identity, vector) in enumerate(zip(identities, vectors, strict=True)):
        draw = secrets.seeded(bytes([0x30 + party]) * 32)
        report = one_message_report(settings, identity, vector, draw=draw)
        reports.append(report.to_bytes())
        deposits.append(server.receive(reports[-1]))
    opening, proposal = server.opening().to_bytes(), server.propose().to_bytes()
    votes, sums = [], []
    for decryptor in decryptors[:3]:
        decryptor.receive(opening)
        vote = decryptor.receive(proposal)
        assert vote is not None
        votes.append(vote.to_bytes())
        server.answer(votes[-1])
    agreement = server.agreement().to_bytes()
    for index, decryptor in enumerate(decryptors[:3]):
        decryptor.receive(agreement)
        (answer,) = [
            each for each in (decryptor.receive(one[index].to_bytes()) for one in deposits) if each is not None
        ]
        sums.append(answer.to_bytes())
        server.answer(sums[-1])
    return {
        "server_private": private.hex(),
        "identities": [(bytes([0x20 + party]) * 32).hex() for party in range(len(identities))],
        "draws_are_seeded_by": [(bytes([0x30 + party]) * 32).hex() for party in range(len(identities))],
        "keepers_draws_are_seeded_by": [(bytes([0x40 + index]) * 32).hex() for index in range(DECRYPTORS)],
        "settings": settings.to_bytes().hex(),
        "round": settings.name.hex(),
        "series": settings.attempts.name.hex(),
        "vectors": [vector.tolist() for vector in vectors],
        "reports": [long(each) for each in reports],
        "opening": opening.hex(),
        "proposal": proposal.hex(),
        "votes": [each.hex() for each in votes],
        "agreement": agreement.hex(),
        "deposits_of_keeper_0": [long(each[0].to_bytes()) for each in deposits],
        "key_sums": [long(each) for each in sums],
        "total": server.opened().tolist(),
    }


def everything() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return {
            "protocol": "one message",
            "version": OneMessageReport.version,
            "parts": parts(),
            "round": transcript(Path(folder)),
        }


def test_the_protocol_is_the_one_that_was_fixed() -> None:
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == everything()


def test_the_fixed_round_adds_up() -> None:
    fixed = json.loads(GOLDEN.read_text(encoding="utf-8"))["round"]
    exact = np.sum(fixed["vectors"][:CLIENTS], axis=0) + np.sum(NOISE, axis=0)
    assert fixed["total"] == (exact % 2**32).tolist()
    assert fixed["vectors"][CLIENTS] == [0, MARGIN + 3, MARGIN, 2 * MARGIN, MARGIN - 1]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(everything(), indent=1) + "\n", encoding="utf-8")
