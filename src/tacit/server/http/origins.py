"""Which pages of browsers may ask, told by the head of a request before anything of its body is read.

A browser sends requests for any page that its owner opens, and a page need not be able to read the answer: a check-in
alone takes a place in a round. A page has an origin (RFC 6454), which browsers send with all that is no plain GET
(Fetch, section 3.2), and a page cannot change it. Whoever is no browser sends none, and goes on as before.

Two origins are let in: the server's own, and those that its operator listed, which get CORS (Fetch, section 3.3) on the
paths of devices. An own origin is one that nobody else's page can have. A name that somebody points at this machine
(DNS rebinding) would make theirs the server's own. So without TLS a server goes by an address or the machine's own name
alone, and behind a proxy, where it does not know its name, its operator lists it.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import Message, Scope, Send

from tacit.errors import InputError
from tacit.server.http.problems import Refused

DEVICES = "/v1/"  # paths that a page elsewhere needs to be a device
# What a preflight is answered with, besides its origin: what the protocol has, and for a day.
PREFLIGHT: Mapping[str, str] = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, x-content-sha256, range",
    "access-control-max-age": "86400",
}
EXPOSED = b"ETag, Retry-After, Content-Range"  # a device reads these, and no page could by itself
JSON, OCTETS = "application/json", "application/octet-stream"
BODIES: Mapping[str, str] = {"/v1/check-in": JSON, "/v1/tokens": JSON}  # by path, the media type of what is posted
REPORTS = "/v1/reports/"
ELSEWHERE = frozenset({"cross-site", "same-site"})  # Sec-Fetch-Site of a page of another origin
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]*)(?::[0-9]{1,5})?")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
EXTENSION = re.compile(r"chrome-extension://[a-p]{32}")  # its name is the digest of its publisher's key


def listed_origin(text: str) -> str:
    """An origin that an operator lists, in the one spelling that browsers send (RFC 6454, section 6.2).

    https, or http of a machine's own address; or a packaged extension of Chromium. Raises: InputError.
    """
    shown, example = repr(text[:80]), "give one such as https://type.example.org or http://127.0.0.1:9100"
    if EXTENSION.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        scheme, port = parts.scheme, parts.port
        host = _host(parts.hostname or "")
    except ValueError as error:
        raise InputError(f"--web-origin {shown} is no origin ({error}); {example}.") from None
    spelled = rf"{re.escape(scheme)}://(\[[^\]@\s]*\]|[^@:/?#\[\]\s]+)(:[0-9]+)?"
    if re.fullmatch(spelled, text, re.IGNORECASE) is None:
        raise InputError(f"--web-origin {shown} is no origin: scheme, host and port, and no path; {example}.")
    if scheme not in DEFAULT_PORTS or (scheme == "http" and not _is_loopback(host)):
        raise InputError(f"--web-origin {shown}: whoever is on the way can change a page without TLS; {example}.")
    if port == 0:
        raise InputError(f"--web-origin {shown} has a port that is none; {example}.")
    return f"{scheme}://{host}" + ("" if port in (None, DEFAULT_PORTS[scheme]) else f":{port}")


def _host(name: str) -> str:
    """In the spelling of browsers. Raises: ValueError."""
    if ":" in name:
        address = ipaddress.IPv6Address(name)
        if address.scope_id is not None or address.ipv4_mapped is not None:
            raise ValueError("an address with a zone, or of IPv4 in IPv6")  # which browsers spell otherwise
        return f"[{address.compressed}]"
    if not name.isascii():
        raise ValueError(f"write {name[:60]!r} as browsers send it, in ASCII, beginning with xn--")
    if name.rpartition(".")[2].isdecimal() or name.rpartition(".")[2].startswith("0x"):
        return str(ipaddress.IPv4Address(name))  # as browsers see it: a last label of digits is an address's
    if len(name) > 253 or not all(LABEL.fullmatch(each) for each in name.split(".")):
        raise ValueError("its host is no name, and no pattern of names is taken")
    return name


def _is_loopback(host: str) -> bool:
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_here(host: str) -> bool:
    """Whether a Host is an address, or localhost: nobody can point these elsewhere."""
    found = HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower()
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name == "localhost"
    return True


@dataclass(frozen=True, kw_only=True)
class AskingPages:
    """Who may ask from a browser.

    listed: origins as `listed_origin` spells them. local: this machine alone reaches the server, without TLS; then a
    Host that is neither an address nor localhost is refused.
    """

    listed: frozenset[str] = frozenset()
    local: bool = False

    def admitted(self, scope: Scope) -> str | None:
        """The listed origin whose page asks; None for the server's own pages, and for all that are no browsers.

        Raises: Refused for a page of another origin, another Host, and a body of another media type than its path's.
        """
        said = _said(scope)
        host, site = said.get(b"host", ""), said.get(b"sec-fetch-site", "")
        if self.local and host and not _is_here(host):
            raise Refused(
                "misdirected",
                "this server is on its own machine, and goes by its address or localhost; one behind a proxy is "
                "started with --behind-proxy.",
                Connection="close",
            )
        origin = said.get(b"origin")
        listed = origin if origin in self.listed and scope["path"].startswith(DEVICES) else None
        if listed is None and self._is_foreign(scope, origin, host, site, said.get(b"sec-fetch-mode", "")):
            raise Refused("origin", "a page of another origin asks; the operator did not list it.", Connection="close")
        _check_media_type(scope, said.get(b"content-type", ""))
        return listed

    def _is_foreign(self, scope: Scope, origin: str | None, host: str, site: str, mode: str) -> bool:
        """Whether a page asks that is neither listed nor the server's own. A link that was followed is no page's."""
        if origin is not None:
            return site in ELSEWHERE or origin != self._own(scope["scheme"], host)
        return site in ELSEWHERE and not (mode == "navigate" and scope["method"] in ("GET", "HEAD"))

    def _own(self, scheme: str, host: str) -> str | None:
        """The server's own origin, where the Host is one that no other page can have. Behind a proxy none is."""
        if scheme == "https":  # its certificate says whose name it is
            return f"https://{host}"
        return f"http://{host}" if self.local else None

    def sharing(self, scope: Scope, send: Send, listed: str | None) -> Send:
        """The same `send`, whose answer the listed origin's page may read. Caches keep such answers apart."""
        if not self.listed or not scope["path"].startswith(DEVICES):
            return send
        more = [(b"vary", b"Origin")]
        if listed is not None:
            more += [(b"access-control-allow-origin", listed.encode()), (b"access-control-expose-headers", EXPOSED)]

        async def shared(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        return shared


def _said(scope: Scope) -> dict[bytes, str]:
    """The headers by their names; what has one name twice is together none of what it could be."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        text = value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _check_media_type(scope: Scope, said: str) -> None:
    """Raises: Refused. A page sends the three types of a form without asking before, and none of these."""
    if scope["method"] != "POST":
        return
    wanted = OCTETS if scope["path"].startswith(REPORTS) else BODIES.get(scope["path"])
    if wanted is not None and said.partition(";")[0].strip().lower() != wanted:
        raise Refused("encoding", f"a body of this path has the Content-Type {wanted}.", Connection="close")
