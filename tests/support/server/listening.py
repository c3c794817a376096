"""A worker of a test on a real socket, as `tacit serve` has it listen, in a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from tests.support.waiting import until

from tacit.protocol.address import Address
from tacit.server.http.connections import ServedConnection


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Its address, on loopback and without TLS."""
    with Address(port=0).listening() as listener:
        config = uvicorn.Config(
            app, http=ServedConnection, ws="none", lifespan="on", log_config=None, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            yield Address(port=0).url(listener)
        finally:
            server.should_exit = True
            thread.join()
