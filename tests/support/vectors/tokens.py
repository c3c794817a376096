"""Vectors of tokens: RFC 9474's own, and a batch of a test's key with all of its randomness written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.signed import OURS, line, shown_log

from tacit.device.tokens import checked_in
from tacit.errors import InputError, TaskRefused
from tacit.protocol.blind_rsa import PREFIX_BYTES, SALT_BYTES, Blinded, PublicKey, emsa_pss_encode, prepare
from tacit.protocol.messages import CheckIn, TokenKey, TokenRequest
from tacit.protocol.requests import Answer
from tacit.protocol.token_format import bound_to, message_of, token_key_entry, token_of
from tacit.secure_aggregation.secrets import seeded
from tacit.server.store.blind_signer import Signer

GOLDEN = Path(__file__).parents[2] / "golden" / "blind_rsa.json"
RULE, EPOCH = "#tokens", 2930
P = (  # of a key of 2,048 bits that is a test's, so no secret
    "f241ed2a8322ab7e5f4675609e74637bba3ac285580af339831f7d6d18538935"
    "afe0684c88a2320e7e94ee7500a5929eaf2aff11649f40f402ed57e3215e7c08"
    "95c8362875669ac4728a1a7aac079fc81d3d49b8c7f90cb25ae68af4b7da23b9"
    "f703fd138440f3f9046d295d835f4df44962efca99a3c78c28cf1a38065d1fad"
)
Q = (
    "e0d19581ff0655ede6d87ab962c4809eeb9e72b6458278025f169f4665e16e27"
    "3426ce35dd70471355ce27e7cc0d7594518cef37165d81ab8c35c460eb9dbadb"
    "d126b14a13ee2532fab04d61ee9ce6fa6cf45ac14ca37938fa07b60a5deed910"
    "30a3d4afb3dc2e4ddc78db528fecdfa0764ea77a22afe150ebb4d2137f880dfb"
)


def signer() -> Signer:
    """The private half of the test's key."""
    p, q, e = int(P, 16), int(Q, 16), 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(e, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), rsa.rsa_crt_iqmp(p, q), public)
    return Signer(numbers.private_key())


def token_key(**changed: Any) -> str:
    """The text of its TokenKey."""
    n = signer().public.n
    said: dict[str, Any] = {"epoch": EPOCH, "opens": 0.0, "ends": 604800.0, "batch": 3, "exponent": 65537}
    return TokenKey(**{**said, "modulus": f"{n:0512x}", **changed}).to_json()


def drawing(*pieces: str) -> Callable[[int], bytes]:
    """Gives these bytes, in hexadecimal digits, in their order."""
    left = [bytes.fromhex(each) for each in pieces]

    def draw(size: int) -> bytes:
        assert len(left[0]) == size
        return left.pop(0)

    return draw


def _drawn() -> list[dict[str, str]]:
    draw, found = seeded(b"tacit vectors of tokens".ljust(32)), []
    key = signer().public
    while len(found) < 3:
        blind = draw(key.size)
        if int.from_bytes(blind, "big") < key.n:
            drawn = {"prefix": draw(PREFIX_BYTES).hex(), "salt": draw(SALT_BYTES).hex(), "blind": blind.hex()}
            found.append(drawn)
    return found


def _blinded(said: Case) -> Blinded:
    key = PublicKey(int(said["modulus"], 16), said["exponent"])
    prepared = prepare(bytes.fromhex(said["message"]), draw=drawing(said["prefix"]))
    return Blinded.from_prepared(key, prepared, draw=drawing(said["salt"], said["blind"]))


