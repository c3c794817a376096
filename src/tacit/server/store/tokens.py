"""Single-use tokens: a device that is enrolled takes part, and nobody knows which one (blind RSA, RFC 9474).

The operator gives each device a code. With it the device asks, once an epoch, for a batch of blind signatures, and
shows one of the signatures that come of them when it is given a task. The signatures are by a key of the epoch, the
same for everybody: it is in the transparency log, and so is how many a batch has, so that no device can be told from
the others by its key or its count. What was redeemed is kept as a hash until its epoch ends.
"""

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from tacit.errors import InputError, StoreError
from tacit.files import write_whole
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.blind_rsa import PREFIX_BYTES
from tacit.protocol.messages import BlindSignatures, Signed, TokenKey, TokenRequest
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.token_format import CODE, EPOCH_BYTES, bound_to, epoch_entries, message_of, token_key_entry
from tacit.server.log.transparency import TransparencyLog
from tacit.server.store.blind_signer import Signer
from tacit.server.store.schema import batches, enrolments, tokens
from tacit.server.store.store import Store, insert_into

EPOCH_S = 7 * 86400.0
BATCH = 32  # tokens that a device has for an epoch
KEPT = 256  # answers, some 20 kB each, for devices that ask again
TEXT = ".json"  # of the files there with what is said of a key
SUFFIX = ".tokens"  # of the folder with the keys of the epochs, beside the operator's


@dataclass(frozen=True)
class Epochs:
    """How long a key is used, and for how much."""

    seconds: float = EPOCH_S
    batch: int = BATCH


class IssuedKey(NamedTuple):
    """The key of an epoch's tokens."""

    signer: Signer
    key: TokenKey
    signed: Signed  # as devices get it


