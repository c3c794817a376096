"""How a device speaks to a server that it does not trust: few bytes, little time, no redirects, TLS unless on loopback.

Whatever comes is bounded before it is read, by bytes and by seconds; nothing is decompressed; a model is taken by its
SHA-256 alone, and its download goes on where it was cut off. Raises ServerError for all that the protocol does not
allow and for what does not come in time; nothing here decides whether to take part.
"""

import hashlib
import ipaddress
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from tacit.errors import InputError, ServerError
from tacit.extras import of_extra
from tacit.files import sync_folder
from tacit.protocol.key_rotation import SignedHandOver
from tacit.protocol.messages import (
    Answer,
    Assignment,
    CheckIn,
    ComeBack,
    ConsistencyProof,
    InclusionProof,
    Problem,
    SignedPlan,
    SignedReceipt,
)
from tacit.protocol.token_messages import BlindSignatures, SignedTokenKey, TokenRequest

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
MOST_CONTROL = 1 << 21  # bytes of an answer in JSON: a plan with its recipe, or a task with its settings
PATIENCE = 30.0  # seconds without a byte
SECONDS = 60.0  # for a whole answer in JSON
MODEL_BYTES_PER_SECOND = 10_000.0  # slower than that, a model is given up for now: it goes on where it was
LATER = (408, 425, 429)  # of the statuses below 500, those that another attempt may change
BLOCK = 1 << 16
USER_AGENT = "tacit-device"
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")  # OpenSSL's, of bytes that are no TLS
_ANSWER: TypeAdapter[ComeBack | Assignment] = TypeAdapter(Answer)
_PROBLEM = TypeAdapter(Problem)
_PLAN, _RECEIPT = TypeAdapter(SignedPlan), TypeAdapter(SignedReceipt)
_HAND_OVER = TypeAdapter(SignedHandOver)
_TOKEN_KEY, _TOKENS = TypeAdapter(SignedTokenKey), TypeAdapter(BlindSignatures)
_INCLUSION, _CONSISTENCY = TypeAdapter(InclusionProof), TypeAdapter(ConsistencyProof)


