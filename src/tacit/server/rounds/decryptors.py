"""Decryptors over HTTP, from the server's side: messages that belong together go in one request, signed by the
operator.

A body is messages one after another, each behind its length (4 bytes, little-endian), and so is the answer. What is
signed is `tacit keeper v1`, a zero byte, the decryptor's identity and the SHA-256 of the body: so that a decryptor
reads no body of a stranger's, and nobody passes on to one decryptor what was meant for another.
"""

import hashlib
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.protocol.operator_key import OperatorKey
from tacit.server.rounds.one_message_rounds import DecryptorAway

PATH = "/v1/messages"
LENGTH_BYTES = 4
MOST_MESSAGE = 1 << 26  # bytes: a proposal names each client with 32
MOST_BODY = 1 << 30  # bytes: 30,000 boxes of 33 kB
MOST_ANSWER = MOST_MESSAGE + (1 << 22)  # bytes: a contributor's report; findings, a vote and a sum of keys are less
IN_MEMORY = 1 << 24  # bytes of a body; what is longer is in a file without a name
BLOCK = 1 << 18
CONNECT_S, SLOWEST = 10.0, 100_000.0  # seconds to connect; bytes a second that a decryptor takes, at least
THINKING_S = 60.0  # besides


def framed(message: bytes) -> bytes:
    """A message behind its length."""
    return len(message).to_bytes(LENGTH_BYTES, "little") + message


def unframed(body: IO[bytes]) -> Iterator[bytes]:
    """The messages of a body. Raises: InputError where it ends within one, or one is too long."""
    while head := body.read(LENGTH_BYTES):
        size = int.from_bytes(head, "little")
        if len(head) < LENGTH_BYTES or size > MOST_MESSAGE:
            raise InputError(f"no message of at most {MOST_MESSAGE} bytes stands behind this length.")
        message = body.read(size)
        if len(message) < size:
            raise InputError("the body ends within a message.")
        yield message


def signed_for_decryptor(identity: bytes, body_digest: bytes) -> bytes:
    """What the operator signs."""
    return b"tacit keeper v1\0" + identity + body_digest


@dataclass(frozen=True)
class HttpDecryptor:
    """A decryptor that is somewhere else; see `one_message_rounds.DecryptorTransport`."""

    url: str
    identity: bytes
    key: OperatorKey
    through: Any = None  # an httpx transport, in tests

    @property
    def name(self) -> str:
        """For whoever reads the log."""
        return f"the decryptor {self.identity.hex()[:16]} at {urlsplit(self.url).netloc}"

    def ask(self, messages: Iterable[bytes]) -> Sequence[bytes]:
        """See DecryptorTransport. Raises: DecryptorAway for whatever is no answer in time."""
        httpx = of_extra("deployment", "httpx")
        with SpooledTemporaryFile(IN_MEMORY) as body:
            digest = hashlib.sha256()
            for each in messages:
                piece = framed(each)
                digest.update(piece)
                body.write(piece)
            size = body.tell()
            body.seek(0)
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Length": str(size),
                "X-Content-SHA256": digest.hexdigest(),
                "X-Tacit-Signature": self.key.sign(signed_for_decryptor(self.identity, digest.digest())),
            }
            patience = httpx.Timeout(THINKING_S + size / SLOWEST, connect=CONNECT_S)
            tls = ssl.create_default_context()  # the system's certificates; SSL_CERT_FILE names others
            try:
                with (
                    httpx.Client(timeout=patience, trust_env=False, verify=tls, transport=self.through) as client,
                    client.stream("POST", self.url.rstrip("/") + PATH, headers=headers, content=_blocks(body)) as came,
                    _at_most(came.iter_bytes()) as answer,
                ):
                    if came.status_code != 200:
                        raise DecryptorAway(
                            f"it answers {came.status_code}: {answer.read(500).decode(errors='replace')}"
                        )
                    return list(unframed(answer))
            except (httpx.HTTPError, InputError) as error:
                raise DecryptorAway(f"it does not answer ({error or type(error).__name__}).") from error


def _blocks(body: IO[bytes]) -> Iterator[bytes]:
    while block := body.read(BLOCK):
        yield block


@contextmanager
def _at_most(pieces: Iterable[bytes]) -> Iterator[IO[bytes]]:
    """What a decryptor answers. Raises: DecryptorAway for more than any decryptor does."""
    with SpooledTemporaryFile(IN_MEMORY) as answer:
        for piece in pieces:
            answer.write(piece)
            if answer.tell() > MOST_ANSWER:
                raise DecryptorAway(f"it answers more than {MOST_ANSWER} bytes.")
        answer.seek(0)
        yield answer
