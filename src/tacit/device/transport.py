"""The network under a device's session: it sends the session's requests over a bounded connection, and keeps files.

A model is taken by its SHA-256 alone; its download goes on where it was cut off, and the last one stays on disk for the
next time. Nothing here decides whether to take part.
"""

import hashlib
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.device.turn import Pause
from tacit.errors import DeviceError, ServerError
from tacit.files import sync_folder
from tacit.protocol.bounded_http import Connection, driven, whole
from tacit.protocol.requests import BYTES_PER_SECOND, Answer, Ask, NamedFile, T, checked


def held(
    session: Generator[Ask | Pause, Any, T], connection: Connection, folder: Path, sleep: Callable[[float], None]
) -> T:
    """What a session comes to over this connection. folder: where it keeps files.

    Raises: what the session raises; DeviceError where a file cannot be kept.
    """

    def answered(step: Ask | Pause) -> Answer | None:
        if isinstance(step, Pause):
            sleep(step.seconds)
            return None
        if step.file is None:
            return connection.answered(step)
        place = folder / step.file.folder
        try:
            return Answer(200, {}, file_of(step, step.file, connection, place))
        except OSError as error:
            raise DeviceError(
                f"the {step.file.what} cannot be kept in '{place}' ({error.strerror}); make room there."
            ) from error

    return driven(session, answered)


def file_of(ask: Ask, file: NamedFile, connection: Connection, folder: Path) -> bytes:
    """The file with this digest, of so many bytes, kept in `folder` for the next time; others there go.

    What was cut off is gone on with. Raises: ServerError, also where other bytes came, which are not kept; OSError
    (a full disk, say).
    """
    kept, part = folder / file.sha256, folder / f"{file.sha256}.part"
    folder.mkdir(mode=0o700, exist_ok=True)
    if kept.exists() and kept.stat().st_size == file.size:
        content = kept.read_bytes()
        if hashlib.sha256(content).hexdigest() == file.sha256:
            return content
    kept.unlink(missing_ok=True)  # another file by this name: it was damaged
    for other in folder.iterdir():
        if other not in (kept, part):
            other.unlink()
    if part.exists() and part.stat().st_size >= file.size:
        part.unlink()
    _download(ask, file, connection, part)
    content = part.read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        part.unlink()
        raise ServerError(
            f"the {file.what} that came is not {file.sha256[:16]}... (its SHA-256 differs); try again later."
        )
    part.rename(kept)
    sync_folder(folder)
    return content


def _download(ask: Ask, file: NamedFile, connection: Connection, part: Path) -> None:
    there = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={there}-"} if there else {}
    rest = replace(ask, seconds=ask.seconds - there / BYTES_PER_SECOND)
    with connection.opened(rest, headers) as (response, blocks):
        begins = f"bytes {there}-{file.size - 1}/{file.size}"
        if response.status_code == 206 and response.headers.get("Content-Range") != begins:
            raise ServerError(f"another part of the {file.what} came than the one that was asked for ({begins}).")
        if response.status_code not in ((200, 206) if there else (200,)):
            checked(Answer(response.status_code, {}, b"" if response.is_redirect else whole(blocks)))
        at = there if response.status_code == 206 else 0
        with part.open("ab" if at else "wb") as sink:
            for block in blocks:
                at += len(block)
                if at > file.size:
                    raise ServerError(
                        f"more than the {file.size:,} bytes of the {file.what} came; what is too much is not read."
                    )
                sink.write(block)
    if at != file.size:
        raise ServerError(f"{at:,} of the {file.what}'s {file.size:,} bytes came; the rest is asked for the next time.")
