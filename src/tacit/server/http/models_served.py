"""Models on their way out: by digest, in ranges, compressed where it helps, kept in memory for a few rounds."""

import asyncio
import gzip
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tacit.server.http.problems import Refused
from tacit.server.http.services import Limits, Services
from tacit.server.store.blobs import model_name

KEPT = 3  # models in memory: those of rounds in progress, and the last one's
PIECE = 1 << 20  # bytes that are written at a time; a view of the model, so that a slow reader holds none of them
LOOK_S = 0.02  # between two looks into the store for models that are not known, whatever strangers ask for
HELPS = 0.95  # of its size, below which a compressed model is kept
RANGE = re.compile(r"bytes=([0-9]{1,12})?-([0-9]{1,12})?")
MEDIA_TYPE = "application/octet-stream"


class ServedModel(NamedTuple):
    """A model, and the same compressed where that is shorter."""

    plain: bytes
    gzip: bytes | None


class Models:
    """The models of the rounds in progress."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._kept: OrderedDict[str, ServedModel] = OrderedDict()
        self._reading = asyncio.Lock()

    async def response(self, digest: str, headers: Mapping[str, str]) -> Response:
        """What a GET is answered with. Raises: Refused for a model of no round in progress, and for a wrong range."""
        if not await self._is_current(digest):
            raise Refused("not-found", "no round in progress has this model; check in again.")
        tag = f'"{digest}"'
        always = {"ETag": tag, "Cache-Control": "public, max-age=31536000, immutable", "Accept-Ranges": "bytes"}
        if tag in headers.get("if-none-match", ""):
            return Response(status_code=304, headers=always)
        served = await self._served(digest)
        wanted = RANGE.fullmatch(headers.get("range", ""))
        if wanted is not None and headers.get("if-range", tag) == tag:
            first, end = _within(wanted, len(served.plain))
            always["Content-Range"] = f"bytes {first}-{end - 1}/{len(served.plain)}"
            return self._pieces(memoryview(served.plain)[first:end], 206, always)
        always["Vary"] = "Accept-Encoding"
        if served.gzip is not None and "gzip" in headers.get("accept-encoding", ""):
            always |= {"Content-Encoding": "gzip", "ETag": f'"{digest}-gzip"'}
            return self._pieces(memoryview(served.gzip), 200, always)
        return self._pieces(memoryview(served.plain), 200, always)

    async def _is_current(self, digest: str) -> bool:
        """Whether a round in progress has this model, maybe one that was opened since the last look."""
        snapshot, store = self._services.snapshot, self._services.store
        if digest not in snapshot.models() and not 0 <= store.now() - snapshot.taken < LOOK_S:
            await self._services.threaded(snapshot.refresh)
        return digest in snapshot.models()

    async def _served(self, digest: str) -> ServedModel:
        async with self._reading:  # a hundred devices that want it cause one look
            if digest not in self._kept:
                self._kept[digest] = await self._services.threaded(self._read, digest)
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(digest)
            return self._kept[digest]

    def _read(self, digest: str) -> ServedModel:
        plain = self._services.blobs.get(model_name(digest), digest=digest)
        packed = gzip.compress(plain, 1, mtime=0)
        return ServedModel(plain, packed if len(packed) < HELPS * len(plain) else None)

    def _pieces(self, content: memoryview, status: int, headers: dict[str, str]) -> Response:
        self._services.metrics.model_bytes.inc(len(content))
        return Pieces(content, status, headers, self._services.limits)


class Pieces(Response):
    """Bytes, written piece by piece as they are read, to whoever reads them fast enough."""

    media_type = MEDIA_TYPE

    def __init__(self, content: memoryview, status: int, headers: dict[str, str], limits: Limits) -> None:
        super().__init__(status_code=status, headers={**headers, "Content-Length": str(len(content))})
        self._content, self._limits = content, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = self._content if scope["method"] != "HEAD" else self._content[:0]
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with asyncio.timeout(self._limits.grace_s + len(content) / self._limits.slowest):
            for at in range(0, len(content), PIECE):
                await send({"type": "http.response.body", "body": content[at : at + PIECE], "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _within(wanted: re.Match[str], size: int) -> tuple[int, int]:
    """(first, end) of a range, the end not in it. Raises: Refused for one that has no byte."""
    first, last = wanted[1], wanted[2]
    if first is None:
        start, end = max(0, size - int(last or 0)), size
    else:
        start, end = int(first), size if last is None else min(size, int(last) + 1)
    if start >= end:
        raise Refused("range", f"the model has {size} bytes.", Content_Range=f"bytes */{size}")
    return start, end
