"""What vouches for the other side: for a device that asks for tokens, and for the environment that a server runs in.

Two ends of one interface. Who is to be believed makes evidence that is bound to a digest, so that it can be shown for
nothing else; who has to believe it checks it. `NOTHING` attests nothing, which plans and statements say by its name.
Another one, of a phone's vendor or of a processor's, has a name of its own and is given to both ends in code: that of
devices to `tokens.Issuer` and `client.device.Device`, that of the server to `OperatorKey.plan` and `Device`.
"""

from dataclasses import dataclass
from typing import Protocol

from tacit.errors import InputError


class Attestation(Protocol):
    """Of one kind, on either end."""

    @property
    def name(self) -> str:
        """By which plans say that it is asked for."""
        ...

    def evidence(self, bound_to: bytes) -> bytes | None:
        """What shows, for these 32 bytes alone, that this end is what it should be; None: nothing does."""
        ...

    def check(self, evidence: bytes | None, bound_to: bytes) -> None:
        """Raises: InputError, saying why, where this does not show that the other end is what it should be."""
        ...


@dataclass(frozen=True)
class Nothing:
    """Nobody vouches for anybody."""

    name: str = "none"

    def evidence(self, bound_to: bytes) -> bytes | None:
        """None."""
        return None

    def check(self, evidence: bytes | None, bound_to: bytes) -> None:
        """Raises: InputError for evidence, which nobody here can judge."""
        if evidence is not None:
            raise InputError("there is evidence of an attestation, and none is asked for here; leave it out.")


NOTHING = Nothing()
