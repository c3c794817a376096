"""Noise that no server knows: each of K decryptors adds its own stream to the secure sum, and nobody sees it alone.

A decryptor takes part in a round as a client does, with the integers of its stream's round in place of an encoded
update. What they are is up to `mechanisms` (`all_rounds.DecryptorNoiseStream`); here is when they are given. A round
has one name, which is on disk before its noise is drawn. No round's noise is given under two names.
docs/secure-aggregation.md proves what follows if one decryptor is honest.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, ProtocolError, RunError
from tacit.files import check_folder, held, sweep_drafts, write_whole
from tacit.parsing import parsed_json
from tacit.privacy.encoding import WORD, Encoding
from tacit.secure_aggregation.decoding import SessionOutcome, basis
from tacit.secure_aggregation.encoding import SEED_BYTES
from tacit.secure_aggregation.wire import ROUND_BYTES

Arrays = Mapping[str, NDArray[Any]]

ROUNDS = "rounds.json"
LOST = "this decryptor's noise cannot go on, and with it the run; end it, and begin another with new decryptors."


class Stream(Protocol):
    """A stream of integer noise: state in, state out; equal arguments, equal bits."""

    def begin(self) -> Arrays:
        """The state before round 0, with a key of its own."""
        ...

    def draw(
        self, carried: Arrays, about: bytes, turn: SessionOutcome, back: SessionOutcome
    ) -> tuple[NDArray[np.int64], Arrays]:
        """The round's integers (dimension,), and the state after it; `carried` stays as it is."""
        ...


class Unrotated:
    """In place of an Encoding: whole numbers that stand for themselves, in words of 32 bits."""

    bits, modulus = WORD, 1 << WORD


def residues(noise: NDArray[np.int64], encoding: Encoding | Unrotated) -> NDArray[np.uint32]:
    """Integers (dimension,) as words modulo 2^bits, to be added to encoded updates; they carry no shift."""
    return (noise & (encoding.modulus - 1)).astype(np.uint32)


def contribution(words: NDArray[np.uint32], *, bits: int, margin: int) -> NDArray[np.uint32]:
    """What a contributor puts into a round of one message: noise + margin, for its words (dimension,) modulo 2^bits.

    margin: the round's, which `OneMessageRound.check` holds against its own before noise is drawn; noise is within
    -margin..margin. Raises: InputError where it is not: then it takes no part in the round, which is over without it.
    """
    found = (words + np.uint32(margin & ((1 << bits) - 1))) & np.uint32((1 << bits) - 1)
    if found.size and int(found.max()) > 2 * margin:
        raise InputError(
            f"noise beyond margin={margin:,} does not fit this round's slots; the round is over, go on with the next, "
            "and where it happens again ask for rounds with a larger margin (`Encoding.with_noise`)."
        )
    return found


