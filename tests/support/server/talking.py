"""A device's connection to the application, and its record."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.support.device.operator import Wire
from tests.support.server.served import KEY, Served, check_in

from tacit.device.record import DeviceRecord, opened
from tacit.protocol.bounded_http import Connection, Server, connected
from tacit.protocol.messages import CheckIn

CODE, OTHER = "correct-horse-battery-staple", "another-horse-another-staple"
SAID = CheckIn(**check_in())


@contextmanager
def talking(worker: Served) -> Iterator[tuple[Connection, list[httpx.Request]]]:
    """A device's own connection to the application, and what went over it."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        path, body = request.url.raw_path.decode(), request.read()
        said = {name: value for name, value in request.headers.items() if name == "content-type"}
        asked = worker.asks(lambda client: client.request(request.method, path, content=body, headers=said))
        return httpx.Response(asked.status_code, headers={"Content-Type": "application/json"}, content=asked.content)

    with connected(Server.from_url("http://127.0.0.1:1"), through=Wire(answer)) as connection:
        yield connection, seen


@contextmanager
def a_record(folder: Path) -> Iterator[DeviceRecord]:
    with opened(folder / "device", now=0.0, first_time=True) as record:
        record.pin(KEY.public)
        yield record
