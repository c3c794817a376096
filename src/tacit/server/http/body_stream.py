"""A large body on its way from a socket straight into a buffer: not copied, and its reader is woken once."""

import asyncio
from collections.abc import Callable
from typing import cast


class BodyStream(asyncio.BufferedProtocol):
    """A connection's protocol until a buffer is full, or it is stopped; what comes then is the connection's again."""

    def __init__(
        self, transport: asyncio.Transport, connection: asyncio.Protocol, into: memoryview, count: int
    ) -> None:
        """count: bytes that are in the buffer already."""
        self._transport, self._connection, self._into = transport, connection, into
        self._length, self._loop = len(into), asyncio.get_running_loop()
        self.count = count  # bytes that came
        self.latest = self._loop.time()  # when the last of them did
        self.ended = self._loop.create_future()  # done when the buffer is full, or there is nothing more to come

    def begin(self, whole: Callable[[], object]) -> None:
        """Be the protocol. whole: called when the buffer is full."""
        self._whole = whole
        self._transport.set_protocol(self)

    def stop(self) -> None:
        """Be it no more."""
        if not self.ended.done():
            self.ended.set_result(None)
            self._into = memoryview(b"")  # transports keep `get_buffer` as long as they live
            if self._transport.get_protocol() is self:
                self._transport.set_protocol(self._connection)

    def get_buffer(self, sizehint: int) -> bytearray:
        """asyncio: where the next bytes go."""
        return cast(bytearray, self._into[self.count :])  # as typeshed has it; any writable buffer does

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: bytes came."""
        self.count, self.latest = self.count + nbytes, self._loop.time()
        if self.count == self._length:
            self.stop()
            self._whole()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: it is gone."""
        self.stop()
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """asyncio: the other side does not read."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """asyncio: it does."""
        self._connection.resume_writing()
