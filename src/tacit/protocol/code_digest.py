"""Which program a plan is of: the digest of the installed package, which `Plan.code` shows to everybody."""

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from tacit.version import __version__


@cache
def code_digest() -> str:
    """SHA-256 of the installed package: its version, and the path and SHA-256 of each .py file, in order of paths.

    One line each, `version 0.1.0` first, then `sha256  path` as sha256sum writes it, paths relative to the package.
    """
    lines = [f"version {__version__}\n"]
    lines += [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {path}\n" for path, file in sorted(_sources())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sources(folder: Traversable | None = None, above: str = "") -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in (files("tacit") if folder is None else folder).iterdir():
        if each.is_dir():
            found += _sources(each, f"{above}{each.name}/")
        elif each.name.endswith(".py"):
            found.append((f"{above}{each.name}", each))
    return found
