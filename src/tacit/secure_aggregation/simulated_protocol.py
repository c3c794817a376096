"""Which protocol a simulation sums by, and how many devices of each group play it: settings, without the protocol."""

from dataclasses import dataclass
from typing import Literal, get_args

from tacit.errors import InputError, of_type

Protocol = Literal["masks", "one-message"]
FEWEST = 3  # devices of a protocol: of two, each knows the other's counts from the sum


@dataclass(frozen=True, kw_only=True)
class SimulatedProtocol:
    """How a simulation sums securely: `devices` of each group play the whole protocol, from keys to the sum.

    What the others would send is added modulo the same 2^b without keys, which gives the same sum in less time.
    """

    protocol: Protocol = "masks"
    devices: int = 8

    def __post_init__(self) -> None:
        if self.protocol not in get_args(Protocol):
            raise InputError(
                f"the protocol {self.protocol!r} is unknown; it is one of {', '.join(get_args(Protocol))}."
            )
        of_type("devices", self.devices, int)
        if self.devices < FEWEST:
            raise InputError(
                f"{self.devices} devices hide nothing in their sum; let {FEWEST} or more play the protocol."
            )


def check_protocol(name: str, value: object) -> None:
    """Raises: InputError unless the argument called `name` is a SimulatedProtocol, or None."""
    if value is not None and not isinstance(value, SimulatedProtocol):
        known = value if value in get_args(Protocol) else get_args(Protocol)[0]
        raise InputError(
            f"{name}={value!r} is of the type {type(value).__name__}; give SimulatedProtocol(protocol={known!r}) of "
            "tacit.secure_aggregation.simulated_protocol, or None for a sum in the clear."
        )
