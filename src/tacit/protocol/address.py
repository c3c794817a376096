"""Where a server or a decryptor listens, and what protects its connections: TLS, unless this machine alone reaches
it.
"""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InputError, of_type

HOST, PORT = "127.0.0.1", 8470
BACKLOG = 4096


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server listens, and how its connections are protected.

    host: the address of this machine to listen on. port: 0 for any that is free. tls_certificate, tls_key: PEM files,
    given together. behind_proxy: a proxy ends TLS, and alone reaches this address. Raises: InputError where others
    would reach it without TLS.
    """

    host: str = HOST
    port: int = PORT
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False  # which ends TLS, and alone can reach this address

    def __post_init__(self) -> None:
        of_type("host", self.host, str)
        of_type("port", self.port, int)
        try:
            self.host.encode("idna")  # as sockets do, which leave one open where it cannot be
        except UnicodeError:
            raise InputError(f"--host {self.host[:60]!r} is no name of a machine; give one, or an address.") from None
        if not 0 <= self.port < 1 << 16:
            raise InputError(f"--port {self.port} is none; give one from 1 to 65535, or 0 for any that is free.")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InputError("TLS takes a certificate and its key; give both --tls-cert and --tls-key.")
        for file in (self.tls_certificate, self.tls_key):
            if file is not None and not file.is_file():
                raise InputError(f"'{file}' is no file; give certificate and key in PEM.")
        if not (self.is_loopback or self.tls_certificate or self.behind_proxy):
            raise InputError(
                f"--host {self.host} can be reached by others, and without TLS they read and change what devices send; "
                "give --tls-cert and --tls-key, or --behind-proxy where a proxy on the way ends TLS."
            )

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def tls(self) -> dict[str, Path | None]:
        """What a worker is told of it."""
        return {"tls_certificate": self.tls_certificate, "tls_key": self.tls_key}

    @contextmanager
    def listening(self) -> Iterator[socket.socket]:
        """The socket, which processes may inherit. Raises: InputError where it cannot be had."""
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            with socket.create_server((self.host, self.port), family=family, backlog=BACKLOG) as listener:
                yield listener
        except OSError as error:
            if error.errno is None or error.strerror is None:
                raise
            raise InputError(
                f"--host {self.host} --port {self.port} cannot be listened on ({error.strerror}); end what listens "
                "there, or give another."
            ) from None

    def url(self, listener: socket.socket) -> str:
        """What devices are given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls_certificate else ''}://{host}:{listener.getsockname()[1]}"
