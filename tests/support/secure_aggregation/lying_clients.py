"""Clients that know the protocol and report what does not fit together."""

import dataclasses
import hashlib
import os
from collections.abc import Callable

import numpy as np

from tacit.secure_aggregation.discrete_gaussian import sample
from tacit.secure_aggregation.one_message import client
from tacit.secure_aggregation.one_message.lattice import public_polynomial
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.one_message.report_check import (
    CODE_TESTS,
    as_row,
    check_range,
    check_values,
    switched,
    within,
)
from tacit.secure_aggregation.one_message.ring import Integers
from tacit.secure_aggregation.residues import pack
from tacit.secure_aggregation.secrets import Identity, Words, agreed, public_key, tag
from tacit.secure_aggregation.shares import PRIME, Elements, lagrange, uniform


@dataclasses.dataclass
class Lie:
    """What a client reports: ciphertexts, shares for all decryptors, and the masks that it puts into boxes."""

    made: client._Ciphertexts
    shares: Elements
    boxes_of: Identity | None = None  # whose boxes they are, where they are another's
    meddle: Callable[[Elements], None] = lambda masks: None  # with the masks, after the boxes are closed
    broken: int | None = None  # a decryptor whose box is changed


def honest(settings: OneMessageRound, vector: Words) -> Lie:
    key = sample(settings.slots.parameters.degree, os.urandom)
    return Lie(client._ciphertexts(settings, vector, key, os.urandom), client._shares(settings, key, os.urandom))


def random_shares(settings: OneMessageRound, vector: Words) -> Lie:
    lie = honest(settings, vector)
    lie.shares = uniform(lie.shares.size, os.urandom).reshape(lie.shares.shape)
    return lie


def shares_of_another_key(settings: OneMessageRound, vector: Words) -> Lie:
    lie = honest(settings, vector)
    lie.shares = client._shares(settings, sample(settings.slots.parameters.degree, os.urandom), os.urandom)
    return lie


def shares_of_almost_the_key(settings: OneMessageRound, vector: Words) -> Lie:
    """One number of the key is another: what that spoils is every coefficient of every ciphertext."""
    key = sample(settings.slots.parameters.degree, os.urandom)
    made = client._ciphertexts(settings, vector, key, os.urandom)
    key[7] += 1 << 24
    return Lie(made, client._shares(settings, key, os.urandom))


def one_share_of_another_key(settings: OneMessageRound, vector: Words) -> Lie:
    """That of the last decryptor, which no quorum of the others needs."""
    lie = honest(settings, vector)
    lie.shares[-1] = shares_of_another_key(settings, vector).shares[-1]
    return lie


def random_ciphertexts(settings: OneMessageRound, vector: Words, *, polynomials: int | None = None) -> Lie:
    lie, slots = honest(settings, vector), settings.slots
    ring, parts = slots.parameters.ring, []
    size = settings.body_bytes // slots.polynomials
    scaled = lie.made.scaled.copy()
    for index in range(slots.polynomials):
        parts.append(lie.made.body[index * size : (index + 1) * size])
        if polynomials is None or index < polynomials:
            garbage = public_polynomial(slots.parameters, os.urandom(32), index)
            parts[-1] = pack(ring, garbage)
            scaled[index] = switched(ring, garbage)
    lie.made = client._Ciphertexts(b"".join(parts), scaled, lie.made.rows)
    return lie


def one_random_ciphertext(settings: OneMessageRound, vector: Words) -> Lie:
    return random_ciphertexts(settings, vector, polynomials=1)


