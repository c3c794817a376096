"""Which program runs: the digest of what a device runs, which a plan names, and of a whole build, for a server's own.

A device does not compare `Plan.code` with its own: which code a release's devices run is what a release publishes, and
`tacit doctor` shows. A server that is mended is another build with the same devices.
"""

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

# The rooms and open files that a device may import anything of, whole; tests/test_architecture.py holds its closure in.
DEVICE_ROOMS = (
    "aggregation",
    "compiled.py",
    "compute",
    "data",
    "design",
    "device",
    "discovery",
    "doors.py",
    "errors.py",
    "evaluation",
    "extras.py",
    "federation",
    "files.py",
    "keyboard",
    "networks",
    "parsing.py",
    "privacy",
    "process_limits.py",
    "protocol",
    "randomizers",
    "records.py",
    "secure_aggregation",
    "text",
    "training",
)


@cache
def code_digest() -> str:
    """SHA-256 of what a device runs: of the lines `sha256  path` for each .py file of DEVICE_ROOMS, in order of paths.

    As sha256sum writes them, paths relative to the package.
    """
    return _digest_of([each for each in _sources() if each[0].split("/")[0] in DEVICE_ROOMS])


@cache
def build_digest() -> str:
    """The same of every .py file of the installed package."""
    return _digest_of(_sources())


def _digest_of(sources: list[tuple[str, Traversable]]) -> str:
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {path}\n" for path, file in sorted(sources)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sources(folder: Traversable | None = None, above: str = "") -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in (files("tacit") if folder is None else folder).iterdir():
        if each.is_dir():
            found += _sources(each, f"{above}{each.name}/")
        elif each.name.endswith(".py"):
            found.append((f"{above}{each.name}", each))
    return found
