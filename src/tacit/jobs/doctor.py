"""What a bug report needs to say of a machine, and whether what tacit stands on works there; nothing private.

No path, no name of a user or machine, no variable of the environment, nothing of any data: versions, sizes, yes or no.
Where a check fails, its last line is shown with the folders left out of every path in it.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.code_digest import build_digest, code_digest
from tacit.compute.precision import processor_features
from tacit.extras import EXTRAS, has_extra
from tacit.jobs.machine_checks import CHECKS
from tacit.jobs.result import JobResult
from tacit.parsing import parsed_json
from tacit.progress import Progress, counted, silent
from tacit.records import to_plain
from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.reports.blocks import Block

# What tacit stands on, and what two of them stand on.
PACKAGES = (
    *("cryptography", "jax", "jaxlib", "jinja2", "llvmlite", "matplotlib", "numba", "numpy", "optax", "pyarrow"),
    *("pydantic", "rich", "safetensors", "scipy", "threadpoolctl", "tomli-w", "typer"),
)
FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")  # of processors, that decide how fast training is
PATIENCE = 300.0  # seconds for a check; the first compiles, and disks are slow
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container
# Everything before the last name of an absolute path, which may have spaces where it stands in quotes.
_FOLDERS = re.compile(
    r"""(?<=['"])(?:[A-Za-z]:)?[/\\][^'"]*[/\\] | (?<![\w.~])(?:[A-Za-z]:)?[/\\](?:[^\s'"/\\:]+[/\\])+""", re.VERBOSE
)


@dataclass(frozen=True)
class Checked:
    """One thing that was tried: what it found, or why it failed."""

    name: str
    found: Mapping[str, Any]
    failed: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis(JobResult):
    """What a machine has, and what was tried there. Nothing in it is private."""

    versions: Mapping[str, str]  # of tacit, its code, Python and the system
    packages: Mapping[str, str]  # "missing" where one is
    extras: Mapping[str, bool]
    machine: Mapping[str, Any]  # cores, memory, disk
    checks: tuple[Checked, ...]

    @property
    def failed(self) -> tuple[Checked, ...]:
        """What does not work."""
        return tuple(check for check in self.checks if check.failed is not None)

    @property
    def healthy(self) -> bool:
        """Whether all that was tried works."""
        return not self.failed

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit doctor --json` prints."""
        return {
            "schema": "tacit.doctor",
            "version": 1,
            "healthy": self.healthy,
            "versions": dict(self.versions),
            "packages": dict(self.packages),
            "extras": dict(self.extras),
            "machine": dict(self.machine),
            "checks": [to_plain(check) for check in self.checks],
        }

    def blocks(self) -> "tuple[Block, ...]":
        """What people read of it."""
        from tacit.reports.blocks import Paragraph, Table

        there = [f"{name}{'' if is_there else ' (not installed)'}" for name, is_there in self.extras.items()]
        rows = [
            *self.versions.items(),
            ("packages", ", ".join(f"{name} {version}" for name, version in self.packages.items())),
            ("extras", ", ".join(there)),
            *((_named(key), _said(value)) for key, value in self.machine.items()),
            *((check.name, _outcome(check)) for check in self.checks),
        ]
        judgement = "All that was tried works." if self.healthy else f"{len(self.failed)} of the checks FAIL."
        return (
            Table(rows=tuple(rows)),
            Paragraph(f"{judgement} Nothing here is private: it may go into a bug report."),
        )


def doctor(*, progress: Progress = silent) -> Diagnosis:
    """What this machine has, and whether what tacit stands on works here; takes some seconds, the first time a minute.

    Each check is a process of its own, so that one which crashes is a line of the result.
    """
    checks = tuple(
        _checked(name, function.__name__)
        for name, function in counted(CHECKS.items(), "checking", progress, total=len(CHECKS))
    )
    return Diagnosis(
        versions={
            "tacit": __version__,
            "code of devices": code_digest(),
            "build": build_digest(),
            "Python": f"{platform.python_implementation()} {platform.python_version()}",
            "system": platform.platform(),
        },
        packages={name: _version(name) for name in PACKAGES},
        extras={name: has_extra(name) for name in EXTRAS},
        machine=_machine(),
        checks=checks,
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _machine() -> dict[str, Any]:
    features = processor_features()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory: dict[str, Any] = {}
    with suppress(ValueError, OSError, AttributeError):  # as elsewhere than on Linux
        page = os.sysconf("SC_PAGE_SIZE")
        memory["memory_gib"] = _gib(os.sysconf("SC_PHYS_PAGES") * page)
        memory["free_memory_gib"] = _gib(os.sysconf("SC_AVPHYS_PAGES") * page)
    with suppress(ValueError, OSError):  # "max": no limit
        memory["container_memory_gib"] = _gib(int(MEMORY_LIMIT.read_text(encoding="utf-8")))
    here, temporary = Path.cwd(), Path(tempfile.gettempdir())
    return {
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "processor": " ".join([platform.machine(), *(name for name in FEATURES if name in features)]),
        **memory,
        "free_disk_gib": _gib(shutil.disk_usage(here).free),
        "free_temporary_disk_gib": _gib(shutil.disk_usage(temporary).free),
        "this_folder_can_be_written": _writable(here),
        "temporary_files_can_be_written": _writable(temporary),
    }


def _gib(size: int) -> float:
    return round(size / 2**30, 1)


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _checked(name: str, function: str) -> Checked:
    """The check in a process of its own, which finds the tacit that this one runs."""
    code = (
        f"import json, sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
        f"from tacit.jobs.machine_checks import {function}; found = {function}(); print(json.dumps(found))"
    )
    try:
        told = subprocess.check_output(
            [sys.executable, "-c", code], stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return Checked(name, {}, f"took more than {PATIENCE:.0f} s")
    except subprocess.CalledProcessError as error:
        complaint = (error.output.strip().splitlines() or [f"ended with code {error.returncode}"])[-1]
        return Checked(name, {}, _FOLDERS.sub("", complaint))
    return Checked(name, parsed_json(next(line for line in reversed(told.splitlines()) if line.startswith("{"))))


def _named(key: str) -> str:
    return key.replace("_gib", ", GiB").replace("_", " ")


def _said(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _outcome(check: Checked) -> str:
    if check.failed is not None:
        return f"FAILS: {check.failed}"
    return "; ".join(f"{_named(key)}: {_said(value)}" for key, value in check.found.items())
