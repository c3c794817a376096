"""The path by which anybody reads the transparency log."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.server.http.problems import Refused
from tacit.server.http.services import Services
from tacit.server.log.transparency import LogView


class LogServed:
    """Of one worker, which signs nothing."""

    def __init__(self, services: Services) -> None:
        self._services, self._view = services, LogView(services.store)

    def routes(self) -> list[Route]:
        """Its path."""
        return [Route("/v1/log", self.log, methods=["GET"])]

    async def log(self, _: Request) -> Response:
        """All of it, the same for whoever asks."""
        found = await self._services.threaded(self._view.shown)
        if found is None:
            raise Refused("not-found", "the log has no entries yet.")
        return Response(found, media_type="application/json", headers={"Cache-Control": "no-store"})
