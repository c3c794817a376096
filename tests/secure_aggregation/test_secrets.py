"""The cryptography is that of its standards, and each use of it is bound to what it is for."""

import hashlib
import hmac
import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked.masks import BLOCK, HEAD, STREAMS, add_masks, after_head
from tacit.secure_aggregation.secrets import Identity

DRAW = secrets.seeded(bytes(32))
ALICE, BOB, CAROL = (bytes([number]) * 32 for number in (1, 2, 3))
A, B, C = (secrets.public_key(private) for private in (ALICE, BOB, CAROL))
# NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): key, first counter, what the first block is encrypted with.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")


def slow_mask(seed: bytes, dimension: int) -> list[int]:
    """Block by block, in Python's integers: AES-256 of the big-endian block number, as four little-endian words."""
    cipher = Cipher(AES256(seed), ECB()).encryptor()
    blocks = b"".join(cipher.update(block.to_bytes(16, "big")) for block in range(-(-dimension // 4)))
    return [int.from_bytes(blocks[4 * word : 4 * word + 4], "little") for word in range(dimension)]


@given(
    seed=st.binary(min_size=32, max_size=32),
    dimension=st.sampled_from([1, 3, 4, 5, 7, 8, 9, 100, *(BLOCK + more for more in (0, 1, 7, 8, 9)), 2 * BLOCK + 7]),
    subtract=st.booleans(),
)
def test_masks_are_added_block_by_block_as_in_one_piece(seed: bytes, dimension: int, subtract: bool) -> None:
    before = np.random.default_rng(dimension).integers(0, 2**32, dimension, np.uint32)
    total = before.copy()
    add_masks(total, [(seed, subtract)])
    found = (before - total if subtract else total - before).tolist()
    near = dimension if dimension <= 200 else 20
    slow = slow_mask(seed, dimension)
    assert found[:near] == slow[:near] and found[-20:] == slow[-20:]
    edge = slice(BLOCK - 3, BLOCK + HEAD + 3)  # of blocks, with and without the head
    assert found[edge] == slow[edge]


def test_both_ways_to_make_a_mask_make_the_same() -> None:
    """SP 800-38D, 7.1: with a nonce of 12 bytes, Galois counter mode encrypts from counter 2 on."""
    size = 4 * BLOCK
    made = secrets.counter_mode(NIST_KEY).update(bytes(4 * HEAD + size))
    assert after_head(NIST_KEY).update(bytes(size)) == made[4 * HEAD :]


def test_a_mask_added_and_subtracted_is_gone() -> None:
    total = np.arange(1000, dtype=np.uint32)
    add_masks(total, [(ALICE, False)])
    assert not np.array_equal(total, np.arange(1000))
    add_masks(total, [(ALICE, True)])
    assert np.array_equal(total, np.arange(1000))


@given(seed=st.integers(0, 2**32), count=st.integers(0, 2 * STREAMS + 1))
def test_many_masks_at_once_are_one_after_another(seed: int, count: int) -> None:
    chance = random.Random(seed)
    masks = [(chance.randbytes(32), chance.random() < 0.5) for _ in range(count)]
    total = np.zeros(10, np.uint32)
    add_masks(total, masks)
    slow = [(slow_mask(seed, 10), -1 if subtract else 1) for seed, subtract in masks]
    assert total.tolist() == [sum(sign * words[place] for words, sign in slow) % 2**32 for place in range(10)]


def test_the_cipher_is_aes_256() -> None:
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    block = Cipher(AES256(NIST_KEY), ECB()).encryptor().update(counter)
    assert block.hex() == "0bdf7df1591716335e9a8b15c860c502"  # SP 800-38A, F.5.5: Output Block #1
    words = np.zeros(4, np.uint32)
    add_masks(words, [(NIST_KEY, False)])
    assert words.tobytes() == Cipher(AES256(NIST_KEY), ECB()).encryptor().update(bytes(16))


def test_the_key_agreement_is_that_of_its_standard() -> None:
    """RFC 7748, section 6.1, and HKDF as RFC 5869 defines it: extract with zeros for a salt, expand once."""
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    public = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    bob_public = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    shared = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
    assert secrets.public_key(alice) == public
    parts = (b"tacit secure aggregation 1 mask", public, bob_public, b"round")
    info = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    extracted = hmac.digest(bytes(32), shared, "sha256")
    assert secrets.agreed(alice, bob_public, "mask", b"round") == hmac.digest(extracted, info + b"\x01", "sha256")


def test_both_parties_agree_and_nobody_else() -> None:
    key = secrets.agreed(ALICE, B, "mask", b"round")
    assert key == secrets.agreed(BOB, A, "mask", b"round") and len(key) == 32
    others = {
        secrets.agreed(ALICE, B, "mask", b"another round"),
        secrets.agreed(ALICE, B, "box", b"round"),
        secrets.agreed(ALICE, C, "mask", b"round"),
        secrets.agreed(ALICE, B, "mask", b"rou", b"nd"),
        secrets.agreed(ALICE, B, "mask"),
    }
    assert len(others | {key}) == 6


@pytest.mark.parametrize("weak", [bytes(32), (1).to_bytes(32, "little"), b"short"])
def test_public_keys_with_which_anybody_would_agree_are_refused(weak: bytes) -> None:
    with pytest.raises(ProtocolError, match="Curve25519"):
        secrets.agreed(ALICE, weak, "mask")


@pytest.mark.parametrize("sealed", [False, True])
def test_boxes_open_for_whom_they_are_made(sealed: bool) -> None:
    def made(to: bytes = B, associated: bytes = b"round") -> bytes:
        if sealed:
            return secrets.sealed(to, b"share", associated, DRAW)
        return secrets.boxed(to, b"share", associated, DRAW)

    def opened(box: bytes, associated: bytes = b"round", private: bytes = BOB) -> bytes:
        if sealed:
            return secrets.unsealed(private, box, associated)
        return secrets.unboxed(secrets.public_key(private), box, associated)

    box = made()
    assert opened(box) == b"share" and box != made()
    assert len(box) == len(b"share") + (secrets.SEALED_BYTES if sealed else secrets.BOX_BYTES)
    for place in range(len(box)):
        changed = bytearray(box)
        changed[place] ^= 1
        with pytest.raises(ProtocolError):
            opened(bytes(changed))
    for wrong in (box[:-1], box[:5], b"", box + b"\0", made(to=C), made(associated=b"another")):
        with pytest.raises(ProtocolError):
            opened(wrong)


def test_tags_and_signatures_are_of_one_message() -> None:
    tag = secrets.tag(ALICE, b"message")
    secrets.check_tag(ALICE, b"message", tag)
    for key, message, given_tag in [(BOB, b"message", tag), (ALICE, b"messagf", tag), (ALICE, b"message", tag[:-1])]:
        with pytest.raises(ProtocolError, match="tag"):
            secrets.check_tag(key, message, given_tag)
    signer = Identity(ALICE)
    signature = signer.sign("survivors", b"set")
    secrets.check_signature(signer.public, "survivors", b"set", signature)
    assert len(signature) == secrets.SIGNATURE_BYTES
    for public, purpose, message in [
        (Identity(BOB).public, "survivors", b"set"),
        (signer.public, "keys", b"set"),
        (signer.public, "survivors", b"sets"),
        (b"no key", "survivors", b"set"),
    ]:
        with pytest.raises(ProtocolError, match="signature"):
            secrets.check_signature(public, purpose, message, signature)
    with pytest.raises(InputError, match="32 random bytes"):
        Identity(b"short")


def test_a_commitment_is_of_one_purpose() -> None:
    assert secrets.commitment("self", ALICE) == hashlib.sha256(b"tacit secure aggregation 1 self\0" + ALICE).digest()
    assert secrets.commitment("self", ALICE) != secrets.commitment("other", ALICE)


def test_seeded_bytes_follow_from_their_seed_and_go_on() -> None:
    first, second = secrets.seeded(ALICE), secrets.seeded(ALICE)
    assert first(10) + first(22) == second(32) and first(32) != secrets.seeded(ALICE)(32)
    assert secrets.seeded(BOB)(32) != secrets.seeded(ALICE)(32)