class NoiseDecryptor:
    """One decryptor's noise in a folder of its own: asked for a round, it gives that round's integers modulo 2^bits.

    Rounds are asked for in their order, 0, 1, 2, ...; the last one again gives the same integers, so that an answer
    that was lost can be sent again. What was given is on disk before it is given, whenever the process is killed.
    """

    def __init__(self, folder: Path, stream: Stream, encoding: Encoding | Unrotated) -> None:
        """Goes on with what is in `folder`, or begins there, in one for its owner alone (0700).

        Raises: InputError where it is a file, or may be read by others.
        """
        self._folder, self._stream, self._encoding = folder, stream, encoding
        check_folder("folder", folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            raise InputError(
                f"others may look into '{folder}', and who reads a decryptor's key takes its noise away: allow it to "
                f"its "
                "owner alone (chmod 700), or name a folder that is not there yet."
            )

    @property
    def rounds(self) -> int:
        """How many rounds' noise was given, or may have been."""
        return self._last()[0]

    def noise(self, round: int, *, name: bytes, signs: bytes) -> NDArray[np.uint32]:
        """The words (dimension,) that this decryptor adds in `round` (from 0), called `name`, 32 bytes, with these
        signs.

        Raises: ProtocolError for any round but the next and the last one, and for the last one under another name or
        with other signs; RunError where another process holds the folder, or a file of it is damaged or gone.
        """
        about = _about(name, signs)
        try:
            with held(self._folder):
                self._name(round, about)
                return residues(self._draw(round, about), self._encoding)
        except BlockingIOError as error:
            raise RunError(f"another process draws noise in '{self._folder}'; wait for it, or end it.") from error

    def check(self, round: int, *, name: bytes, signs: bytes) -> None:
        """That `noise` would be given, of which nothing is drawn. Raises: ProtocolError, RunError as that does."""
        self._check(round, _about(name, signs))

    def _check(self, round: int, about: bytes) -> tuple[int, bytes]:
        """How many rounds have names, and the last one's, where the round may be called so."""
        given, last = self._last()
        if round == given - 1 and about != last:
            raise ProtocolError(
                f"round {round} is called {last.hex()[:16]}... and its noise is asked for as {about.hex()[:16]}...: "
                "equal noise on two sums cancels in their difference. An abandoned round is over; go on with the next."
            )
        if round not in (given - 1, given):
            raise ProtocolError(
                f"the noise of round {round} is asked for and that of round {given} is next: rounds are asked for one "
                "after the other, each of all decryptors, or what one adds the next cannot take back."
                + (f" If it was given before, its state is gone: {LOST}" if given == 0 else "")
            )
        return given, last

    def _name(self, round: int, about: bytes) -> None:
        """Makes `about` the only name of the round, on disk, and sees to it that the state before the round is."""
        given, last = self._check(round, about)
        if round == given:
            if given == 0 and not self._state(0).exists():
                self._keep(0, self._stream.begin())
            elif given and not self._state(given).exists():  # killed in a round that then was given up
                self._draw(given - 1, last)
            write_whole(self._folder / ROUNDS, json.dumps({"rounds": round + 1, "last": about.hex()}).encode())

    def _draw(self, round: int, about: bytes) -> NDArray[np.int64]:
        """The integers of a round that has this name; the state after it is on disk."""
        turn, back = _basis(self._encoding, about[ROUND_BYTES:])
        integers, after = self._stream.draw(self._carried(round), about, turn, back)
        self._keep(round + 1, after)
        return integers

    def _last(self) -> tuple[int, bytes]:
        """How many rounds have names, and the last one's."""
        path = self._folder / ROUNDS
        if not path.exists():
            if set(self._folder.glob("before-*.npz")) - {self._state(0)}:  # that may be there before the first name
                raise RunError(f"'{path}' is gone, which says what rounds were called: {LOST}")
            return 0, b""
        try:
            named = parsed_json(path.read_bytes())
            return int(named["rounds"]), bytes.fromhex(named["last"])
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"'{path}' is damaged ({error}): {LOST}") from error

    def _carried(self, round: int) -> Arrays:
        """The state before a round."""
        path = self._state(round)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, BadZipFile) as error:
            raise RunError(f"'{path}' cannot be read ({error}): {LOST}") from error

    def _keep(self, round: int, carried: Arrays) -> None:
        """Puts the state before a round on disk; that before the round before stays, for an answer that was lost."""
        if not self._state(round).exists():
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **carried)
            write_whole(self._state(round), content.getvalue())
        self._state(round - 2).unlink(missing_ok=True)
        sweep_drafts(self._folder)

    def _state(self, round: int) -> Path:
        return self._folder / f"before-{round:06d}.npz"


def _basis(encoding: Encoding | Unrotated, signs: bytes) -> tuple[SessionOutcome, SessionOutcome]:
    return (np.array, np.array) if isinstance(encoding, Unrotated) else basis(encoding, signs)


def _about(name: bytes, signs: bytes) -> bytes:
    """Raises: ProtocolError, InputError for another length than they have."""
    if len(name) != ROUND_BYTES:
        raise ProtocolError(f"a round's name has {len(name)} bytes and must have {ROUND_BYTES}.")
    if len(signs) != SEED_BYTES:
        raise InputError(f"signs has {len(signs)} bytes, and a seed here has {SEED_BYTES}; give so many.")
    return name + signs
