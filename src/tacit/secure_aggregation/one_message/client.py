"""The client of a round of one message: its vector under a key of its own, and the key in shares for the decryptors."""

import os

import numpy as np

from tacit.secure_aggregation.discrete_gaussian import sample
from tacit.secure_aggregation.one_message.lattice import public_polynomial
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    box_context,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.one_message.ring import Integers
from tacit.secure_aggregation.one_message.slots import Vector
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import KEY_BYTES, Draw, Identity, agreed, public_key, sealed, seeded, tag
from tacit.secure_aggregation.shares import PRIME, split


def one_message_report(
    settings: OneMessageRound, identity: Identity, vector: Vector, *, draw: Draw = os.urandom
) -> OneMessageReport:
    """The one message of a client: its vector (dimension,) uint32 up to `largest`, for this round alone.

    A contributor's vector is its noise + margin, up to 2 margin (`noise.contribution`). Whoever calls it has checked
    the settings (`OneMessageRound.check`). draw: where 32 random bytes come from, of which all of its randomness
    follows; another than the operating system's only in simulations that say so. Raises: InputError for a vector that
    this round does not sum.
    """
    private = seeded(draw(KEY_BYTES))
    settings.slots.check(vector, noise=identity.public in settings.contributors)
    key = sample(settings.slots.parameters.degree, private)
    boxes = tuple(
        sealed(public, share, box_context(settings.name, identity.public, index), private)
        for index, (public, share) in enumerate(zip(settings.boxes, _shares(settings, key, private), strict=True))
    )
    body = _ciphertexts(settings, vector, key, private)
    ephemeral = private(KEY_BYTES)
    tagged = tag(agreed(ephemeral, settings.server, "report tag", settings.name, identity.public), body)
    digests = report_digests(boxes, public_key(ephemeral), tagged)
    signature = identity.sign("report", signed_report(settings.name, identity.public, digests))
    return OneMessageReport(settings.name, identity.public, boxes, public_key(ephemeral), tagged, signature, body)


def _shares(settings: OneMessageRound, key: Integers, draw: Draw) -> list[bytes]:
    """For each decryptor in order: its share of the key, `packed` numbers in each element, column by column."""
    secrets = np.zeros((settings.packed, settings.columns), np.uint32)
    secrets.ravel()[: key.size] = key % PRIME
    points = range(1, len(settings.decryptors) + 1)
    parts = split(secrets, points, settings.corrupt + 1, draw, packed=settings.packed)
    return [part.astype("<u4").tobytes() for part in parts]


def _ciphertexts(settings: OneMessageRound, vector: Vector, key: Integers, draw: Draw) -> bytes:
    """a_j s + t e_j + m_j for each polynomial j, transformed and packed; one polynomial in memory at a time."""
    slots, parameters = settings.slots, settings.slots.parameters
    ring = parameters.ring
    prepared = ring.prepared(ring.transform(ring.reduced(key)))
    parts = []
    for index in range(slots.polynomials):
        errors = sample(parameters.degree, draw)
        total = ring.scaled(ring.reduced(errors), 1 << parameters.plain_bits)
        ring.add(total, ring.reduced_limbs(slots.plain(vector, index)))
        ring.add_product(ring.transform(total), public_polynomial(parameters, settings.seed, index), prepared)
        parts.append(pack(ring, total))
    return b"".join(parts)
