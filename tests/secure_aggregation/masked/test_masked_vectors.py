"""Test vectors: one small round, byte for byte, from which another program checks its own.

tests/golden/masked_protocol.json was written by `python -m tests.secure_aggregation.masked.test_masked_vectors` when
version 4 of the messages was fixed. A change of it is another version of the protocol.
"""

import json
from typing import Any

import numpy as np
from tests.conftest import REPOSITORY

from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import graph, secret_shares
from tacit.secure_aggregation.masked.client import DevicePolicy, MaskedClient, tag_key
from tacit.secure_aggregation.masked.masks import add_masks
from tacit.secure_aggregation.masked.messages import MaskedVector, RoundSettings
from tacit.secure_aggregation.masked.server import MaskedServer
from tacit.secure_aggregation.packing import pack
from tacit.secure_aggregation.secrets import Identity, KeyPair
from tacit.secure_aggregation.wire import Message

GOLDEN = REPOSITORY / "tests" / "golden" / "masked_protocol.json"
BITS, CLIENTS, DIMENSION = 19, 4, 5
VANISHES = 2  # after it has shared, before its vector


def parts() -> dict[str, Any]:
    """Each function of the protocol once."""
    one, other, seed = KeyPair(b"\x01" * 32), KeyPair(b"\x02" * 32), b"\x03" * 32
    words = np.zeros(6, np.uint32)
    add_masks(words, [(seed, False)])
    drawn = secrets.seeded(seed)
    plan = graph.graph_plan(66, dropout=100, corruption=100)
    tagged = MaskedVector(bytes(32), 1, bytes(32), (b"box",), b"vector", bytes(16))
    return {
        "agreed": one.agreed(other.public, "mask", seed).hex(),
        "derived": secrets.derived(seed, "self mask", bytes(32)).hex(),
        "commitment": secrets.commitment("self mask", seed).hex(),
        "mask": words.tolist(),
        "tag": secrets.tag(tag_key(one, other.public, tagged), b"message").hex(),
        "signature": Identity(seed).sign("survivors", b"message").hex(),
        "box": secrets.boxed(seed, b"content", b"associated", drawn).hex(),
        "shares": [each.hex() for each in secret_shares.split_secret(seed, [1, 2, 5], 3, secrets.seeded(seed))],
        "packed": pack(np.array([1, 2, 524287, 3, 4], np.uint32), 19).hex(),
        "degree_and_threshold_of_66": [plan.degree, plan.threshold],
        "chosen_by_7": graph.chosen(plan, 7, seed),
    }


def transcript() -> dict[str, Any]:
    """A round of four, of whom one vanishes: what each drew, sent and was sent."""
    private = b"\x10" * 32
    identities = [Identity(bytes([0x20 + client]) * 32) for client in range(CLIENTS)]
    public = [each.public for each in identities]
    settings = RoundSettings.from_cohort(
        public,
        dimension=DIMENSION,
        bits=BITS,
        most_reports=100,
        fewest=3,
        server_key=secrets.public_key(private),
        nonce=b"\x11" * 32,
    )
    server = MaskedServer(settings, public, private)
    vectors = [np.arange(DIMENSION, dtype=np.uint32) + 524_000 * client % 524_288 for client in range(CLIENTS)]
    devices = [
        MaskedClient(
            server.invitation,
            identity,
            vector.astype(np.uint32),
            policy=DevicePolicy(fewest=2, corruption=0.0),
            draw=secrets.seeded(bytes([0x30 + client]) * 32),
        )
        for client, (identity, vector) in enumerate(zip(identities, vectors, strict=True))
    ]
    steps, answers = [], {client: device.advertise() for client, device in enumerate(devices)}
    while True:
        for answer in answers.values():
            server.receive(answer)
        sent = server.advance()
        steps.append({"answers": _hex(answers), "sent": _hex(sent)})
        if not sent:
            break
        answers = {client: devices[client].receive(data) for client, data in sent.items()}
        if len(steps) == 2:
            del answers[VANISHES]
    return {
        "server_private": private.hex(),
        "identities": [(bytes([0x20 + client]) * 32).hex() for client in range(CLIENTS)],
        "draws_are_seeded_by": [(bytes([0x30 + client]) * 32).hex() for client in range(CLIENTS)],
        "vectors": [vector.tolist() for vector in vectors],
        "invitation": server.invitation.hex(),
        "round": settings.name.hex(),
        "steps": steps,
        "included": list(server.included),
        "total": server.total.tolist(),
    }


def _hex(messages: dict[int, bytes]) -> dict[str, str]:
    return {str(client): data.hex() for client, data in messages.items()}


def everything() -> dict[str, Any]:
    return {"protocol": "masked", "version": Message.version, "parts": parts(), "round": transcript()}


def test_the_protocol_is_the_one_that_was_fixed() -> None:
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == everything()


def test_the_fixed_round_adds_up() -> None:
    fixed = json.loads(GOLDEN.read_text(encoding="utf-8"))["round"]
    assert fixed["included"] == [0, 1, 3]
    summed = np.sum([fixed["vectors"][client] for client in fixed["included"]], axis=0) % (1 << BITS)
    assert fixed["total"] == summed.tolist()


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(everything(), indent=1) + "\n", encoding="utf-8")