@dataclass(frozen=True)
class Server:
    """Where the server is, as its owner gave it, and checked."""

    url: str

    @classmethod
    def at(cls, url: str) -> "Server":
        """Raises: InputError for what is no address of a server, and for one without TLS that is not this machine."""
        parts = urlsplit(url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            raise InputError(f"--server {url!r} is no server's address; give https://HOST or https://HOST:PORT.")
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

    def check_in(self, check_in: CheckIn) -> ComeBack | Assignment:
        """What there is to do, or when to come back. Raises: ServerError."""
        body = check_in.model_dump_json().encode()
        answer = self._asked("POST", "/v1/check-in", content=body, headers={"Content-Type": "application/json"})
        return _parsed(_ANSWER, answer, "the answer to a check-in")

    def report(self, assignment: str, secret: str, body: bytes) -> SignedReceipt:
        """Send a report; the same bytes may be sent again. Raises: ServerError."""
        headers = {
            "Authorization": f"Bearer {secret}",
            "Content-Type": "application/octet-stream",
            "X-Content-SHA256": hashlib.sha256(body).hexdigest(),
        }
        seconds = SECONDS + len(body) / MODEL_BYTES_PER_SECOND
        answer = self._asked("POST", f"/v1/reports/{assignment}", content=body, headers=headers, seconds=seconds)
        return _parsed(_RECEIPT, answer, "the receipt")

    def give_back(self, assignment: str, secret: str) -> None:
        """Say that no report will come, so that another device gets the place. Raises: ServerError."""
        headers = {"Authorization": f"Bearer {secret}"}
        with self._opened("DELETE", f"/v1/reports/{assignment}", SECONDS, headers=headers) as (response, blocks):
            _check_status(response, blocks, (204,))

    def plan(self, digest: str) -> SignedPlan:
        """The plan that goes by this digest; whether it is that one, the caller sees. Raises: ServerError."""
        return _parsed(_PLAN, self._asked("GET", f"/v1/plans/{digest}"), "the plan")

    def hand_over(self) -> SignedHandOver:
        """To which key the operator changed last. Raises: ServerError, also where it never did."""
        return _parsed(_HAND_OVER, self._asked("GET", "/v1/key/hand-over"), "the hand-over of the operator's key")

    def log_proof(self, leaf: str) -> InclusionProof:
        """That a leaf is in the operator's log. Raises: ServerError."""
        return _parsed(_INCLUSION, self._asked("GET", f"/v1/log/proof/{leaf}"), "the proof that the log has it")

    def log_consistency(self, first: int, second: int) -> ConsistencyProof:
        """That the log only grew between two sizes. Raises: ServerError."""
        answer = self._asked("GET", f"/v1/log/consistency?first={first}&second={second}")
        return _parsed(_CONSISTENCY, answer, "the proof that the log only grew")

    def token_key(self) -> SignedTokenKey:
        """By which this epoch's tokens are signed. Raises: ServerError."""
        return _parsed(_TOKEN_KEY, self._asked("GET", "/v1/tokens/key"), "the key of tokens")

    def blind_signatures(self, request: TokenRequest) -> BlindSignatures:
        """The tokens of an epoch, blinded. Raises: ServerError."""
        body, kind = request.model_dump_json().encode(), {"Content-Type": "application/json"}
        return _parsed(_TOKENS, self._asked("POST", "/v1/tokens", content=body, headers=kind), "the tokens")

    def log_entries(self) -> bytes:
        """All entries of the operator's log, a line each. Raises: ServerError."""
        return self._asked("GET", "/v1/log/entries")

    def model(self, path: str, sha256: str, size: int, folder: Path, *, what: str = "model") -> bytes:
        """The model, or what else it is, with this digest, of so many bytes, kept in `folder` for the next time; others
        there go.

        What was cut off is gone on with. Raises: ServerError, also where other bytes came, which are not kept; OSError
        (a full disk, say).
        """
        kept, part = folder / sha256, folder / f"{sha256}.part"
        folder.mkdir(mode=0o700, exist_ok=True)
        if kept.exists() and kept.stat().st_size == size:
            content = kept.read_bytes()
            if hashlib.sha256(content).hexdigest() == sha256:
                return content
        kept.unlink(missing_ok=True)  # another file by this name: it was damaged
        for other in folder.iterdir():
            if other not in (kept, part):
                other.unlink()
        if part.exists() and part.stat().st_size >= size:
            part.unlink()
        self._download(path, part, size, what)
        content = part.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            part.unlink()
            raise ServerError(f"the {what} that came is not {sha256[:16]}... (its SHA-256 differs); try again later.")
        part.rename(kept)
        sync_folder(folder)
        return content

    def _download(self, path: str, part: Path, size: int, what: str) -> None:
        there = part.stat().st_size if part.exists() else 0
        headers = {"Range": f"bytes={there}-"} if there else {}
        seconds = SECONDS + (size - there) / MODEL_BYTES_PER_SECOND
        with self._opened("GET", path, seconds, headers=headers) as (response, blocks):
            begins = f"bytes {there}-{size - 1}/{size}"
            if response.status_code == 206 and response.headers.get("Content-Range") != begins:
                raise ServerError(f"another part of the {what} came than the one that was asked for ({begins}).")
            _check_status(response, blocks, (200, 206) if there else (200,))
            at = there if response.status_code == 206 else 0
            with part.open("ab" if at else "wb") as file:
                for block in blocks:
                    at += len(block)
                    if at > size:
                        raise ServerError(
                            f"more than the {size:,} bytes of the {what} came; what is too much is not read."
                        )
                    file.write(block)
        if at != size:
            raise ServerError(f"{at:,} of the {what}'s {size:,} bytes came; the rest is asked for the next time.")

    def _asked(self, method: str, path: str, *, seconds: float = SECONDS, **sent: Any) -> bytes:
        """The whole answer. Raises: ServerError for another status than 200."""
        with self._opened(method, path, seconds, **sent) as (response, blocks):
            _check_status(response, blocks, (200,))
            return _whole(blocks)

    @contextmanager
    def _opened(
        self, method: str, path: str, seconds: float, **sent: Any
    ) -> Iterator[tuple["httpx.Response", Iterator[bytes]]]:
        """The response, and its bytes as they come, as long as there is time."""
        httpx = of_extra("deployment", "httpx")
        until, answered = self._monotonic() + seconds, False
        self._patience.until = until
        try:
            with self._client.stream(method, path, **sent) as response:
                answered = True
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise ServerError("the answer is compressed, which was not asked for; it is not unpacked.")
                yield response, self._in_time(response.iter_raw(), until, seconds)
        except httpx.TimeoutException as error:
            raise ServerError(f"the server did not answer in time ({type(error).__name__}).") from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            wants_tls = (
                not answered and self._client.base_url.scheme == "http" and not isinstance(error, httpx.ConnectError)
            )
            raise ServerError(_why_silent(error, wants_tls=wants_tls)) from error

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
    client = httpx.Client(
        base_url=server.url,
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=PATIENCE,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
    )
    with client:
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # nothing that links check-ins
        yield Connection(client, patience, close=transport.close)


def _verified(certificates: Path | None) -> ssl.SSLContext:
    """Raises: InputError where the file has no certificates."""
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


def _check_status(response: "httpx.Response", blocks: Iterator[bytes], allowed: tuple[int, ...]) -> None:
    """Raises: ServerError with what the server says of itself, made visible by whoever shows it."""
    if response.status_code in allowed:
        return
    if response.is_redirect:
        raise ServerError(
            f"the server sends on to another place ({response.status_code}), where no device follows.", final=True
        )
    try:
        problem = _PROBLEM.validate_json(_whole(blocks))
        said, kind = problem.detail, problem.type
    except ValidationError:
        said, kind = "no reason in the protocol's form", None
    later = response.status_code >= 500 or response.status_code in LATER
    raise ServerError(f"the server answers {response.status_code}: {said}", final=not later, kind=kind)


def _whole(blocks: Iterator[bytes]) -> bytes:
    content = b""
    for block in blocks:
        content += block
        if len(content) > MOST_CONTROL:
            raise ServerError(f"an answer of more than {MOST_CONTROL:,} bytes; the rest is not read.")
    return content


def _parsed(reader: TypeAdapter[T], content: bytes, what: str) -> T:
    """Raises: ServerError naming the first thing that is wrong."""
    try:
        return reader.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise ServerError(f"{what} is none of the protocol's: {where}: {first['msg']}.") from None
