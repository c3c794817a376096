"""Whether a device may work now: plugged in, on a network that costs nothing by the byte, with nothing else to do.

A probe is a function without arguments that says why not, in a sentence, or nothing. The ones here read Linux's own
files below `root`; a phone brings others (`run_device(probes=...)`).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tacit.errors import InputError

Probe: TypeAlias = Callable[[], str | None]
ROOT = Path("/")
PLUGGED = ("Charging", "Full", "Not charging")  # as the kernel's power-supply class says of a battery on a charger
METERED = ("wwan", "bluetooth", "ppp")  # kinds of interfaces, as the kernel names them
PAUSED = "paused"  # a file in the state folder
PPP = "512"  # ARPHRD_PPP of linux/if_arp.h: a modem's


@dataclass(frozen=True, kw_only=True)
class Eligibility:
    """When the owner lets the device work; the table `[eligibility]` of a policy."""

    charging: bool = True  # on a charger, or without a battery
    least_battery: int = 50  # percent, of a device that has one
    unmetered: bool = True  # not by a modem, nor by another's phone over Bluetooth
    largest_load: float | None = None  # of the last minute, for each processor; left out, any

    def __post_init__(self) -> None:
        if not 0 <= self.least_battery <= 100:
            raise InputError(f"eligibility.least_battery={self.least_battery} is no percentage; give 0 to 100.")
        if self.largest_load is not None and not self.largest_load > 0:
            raise InputError(f"eligibility.largest_load={self.largest_load:g} lets nothing run; give a number above 0.")

    def probes(self, *, root: Path = ROOT, network: bool = True) -> tuple[Probe, ...]:
        """What is asked of this machine. network: whether the server is elsewhere. root: where /sys and /proc are."""
        found: list[Probe] = []
        if self.charging or self.least_battery:
            found.append(Battery(root, charging=self.charging, min_percent=self.least_battery))
        if network and self.unmetered:
            found.append(DefaultRoute(root))
        if self.largest_load is not None:
            found.append(Load(root, self.largest_load))
        return tuple(found)


def first_obstacle(probes: Sequence[Probe]) -> str | None:
    """Why the device may not work now; None where it may. Later probes are not asked."""
    return next((why for probe in probes if (why := probe()) is not None), None)


@dataclass(frozen=True)
class NotPaused:
    """Looks for the file by which its owner pauses the device of a folder; `owner.py` writes it."""

    state: Path

    def __call__(self) -> str | None:
        """Why not, or nothing."""
        if not (self.state / PAUSED).exists():
            return None
        return f"its owner paused it; `tacit device --state {self.state} --resume` ends that."


@dataclass(frozen=True)
class Battery:
    """Reads /sys/class/power_supply; what has no battery of its own is plugged in."""

    root: Path
    charging: bool
    min_percent: int

    def __call__(self) -> str | None:
        """See Probe."""
        batteries = [
            supply
            for supply in sorted(_inside(self.root / "sys/class/power_supply"))
            if _line(supply / "type") == "Battery" and _line(supply / "scope") != "Device"  # a mouse's own
        ]
        for battery in batteries:
            status, held = _line(battery / "status"), _line(battery / "capacity")
            if self.charging and status not in PLUGGED:
                return f"the battery is not charging ({status or 'unknown'}); plug the device in."
            if held.isdecimal() and int(held) < self.min_percent:
                return f"the battery holds {held}%, less than the {self.min_percent}% of the policy; let it charge."
        return None


@dataclass(frozen=True)
class DefaultRoute:
    """Reads which interface the default route goes by, and what kind the kernel says it is."""

    root: Path

    def __call__(self) -> str | None:
        """See Probe."""
        interface = self._interface()
        if interface is None and not (self.root / "proc/net").exists():
            return _unseen("by which network it goes", "unmetered = false")
        if interface is None:
            return "there is no network (no default route); connect the device."
        folder = self.root / "sys/class/net" / interface
        said = dict(line.partition("=")[::2] for line in _text(folder / "uevent").splitlines())
        if said.get("DEVTYPE") in METERED or _line(folder / "type") == PPP:
            return f"the network goes by {interface}, which may be metered; wait for another."
        return None

    def _interface(self) -> str | None:
        """Of the default route with the least metric, by IPv4 first."""
        four = [line.split() for line in _text(self.root / "proc/net/route").splitlines()[1:]]
        routes = [(int(row[6]), row[0]) for row in four if len(row) > 7 and row[1] == row[7] == "00000000"]
        if not routes:
            six = [line.split() for line in _text(self.root / "proc/net/ipv6_route").splitlines()]
            routes = [
                (int(row[5], 16), row[9])
                for row in six
                if len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo"
            ]
        return min(routes)[1] if routes else None


@dataclass(frozen=True)
class Load:
    """Reads how many processes wanted a processor in the last minute."""

    root: Path
    largest: float

    def __call__(self) -> str | None:
        """See Probe."""
        said = _text(self.root / "proc/loadavg").split()
        if not said:
            return _unseen("how busy it is", "no largest_load")
        load = float(said[0]) / (os.cpu_count() or 1)
        if load > self.largest:
            return (
                f"the device is busy (load {load:.2g} a processor, at most {self.largest:g}); leave it alone a while."
            )
        return None


def _unseen(what: str, without: str) -> str:
    return f"{what} cannot be seen without /proc; mount it, or let [eligibility] of policy.toml have {without}."


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # a machine without such a thing
        return []


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _line(file: Path) -> str:
    return _text(file).strip()
