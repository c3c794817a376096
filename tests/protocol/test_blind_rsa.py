"""Blind signatures: the RFC's numbers, a second implementation of what is signed, and what is refused."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.protocol.blind_rsa import Blinded, Draw, PublicKey, emsa_pss_encode, prepare
from tacit.server.store.blind_signer import Signer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "blind_rsa.json").read_text())


@cache
def golden_signer() -> Signer:
    """Made once: a key of 4096 bits is checked for a quarter of a second."""
    p, q, n, e, d = (int(GOLDEN["key"][name], 16) for name in "pqned")
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), rsa.rsa_crt_iqmp(p, q), rsa.RSAPublicNumbers(e, n)
    )
    return Signer(numbers.private_key())


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer.new()


def drawing(*pieces: bytes) -> Callable[[int], bytes]:
    """Gives these, in order."""
    left = list(pieces)

    def draw(size: int) -> bytes:
        assert len(left[0]) == size
        return left.pop(0)

    return draw


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda vector: vector["name"])
def test_the_vectors_of_rfc_9474(vector: dict[str, str]) -> None:
    known = {name: bytes.fromhex(value) for name, value in vector.items() if name != "name"}
    signer = golden_signer()
    key = signer.public
    if known["msg_prefix"]:  # the variant that is used here; the other prepares nothing
        assert prepare(known["msg"], draw=drawing(known["msg_prefix"])) == known["prepared_msg"]
    blind = pow(int.from_bytes(known["inv"], "big"), -1, key.n).to_bytes(key.size, "big")
    blinded = Blinded.from_prepared(key, known["prepared_msg"], draw=drawing(known["salt"], blind))
    assert blinded.sent == known["blinded_msg"]
    assert signer.sign(blinded.sent) == known["blind_sig"]
    assert blinded.finalize(known["blind_sig"]) == known["sig"]
    assert key.is_signature(known["prepared_msg"], known["sig"])


@settings(max_examples=15)
@given(st.binary(max_size=200), st.binary(min_size=48, max_size=48))
def test_encodings_are_those_of_another_implementation(message: bytes, salt: bytes) -> None:
    """OpenSSL takes the padding, raised to the private exponent, for a signature."""
    key = golden_signer()
    encoded = int.from_bytes(emsa_pss_encode(message, 4095, salt), "big")
    p, q, d = (int(GOLDEN["key"][name], 16) for name in "pqd")
    of_p, of_q = pow(encoded, d % (p - 1), p), pow(encoded, d % (q - 1), q)
    signature = of_q + q * ((of_p - of_q) * pow(q, -1, p) % p)
    assert key.public.is_signature(message, signature.to_bytes(512, "big"))
    assert not key.public.is_signature(message + b"x", signature.to_bytes(512, "big"))


def test_a_signature_is_one_of_pss_and_what_was_signed_does_not_show(signer: Signer) -> None:
    prepared = prepare(b"a token")
    seen = [Blinded.from_prepared(signer.public, prepared) for _ in range(2)]
    assert seen[0].sent != seen[1].sent and all(len(each.sent) == 256 for each in seen)
    signature = seen[0].finalize(signer.sign(seen[0].sent))
    numbers = rsa.RSAPublicNumbers(signer.public.e, signer.public.n).public_key()
    numbers.verify(signature, prepared, padding.PSS(padding.MGF1(hashes.SHA384()), 48), hashes.SHA384())
    with pytest.raises(InputError, match="no signature"):
        seen[1].finalize(signer.sign(seen[0].sent))


def test_the_signer_blinds_its_own_operation(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base of its power is never what came, nor twice the same, and the signature is."""
    bases: list[int] = []
    power = signer._power

    def seen(base: int, draw: Draw) -> int:
        bases.append(base)
        return power(base, draw)

    monkeypatch.setattr(signer, "_power", seen)
    sent = Blinded.from_prepared(signer.public, prepare(b"")).sent
    assert signer.sign(sent) == signer.sign(sent)
    assert len({*bases, int.from_bytes(sent, "big")}) == 3


def test_a_wrong_signature_is_never_given(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with an error modulo one prime alone would tell the primes."""
    monkeypatch.setattr(signer, "_dp", signer._dp + 2)
    with pytest.raises(ArithmeticError, match="wrong"):
        signer.sign(Blinded.from_prepared(signer.public, prepare(b"")).sent)


def test_what_is_no_blinded_message_is_refused(signer: Signer) -> None:
    n, size = signer.public.n, signer.public.size
    for value in (0, n, n + 1, signer._p, n - signer._q):
        with pytest.raises(InputError, match="below the modulus"):
            signer.sign(value.to_bytes(size, "big"))
    for length in (0, size - 1, size + 1):
        with pytest.raises(InputError, match="256 bytes"):
            signer.sign(b"\x01" * length)


def test_what_is_no_signature_is_none(signer: Signer) -> None:
    prepared = prepare(b"")
    blinded = Blinded.from_prepared(signer.public, prepared)
    good = blinded.finalize(signer.sign(blinded.sent))
    for bad in (b"", good[:-1], good + b"\0", bytes(256), b"\xff" * 256, bytes([good[0] ^ 1]) + good[1:]):
        assert not signer.public.is_signature(prepared, bad)
    for bad in (b"", bytes(255), bytes(256), b"\xff" * 256):
        with pytest.raises(InputError, match=r"blind signature|no signature"):
            blinded.finalize(bad)


@pytest.mark.parametrize(
    ("n", "e", "said"),
    [
        (1 << 2047, 65537, "odd modulus"),
        ((1 << 1024) - 1, 65537, "has 1024"),
        ((1 << 2050) - 1, 65537, "has 2050"),
        ((1 << 2048) - 1, 3, "not 3"),
        ((1 << 2048) - 1, 65538, "not 65538"),
    ],
)
def test_keys_that_are_not_used(n: int, e: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        PublicKey(n, e)


def test_keys_in_pem(signer: Signer) -> None:
    again = Signer.from_pem(signer.to_pem())
    assert again.public == signer.public
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for bad in (b"", b"no key", other):
        with pytest.raises(InputError, match="private key"):
            Signer.from_pem(bad)
