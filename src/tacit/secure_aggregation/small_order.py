"""Public keys that are nobody's: points of small order, with which anybody signs or agrees.

All multiples of such a point are at most eight points. For one eighth of all messages, or for all, a signature that
needs no secret fits an Ed25519 key of small order, the identity point say. With an X25519 key of small order the secret
of two is zero (RFC 7748, section 6.1). A key is 32 bytes, little-endian; their highest bit is not of the coordinate,
which may be written beyond the prime.
"""

_PRIME = 2**255 - 19
_COORDINATE = 2**255 - 1
# Of points of order 8: y on edwards25519, up to its sign, and u = (1 + y) / (1 - y) on curve25519 for both signs.
_Y = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_U = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_EDWARDS = {0, 1, _Y, _PRIME - _Y, _PRIME - 1, _PRIME, _PRIME + 1}
_MONTGOMERY = {0, 1, *_U, _PRIME - 1, _PRIME, _PRIME + 1}


def anybody_signs(key: bytes) -> bool:
    """Whether an Ed25519 public key is of small order, however it is written."""
    return int.from_bytes(key, "little") & _COORDINATE in _EDWARDS


def anybody_agrees(key: bytes) -> bool:
    """Whether an X25519 public key is of small order, however it is written."""
    return int.from_bytes(key, "little") & _COORDINATE in _MONTGOMERY
