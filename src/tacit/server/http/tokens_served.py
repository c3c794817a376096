"""The paths by which an enrolled device gets its tokens."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.errors import InputError
from tacit.protocol.messages import TokenRequest
from tacit.server.http.problems import Refused
from tacit.server.http.reports import LENGTH, read_body
from tacit.server.http.services import Services
from tacit.server.store.tokens import Issuer

JSON = "application/json"
NO_STORE = {"Cache-Control": "no-store"}
MOST_BYTES = 1 << 17  # of a request


class TokensServed:
    """Of one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting = 0  # requests

    def routes(self) -> list[Route]:
        """Its paths."""
        return [
            Route("/v1/tokens/key", self.key, methods=["GET"]),
            Route("/v1/tokens", self.sign, methods=["POST"]),
        ]

    async def key(self, _: Request) -> Response:
        """The key of this epoch."""
        found = await self._services.threaded(self._issuer().key)
        return Response(found.to_json(), media_type=JSON, headers=NO_STORE)

    async def sign(self, request: Request) -> Response:
        """A batch of blind signatures."""
        issuer, length = self._issuer(), request.headers.get("content-length", "")
        if not LENGTH.fullmatch(length):
            raise Refused("length", "send Content-Length.", Connection="close")
        if int(length) > MOST_BYTES:
            raise Refused("too-large", f"a request for tokens has at most {MOST_BYTES:,} bytes.", Connection="close")
        body = await read_body(request.receive, int(length), self._services.limits)
        if self._waiting >= self._services.limits.waiting_tokens:
            raise Refused("busy", "too many ask for tokens at once; ask again.", Retry_After="10")
        try:
            asked = TokenRequest.from_json(bytes(body))
        except InputError as error:
            raise Refused("malformed", str(error)) from None
        self._waiting += 1
        try:
            found = await self._services.signing(issuer.sign, asked)
        except InputError as error:
            raise Refused("refused", str(error)) from None
        finally:
            self._waiting -= 1
        if found is None:
            raise Refused("credential", "no device is enrolled by this code, or it has its tokens of this epoch.")
        return Response(found.to_json(), media_type=JSON, headers=NO_STORE)

    def _issuer(self) -> Issuer:
        """Raises: Refused where nobody is enrolled."""
        if self._services.issuer is None:
            raise Refused("not-found", "this server asks for no enrolment; check in without a token.")
        return self._services.issuer
