"""The application: an address for each page and its JSON twin, and one sentence for whatever cannot be shown."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tacit.errors import TacitError
from tacit.federation.kinds import loaded
from tacit.privacy.rounding import rounded_up
from tacit.records import json_ready
from tacit.reports.page import blocks_to_html, stylesheet
from tacit.statements.markdown import one_line
from tacit.view.changes import Changes
from tacit.view.checks import Checks
from tacit.view.folders import Folders, NotThere
from tacit.view.guard import Guard
from tacit.view.keyboards import Keyboards
from tacit.view.looks import Looks
from tacit.view.metrics import Metrics
from tacit.view.rows import Rows
from tacit.view.shown import Shown, View
from tacit.view.state import when

# What a folder that changes under the reader can bring about, whatever is damaged in it.
UNREADABLE = (TacitError, OSError, sqlite3.Error, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
COMMENT = ": still here\n\n"
# Loaded with their first use: the mathematics of a plan takes longer than all the rest.
PAGES = {
    "/": "runs:page",
    "/run/{place:path}": "run:page",
    "/statement/{place:path}": "run:statement",
    "/file/{place:path}": "downloads:file",
    "/compare": "compare:page",
    "/plan": "planning:page",
    "/plan/recipe": "planning:recipe",
    "/typing": "typing:page",
    "/servers": "servers:page",
    "/server/{place:path}": "servers:one",
    "/devices": "devices:page",
    "/device/{place:path}": "devices:one",
}
STATIC = {
    "icon.svg": "image/svg+xml",
    "view.css": "text/css; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
}


def application(
    folders: Folders, *, host: str, token: str | None, simulation: bool, metrics: Metrics | None = None
) -> Any:
    """The ASGI application of these folders. metrics: of the servers whose counts are shown; None: of none."""
    looks = Looks(simulation=simulation)
    view = View(
        folders=folders,
        looks=looks,
        rows=Rows(folders, looks),
        checks=Checks(folders),
        changes=Changes(folders),
        keyboards=Keyboards(folders),
        metrics=metrics or Metrics(),
    )
    routes = [Route(address, _endpoint(view, part)) for address, part in PAGES.items()]
    routes += [
        Route("/typing/suggest", _endpoint(view, "typing:suggest"), methods=["POST"]),
        Route("/changes", _changes(view)),
        Route("/static/{name}", _static),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_page})
    return Guard(GZipMiddleware(app, minimum_size=1_000), host=host, token=token)


def _endpoint(view: View, part: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        body = await request.body() if request.method == "POST" else b""
        request.state.body = body
        try:
            found = await run_in_threadpool(lambda: loaded(f"tacit.view.pages.{part}")(view, request))
        except NotThere as error:
            return _error(request, view, 404, str(error))
        except TacitError as error:
            return _error(request, view, 422, str(error))
        except UNREADABLE as error:
            said = f"this cannot be shown, since something in its folder is not as it was written ({error!r})."
            return _error(request, view, 422, said)
        if isinstance(found, Response):
            return found
        return _response(request, view, found)

    return answer


def _response(request: Request, view: View, found: Shown) -> Response:
    if request.query_params.get("format") == "json" or request.method == "POST":
        record = {"schema": "tacit.view", "version": 1, "ok": True, "page": found.template, **found.record}
        return JSONResponse(json_ready(record), found.status)
    html = template(found.template).render(
        title=found.title, simulation=view.simulation, part=request.query_params.get("part", ""), **found.values
    )
    return HTMLResponse(html, found.status)


def _error(request: Request, view: View, status: int, error: str) -> Response:
    if request.query_params.get("format") == "json" or request.method == "POST":
        record = {"schema": "tacit.view", "version": 1, "ok": False, "error": error, "status": status}
        return JSONResponse(record, status)
    if request.url.path.startswith("/statement"):
        found = Shown(
            template="statement", title="", values={"checked": None, "complaint": error}, record={}, status=status
        )
        return _response(request, view, found)
    found = Shown(template="message", title="Not shown", values={"message": error}, record={}, status=status)
    return _response(request, view, found)


async def _no_such_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    record = {"schema": "tacit.view", "version": 1, "ok": False, "error": "there is no such page", "status": status}
    if request.query_params.get("format") == "json":
        return JSONResponse(record, status)
    html = template("message").render(
        title="No such page", simulation=False, part="", message="There is no such page; the list of runs links to all."
    )
    return HTMLResponse(html, status)


def _changes(view: View) -> Callable[[Request], Any]:
    async def stream(request: Request) -> Response:
        place, known = request.query_params.get("place", ""), request.query_params.get("known", "")

        async def events() -> AsyncIterator[str]:
            yield COMMENT
            async for mark in view.changes.of(place, known):
                yield f"data: {json.dumps({'mark': mark})}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    return stream


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    return Response(_content(name), media_type=STATIC[name], headers={"cache-control": "max-age=300"})


@cache
def _content(name: str) -> str:
    from importlib.resources import files

    own = (files("tacit.view") / "static" / name).read_text(encoding="utf-8")
    return f"{stylesheet()}\n{own}" if name.endswith(".css") else own


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tacit.view", "templates"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "one_line": one_line,
        "blocks": blocks_to_html,
        "address": lambda place: quote(place),
        "share": lambda value: "–" if value is None else f"{value:.2%}",
        "price": lambda value: "–" if value is None else rounded_up(value),
        "when": when,
    }
    return environment


def template(name: str) -> Any:
    """Of a page, compiled once in a process."""
    return _environment().get_template(f"{name}.html.j2")