def _blindings() -> list[Case]:
    """Message, randomness -> what is sent, what comes back, the signature."""
    found, given = [], signer()
    for number, drawn in enumerate(_drawn()):
        said = {"modulus": f"{given.public.n:0512x}", "exponent": 65537, "message": message_of(EPOCH).hex(), **drawn}
        blinded = _blinded(said)
        back = given.sign(blinded.sent)
        signature = blinded.finalize(back)
        encoded = emsa_pss_encode(blinded.prepared, given.public.n.bit_length() - 1, bytes.fromhex(drawn["salt"]))
        made = {"prepared": blinded.prepared.hex(), "encoded": encoded.hex(), "inverse": f"{blinded.inverse:0512x}"}
        came = {"sent": blinded.sent.hex(), "blind_signature": back.hex(), "signature": signature.hex()}
        token = token_of(EPOCH, blinded.prepared, signature)
        found.append(case(f"token {number}", RULE, **said, **made, **came, epoch=EPOCH, token=token))
    golden = json.loads(GOLDEN.read_text(encoding="ascii"))
    known = next(each for each in golden["vectors"] if each["msg_prefix"])
    n = int(golden["key"]["n"], 16)
    blind = pow(int(known["inv"], 16), -1, n)
    found.append(
        case(
            "RFC 9474, appendix A.1: RSABSSA-SHA384-PSS-Randomized, 4,096 bits",
            RULE,
            modulus=golden["key"]["n"],
            exponent=int(golden["key"]["e"], 16),
            message=known["msg"],
            prefix=known["msg_prefix"],
            salt=known["salt"],
            blind=f"{blind:0{len(golden['key']['n'])}x}",
            prepared=known["prepared_msg"],
            encoded=known["encoded_msg"],
            inverse=known["inv"],
            sent=known["blinded_msg"],
            blind_signature=known["blind_sig"],
            signature=known["sig"],
        )
    )
    return found


def check_blinding(each: Case) -> None:
    """That this program computes what a case of the file says."""
    blinded = _blinded(each)
    assert blinded.prepared.hex() == each["prepared"] and blinded.sent.hex() == each["sent"], each["name"]
    assert blinded.inverse == int(each["inverse"], 16), each["name"]
    assert blinded.finalize(bytes.fromhex(each["blind_signature"])).hex() == each["signature"], each["name"]
    if "token" in each:
        assert token_of(each["epoch"], blinded.prepared, bytes.fromhex(each["signature"])) == each["token"]


def _finished(good: Case) -> list[Case]:
    """What a signer gives back, and whether it is used."""
    first, second = good, _blindings()[1]
    flipped = bytearray.fromhex(first["blind_signature"])
    flipped[-1] ^= 1
    n = int(first["modulus"], 16)
    came = {
        "the signature": first["blind_signature"],
        "another message's": second["blind_signature"],
        "a changed byte": flipped.hex(),
        "a byte less": first["blind_signature"][:-2],
        "a byte more": first["blind_signature"] + "00",
        "zeros": "00" * 256,
        "the modulus": f"{n:0512x}",
        "what was sent": first["sent"],
    }
    return [
        case(f"came back: {name}", RULE, of=first["name"], blind_signature=each, accepted=_takes(first, each))
        for name, each in came.items()
    ]


def _takes(of: Case, blind_signature: str) -> bool:
    try:
        _blinded(of).finalize(bytes.fromhex(blind_signature))
    except InputError:
        return False
    return True


def _verified(good: Case) -> list[Case]:
    """Whether a token is one of the key and the epoch."""
    token, other = good["token"], _blindings()[1]["token"]
    flipped = bytearray.fromhex(token)
    flipped[-1] ^= 1
    shown = {
        "a token": token,
        "another": other,
        "of another epoch": f"{EPOCH + 1:08x}" + token[8:],
        "with another's random bytes": token[:8] + other[8:72] + token[72:],
        "a changed byte": flipped.hex(),
    }
    return [case(f"shown: {name}", RULE, token=each, valid=_is_token(each)) for name, each in shown.items()]


def _is_token(token: str) -> bool:
    raw = bytes.fromhex(token)
    prepared = raw[4:36] + message_of(EPOCH)
    return int.from_bytes(raw[:4], "big") == EPOCH and signer().public.is_signature(prepared, raw[36:])


def _keys() -> list[Case]:
    """Which keys a device takes, besides what documents.json has."""
    n = signer().public.n
    numbers: dict[str, tuple[int, int]] = {
        "a key of 2,048 bits": (n, 65537),
        "an even modulus": (n - 1, 65537),
        "a modulus of 2,047 bits": (n >> 1 | 1, 65537),
        "a modulus of 2,040 bits": (n >> 8 | 1, 65537),
        "an even exponent": (n, 65538),
        "an odd exponent": (n, 65539),
    }
    return [
        case(f"a key: {name}", RULE, modulus=f"{each:0512x}", exponent=e, accepted=_is_key(each, e))
        for name, (each, e) in numbers.items()
    ]


