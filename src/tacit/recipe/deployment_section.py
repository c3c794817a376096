"""The section of a recipe that real devices train: who they are, what each keeps by itself, and how rounds wait."""

import ipaddress
import re
from typing import Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.shared_noise import check_honest
from tacit.recipe.sections import AggregationSection, RoundsSection, Section
from tacit.secure_aggregation.one_message.messages import MOST_DECRYPTORS
from tacit.secure_aggregation.small_order import anybody_agrees, anybody_signs

HOUR = 3600.0  # seconds
KEY = re.compile(r"[0-9a-f]{64}")


class NamedDecryptor(NamedTuple):
    """One of the parties that together, and never alone, open the sum of a round: `tacit decryptor --port`."""

    url: str  # where it listens: https://HOST:PORT, or http:// on this machine
    identity: str  # its public keys, 64 hexadecimal digits each, as it shows them
    box: str

    @classmethod
    def from_line(cls, line: str) -> Self:
        """That of `URL IDENTITY BOX`. Raises: ValueError."""
        parts = line.split()
        if len(parts) != 3 or not all(KEY.fullmatch(part) for part in parts[1:]):
            raise ValueError(
                f"deployment.decryptors has {line!r}, which is no decryptor; write 'URL IDENTITY BOX', the two keys of "
                f"64 "
                "hexadecimal digits as `tacit decryptor` shows them."
            )
        if anybody_signs(bytes.fromhex(parts[1])) or anybody_agrees(bytes.fromhex(parts[2])):
            raise ValueError(
                f"deployment.decryptors has {line!r} with a key of small order, which anybody has; write those that "
                "`tacit decryptor` shows."
            )
        url = urlsplit(parts[0])
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
            raise ValueError(f"deployment.decryptors: {parts[0]!r} is no decryptor's address; give https://HOST:PORT.")
        if url.scheme == "http" and not _is_loopback(url.hostname):
            raise ValueError(f"deployment.decryptors: {parts[0]!r} has no TLS, and is not this machine; give https://.")
        return cls(*parts)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class DeploymentSection(Section):
    """Who takes part is real: devices that check in with a server when they may, and that have no identities."""

    population: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")  # the name by which devices check in
    devices: int = Field(ge=1)  # about how many there are: for delta, for pacing and for what is planned
    round_index: bool = True  # each refuses a round that is less than rounds.min_separation after its last
    timer_hours: float | None = Field(default=None, gt=0, le=100_000)  # each stays away so long; left out: no timer
    over_selection: float = Field(default=1.3, ge=1, le=10)  # arXiv:1902.01046, Section 9
    selecting_minutes: float = Field(default=60.0, gt=0)  # how long a round waits for devices, then it is given up
    reporting_minutes: float = Field(default=15.0, gt=0)  # how long a device has, as in the simulator
    pause_minutes: float = Field(default=2.0, ge=0)  # from a round's release to the next one's opening
    decryptors: tuple[str, ...] = Field(default=(), strict=False)  # URL IDENTITY BOX; none: the server sees each report
    corrupt_decryptors: int = Field(default=1, ge=1, le=99)  # so many may work with the server, and learn nothing
    noise: Literal["server", "decryptors"] = "server"  # who adds it: the server knows every sum without its own
    honest_decryptors: int = Field(default=1, ge=1)  # whose noise together is what is accounted; 1: each adds all

    @model_validator(mode="after")
    def _is_kept_by_somebody(self) -> Self:
        if not self.round_index and self.timer_hours is None:
            raise ValueError(
                "deployment.round_index=false and no deployment.timer_hours leave devices nothing to keep, so that one "
                "may come in every round; give a timer, or drop deployment.round_index."
            )
        return self

    @model_validator(mode="after")
    def _has_decryptors_enough(self) -> Self:
        count = len(self.decryptors)
        if not count and self.corrupt_decryptors != 1:
            raise ValueError(
                f"deployment.corrupt_decryptors={self.corrupt_decryptors} of no decryptors; name them, or drop it."
            )
        if count and not self.corrupt_decryptors < count <= MOST_DECRYPTORS:
            raise ValueError(
                f"deployment.corrupt_decryptors={self.corrupt_decryptors} of {count} deployment.decryptors: fewer than "
                f"all, and "
                f"no more than {MOST_DECRYPTORS} decryptors; name more decryptors, or fewer."
            )
        found = self.named_decryptors()
        for name in ("identity", "box"):
            if len({getattr(each, name) for each in found}) < count:
                raise ValueError(f"two of deployment.decryptors have the same {name}, and one decryptor has one share.")
        return self

    @model_validator(mode="after")
    def _has_noise_of_somebody(self) -> Self:
        if self.noise == "server" and self.honest_decryptors != 1:
            raise ValueError(
                f"deployment.honest_decryptors={self.honest_decryptors} of noise that the server adds; give "
                "deployment.noise = 'decryptors', or drop it."
            )
        if self.noise == "decryptors":
            if not self.decryptors:
                raise ValueError(
                    "deployment.noise='decryptors' and there are no deployment.decryptors; name them, or drop it."
                )
            corrupt, name = self.corrupt_decryptors, "deployment.honest_decryptors"
            check_honest(len(self.decryptors), self.honest_decryptors, corrupt=corrupt, name=name)
        return self

    @property
    def contributors(self) -> int:
        """How many decryptors add noise to every sum, in the server's place; 0: the server adds it."""
        return len(self.decryptors) if self.noise == "decryptors" else 0

    def named_decryptors(self) -> tuple[NamedDecryptor, ...]:
        """Where they are, and their keys. Raises: ValueError for what names none."""
        return tuple(map(NamedDecryptor.from_line, self.decryptors))

    def separation(self, rounds: RoundsSection) -> DeviceSeparation:
        """What each device keeps by itself."""
        return DeviceSeparation(
            rounds=rounds.min_separation if self.round_index else None,
            timer_seconds=None if self.timer_hours is None else self.timer_hours * HOUR,
            most=rounds.max_participations if self.round_index else None,
        )

    def check(self, rounds: RoundsSection, aggregation: AggregationSection | None) -> None:
        """Raises: ValueError for what devices do not keep, are too few for, or what only a simulation has."""
        if aggregation is not None:
            _refuse_simulations(aggregation)
        elif self.decryptors:
            raise ValueError(
                "deployment.decryptors open sums of integers, and without [aggregation] updates are none; give "
                "[aggregation] kind = 'secure', or drop deployment.decryptors."
            )
        apart = min(rounds.min_separation, rounds.rounds) if self.round_index else 1
        if rounds.report_goal * apart > self.devices:
            raise ValueError(
                f"rounds.report_goal={rounds.report_goal:,} of other devices in each of {apart:,} rounds in a row "
                f"are {rounds.report_goal * apart:,} devices, and deployment.devices={self.devices:,}; give more "
                "devices, a lower report_goal or a lower min_separation."
            )
        most = self.separation(rounds).by_index(rounds.rounds).max_participations
        if rounds.report_goal * rounds.rounds > self.devices * most:
            raise ValueError(
                f"rounds.rounds={rounds.rounds:,} of {rounds.report_goal:,} reports are "
                f"{rounds.rounds * rounds.report_goal:,} participations, and deployment.devices={self.devices:,} that "
                f"take part {most:,} times at most give fewer; give more devices, fewer rounds or more "
                "max_participations."
            )


def _refuse_simulations(aggregation: AggregationSection) -> None:
    """ValueError for what is played in one process, with everybody's keys in it."""
    for name in ("protocol", "decryptors"):
        value = getattr(aggregation, name)
        if value is not None:
            raise ValueError(
                f"aggregation.{name}={value!r} is played by a simulation, in which one process has everybody's keys, "
                f"and [deployment] asks real devices; drop aggregation.{name}: devices then encode their updates as "
                "integers, which the server sees one by one, unless deployment.decryptors names those who open sums "
                "alone."
            )
