"""What a running server counts: its `/metrics`, at an address that whoever started the view named.

No address comes out of a store, a page or a question, and one that is not of this machine is refused. An answer is
bounded in bytes and seconds, is followed nowhere, and only numbers of counts that a server of tacit's has are taken.
"""

import math
import os
import re
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from urllib.parse import SplitResult, urlsplit

from tacit.errors import InputError
from tacit.view.guard import is_loopback

TOKEN = "TACIT_ADMIN_TOKEN"
LARGEST = 1 << 20  # bytes of an answer
PATIENCE = 2.0  # seconds for all of it
KEPT = 2.0  # seconds for which an answer is shown to everybody who asks
MOST = 2_000  # samples
# Counts of `server.metrics`, in the order of a page: how each is called there, what it is, and the label that tells its
# samples apart.
COUNTS = {
    "tacit_check_ins_total": ("devices that checked in", "answer"),
    "tacit_reports_total": ("reports", "answer"),
    "tacit_report_bytes_total": ("bytes of reports", ""),
    "tacit_model_bytes_total": ("bytes of models sent", ""),
    "tacit_problems_total": ("requests refused", "type"),
    "tacit_devices": ("devices of a population, estimated", "population"),
    "tacit_round_devices": ("devices of an open round", "run"),
    "tacit_reports_unwritten": ("reports in memory alone", ""),
    "tacit_store_seconds_count": ("times that the store was asked", "did"),
    "tacit_store_seconds_sum": ("seconds that the store took", "did"),
}
_SAMPLE = re.compile(
    r"(?P<name>[a-z_]{1,60})(?:\{(?P<labels>[^{}]{0,400})\})? (?P<value>[0-9.eE+-]{1,30})(?: [0-9]{1,20})?"
)
_LABEL = re.compile(r'(?P<name>[a-z_]{1,40})="(?P<value>(?:[^"\\]|\\.){0,200})",?')


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One count."""

    name: str  # of COUNTS
    labels: tuple[tuple[str, str], ...]
    value: float

    @property
    def told_apart_by(self) -> str:
        """What tells it from others of its name."""
        return ", ".join(value for _, value in self.labels)

    @property
    def what(self) -> str:
        """In words."""
        return COUNTS[self.name][0]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What came of asking one address."""

    address: str
    samples: tuple[Sample, ...] = ()
    complaint: str = ""


def checked_address(address: str) -> SplitResult:
    """Raises: InputError for what is no http or https address of this machine."""
    wrong = InputError(
        f"--metrics {address[:200]!r} is no address of a server on this machine; give http://127.0.0.1:PORT/metrics, "
        "as `tacit serve` prints it."
    )
    try:
        found = urlsplit(address)
        port = found.port
    except ValueError:
        raise wrong from None
    strange = found.username is not None or found.query or found.fragment or not address.isascii()
    if found.scheme not in ("http", "https") or port == 0 or strange or not is_loopback(found.hostname or ""):
        raise wrong
    return found


class Metrics:
    """The servers whose counts may be asked for."""

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        """Raises: InputError where one is of another machine, or none."""
        self._addresses = {each: checked_address(each) for each in addresses}
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Counted]] = {}

    def all(self) -> list[Counted]:
        """Of each address, as it was asked at most KEPT seconds ago; browsers that ask together wait for one answer."""
        with self._lock:
            for address, parts in self._addresses.items():
                at, _ = self._kept.get(address, (-math.inf, None))
                if monotonic() - at > KEPT:
                    found = _asked(address, parts)
                    self._kept[address] = monotonic(), found
            return [self._kept[address][1] for address in self._addresses]


def _asked(address: str, parts: SplitResult) -> Counted:
    try:
        return Counted(address=address, samples=samples_of(_fetched(parts)))
    except (OSError, HTTPException, ValueError) as error:
        return Counted(address=address, complaint=f"{address} did not answer with a server's counts ({error}).")


def _fetched(parts: SplitResult) -> bytes:
    """What the address answers. Raises: OSError, HTTPException, ValueError for another status, or too much."""
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    token = os.environ.get(TOKEN)
    with closing(kind(parts.hostname or "", parts.port, timeout=PATIENCE)) as connection:
        connection.connect()
        end = threading.Timer(PATIENCE, _ended, (connection,))  # of one that sends a byte now and then
        end.daemon = True
        end.start()
        try:
            headers = {"Accept": "text/plain"} | ({"Authorization": f"Bearer {token}"} if token else {})
            connection.request("GET", parts.path or "/metrics", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                told = f"; give its administrator's token as {TOKEN}" if answer.status in (401, 403) else ""
                raise ValueError(f"status {answer.status}{told}")
            content = answer.read(LARGEST + 1)
        finally:
            end.cancel()
    if len(content) > LARGEST:
        raise ValueError(f"more than {LARGEST:,} bytes")
    return content


def _ended(connection: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # it ended by itself
        connection.sock.shutdown(2)


def samples_of(content: bytes) -> tuple[Sample, ...]:
    """The counts in the text form of Prometheus that a server of tacit's has, in the order of COUNTS; all else is left
    out. Raises: ValueError for what is no text, and where there are none.
    """
    found = []
    for line in content.decode("utf-8").split("\n"):
        sample = _SAMPLE.fullmatch(line)
        if sample is None or sample["name"] not in COUNTS:
            continue
        value = float(sample["value"])
        labels = tuple((each["name"], _unescaped(each["value"])) for each in _LABEL.finditer(sample["labels"] or ""))
        if math.isfinite(value):
            found.append(Sample(name=sample["name"], labels=labels, value=value))
    if not found:
        raise ValueError("there is no count of a server of tacit's in it")
    order = list(COUNTS)
    return tuple(sorted(found[:MOST], key=lambda each: (order.index(each.name), each.labels)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
