"""The client of a round of one message: its vector under a key of its own, and the key in shares for the decryptors."""

import hashlib
import os
from typing import NamedTuple

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
from tacit.secure_aggregation.one_message.report_check import (
    CODE_TESTS,
    TESTS,
    Challenge,
    as_row,
    check_masks,
    check_range,
    check_values,
    switched,
    within,
)
from tacit.secure_aggregation.one_message.ring import Integers
from tacit.secure_aggregation.one_message.slots import Vector
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import KEY_BYTES, Draw, Identity, agreed, public_key, sealed, seeded, tag
from tacit.secure_aggregation.shares import PRIME, Elements, split, uniform


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
    made = _ciphertexts(settings, vector, key, private)
    ephemeral = private(KEY_BYTES)
    tagged = tag(agreed(ephemeral, settings.server, "report tag", settings.name, identity.public), made.body)
    body_digest, shares = hashlib.sha256(made.body).digest(), _shares(settings, key, private)
    while True:  # until masks hide what they are added to: 2.7 times on average, whatever key and vector are
        boxes, masks = _boxes(settings, identity.public, shares, private)
        digests = report_digests(boxes, public_key(ephemeral), tagged, body_digest)
        parts = _parts(settings, settings.challenge(identity.public, digests), made, shares, masks)
        if parts is not None:
            break
    return OneMessageReport(
        settings.name,
        identity.public,
        boxes,
        public_key(ephemeral),
        tagged,
        body_digest,
        parts,
        identity.sign("report", signed_report(settings.name, identity.public, digests, parts)),
        made.body,
    )


def _shares(settings: OneMessageRound, key: Integers, draw: Draw) -> Elements:
    """(decryptors, columns): each one's share of the key, `packed` numbers in each element, column by column."""
    secrets = np.zeros((settings.packed, settings.columns), np.uint32)
    secrets.ravel()[: key.size] = key % PRIME
    return split(secrets, settings.points, settings.corrupt + 1, draw, packed=settings.packed)


def _boxes(
    settings: OneMessageRound, client: bytes, shares: Elements, draw: Draw
) -> tuple[tuple[bytes, ...], Elements]:
    """A box for each decryptor, and the masks (decryptors, part_elements) that are in them behind the shares.

    Masks are values of random polynomials, as shares are; but those of a test add up to its mask as the key's shares
    do: number r + 1 that the polynomial at place r of the test packs, for all r.
    """
    packed = settings.packed
    numbers = uniform(packed * settings.part_elements, draw).reshape(packed, settings.part_elements)
    of_tests = numbers[:, CODE_TESTS:].reshape(packed, TESTS, packed)
    rest = sum(of_tests[place, :, place].astype(np.int64) for place in range(1, packed))
    whole = check_masks(check_range(settings.slots.parameters).mask, draw)
    of_tests[0, :, 0] = (whole.astype(np.int64) - rest) % PRIME
    numbers[:, CODE_TESTS:] = of_tests.reshape(packed, -1)
    masks = split(numbers, settings.points, settings.corrupt + 1, draw, packed=packed)
    boxes = tuple(
        sealed(public, content.astype("<u4").tobytes(), box_context(settings.name, client, index), draw)
        for index, (public, content) in enumerate(
            zip(settings.boxes, np.concatenate([shares, masks], axis=1), strict=True)
        )
    )
    return boxes, masks


class _Ciphertexts(NamedTuple):
    """Ciphertexts: their bytes, and, scaled to the field of the shares, they and the public polynomials."""

    body: bytes
    scaled: Elements  # (polynomials, N)
    rows: Elements  # `public_rows`


def _parts(
    settings: OneMessageRound, challenge: Challenge, made: _Ciphertexts, shares: Elements, masks: Elements
) -> bytes | None:
    """What the report says of its key; None where it would say more than that it fits."""
    checking = settings.quorum
    found = settings.parts(challenge, made.rows, shares[:checking], masks[:checking])
    values = check_values(challenge, made.scaled, settings.key_in_tests(found))
    most = check_range(settings.slots.parameters).most
    return found.astype("<u4").tobytes() if within(values, most) else None


def _ciphertexts(settings: OneMessageRound, vector: Vector, key: Integers, draw: Draw) -> _Ciphertexts:
    """a_j s + t e_j + m_j for each polynomial j, transformed and packed; one polynomial in memory at a time."""
    slots, parameters = settings.slots, settings.slots.parameters
    ring = parameters.ring
    prepared = ring.prepared(ring.transform(ring.reduced(key)))
    bodies, scaled, rows = [], [], []
    for index in range(slots.polynomials):
        errors = sample(parameters.degree, draw)
        total = ring.scaled(ring.reduced(errors), 1 << parameters.plain_bits)
        ring.add(total, ring.reduced_limbs(slots.plain(vector, index)))
        public = public_polynomial(parameters, settings.seed, index)
        ring.add_product(ring.transform(total), public, prepared)
        bodies.append(pack(ring, total))
        scaled.append(switched(ring, total))
        rows.append(as_row(switched(ring, public)))
    return _Ciphertexts(b"".join(bodies), np.stack(scaled), np.stack(rows))
