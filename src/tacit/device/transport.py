"""The network under a device's session: it sends the session's requests over a bounded connection.

A model is taken by its SHA-256 alone; its download goes on where it was cut off. Nothing of it stays for another turn:
a request that is left out would tell what the device had before. Nothing here decides whether to take part.
"""

import hashlib
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from io import BytesIO
from typing import Any

from tacit.device.turn import Pause
from tacit.errors import ServerError
from tacit.protocol.bounded_http import Connection, driven, whole
from tacit.protocol.requests import Answer, Ask, NamedFile, T, checked


def held(session: Generator[Ask | Pause, Any, T], connection: Connection, sleep: Callable[[float], None]) -> T:
    """What a session comes to over this connection. Raises: what the session raises."""

    def answered(step: Ask | Pause) -> Answer | None:
        if isinstance(step, Pause):
            sleep(step.seconds)
            return None
        if step.file is None:
            return connection.answered(step)
        return Answer(200, {}, file_of(step, step.file, connection))

    return driven(session, answered)


def file_of(ask: Ask, file: NamedFile, connection: Connection) -> bytes:
    """The file with this digest, of so many bytes. Where it is cut off the rest is asked for, as long as some came and
    the ask has time. Raises: ServerError, also where other bytes came.
    """
    came, until = BytesIO(), time.monotonic() + ask.seconds
    while came.tell() < file.size:
        there = came.tell()
        try:
            _download(replace(ask, seconds=until - time.monotonic()), file, connection, came)
        except ServerError as error:
            if error.final or came.tell() <= there or time.monotonic() >= until:
                raise
    content = came.getvalue()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ServerError(
            f"the {file.what} that came is not {file.sha256[:16]}... (its SHA-256 differs); try again later."
        )
    return content


def _download(ask: Ask, file: NamedFile, connection: Connection, came: BytesIO) -> None:
    there = came.tell()
    headers = {"Range": f"bytes={there}-"} if there else {}
    with connection.opened(ask, headers) as (response, blocks):
        begins = f"bytes {there}-{file.size - 1}/{file.size}"
        if response.status_code == 206 and response.headers.get("Content-Range") != begins:
            raise ServerError(f"another part of the {file.what} came than the one that was asked for ({begins}).")
        if response.status_code not in ((200, 206) if there else (200,)):
            checked(Answer(response.status_code, {}, b"" if response.is_redirect else whole(blocks)))
        if response.status_code == 200:
            came.seek(0)
            came.truncate()
        for block in blocks:
            if came.tell() + len(block) > file.size:
                raise ServerError(
                    f"more than the {file.size:,} bytes of the {file.what} came; what is too much is not read.",
                    final=True,
                )
            came.write(block)
    if came.tell() != file.size:
        raise ServerError(f"{came.tell():,} of the {file.what}'s {file.size:,} bytes came.")