class Issuer:
    """A worker's part: it signs for who is enrolled, and knows what it signed when it is shown."""

    def __init__(
        self, store: Store, key: OperatorKey, path: Path, epochs: Epochs = Epochs(), devices: Attestation = NOTHING
    ) -> None:
        """path: of the operator's key; keys of epochs lie in a folder beside it, which all workers share. devices: what
        each has to show.
        """
        self._devices = devices
        self._store, self._operator, self._epochs = store, key, epochs
        self._folder, self._log = path.with_suffix(SUFFIX), TransparencyLog.beside(store, key, path)
        self._lock = threading.Lock()
        self._current: IssuedKey | None = None
        self._answers: dict[bytes, BlindSignatures] = {}  # the last ones, by the digests of their requests

    def key(self) -> Signed:
        """Of this epoch; made, and entered into the log, by the first that asks. Raises: StoreError; InputError."""
        return self._now().signed

    def sign(self, request: TokenRequest) -> BlindSignatures | None:
        """One batch for an enrolled device and this epoch, the same again for the same request; None: it may not.

        A request that is repeated costs a look into the store: the last answers are kept. Raises: InputError for
        another epoch or number, what is no blinded message, or no device; StoreError.
        """
        signer, current, _ = self._now()
        if request.epoch != current.epoch or len(request.blinded) != current.batch:
            raise InputError(
                f"this is epoch {current.epoch}, whose batches have {current.batch} tokens; ask for its key."
            )
        code, body = hashlib.sha256(request.code.encode()).hexdigest(), bound_to(request)
        with self._store.reading() as connection:
            if not _may_ask(connection, code, request.epoch, body):
                return None
        self._devices.check(None if request.evidence is None else bytes.fromhex(request.evidence), body)
        if (answer := self._answers.get(body)) is not None:  # it has what nobody else asked for: its code is in it
            return answer
        for each in request.blinded:  # before the batch is bound to them
            signer.number_of(bytes.fromhex(each))
        with self._store.writing() as connection:
            row = {"hash": code, "epoch": request.epoch, "digest": body.hex()}
            connection.execute(insert_into(connection, batches).values(row).on_conflict_do_nothing())
            if not _may_ask(connection, code, request.epoch, body):  # another request was first, or the code is gone
                return None
        signed = tuple(signer.sign(bytes.fromhex(each)).hex() for each in request.blinded)
        return self._kept(body, BlindSignatures(epoch=request.epoch, signatures=signed))

    def _kept(self, body: bytes, answer: BlindSignatures) -> BlindSignatures:
        with self._lock:
            self._answers[body] = answer
            for oldest in list(self._answers)[:-KEPT]:
                del self._answers[oldest]
        return answer

    def redeemable(self, token: str) -> tuple[str, int] | None:
        """(hash, epoch) of a token that this epoch's key signed; None for any other, and it may be redeemed already."""
        signer, current, _ = self._now()
        content, head = bytes.fromhex(token), EPOCH_BYTES + PREFIX_BYTES
        epoch, prefix = int.from_bytes(content[:EPOCH_BYTES], "big"), content[EPOCH_BYTES:head]
        prepared = prefix + message_of(current.epoch)
        if epoch != current.epoch or not signer.public.is_signature(prepared, content[head:]):
            return None
        return hashlib.sha256(prepared).hexdigest(), epoch

    def _now(self) -> "IssuedKey":
        epoch = int(self._store.now() // self._epochs.seconds)
        with self._lock:
            if self._current is None or self._current.key.epoch < epoch:
                self._current = self._of(epoch)
            return self._current

    def _of(self, epoch: int) -> "IssuedKey":
        """The key of an epoch, and the end of those before it; of a later one where the clock was set back, or the
        epoch's key was lost: an epoch has one key for ever, and devices refuse two.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            epoch = max([epoch, *(int(each.stem) for each in self._folder.glob("*.pem") if each.stem.isdigit())])
            signer, text = self._made(epoch)
            entries = self._log.entries()
            while {each for each in entries if each.startswith(epoch_entries(epoch))} - {token_key_entry(epoch, text)}:
                epoch += 1
                signer, text = self._made(epoch)
            self._log.append(token_key_entry(epoch, text))
        except OSError as error:
            raise StoreError(f"the keys of tokens in '{self._folder}' cannot be used ({error.strerror}).") from None
        finally:
            os.close(folder)
        with self._store.writing() as connection:
            for table in (tokens, batches):
                connection.execute(delete(table).where(table.c.epoch < epoch))
        for old in self._folder.iterdir():
            if old.suffix in (".pem", TEXT) and old.stem.isdigit() and int(old.stem) < epoch:
                old.unlink(missing_ok=True)
        signed = Signed(document=text, signature=self._operator.signature(TokenKey.purpose, text))
        return IssuedKey(signer, TokenKey.from_json(text), signed)

    def _made(self, epoch: int) -> tuple[Signer, str]:
        """The epoch's key and what is said of it, of the files that have them, or made and written now: of one key one
        text for ever, whichever version of a server wrote it. Raises: OSError.
        """
        secret, said, seconds = self._folder / f"{epoch}.pem", self._folder / f"{epoch}{TEXT}", self._epochs.seconds
        if not secret.exists():
            said.unlink(missing_ok=True)  # it is of another key, which was lost
            _write_secret(secret, Signer.new().to_pem())
        signer = Signer.from_pem(secret.read_bytes())
        if not said.exists():
            key = TokenKey(
                epoch=epoch,
                opens=epoch * seconds,
                ends=(epoch + 1) * seconds,
                batch=self._epochs.batch,
                modulus=f"{signer.public.n:x}",
                exponent=signer.public.e,
            )
            write_whole(said, key.to_json().encode())
        return signer, said.read_text(encoding="utf-8")


def _may_ask(connection: Connection, code: str, epoch: int, body: bytes) -> bool:
    """Whether the code's hash is enrolled, and nothing but this was asked by it in the epoch."""
    if connection.execute(select(enrolments).where(enrolments.c.hash == code)).first() is None:
        return False
    mine = batches.c.hash == code, batches.c.epoch == epoch
    return connection.execute(select(batches.c.digest).where(*mine)).scalar() in (None, body.hex())


def enrol(store: Store, codes: Iterable[str]) -> int:
    """Let whoever has one of these codes ask for tokens, and nobody else; how many. Only their hashes are kept.

    Raises: InputError for a code that is too short to be a secret, or stands twice.
    """
    listed = [each.strip() for each in codes if each.strip()]
    if bad := next((number for number, each in enumerate(listed, 1) if not CODE.fullmatch(each)), None):
        raise InputError(f"enrolment code {bad} is no secret: give 20 to 200 random characters without spaces, a line.")
    if len(set(listed)) != len(listed) or not listed:
        raise InputError("the enrolment codes are none, or one stands twice; give each device its own.")
    wanted = {hashlib.sha256(each.encode()).hexdigest() for each in listed}
    with store.writing() as connection:
        known = set(connection.execute(select(enrolments.c.hash)).scalars())
        if gone := known - wanted:
            connection.execute(delete(enrolments).where(enrolments.c.hash.in_(sorted(gone))))
        if new := sorted(wanted - known):
            connection.execute(insert(enrolments), [{"hash": each} for each in new])
    return len(wanted)


def _write_secret(path: Path, content: bytes) -> None:
    mask = os.umask(0o077)
    try:
        write_whole(path, content)
    finally:
        os.umask(mask)
