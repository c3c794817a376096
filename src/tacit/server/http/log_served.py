"""The paths by which anybody reads the transparency log."""

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.protocol.fields import Document
from tacit.server.http.problems import Refused
from tacit.server.http.reports import HEX_64
from tacit.server.http.services import Services
from tacit.server.log.transparency import LogView

SIZE = re.compile(r"[1-9][0-9]{0,14}")
NO_STORE = {"Cache-Control": "no-store"}


class LogServed:
    """Of one worker, which signs nothing."""

    def __init__(self, services: Services) -> None:
        self._services, self._view = services, LogView(services.store)

    def routes(self) -> list[Route]:
        """Its paths."""
        return [
            Route("/v1/log/head", self.head, methods=["GET"]),
            Route("/v1/log/proof/{leaf}", self.proof, methods=["GET"]),
            Route("/v1/log/consistency", self.consistency, methods=["GET"]),
            Route("/v1/log/entries", self.entries, methods=["GET"]),
        ]

    async def head(self, _: Request) -> Response:
        """The newest signed head."""
        return _found(await self._services.threaded(self._view.head), "the log has no entries yet.")

    async def proof(self, request: Request) -> Response:
        """That a leaf is in the log."""
        leaf = request.path_params["leaf"]
        if not HEX_64.fullmatch(leaf):
            raise Refused("not-found", "a leaf is 64 lower-case hexadecimal digits.")
        return _found(await self._services.threaded(self._view.proof, leaf), "the log has no such leaf.")

    async def consistency(self, request: Request) -> Response:
        """That the log with `second` entries begins with `first` of them."""
        sizes = [request.query_params.get(name, "") for name in ("first", "second")]
        if not all(SIZE.fullmatch(each) for each in sizes):
            raise Refused("malformed", "give first and second, two sizes of the log from 1 on.")
        first, second = map(int, sizes)
        found = await self._services.threaded(self._view.consistency, first, second)
        return _found(found, "those are not two sizes that the log had, the smaller one first.")

    async def entries(self, _: Request) -> Response:
        """All of it, a line each, for whoever keeps an eye on it."""
        text = await self._services.threaded(self._view.text)
        return Response(text, media_type="text/plain", headers=NO_STORE)


def _found(found: Document | None, otherwise: str) -> Response:
    if found is None:
        raise Refused("not-found", otherwise)
    return Response(found.to_json(), media_type="application/json", headers=NO_STORE)
