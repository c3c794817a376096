"""HTTP to a server that nobody trusts: few bytes, little time, no redirects, TLS unless on loopback.

Whatever comes is bounded before it is read, by bytes and by seconds, and nothing is decompressed. It drives the
conversations of `requests.py`. Raises ServerError for what does not come in time or is no HTTP that was asked for.
"""

import ipaddress
import ssl
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from tacit.errors import InputError, ServerError
from tacit.extras import of_extra
from tacit.protocol.fields import MOST_CONTROL
from tacit.protocol.requests import Answer, Ask, Conversation, T

if TYPE_CHECKING:
    import httpx

S = TypeVar("S")
PATIENCE = 30.0  # seconds without a byte
BLOCK = 1 << 16
LONGEST_HOST = 253  # letters of a name: RFC 1035
USER_AGENT = "tacit-device"
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")  # OpenSSL's, of bytes that are no TLS


@dataclass(frozen=True)
class Server:
    """Where the server is, as its owner gave it, and checked."""

    url: str

    @classmethod
    def from_url(cls, url: str) -> "Server":
        """Raises: InputError for what is no address of a server, and for one without TLS that is not this machine."""
        parts = _parts(url)
        if (
            parts is None
            or parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            shown = url if len(url) <= 100 else f"{url[:97]}..."
            raise InputError(f"--server {shown!r} is no server's address; give https://HOST or https://HOST:PORT.")
        found = cls(url.rstrip("/"))
        if parts.scheme == "http" and not found.on_loopback:
            raise InputError(f"--server {url!r} has no TLS, and is not this machine; give https://.")
        return found

    @property
    def on_loopback(self) -> bool:
        """Whether it is this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def _parts(url: str) -> SplitResult | None:
    """Of an address; None where its host or port is none, or it has blanks or ends of lines, which urlsplit drops."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # labels have at most 63 letters
        parts.port  # noqa: B018  (a number below 65,536, or it raises)
    except ValueError:
        return None
    shown = url.isprintable() and " " not in url
    return parts if shown and len(parts.hostname or "") <= LONGEST_HOST else None


class Patience:
    """Until when an answer is waited for, by the clock that no one sets."""

    def __init__(self) -> None:
        self.until = 0.0

    def left(self, late: type[Exception], most: float | None) -> float:
        """Seconds that are left, at most `most`. Raises: `late` where none are."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise late("it took too long altogether")
        return seconds if most is None else min(seconds, most)


class Connection:
    """One server, asked over HTTP; `connected` makes it."""

    def __init__(
        self,
        client: "httpx.Client",
        patience: Patience,
        *,
        close: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._patience, self._close, self._monotonic = client, patience, close, monotonic

    def hang_up(self) -> None:
        """The next request opens a connection, and TLS, of its own: one that stays open tells that both are one's."""
        self._close()

    def answered(self, ask: Ask) -> Answer:
        """The whole answer to a request that names no file. Raises: ServerError."""
        with self.opened(ask) as (response, blocks):
            body = b"" if response.is_redirect else whole(blocks, ask.most)
        return Answer(response.status_code, {name.lower(): said for name, said in response.headers.items()}, body)

    def held(self, conversation: Conversation[T]) -> T:
        """What a conversation comes to whose requests name no file. Raises: what it raises; ServerError."""
        return driven(conversation, self.answered)

    @contextmanager
    def opened(
        self, ask: Ask, headers: Mapping[str, str] | None = None
    ) -> Iterator[tuple["httpx.Response", Iterator[bytes]]]:
        """The response, and its bytes as they come, as long as there is time. headers: beside those of the ask."""
        httpx = of_extra("deployment", "httpx")
        until, answered = self._monotonic() + ask.seconds, False
        content, all_headers = ask.body or None, {**ask.headers, **(headers or {})}
        self._patience.until = until
        try:
            with self._client.stream(ask.method, ask.path, content=content, headers=all_headers) as response:
                answered = True
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise ServerError("the answer is compressed, which was not asked for; it is not unpacked.")
                yield response, self._in_time(response.iter_raw(), until, ask.seconds)
        except httpx.TimeoutException as error:
            unsent = isinstance(error, httpx.ConnectTimeout)
            raise ServerError(f"the server did not answer in time ({type(error).__name__}).", unsent=unsent) from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            unsent = isinstance(error, httpx.ConnectError)  # raised before a connection, or its TLS, is there
            wants_tls = not answered and not unsent and self._client.base_url.scheme == "http"
            raise ServerError(_why_silent(error, wants_tls=wants_tls), unsent=unsent) from error

    def _in_time(self, blocks: Iterator[bytes], until: float, seconds: float) -> Iterator[bytes]:
        for block in blocks:
            if self._monotonic() > until:
                raise ServerError(f"the server took longer than {seconds:.0f} s for an answer; try again later.")
            yield block


@contextmanager
def connected(server: Server, *, certificates: Path | None = None, through: Any = None) -> Iterator[Connection]:
    """A connection to a server, closed again.

    certificates: PEM of the authorities to believe, in place of the system's. through: an httpx transport in place of
    the network, for tests. Raises: InputError where the file of certificates is none.
    """
    httpx = of_extra("deployment", "httpx")
    patience = Patience()
    transport = _network(_verified(certificates), patience) if through is None else through
    try:
        client = httpx.Client(
            base_url=server.url,
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            timeout=PATIENCE,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        )
    except httpx.InvalidURL as error:
        raise InputError(f"--server {server.url!r} is no server's address ({error}); give https://HOST.") from None
    with client:
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # nothing that links check-ins
        yield Connection(client, patience, close=transport.close)


def _verified(certificates: Path | None) -> ssl.SSLContext:
    """Raises: InputError where the file has no certificates."""
    if certificates is not None and certificates.exists() and not certificates.is_file():
        raise InputError(f"--certificates '{certificates}' is no file, whose end would be known; give a file in PEM.")
    try:
        return ssl.create_default_context(cafile=None if certificates is None else str(certificates))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"'{certificates}' has no certificates ({error}); give a file in PEM.") from None


