"""A decryptor of rounds of one message, as a third party runs it: lines of messages in, lines of answers out."""

import base64
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from tacit.errors import InputError, ProtocolError, RunError, TaskRefused, of_type
from tacit.files import PathLike, as_path, check_folder, held, read_bounded
from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor
from tacit.secure_aggregation.one_message.decryptor_messages import KeySum, NoiseRequest, Refusal
from tacit.secure_aggregation.small_order import anybody_signs
from tacit.secure_aggregation.wire import ROUND_BYTES, opened

IDENTITY = re.compile(r"[0-9a-fA-F]{64}")
NO_ROUND = bytes(ROUND_BYTES)  # of a refusal of what is no message


class Contributor(Protocol):
    """What adds a decryptor's noise to sums: `contributor.contributor.NoiseContributor`."""

    def answer(self, request: NoiseRequest) -> bytes | None:
        """Its report, if it is to be given now. Raises: ProtocolError, InputError, RunError, TaskRefused."""
        ...


class DecryptorDesk:
    """A decryptor that waits for messages."""

    def __init__(self, state: Path, decryptor: Decryptor) -> None:
        self.folder, self._decryptor, self._turn = state, decryptor, threading.Lock()
        # its noise for the rounds of one operator's plans, where it has that operator's key; None: it adds none
        self.contributor: Contributor | None = None

    @property
    def identity(self) -> str:
        """Its Ed25519 public key, 64 hexadecimal digits: how clients and servers know it."""
        return self._decryptor.identity.hex()

    @property
    def box(self) -> str:
        """The X25519 public key that clients seal its shares to, 64 hexadecimal digits."""
        return self._decryptor.box.hex()

    def __str__(self) -> str:
        """Its public keys, as `tacit decryptor` shows them to whom it is to be named."""
        return f"identity {self.identity}\nbox {self.box}"

    def answers(self, lines: Iterable[str], *, refused: Callable[[str], None] = lambda why: None) -> Iterator[str]:
        """For each line, a message in base64, one line: the answer in base64, empty where there is none to give.

        What is not followed is answered by a `Refusal` that says why, which `refused` is told too; it has changed
        nothing. An answer is on disk before it is given. Raises: InputError where another process runs this decryptor.
        """
        with _alone(self.folder):
            for line in lines:
                yield base64.b64encode(self._answer(line, refused)).decode()

    def answers_at_once(
        self, messages: Iterable[bytes], *, refused: Callable[[str], None] = lambda why: None
    ) -> list[bytes]:
        """The answers to messages that came together, up to the first refusal or sum: what is behind it is not read.

        Other messages wait meanwhile, so that a server may send all of a round at once, whoever else asks. Whoever
        calls it has the decryptor to himself (`alone`).
        """
        found: list[bytes] = []
        with self._turn:
            for data in messages:
                answer, ends = self._answered(data, refused)
                if answer:
                    found.append(answer)
                if ends:
                    break
        return found

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else runs this decryptor meanwhile. Raises: InputError where another process does."""
        return _alone(self.folder)

    def _answer(self, line: str, refused: Callable[[str], None]) -> bytes:
        try:
            data = _decoded(line)
        except ProtocolError as error:
            refused(str(error))
            return Refusal(NO_ROUND, str(error).encode()).to_bytes()
        return self._answered(data, refused)[0]

    def _answered(self, data: bytes, refused: Callable[[str], None]) -> tuple[bytes, bool]:
        """(the answer, empty where there is none; whether nothing is read after it)."""
        round = NO_ROUND
        try:
            kind, round = opened(data)
            if kind == NoiseRequest.kind:
                return self._noise(NoiseRequest.from_bytes(data)) or b"", False
            answer = self._decryptor.receive(data)
            return (b"", False) if answer is None else (answer.to_bytes(), isinstance(answer, KeySum))
        except (ProtocolError, InputError, RunError, TaskRefused) as error:
            refused(str(error))
            return Refusal(round, str(error).encode()).to_bytes(), True

    def _noise(self, request: NoiseRequest) -> bytes | None:
        if self.contributor is None:
            raise InputError("this decryptor adds noise for no operator; start it with --port and --operator-key.")
        return self.contributor.answer(request)


def decryptor(
    state: PathLike, *, least_reports: int, clients: PathLike | None = None, contributors: PathLike | None = None
) -> DecryptorDesk:
    """A decryptor whose secret keys and whose answers are in the folder `state`, which is made where there is none.

    state: that folder. least_reports: the fewest that a sum is opened for.

    It opens no sum of fewer than `least_reports` reports, whatever a server asks. clients: a file with the identity
    of an enrolled client, 64 hexadecimal digits, in each line; a set with anybody else in it is refused. Without it a
    server can invent clients, and so learn the vector of a real one (docs/secure-aggregation-protocols.md).
    contributors: such a file of those who must add noise to every round; a round without one of them is refused.
    Raises: InputError for values that are none, for a folder or a file that is something else or damaged, and where
    another process runs this decryptor.
    """
    folder = as_path("state", state)
    of_type("least_reports", least_reports, int)
    if least_reports < 2:
        raise InputError(f"least_reports={least_reports}: the sum of one is that one; give at least 2.")
    known = None if clients is None else _identities(as_path("clients", clients))
    always = frozenset() if contributors is None else _identities(as_path("contributors", contributors))
    check_folder("state", folder)
    make_decryptor(folder)
    with _alone(folder):  # found out before anybody is told its keys
        pass
    return DecryptorDesk(folder, Decryptor(folder, least_reports=least_reports, clients=known, always=always))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else runs this decryptor meanwhile. Raises: InputError where somebody does."""
    try:
        with held(folder):
            yield
    except BlockingIOError:
        raise InputError(f"another process runs the decryptor of '{folder}'; end that one first.") from None


def _decoded(line: str) -> bytes:
    """Raises: ProtocolError for a line that is no base64."""
    try:
        return base64.b64decode(line.strip(), validate=True)
    except ValueError:
        raise ProtocolError("this line is no base64.") from None


def _identities(file: Path) -> frozenset[bytes]:
    """Those of a file, one in each line. Raises: InputError for a file that is something else."""
    found = set()
    try:
        lines = read_bounded(file).decode("ascii", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"'{file}' cannot be read ({error.strerror}); give a file of identities.") from None
    for number, line in enumerate(lines, 1):
        if IDENTITY.fullmatch(line.strip()) is None or anybody_signs(bytes.fromhex(line)):
            raise InputError(
                f"line {number} of '{file}' is no identity; give 64 hexadecimal digits in each line, as `tacit "
                f"decryptor` "
                "shows its own."
            )
        found.add(bytes.fromhex(line))
    if not found:
        raise InputError(f"'{file}' names nobody; give an identity in each line, or leave the file out.")
    return frozenset(found)
