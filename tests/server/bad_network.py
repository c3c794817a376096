"""Two network namespaces, and between them a line that delays packets, loses some, and goes down.

The kernel's own delay and loss (netem) is not in every kernel, so the line is a thread here: each namespace ends in a
TUN device, and what goes in at one comes out at the other, later, or never. TCP above it is the kernel's own.
"""

import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
PACKET = 1 << 16
NEAR, FAR = "10.77.0.1", "10.77.0.2"  # the server's and the devices' addresses, in namespaces of their own


def missing() -> str | None:
    """What this machine lacks for it, in a sentence; None where it can be made."""
    if os.name != "posix" or os.geteuid() != 0:
        return "network namespaces are made by root alone"
    if shutil.which("ip") is None:
        return "iproute2 (`ip`) is not installed"
    name = f"tacit-probe-{os.getpid()}"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
        subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no namespaces or no TUN devices here ({error})"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


@dataclass
class Line:
    """Between two TUN devices. Each packet is lost with `loss`, or arrives after `delay` to 2 `delay` seconds."""

    ends: tuple[int, int]  # file descriptors
    delay: float
    loss: float
    down: bool = False
    passed: int = 0
    lost: int = 0
    lost_down: int = 0
    _draw: random.Random = field(default_factory=lambda: random.Random(18))
    _due: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Carry packets until it is stopped."""
        number = 0
        while not self._stop.is_set():
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else 0.1
            for end in select.select(self.ends, (), (), min(wait, 0.1))[0]:
                packet = os.read(end, PACKET)
                if self.down:
                    self.lost_down += 1
                elif self._draw.random() < self.loss:
                    self.lost += 1
                else:
                    number += 1
                    late = time.monotonic() + self._draw.uniform(self.delay, 2 * self.delay)
                    other = self.ends[1 - self.ends.index(end)]
                    heapq.heappush(self._due, (late, number, other, packet))
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(self._due)
                os.write(end, packet)
                self.passed += 1

    def stop(self) -> None:
        self._stop.set()


@dataclass(frozen=True)
class BadNetwork:
    """The namespaces, by name, and the line between them."""

    server: str
    devices: str
    line: Line

    def inside(self, namespace: str, *command: str) -> list[str]:
        """A command line that runs in one of them."""
        return ["ip", "netns", "exec", namespace, *command]


@contextmanager
def bad_network(*, delay: float, loss: float) -> Iterator[BadNetwork]:
    """Made and removed again. delay: seconds, one way, at least. loss: the share of packets that never arrive."""
    with ExitStack() as stack:
        ends, names = list[int](), list[str]()
        for role, address in (("s", NEAR), ("d", FAR)):
            namespace, device = f"tacit-{role}-{os.getpid()}", f"tacit{role}{os.getpid() % 10**6}"
            _ip("netns", "add", namespace)
            stack.callback(_ip, "netns", "del", namespace)
            end = os.open("/dev/net/tun", os.O_RDWR)
            stack.callback(os.close, end)
            fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            _ip("link", "set", device, "netns", namespace)
            for words in (
                ("addr", "add", f"{address}/24", "dev", device),
                ("link", "set", "lo", "up"),
                ("link", "set", device, "up"),
                ("route", "add", "default", "dev", device),  # a device asks by which way it would go out
            ):
                _ip("-n", namespace, *words)
            ends.append(end)
            names.append(namespace)
        line = Line((ends[0], ends[1]), delay, loss)
        thread = threading.Thread(target=line.run)
        thread.start()
        stack.callback(thread.join)
        stack.callback(line.stop)
        yield BadNetwork(names[0], names[1], line)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