def _network(verified: ssl.SSLContext, patience: Patience) -> Any:
    """httpx's transport, every read and write of which ends when the patience does.

    httpx bounds each read by itself, so that a server which sends a byte now and then would be waited for for ever.
    """
    httpx, core = of_extra("deployment", "httpx"), of_extra("deployment", "httpcore")

    class Stream(core.NetworkStream):  # type: ignore[name-defined,misc]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return bytes(self._inner.read(max_bytes, patience.left(core.ReadTimeout, timeout)))

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            for at in range(0, len(buffer), BLOCK):  # the system's own call would begin the time anew with each byte
                self._inner.write(buffer[at : at + BLOCK], patience.left(core.WriteTimeout, timeout))

        def close(self) -> None:
            self._inner.close()

        def start_tls(self, *given: Any, **named: Any) -> Any:
            return Stream(self._inner.start_tls(*given, **named))

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Network(core.SyncBackend):  # type: ignore[name-defined,misc]
        def connect_tcp(self, *given: Any, **named: Any) -> Any:
            return Stream(super().connect_tcp(*given, **named))

    transport = httpx.HTTPTransport(verify=verified, trust_env=False)
    transport._pool.close()
    transport._pool = core.ConnectionPool(ssl_context=verified, network_backend=Network(), max_connections=1)
    return transport


def _why_silent(error: Exception, *, wants_tls: bool) -> str:
    """Why there is no answer, and what to do where one side speaks TLS and the other does not."""
    said = f"the server cannot be spoken to ({error or type(error).__name__})"
    if any(hint in str(error) for hint in NO_TLS):
        return f"{said}: what listens there speaks no TLS; on this machine give http://, elsewhere its port with TLS."
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            f"{said}: nobody whom this machine believes says who it is; an authority's own is --certificates FILE.pem."
        )
    if wants_tls:
        return f"{said}: it closed without a word, as a server does that speaks TLS; if it does, give https://."
    return f"{said}."


def whole(blocks: Iterator[bytes], most: int = MOST_CONTROL) -> bytes:
    """All of an answer in JSON, of `most` bytes. Raises: ServerError for one that is longer."""
    content = bytearray()
    for block in blocks:
        content += block
        if len(content) > most:
            raise ServerError(f"an answer of more than {most:,} bytes; the rest is not read.")
    return bytes(content)


def driven(conversation: Generator[S, Any, T], answered: Callable[[S], Any]) -> T:
    """What a conversation comes to, each step of which `answered` answers; the ServerErrors of that are thrown in.

    Raises: what the conversation raises; what else `answered` does.
    """
    try:
        step = next(conversation)
        while True:
            try:
                answer = answered(step)
            except ServerError as error:
                step = conversation.throw(error)
            else:
                step = conversation.send(answer)
    except StopIteration as ended:
        return cast(T, ended.value)
    finally:
        conversation.close()
