"""Single-use tokens of a light device: a batch an epoch for its enrolment code, one of them shown for each task."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import ValidationError
from tests.swarm.connection import Answer, Connection

from tacit.errors import InputError, ServerError
from tacit.protocol.blind_rsa import Blinded, prepare
from tacit.protocol.signing import is_signed
from tacit.protocol.token_format import message_of, public_key, token_of
from tacit.protocol.token_messages import BlindSignatures, SignedTokenKey, TokenKey, TokenRequest

if TYPE_CHECKING:
    from tests.swarm.light_device import LightDevice


class Wallet:
    """Of one device."""

    def __init__(self, code: str, operator: str, draw: Callable[[int], bytes]) -> None:
        """operator: whose key of an epoch is believed; draw: so many random bytes."""
        self._code, self._operator, self._draw = code, operator, draw
        self._epoch, self._left = -1, list[str]()

    async def token(self, device: "LightDevice", connection: Connection) -> str:
        """One that it never showed. Raises: ServerError where there is none to be had."""
        try:
            signed = SignedTokenKey.model_validate_json(_good(await device.ask(connection, "token key", *KEY)).body)
            if not is_signed(signed, self._operator):
                raise ServerError("the key of tokens is not the operator's.")
            if signed.key.epoch != self._epoch:
                self._left, self._epoch = await self._batch(signed.key, device, connection), signed.key.epoch
        except (ValidationError, InputError) as error:
            raise ServerError(f"what the server gives are no tokens ({error}).") from error
        if not self._left:
            raise ServerError("all tokens of this epoch were shown.")
        return self._left.pop()

    async def _batch(self, key: TokenKey, device: "LightDevice", connection: Connection) -> list[str]:
        """Raises: ServerError; InputError."""
        blinded = await asyncio.to_thread(self._blinded, key)
        sent = tuple(each.sent.hex() for each in blinded)
        asked = TokenRequest(code=self._code, epoch=key.epoch, blinded=sent, evidence=None)
        answer = await device.ask(connection, "tokens", "POST", "/v1/tokens", asked.model_dump_json().encode())
        found = BlindSignatures.model_validate_json(_good(answer).body)
        if len(found.signatures) != len(blinded):
            raise ServerError("the server signed another number of tokens.")
        pairs = list(zip(blinded, map(bytes.fromhex, found.signatures), strict=True))
        return await asyncio.to_thread(
            lambda: [token_of(key.epoch, one.prepared, one.finalize(signature)) for one, signature in pairs]
        )

    def _blinded(self, key: TokenKey) -> list[Blinded]:
        """Raises: InputError."""
        public = public_key(key)
        messages = [prepare(message_of(key.epoch), draw=self._draw) for _ in range(key.batch)]
        return [Blinded.of(public, each, draw=self._draw) for each in messages]


KEY = ("GET", "/v1/tokens/key")


def _good(answer: Answer) -> Answer:
    """Raises: ServerError."""
    if answer.status != 200:
        raise ServerError(f"tokens are answered by {answer.status}.")
    return answer
