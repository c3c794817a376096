"""An operator that enrols devices, and shows each of them what it likes of a log that stays valid: it only grows."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from tests.support.device.operator import Operator

from tacit.protocol.messages import BlindSignatures, Signed, TokenKey, TokenRequest
from tacit.protocol.token_format import token_key_entry
from tacit.server.store.blind_signer import Signer

BATCH = 6


@cache
def signer_of(epoch: int) -> Signer:
    """Drawn once for all tests: RSA keys cost."""
    return Signer.new()


@dataclass
class Enrolling(Operator):
    """`enrols`: a place costs a token. `shows`: how many lines of the log are shown, from its beginning; all by
    default, and never fewer than have what the device looks for.
    """

    enrols: bool = True
    epoch: int = 1
    shows: int | None = None
    needed: list[str] = field(default_factory=list)  # entries that the device looks for in this turn
    broken: bool = False  # no model comes
    fillers: Any = field(default_factory=itertools.count)

    def grow(self, lines: int = 1) -> None:
        """Lines of nothing: what an operator enters to number those who look."""
        self.log += [f"plan {next(self.fillers):064x}" for _ in range(lines)]

    def token_key(self) -> Signed:
        """Of the epoch, in the log."""
        public = signer_of(self.epoch).public
        modulus = f"{public.n:x}"
        times = {"opens": self.epoch * 6e5, "ends": (self.epoch + 1) * 6e5}
        key = TokenKey(epoch=self.epoch, batch=BATCH, modulus=modulus, exponent=public.e, **times)
        signed = self.key.signed(key)
        if (entry := token_key_entry(key.epoch, signed.document)) not in self.log:
            self.log.append(entry)
        self.needed.append(entry)
        return signed

    def shown_entries(self) -> Sequence[str]:
        if self.shows is None:
            return self.log
        least = max([1, *(self.log.index(each) + 1 for each in self.needed if each in self.log)])
        return self.log[: max(least, self.shows)]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path, body = request.url.path, request.read()
        if path == "/v1/check-in" and self.enrols and self.answers:
            if json.loads(body)["token"] is None:
                self.asked.append(request)
                problem = {"type": "tacit:token", "title": "none", "status": 401, "detail": "show a token."}
                return httpx.Response(401, json=problem)
        elif path == "/v1/tokens/key":
            self.asked.append(request)
            return httpx.Response(200, content=self.token_key().to_json())
        elif path == "/v1/tokens":
            self.asked.append(request)
            said = TokenRequest.from_json(body)
            signed = [signer_of(said.epoch).sign(bytes.fromhex(each)).hex() for each in said.blinded]
            answer = BlindSignatures(epoch=said.epoch, signatures=tuple(signed))
            return httpx.Response(200, content=answer.to_json())
        elif path.startswith("/v1/models/") and self.broken:
            self.asked.append(request)
            return self.none("no round in progress has this model.")
        return super().__call__(request)
