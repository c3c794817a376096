"""A device of a population: a session, a connection, a folder with its record, and turn after turn."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Any

from tacit.device.eligibility import NotPaused, Probe
from tacit.device.isolated import Children
from tacit.device.own_handlers import own_handlers
from tacit.device.policy import FILE as POLICY_FILE
from tacit.device.policy import Policy
from tacit.device.record import FILE as RECORD
from tacit.device.record import DeviceRecord, opened
from tacit.device.session import THIS_MACHINE, Machine, Session
from tacit.device.transport import held
from tacit.device.turn import SessionOutcome
from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path, read_bounded
from tacit.protocol.bounded_http import Connection, Server, connected
from tacit.protocol.token_format import CODE
from tacit.secure_aggregation.small_order import anybody_signs

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # `messages.Name`


class Device:
    """A session and the network that it speaks over; `run_device` makes it of paths."""

    def __init__(self, session: Session, connection: Connection, children: Children | None = None) -> None:
        """children: that do the work of its tasks, where it is not done here."""
        self._session, self._connection, self._children = session, connection, children

    def sessions(self) -> Iterator[SessionOutcome]:
        """Turn after turn, for ever, with the time between them."""
        while True:
            outcome = self.session()
            yield outcome
            self._session.machine.sleep(random.SystemRandom().uniform(*outcome.wait))

    def session(self) -> SessionOutcome:
        """Look once whether there is something to do, and do it. Raises: DeviceError, CacheError: nothing is lost."""
        session = self._session
        try:
            return held(session.turn(), self._connection, session.machine.sleep)
        finally:
            self._connection.hang_up()
            if self._children is not None:
                self._children.end()


def run_device(
    server: str,
    data: PathLike,
    state: PathLike,
    *,
    journal: PathLike | None = None,
    population: str = "default",
    client: int | None = None,
    operator_key: str | None = None,
    enrolment_code: PathLike | None = None,
    first_time: bool = False,
    once: bool = False,
    policy: Policy | None = None,
    onnx: PathLike | None = None,
    certificates: PathLike | None = None,
    probes: Sequence[Probe] | None = None,
    machine: Machine = THIS_MACHINE,
    through: Any = None,
    told: Callable[[SessionOutcome], None] = lambda outcome: None,
    isolated: bool = True,
) -> SessionOutcome:
    """Be one device of a population: look for something to do and do it, for ever or once; the last turn.

    population: which of the server's. once: one turn, in place of going on for ever. server: its address; http:// on
    this machine alone. data: a cache; client: whose text in it this device has, left out where there is one. state: its
    folder, with its record and its policy; made if missing. journal: a folder outside it, where its participations
    stand a second time; left out, one in the user's folder of data. operator_key: the public key, 64 hexadecimal
    digits, that is pinned by it, once; an operator more is pinned beside others. enrolment_code: a file with the secret
    for which an operator that enrols gives it tokens. first_time: it has taken part nowhere before; else a new record
    counts its whole budget as spent. policy: in place of the file in `state`. onnx: an exported model, by whose
    `train.onnx` it trains without JAX. certificates: PEM, in place of the system's. probes: in place of those that the
    policy asks of this machine. told: gets the outcome of every session. isolated: the work of each task is done in a
    process of its own, within the policy's memory and time; without, whatever ends it ends the device. machine,
    through: a clock, a way to sleep, random bytes (of what is not isolated) and an httpx transport in place of the
    machine's, for tests. Raises: InputError, CacheError for what cannot be; DeviceError where the state is another
    process's or damaged.
    """
    of_type("server", server, str)
    of_type("population", population, str)
    if not NAME.fullmatch(population):
        raise InputError(f"--population {population[:60]!r} is no name; give letters, digits, points and hyphens.")
    of_type("client", client, Integral, NoneType)
    of_type("isolated", isolated, bool)
    of_type("operator_key", operator_key, str, NoneType)
    place, address = as_path("state", state), Server.from_url(server)
    second, pem = _path("journal", journal), _path("certificates", certificates)
    code_file = _path("enrolment_code", enrolment_code)
    code = None if code_file is None else enrolment_code_in(code_file)
    key = None if operator_key is None else operator_key_of(operator_key)
    if key is None and not (place / RECORD).exists():
        raise InputError(unpinned(place))
    rules = Policy.load(place / POLICY_FILE) if policy is None else policy
    make = partial(own_handlers, as_path("data", data), client, rules.temporal_split, onnx)
    children = Children(make, rules, machine.clock) if isolated else None
    handlers = make() if children is None else children.handlers
    chosen_probes = rules.eligibility.probes(network=not address.on_loopback) if probes is None else probes
    with (
        connected(address, certificates=pem, through=through) as connection,
        opened(place, second, now=machine.clock(), first_time=first_time, budget_zcdp=rules.budget_zcdp) as record,
    ):
        _pin(record, key, place)
        session = Session(
            record=record,
            policy=rules,
            handlers=handlers,
            population=population,
            probes=(NotPaused(place), *chosen_probes),
            machine=machine,
            code=code,
        )
        for outcome in Device(session, connection, children).sessions():
            told(outcome)
            if once:
                break
    return outcome


# -- what its owner gives it, checked ----------------------------------------------------------------------------------


def _path(name: str, given: PathLike | None) -> Path | None:
    return None if given is None else as_path(name, given)


def _pin(record: DeviceRecord, key: str | None, place: Path) -> None:
    """Speak with this operator, or with the only one that is known. Raises: InputError; DeviceError."""
    pinned = record.only_operator() if key is None else key
    if pinned is None:
        raise InputError(unpinned(place))
    record.pin(pinned)


def enrolment_code_in(file: Path) -> str:
    """An enrolment's, from a file: others see what is on a command line. Raises: InputError for a file without one."""
    try:
        code = read_bounded(file).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"--enrolment-code '{file}' cannot be read ({error}); give a file with the code.") from None
    if not CODE.fullmatch(code):
        raise InputError(f"--enrolment-code '{file}' has no code, which is 20 to 200 characters without spaces.")
    return code


def operator_key_of(said: str) -> str:
    """An Ed25519 public key. Raises: InputError for what is none, and for one for which anybody can sign."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        if len(said) != 64 or anybody_signs(bytes.fromhex(said)):
            raise ValueError
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(said))
    except ValueError:
        raise InputError(f"--operator-key {said!r} is no Ed25519 public key; give its 64 hexadecimal digits.") from None
    return said.lower()


def unpinned(state: Path) -> str:
    """What is said of a state folder that has no operator's key yet."""
    return (
        f"'{state}' has pinned no operator; give --operator-key, the 64 hexadecimal digits that the operator "
        "publishes, once."
    )
