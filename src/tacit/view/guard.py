"""Who may look, and what a page may do: names of this machine, a token where others reach it, and strict headers.

A page of another origin could send requests here from the browser of whoever looks. It reads no answer; with a name of
its own that it points at this machine (DNS rebinding) it would, so a request must name this machine. A token stands in
no address: it is sent once, and a cookie that no script reads stands for it from then on.
"""

import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from tacit.errors import InputError

COOKIE, LOGIN = "tacit_view", "/login"
SHORTEST = 16  # characters of a token: shorter ones can be guessed
LONGEST_FORM = 4096  # bytes
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none, a form of our own would come from the origin "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
LOGIN_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tacit view: token</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/static/view.css">
</head><body><main class="tacit"><h1>tacit view</h1><p role="alert">{said}</p>
<form method="post" action="/login" class="card"><label>Token <input type="password" name="token"
autocomplete="current-password" required></label> <button>Look</button></form></main></body></html>"""


def checked_token(token: str | None, *, loopback: bool, host: str) -> str | None:
    """Raises: InputError where others reach the address and there is no token, or one that can be guessed."""
    if token is None and not loopback:
        raise InputError(
            f"--host {host} can be reached by others, and runs are not theirs to see; give --token, or the variable "
            f"TACIT_VIEW_TOKEN, {SHORTEST} characters or more."
        )
    if token is not None and len(token) < SHORTEST:
        raise InputError(
            f"a token of {len(token)} characters can be guessed; give {SHORTEST} or more, for example "
            f"{secrets.token_urlsafe(12)}."
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether this machine alone reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Stands before the application (ASGI)."""

    def __init__(self, app: Any, *, host: str, token: str | None) -> None:
        self._app, self._token = app, token
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}
        self._session = secrets.token_urlsafe(32)  # what the cookie says, for as long as the server runs

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        if not self._is_here(headers.get("host", "")):
            await _answer(guarded, 421, "this machine has another name; open the address that `tacit view` printed.")
        elif scope["method"] not in ("GET", "HEAD", "POST"):
            await _answer(guarded, 405, "pages are only read here.")
        elif scope["method"] == "POST" and not _of_same_origin(headers):
            await _answer(guarded, 403, "a page of another origin asked for this.")
        elif self._token is None or scope["path"].startswith("/static/"):
            await self._app(scope, receive, guarded)
        elif scope["path"] == LOGIN and scope["method"] == "POST":
            await self._log_in(receive, guarded)
        elif self._may_look(headers):
            await self._app(scope, receive, guarded)
        else:
            await self._refuse(scope, guarded, "This server asks for its token.")

    def _is_here(self, host: str) -> bool:
        name = host[1:].partition("]")[0] if host.startswith("[") and "]" in host else host.partition(":")[0]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower() in self._names
        return True

    def _may_look(self, headers: dict[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._session.encode())

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    async def _log_in(self, receive: Any, send: Any) -> None:
        body = b""
        while len(body) <= LONGEST_FORM:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        given = parse_qs(body[:LONGEST_FORM].decode("utf-8", "replace")).get("token", [""])[0]
        if not self._is_token(given):
            await _page(send, 401, LOGIN_PAGE.format(said="That is not the token."))
            return
        cookie = f"{COOKIE}={self._session}; HttpOnly; SameSite=Strict; Path=/"
        await _send(send, 303, b"", [("location", "/"), ("set-cookie", cookie)])

    async def _refuse(self, scope: Any, send: Any, said: str) -> None:
        if b"format=json" in scope["query_string"] or scope["path"].startswith(("/changes", "/statement")):
            await _answer(send, 401, said)
        else:
            await _page(send, 401, LOGIN_PAGE.format(said=said))


def _of_same_origin(headers: dict[str, str]) -> bool:
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host", "")


async def _answer(send: Any, status: int, error: str) -> None:
    record = {"schema": "tacit.view", "version": 1, "ok": False, "error": error, "status": status}
    await _send(send, status, json.dumps(record).encode(), [("content-type", "application/json")])


async def _page(send: Any, status: int, html: str) -> None:
    await _send(send, status, html.encode(), [("content-type", "text/html; charset=utf-8")])


async def _send(send: Any, status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> None:
    written = [(name.encode(), value.encode()) for name, value in headers]
    written.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": body})
