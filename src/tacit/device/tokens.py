"""A device's single-use tokens: requested with its code, kept in its record, each shown once.

They are asked for in a turn of its own, in which none is shown: otherwise connection and time would join the first one
to the code.
"""

from collections.abc import Callable
from typing import Any

from tacit.device.record import DeviceRecord
from tacit.errors import InputError, NotTheOperator, ServerError, TaskRefused
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.log_check import logged, read_or_refuse
from tacit.protocol.messages import Assignment, CheckIn, ComeBack, Signed, TokenKey, TokenRequest
from tacit.protocol.requests import Conversation, blind_signatures, check_in, token_key
from tacit.protocol.signing import is_signed
from tacit.protocol.token_format import bound_to, epoch_entries, message_of, public_key, token_key_entry, token_of

NEEDED = "tacit:token"  # the type of the problem: there is work, for who shows a token


def checked_in(
    said: CheckIn,
    record: DeviceRecord,
    code: str | None,
    *,
    draw: Callable[[int], bytes],
    attestation: Attestation = NOTHING,
) -> Conversation[ComeBack | Assignment | None]:
    """The answer to a check-in; a token is shown where it is asked for, and never twice. None where it had none of
    this epoch, and has some now, for another turn.

    code: the enrolment code, None of a device without one. attestation: of this device, shown with the code alone: in a
    check-in it would tell devices apart. Raises: ServerError; TaskRefused for a key of tokens that is
    not everybody's.
    """
    try:
        return (yield from check_in(said))
    except ServerError as error:
        if error.kind != NEEDED:
            raise
    key, kept = yield from _checked((yield from token_key()), record)
    left = kept.get("left")
    if left is None:
        if code is None:
            raise ServerError("the server has tasks for enrolled devices only; give the code of this one, once.")
        left = yield from _batch(key, record, kept, code, draw, attestation)
        record.keep_tokens({**kept, "left": left})
        return None
    if not left:
        raise ServerError(f"all {key.batch} tokens of this epoch were shown; there are new ones when it ends.")
    token = left.pop()
    record.keep_tokens({**kept, "left": left})  # gone before it is shown: a token that is shown twice links the two
    return (yield from check_in(said.model_copy(update={"token": token})))


def _checked(signed: Signed, record: DeviceRecord) -> Conversation[tuple[TokenKey, dict[str, Any]]]:
    """A key and what is kept of its epoch: it is the operator's, in the log, and there the epoch's only one."""
    operator = record.operator
    if operator is None or not is_signed(TokenKey, signed, operator):
        raise NotTheOperator("the key of tokens is not signed by the operator whose key is pinned.")
    key, kept = read_or_refuse(TokenKey, signed.document, "the key of tokens"), record.tokens
    shown = yield from logged(token_key_entry(key.epoch, signed.document), operator=operator, kept=record.log)
    record.keep_log(shown)
    if sum(each.startswith(epoch_entries(key.epoch)) for each in shown.entries) > 1:
        raise TaskRefused(
            f"the operator's log has several keys of tokens for epoch {key.epoch}: one of its own would tell this "
            "device from others. It shows no token."
        )
    if kept.get("key") == signed.document:
        return key, kept
    if kept and kept["epoch"] >= key.epoch:
        raise TaskRefused(
            f"epoch {key.epoch} is over, or has another key of tokens than it had. This device shows no token."
        )
    kept = {"key": signed.document, "epoch": key.epoch}
    record.keep_tokens(kept)
    return key, kept


def _batch(
    key: TokenKey,
    record: DeviceRecord,
    kept: dict[str, Any],
    code: str,
    draw: Callable[[int], bytes],
    attestation: Attestation,
) -> Conversation[list[str]]:
    """The tokens of an epoch. What was asked for is kept before it is asked for, to ask for the same again."""
    from tacit.protocol.blind_rsa import Blinded, prepare  # loaded where devices enrol

    try:
        public = public_key(key)
    except InputError as error:
        raise TaskRefused(f"by the operator's key of tokens nobody can ask: {error}") from error
    try:
        if "asked" not in kept:
            made = [
                Blinded.from_prepared(public, prepare(message_of(key.epoch), draw=draw), draw=draw)
                for _ in range(key.batch)
            ]
            requested = [[each.prepared.hex(), each.sent.hex(), f"{each.inverse:x}"] for each in made]
            kept["asked"] = requested
            record.keep_tokens(kept)
        blinded = [
            Blinded(public, bytes.fromhex(prepared), bytes.fromhex(sent), int(inverse, 16))
            for prepared, sent, inverse in kept["asked"]
        ]
        blind = tuple(each.sent.hex() for each in blinded)
        request = TokenRequest(code=code, epoch=key.epoch, blinded=blind, evidence=None)
        evidence = attestation.evidence(bound_to(request))
        shown = request.model_copy(update={"evidence": None if evidence is None else evidence.hex()})
        answer = yield from blind_signatures(shown)
        if answer.epoch != key.epoch or len(answer.signatures) != len(blinded):
            raise ServerError("other tokens came than were asked for; asking again later.")
        pairs = zip(blinded, answer.signatures, strict=True)
        left = [token_of(key.epoch, each.prepared, each.finalize(bytes.fromhex(signed))) for each, signed in pairs]
    except InputError as error:
        raise ServerError(f"the server's tokens are none: {error}") from None
    del kept["asked"]
    return left
