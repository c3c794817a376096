"""A decryptor that listens: the messages of one operator's server in, answers out; nobody else may drive it.

POST /v1/messages   messages one after another, signed by the operator (`decryptors.py`); the answers, the same way
GET  /healthz       200
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple, Self

import uvicorn
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.contributor.contributor import NoiseContributor
from tacit.errors import InputError
from tacit.jobs.decryptor import DecryptorDesk
from tacit.protocol.address import HOST, Address
from tacit.secure_aggregation.small_order import anybody_signs
from tacit.server.http.connections import LISTENER, TRUST, ScreenedConnection, allow_connections
from tacit.server.http.problems import MEDIA_TYPE, Refused
from tacit.server.http.reports import HEX_64, LENGTH
from tacit.server.rounds.decryptors import IN_MEMORY, MOST_BODY, PATH, framed, signed_for_decryptor, unframed

AT_WORK = 8  # bodies of the operator's that are read or answered at a time
RETRY_S = 5  # for one that came besides
IDLE_S = 15.0  # between two pieces of a body
KEEP_ALIVE_S = 30
HEX = frozenset("0123456789abcdef")


class DecryptorFront:
    """What a decryptor answers over HTTP."""

    def __init__(
        self, desk: DecryptorDesk, operator: Ed25519PublicKey, refused: Callable[[str], None] = lambda why: None
    ) -> None:
        """operator: the key of the one who may drive it; refused: told why a message was."""
        self._told = refused
        self._desk, self._operator = desk, operator
        self._identity, self._working = bytes.fromhex(desk.identity), 0
        desk.contributor = NoiseContributor(desk.folder, operator.public_bytes_raw().hex())

    def application(self) -> Starlette:
        """For an ASGI server. Whoever serves it has the decryptor to himself (`DecryptorDesk.alone`)."""
        routes = [Route(PATH, self._messages, methods=["POST"]), Route("/healthz", _healthy, methods=["GET"])]
        return Starlette(routes=routes, exception_handlers={Refused: _refused, HTTPException: _no_such})

    async def _messages(self, request: Request) -> Response:
        digest, length = self._signed(request)
        request.scope.get("extensions", {}).get(TRUST, lambda: None)()
        with self._at_work(), SpooledTemporaryFile(IN_MEMORY) as body:
            await _read(request, body, length, digest)
            try:
                answers = await asyncio.to_thread(self._answers, body)
            except InputError as error:
                raise Refused("malformed", str(error)) from None
        return Response(b"".join(map(framed, answers)), media_type="application/octet-stream")

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Raises: Refused where the operator has as many requests here as are taken."""
        if self._working >= AT_WORK:
            raise Refused(
                "busy", f"{AT_WORK} requests are being answered.", Retry_After=str(RETRY_S), Connection="close"
            )
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    def _answers(self, body: IO[bytes]) -> list[bytes]:
        return self._desk.answers_at_once(unframed(body), refused=self._told)

    def _signed(self, request: Request) -> tuple[str, int]:
        """(SHA-256 of the body, its length) of a request that the operator signed. Raises: Refused."""
        claimed, length = request.headers.get("x-content-sha256", ""), request.headers.get("content-length", "")
        signature = request.headers.get("x-tacit-signature", "")
        if not HEX_64.fullmatch(claimed) or len(signature) != 128 or set(signature) - HEX:
            raise Refused(
                "credential", "X-Content-SHA256 and X-Tacit-Signature are missing, or malformed.", Connection="close"
            )
        try:
            signed = signed_for_decryptor(self._identity, bytes.fromhex(claimed))
            self._operator.verify(bytes.fromhex(signature), signed)
        except InvalidSignature:
            raise Refused(
                "credential", "this is not signed by the operator, for this decryptor.", Connection="close"
            ) from None
        if not LENGTH.fullmatch(length):
            raise Refused("length", "send Content-Length.", Connection="close")
        if int(length) > MOST_BODY:
            raise Refused("too-large", f"a body has at most {MOST_BODY:,} bytes.", Connection="close")
        return claimed, int(length)


async def _read(request: Request, body: IO[bytes], length: int, digest: str) -> None:
    """Raises: Refused where it is another body than was signed, or comes too slowly."""
    hashed, pieces, loop = sha256(), request.stream(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(IDLE_S) as waiting:
            async for piece in pieces:
                hashed.update(piece)
                body.write(piece)
                if body.tell() > length:
                    raise Refused("too-large", "the body is longer than Content-Length says.", Connection="close")
                waiting.reschedule(loop.time() + IDLE_S)
    except TimeoutError:
        raise Refused("too-slow", "the body came too slowly; send it again.", Connection="close") from None
    if hashed.hexdigest() != digest:
        raise Refused("malformed", "the body's SHA-256 is not what X-Content-SHA256 says; send it again.")
    body.seek(0)


async def _healthy(request: Request) -> Response:
    return Response(b"", media_type="text/plain")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return Response(error.body(), error.status, headers=error.headers, media_type=MEDIA_TYPE)


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = "method" if error.status_code == 405 else "not-found"
    return await _refused(request, Refused(kind, f"{request.method} of this path is nothing that a decryptor has."))


def operator_of(key: str) -> Ed25519PublicKey:
    """The public key that 64 hexadecimal digits say. Raises: InputError."""
    if not HEX_64.fullmatch(key) or anybody_signs(bytes.fromhex(key)):
        raise InputError(
            f"--operator-key {key[:70]!r} is no key; give the 64 hexadecimal digits that `tacit serve` shows."
        )
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))


class DecryptorAddress(NamedTuple):
    """Where a decryptor listens, and whose server it answers: checked before there is a decryptor.

    operator: the public key of whose server it answers. address: where it listens.
    """

    operator: Ed25519PublicKey
    address: Address

    @classmethod
    def from_folder(
        cls,
        operator_key: str | None,
        port: int | None,
        host: str = HOST,
        tls_certificate: Path | None = None,
        tls_key: Path | None = None,
        *,
        behind_proxy: bool = False,
    ) -> Self:
        """operator_key: the public key, 64 hexadecimal digits, of whose server it answers. Raises: InputError."""
        if port is None or operator_key is None:
            raise InputError(
                "a decryptor that listens answers one operator alone; give both --port and --operator-key, or no "
                "option of these and of --host, --tls-cert, --tls-key and --behind-proxy."
            )
        where = Address(
            host=host, port=port, tls_certificate=tls_certificate, tls_key=tls_key, behind_proxy=behind_proxy
        )
        return cls(operator_of(operator_key), where)

    def listen(self, desk: DecryptorDesk, *, told: Callable[[str], None] = lambda line: None) -> None:
        """Until SIGTERM or Ctrl-C. told: lines for whoever runs it, where it listens and why it refused a message.

        Raises: InputError where another process runs the decryptor, or nothing can be listened on.
        """
        address = self.address
        front = DecryptorFront(desk, self.operator, lambda why: told(f"refused: {why}"))
        allow_connections()
        with desk.alone(), address.listening() as listener:
            told(f"listening at {address.url(listener)}")
            config = uvicorn.Config(
                front.application(),
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE_S,
                ssl_certfile=address.tls_certificate,
                ssl_keyfile=address.tls_key,
                **{**LISTENER, "http": ScreenedConnection},
            )
            uvicorn.Server(config).run(sockets=[listener])
