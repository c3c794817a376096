"""Wycheproof's cases through the functions of ours that use each primitive.

What these add to a primitive, a label or a nonce of zeros, is taken away: a case says what is signed, and with which
nonce. github.com/C2SP/wycheproof, testvectors_v1.
"""

import hmac
from collections.abc import Callable
from typing import Any

import pytest

from tacit.errors import ProtocolError
from tacit.protocol import signing
from tacit.protocol.blind_rsa import PublicKey
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import masks
from tacit.secure_aggregation.small_order import anybody_agrees

Cases = Callable[..., list[dict[str, Any]]]


def of(case: dict[str, Any], *names: str) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(case[name]) for name in names)


def refused(made: Callable[[], Any]) -> bool:
    try:
        made()
    except ProtocolError:
        return True
    return False


def wrong(cases: list[dict[str, Any]], holds: Callable[[dict[str, Any]], bool]) -> list[str]:
    """Of the cases, those that came out otherwise than they say: for people."""
    return [f"{case['tcId']} {case['comment']} ({case['result']})" for case in cases if not holds(case)]


def test_x25519(wycheproof: Cases) -> None:
    """A shared secret of zeros is refused; any other is that of the case."""

    def holds(case: dict[str, Any]) -> bool:
        private, public, shared = of(case, "private", "public", "shared")
        if not any(shared):
            return anybody_agrees(public) and refused(lambda: secrets.agreed(private, public, "case"))
        wanted = secrets.derived(shared, "case", *sorted((secrets.public_key(private), public)))
        return not anybody_agrees(public) and secrets.agreed(private, public, "case") == wanted

    assert not wrong(wycheproof("x25519"), holds)


def test_ed25519(wycheproof: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_labelled", lambda purpose, message: message)
    monkeypatch.setattr(signing, "signed_bytes", lambda purpose, message: message)

    def holds(case: dict[str, Any]) -> bool:
        key = bytes.fromhex(case["publicKey"]["pk"])
        message, signature = of(case, "msg", "sig")
        valid = case["result"] == "valid"
        said = signing.is_signature("plan", message, signature.hex(), key.hex())  # type: ignore[arg-type]
        return said == valid and refused(lambda: secrets.check_signature(key, "", message, signature)) != valid

    assert not wrong(wycheproof("ed25519"), holds)


def test_chacha20_poly1305(wycheproof: Cases) -> None:
    """Boxes: made as the case says, and opened where it is valid."""

    def holds(case: dict[str, Any]) -> bool:
        key, nonce, associated, message, content, tag = of(case, "key", "iv", "aad", "msg", "ct", "tag")
        box = nonce + content + tag
        if case["result"] != "valid":
            return refused(lambda: secrets.unboxed(key, box, associated))
        made = secrets.boxed(key, message, associated, lambda size: nonce)
        return made == box and secrets.unboxed(key, box, associated) == message

    assert not wrong(wycheproof("chacha20_poly1305", ivSize=96, tagSize=128), holds)


def test_gmac(wycheproof: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags between two parties."""

    def holds(case: dict[str, Any]) -> bool:
        key, nonce, message, tag = of(case, "key", "iv", "msg", "tag")
        monkeypatch.setattr(secrets, "_NO_NONCE", nonce)
        if case["result"] != "valid":
            return refused(lambda: secrets.check_tag(key, message, tag))
        return secrets.tag(key, message) == tag and not refused(lambda: secrets.check_tag(key, message, tag))

    assert not wrong(wycheproof("aes_gmac", keySize=256, ivSize=96, tagSize=128), holds)


def test_gcm(wycheproof: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream that masks are made of, which has no tag: each case that is right in all but its tag, too."""

    def holds(case: dict[str, Any]) -> bool:
        key, nonce, message, content = of(case, "key", "iv", "msg", "ct")
        monkeypatch.setattr(masks, "_NO_NONCE", nonce)
        return masks.after_head(key).update(message) == content or case["result"] == "invalid"

    assert not wrong(wycheproof("aes_gcm", keySize=256, ivSize=96), holds)


def hkdf(secret: bytes, salt: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869, sections 2.2 and 2.3, word by word."""
    extracted = hmac.digest(salt or bytes(32), secret, "sha256")
    block, made = b"", b""
    while len(made) < size:
        block = hmac.digest(extracted, block + info + bytes([len(made) // 32 + 1]), "sha256")
        made += block
    return made[:size]


def test_hkdf(wycheproof: Cases) -> None:
    """The slow twin gives what the cases say, and `derived` what the twin gives for the same secret."""

    def holds(case: dict[str, Any]) -> bool:
        secret, salt, info, wanted = of(case, "ikm", "salt", "info", "okm")
        if case["result"] != "valid":
            return case["size"] > 255 * 32
        parts = (b"tacit secure aggregation 1 case", info)
        framed = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        same = secrets.derived(secret, "case", info) == hkdf(secret, b"", framed, 32)
        return same and hkdf(secret, salt, info, case["size"]) == wanted

    assert not wrong(wycheproof("hkdf_sha256"), holds)


@pytest.mark.parametrize("bits", [2048, 4096])
def test_signatures_of_tokens(bits: int, wycheproof: Cases) -> None:
    """RSASSA-PSS with SHA-384 and a salt of 48 bytes, which a blind signature becomes (RFC 9474)."""

    def holds(case: dict[str, Any]) -> bool:
        key = PublicKey(int(case["publicKey"]["modulus"], 16), int(case["publicKey"]["publicExponent"], 16))
        return key.is_signature(*of(case, "msg", "sig")) == (case["result"] == "valid")

    assert not wrong(wycheproof(f"rsa_pss_{bits}_sha384_mgf1_48"), holds)