def fitting_modulo_p(settings: OneMessageRound, key: Integers) -> Lie:
    """Ciphertexts that fit this key of any numbers modulo p, and modulo q none: the sum would be garbage."""
    slots = settings.slots
    ring, degree = slots.parameters.ring, slots.parameters.degree
    parts, scaled, rows = [], [], []
    for index in range(slots.polynomials):
        row = as_row(switched(ring, public_polynomial(slots.parameters, settings.seed, index)))
        products = [int((row[degree - 1 - i : 2 * degree - 1 - i] * key % PRIME).sum()) % PRIME for i in range(degree)]
        wanted = [each * ring.modulus // PRIME for each in products]
        residues = np.stack([np.array([each % prime for each in wanted], np.uint64) for prime in ring.primes])
        total = ring.transform(residues)
        parts.append(pack(ring, total))
        scaled.append(switched(ring, total))
        rows.append(row)
    return Lie(
        client._Ciphertexts(b"".join(parts), np.stack(scaled), np.stack(rows)),
        client._shares(settings, key, os.urandom),
    )


def a_key_that_is_not_small(settings: OneMessageRound, vector: Words, *, number: int = PRIME // 3) -> Lie:
    key = np.zeros(settings.slots.parameters.degree, np.int64)
    key[3] = number
    return fitting_modulo_p(settings, key)


def a_key_that_a_factor_hides(settings: OneMessageRound, vector: Words) -> Lie:
    """Its large number is small, times 64 or 32 and modulo p."""
    return a_key_that_is_not_small(settings, vector, number=PRIME // 32)


def a_long_key_of_small_numbers(settings: OneMessageRound, vector: Words) -> Lie:
    """No number alone would be noticed; together they are longer than a key may be."""
    signs = np.random.default_rng().choice([-1, 1], settings.slots.parameters.degree)
    return fitting_modulo_p(settings, (signs << 20).astype(np.int64))


def boxes_of_another(settings: OneMessageRound, vector: Words) -> Lie:
    lie = honest(settings, vector)
    lie.boxes_of = Identity(os.urandom(32))
    return lie


def another_mask(settings: OneMessageRound, vector: Words) -> Lie:
    """Of one test, in the first decryptor's box."""

    def meddle(masks: Elements) -> None:
        masks[0, CODE_TESTS] = (int(masks[0, CODE_TESTS]) + 1) % PRIME

    lie = honest(settings, vector)
    lie.meddle = meddle
    return lie


def a_broken_box(settings: OneMessageRound, vector: Words) -> Lie:
    lie = honest(settings, vector)
    lie.broken = 1
    return lie


LIES = (
    random_shares,
    shares_of_another_key,
    shares_of_almost_the_key,
    one_share_of_another_key,
    random_ciphertexts,
    one_random_ciphertext,
    a_key_that_is_not_small,
    a_key_that_a_factor_hides,
    a_long_key_of_small_numbers,
    boxes_of_another,
    another_mask,
    a_broken_box,
)


def report_of(settings: OneMessageRound, identity: Identity, lie: Lie, *, passes_server: bool) -> OneMessageReport:
    """Signed and whole. passes_server: what it says of its key fits its ciphertexts, and else what is in its boxes."""
    made, ephemeral = lie.made, os.urandom(32)
    tagged = tag(agreed(ephemeral, settings.server, "report tag", settings.name, identity.public), made.body)
    body_digest = hashlib.sha256(made.body).digest()
    of = lie.boxes_of or identity
    while True:
        boxes, masks = client._boxes(settings, of.public, lie.shares, os.urandom)
        if lie.broken is not None:
            at = lie.broken
            boxes = (*boxes[:at], boxes[at][:-1] + bytes([boxes[at][-1] ^ 1]), *boxes[at + 1 :])
        lie.meddle(masks)
        digests = report_digests(boxes, public_key(ephemeral), tagged, body_digest)
        challenge, checking = settings.challenge(identity.public, digests), settings.quorum
        parts = settings.parts(challenge, made.rows, lie.shares[:checking], masks[:checking])
        values = check_values(challenge, made.scaled, settings.key_in_tests(parts))
        known = check_range(settings.slots.parameters)
        if not passes_server or within(values, known.most):
            break
        if np.abs(values).max() > known.mask + known.shift:  # by luck never: it says another number
            weight = int(lagrange(settings.points[:checking], [PRIME - 1])[0, 0])
            of_tests = parts[0, CODE_TESTS :: settings.packed]
            of_tests[:] = (of_tests + values * pow(weight, -1, PRIME)) % PRIME
            break
    data = parts.astype("<u4").tobytes()
    signature = identity.sign("report", signed_report(settings.name, identity.public, digests, data))
    return OneMessageReport(
        settings.name, identity.public, boxes, public_key(ephemeral), tagged, body_digest, data, signature, made.body
    )
