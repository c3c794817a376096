"""A decryptor that listens, without a socket."""

import asyncio

import httpx

from tacit.jobs.decryptor import DecryptorDesk
from tacit.protocol.operator_key import OperatorKey
from tacit.server.http.decryptor_server import DecryptorFront, operator_of
from tacit.server.rounds.decryptors import HttpDecryptor

KEY = OperatorKey(bytes(32))


class Through(httpx.BaseTransport):
    """An application without a socket, for a client that waits."""

    def __init__(self, front: DecryptorFront) -> None:
        self._app = front.application()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def asked() -> httpx.Response:
            body = b"".join(request.stream)  # type: ignore[arg-type]
            transport = httpx.ASGITransport(self._app)
            again = httpx.Request(request.method, request.url, headers=request.headers, content=body)
            answer = await transport.handle_async_request(again)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        return asyncio.run(asked())


def over_http(desk: DecryptorDesk) -> HttpDecryptor:
    return HttpDecryptor(
        "http://decryptor", bytes.fromhex(desk.identity), KEY, Through(DecryptorFront(desk, operator_of(KEY.public)))
    )
