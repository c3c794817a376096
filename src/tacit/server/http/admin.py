"""What an operator may read and change by HTTP, with the administrator's token."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.server.http.problems import Refused
from tacit.server.http.services import Services
from tacit.server.store import round_states

SHOWN = ("round", "attempt", "state", "goal", "least", "most", "assigned", "received", "counted", "lost", "reports")
TIMES = ("opened", "closes_selecting", "deadline", "why")


class Admin:
    """Of one worker; what it changes is in the store, so every worker follows within its next look."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> list[Route]:
        """Its paths."""
        return [
            Route("/admin/runs", self.runs, methods=["GET"]),
            Route("/admin/runs/{run}/rounds", self.rounds, methods=["GET"]),
            Route("/admin/runs/{run}/pause", self.pause, methods=["POST"]),
            Route("/admin/runs/{run}/resume", self.resume, methods=["POST"]),
            Route("/admin/drain", self.drain, methods=["POST"]),
        ]

    async def runs(self, request: Request) -> Response:
        """All runs, and whether they are paused."""
        check_admin(self._services, request)
        found = await self._services.threaded(round_states.all_runs, self._services.store)
        return _json({"runs": [each._asdict() for each in found]})

    async def rounds(self, request: Request) -> Response:
        """Every attempt at a round of a run, with its counts and times."""
        check_admin(self._services, request)
        await self._known(request)
        found = await self._services.threaded(round_states.attempts, self._services.store, request.path_params["run"])
        return _json({"rounds": [{name: getattr(each, name) for name in SHOWN + TIMES} for each in found]})

    async def pause(self, request: Request) -> Response:
        """Give no more of the run's tasks out; rounds in progress go on with the devices that they have."""
        return await self._set_paused(request, True)

    async def resume(self, request: Request) -> Response:
        """Give the run's tasks out again."""
        return await self._set_paused(request, False)

    async def drain(self, request: Request) -> Response:
        """Pause every run: after the rounds in progress have ended nothing is lost by stopping the server."""
        check_admin(self._services, request)
        for each in await self._services.threaded(round_states.all_runs, self._services.store):
            await self._services.threaded(round_states.pause_run, self._services.store, each.name, paused=True)
        return await self.runs(request)

    async def _set_paused(self, request: Request, paused: bool) -> Response:
        check_admin(self._services, request)
        await self._known(request)
        run = request.path_params["run"]
        await self._services.threaded(round_states.pause_run, self._services.store, run, paused=paused)
        return await self.runs(request)

    async def _known(self, request: Request) -> None:
        """Raises: Refused for a run that is not in the store."""
        found = await self._services.threaded(round_states.all_runs, self._services.store)
        if request.path_params["run"] not in {each.name for each in found}:
            raise Refused("not-found", "the store has no such run.")


def check_admin(services: Services, request: Request) -> None:
    """Raises: Refused for whoever has not the administrator's token."""
    if services.admin_token is None:
        raise Refused("forbidden", "this server was started without a token for administrators.")
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not services.is_admin(token.strip()):
        said = "send `Authorization: Bearer` and the administrator's token."
        raise Refused("credential", said, WWW_Authenticate="Bearer")


def _json(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value), media_type="application/json", headers={"Cache-Control": "no-store"})
