"""Keys that anybody has are refused wherever a key is read: as signer's identity, pinned operator, decryptor, box."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import tacit
from tacit.device.device import operator_key_of
from tacit.device.policy import Policy
from tacit.errors import InputError, ProtocolError
from tacit.protocol.messages import AggregationSettings, KeyRotation
from tacit.protocol.signing import is_signature
from tacit.recipe.deployment_section import NamedDecryptor
from tacit.secure_aggregation.secrets import KEY_BYTES, Identity, agreed, check_signature, public_key
from tacit.secure_aggregation.small_order import anybody_agrees, anybody_signs
from tacit.server.http.decryptor_server import operator_of

P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493  # RFC 8032, section 5.1
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def plus(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    k = D * x1 * x2 * y1 * y2 % P
    return (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P


def times(n: int, point: Point) -> Point:
    """By doubling and adding."""
    product = (0, 1)
    while n:
        product, point, n = (plus(product, point) if n & 1 else product), plus(point, point), n >> 1
    return product


def point_at(y: int) -> Point | None:
    """A point of edwards25519 with this coordinate, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    return (x, y) if (x * x - square) % P == 0 else None


def small_points() -> set[Point]:
    """All eight: whatever point is multiplied by the prime order of the group that is used, one of them is left."""
    found: set[Point] = set()
    points = filter(None, map(point_at, range(2, 60)))
    while len(found) < 8:
        left = times(ORDER, next(points))
        found |= {times(k, left) for k in range(8)}
    return found


def written(coordinates: set[int]) -> list[bytes]:
    """Each in every way in which 32 bytes say it: beyond the prime, too, and with either sign."""
    return sorted(
        (value | sign << 255).to_bytes(32, "little")
        for coordinate in coordinates
        for value in (coordinate, coordinate + P)
        if value < 2**255
        for sign in (0, 1)
    )


POINTS = small_points()
SIGNERS = written({y for _, y in POINTS})
BOXES = written({(1 + y) * pow(1 - y, -1, P) % P for _, y in POINTS if y != 1} | {0, P - 1})  # -1: of the twist
IDENTITY_POINT = bytes([1, *bytes(31)])
FORGED = IDENTITY_POINT + bytes(32)  # R is the identity point and S = 0: fits every message under that key
GOOD = Identity(bytes(range(32))).public
BOX = public_key(bytes(range(32)))


def test_they_are_as_many_as_they_are() -> None:
    assert len(POINTS) == 8 and len(SIGNERS) == len(BOXES) == 14 and IDENTITY_POINT in SIGNERS
    assert all(map(anybody_signs, SIGNERS)) and all(map(anybody_agrees, BOXES))


@given(st.binary(min_size=32, max_size=32))
def test_no_other_key_is_one(key: bytes) -> None:
    assert anybody_signs(key) == (key in SIGNERS) and anybody_agrees(key) == (key in BOXES)


def test_without_the_check_anybody_signs_everything() -> None:
    """So that the check says something."""
    Ed25519PublicKey.from_public_bytes(IDENTITY_POINT).verify(FORGED, b"whatever it is")


@pytest.mark.parametrize("key", SIGNERS, ids=bytes.hex)
def test_nobody_is_a_signer_with_one(key: bytes, tmp_path: Path) -> None:
    said = key.hex()
    with pytest.raises(ProtocolError, match="small order, for which anybody could sign"):
        check_signature(key, "vote", b"message", FORGED)
    assert not is_signature("plan", "{}", FORGED.hex(), said)
    with pytest.raises(InputError, match="is no Ed25519 public key"):
        operator_key_of(said)
    with pytest.raises(InputError, match=r"--operator-key .* is no key"):
        operator_of(said)
    with pytest.raises(InputError, match="a point of small order"):
        Policy(decryptors=(GOOD.hex(), said))
    with pytest.raises(ValueError, match="a key of small order"):
        NamedDecryptor.from_line(f"https://a.example {said} {BOX.hex()}")
    (tmp_path / "clients.txt").write_text(f"{GOOD.hex()}\n{said}\n")
    with pytest.raises(InputError, match=r"line 2 of .* is no identity"):
        tacit.decryptor(tmp_path / "new", least_reports=2, clients=tmp_path / "clients.txt")
    for document in ({"keepers": [said]}, {"contributors": [said]}):
        with pytest.raises(ValidationError, match="small order"):
            settings(**document)
    for keys in ({"old": said, "new": GOOD.hex()}, {"old": GOOD.hex(), "new": said}):
        with pytest.raises(ValidationError, match="small order"):
            KeyRotation(**keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", BOXES, ids=bytes.hex)
def test_nobody_agrees_or_is_sent_a_box_with_one(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="no point of Curve25519 that two parties may agree with"):
        agreed(bytes(range(KEY_BYTES)), key, "mask")
    with pytest.raises(ValueError, match="a key of small order"):
        NamedDecryptor.from_line(f"https://a.example {GOOD.hex()} {key.hex()}")
    with pytest.raises(ValidationError, match="small order"):
        settings(boxes=[key.hex()])


def test_a_key_of_somebody_is_read() -> None:
    said = settings(keepers=[GOOD.hex()], boxes=[BOX.hex()], contributors=[GOOD.hex()])
    assert (said.keepers, said.boxes) == ((GOOD.hex(),), (BOX.hex(),))
    assert operator_key_of(GOOD.hex()) == GOOD.hex() and operator_of(GOOD.hex()).public_bytes_raw() == GOOD
    assert NamedDecryptor.from_line(f"https://a.example {GOOD.hex()} {BOX.hex()}").box == BOX.hex()


def settings(**changed: list[str]) -> AggregationSettings:
    given = {
        "kind": "sealed",
        "threshold": 2,
        "keepers": [],
        "boxes": [],
        "corrupt": 0,
        "contributors": [],
        "honest": 1,
    }
    return AggregationSettings.model_validate_json(json.dumps({**given, **changed}))