def _is_key(n: int, e: int) -> bool:
    try:
        PublicKey(n, e)
    except InputError:
        return False
    return True


def _log_rule() -> list[Case]:
    """Which keys of tokens a device takes by the log: just one of the epoch."""
    text, other = token_key(), token_key(batch=4)
    once, second = token_key_entry(EPOCH, text), token_key_entry(EPOCH, other)
    elsewhere = token_key_entry(EPOCH + 1, token_key(epoch=EPOCH + 1))
    logs = {
        "in the log, alone of its epoch": [line(0), once, elsewhere],
        "not in the log": [line(0), elsewhere],
        "in the log, and another of its epoch": [once, second],
        "in the log twice": [once, once],
        "in the log under another epoch": [token_key_entry(EPOCH + 1, text)],
    }
    found = []
    for name, entries in logs.items():
        said = {"key": {"document": text, "signature": OURS.signature("token-key", text)}, "shown": shown_log(entries)}
        found.append(case(f"key {name}", RULE, **said, accepted=_asks_by(said)))
    return found


class _NewRecord:
    """Of a device that was told nothing so far."""

    operator, log, tokens = OURS.public, (), {}

    def keep_log(self, shown: object) -> None:
        """Of no use here."""

    def keep_tokens(self, kept: object) -> None:
        """The same."""


def _asks_by(said: Case) -> bool:
    """Whether a device that was asked for a token, and got this key and this log, asks for tokens."""
    needed = {"type": "tacit:token", "title": "none", "status": 401, "detail": "none"}
    check_in = CheckIn(version=2, population="es", versions={"train": 1}, token=None)
    record: Any = _NewRecord()
    asks = checked_in(check_in, record, "of-a-test-no-secret-0001", draw=seeded(bytes(32)))
    next(asks)
    try:
        for status, body in ((401, needed), (200, said["key"]), (200, said["shown"])):
            asked = asks.send(Answer(status, {}, json.dumps(body).encode()))
    except TaskRefused:
        return False
    assert asked.path == "/v1/tokens"
    return True


def check_logged(each: Case) -> None:
    """That this program decides a case of the file as it says."""
    assert _asks_by(each) is each["accepted"], each["name"]


def tokens_file() -> dict[str, Any]:
    """The content of `tokens.json`."""
    blindings = _blindings()
    text = token_key()
    request = TokenRequest(
        code="of-a-test-no-secret-0001",
        epoch=EPOCH,
        blinded=tuple(each["sent"] for each in blindings[:3]),
        evidence=None,
    )
    return file_of(
        "`cases`: from `message` (of a token of `epoch`) and the randomness `prefix`, `salt` and `blind` (r, "
        "big-endian) follow `prepared`, `encoded`, `sent` and `inverse` (of r). From the `blind_signature` that came "
        "back follow `signature` and `token`. `finished`: whether what came back for a case is used. `shown`: whether "
        "a server takes a token of this key and epoch. `keys`: which a device takes. `logged`: which by the log.",
        blindings,
        operator=OURS.public,
        epoch=EPOCH,
        key={"document": text, "signature": OURS.signature("token-key", text)},
        request={
            **request.model_dump(mode="json", exclude={"critical"}),
            "rule": "docs/protocol.md#tokens",
            "evidence_is_bound_to": bound_to(request).hex(),
        },
        private={"p": P, "q": Q},
        finished=_finished(blindings[0]),
        shown=_verified(blindings[0]),
        keys=_keys(),
        logged=_log_rule(),
    )


def check_finished(each: Case) -> None:
    """The same."""
    (of,) = (made for made in _blindings() if made["name"] == each["of"])
    assert _takes(of, each["blind_signature"]) is each["accepted"], each["name"]


def check_shown(each: Case) -> None:
    """The same."""
    assert _is_token(each["token"]) is each["valid"], each["name"]


def check_key(each: Case) -> None:
    """The same."""
    assert _is_key(int(each["modulus"], 16), each["exponent"]) is each["accepted"], each["name"]
