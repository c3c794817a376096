"""A Python of 64-bit ARM with what a device without JAX needs, in a folder, for qemu to run on another processor.

Debian's packages and Python's wheels of that architecture are downloaded and unpacked into the folder, and nothing is
installed: the machine's own packages stay as they are, and nobody has to be root. Versions and digests of wheels are
those of requirements.lock; packages are those of the machine's own sources of apt, by their signatures.

    python benchmarks/deployment/arm64_sysroot.py FOLDER     needs qemu-aarch64 (qemu-user), apt-get and dpkg-deb

Prints the Python of each processor, a command that is run as any other. FOLDER/PROCESSOR is what such a Python sees as
the root of the file system where it has the file, and the machine's own root where it has not. So ONNX Runtime reads
an ARM /proc/cpuinfo, without which it ends the process.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parents[2] / "requirements.lock"
PROGRAMS = {"qemu-aarch64": "qemu-user", "apt-get": "apt", "dpkg-deb": "dpkg"}  # and the package of each
PACKAGES = ("python3", "libgomp1", "libstdc++6")
# What `tacit device --onnx` imports of others; none of them needs JAX, numba or SciPy.
NEEDED = (
    "cryptography",
    "httpx",
    "numpy",
    "onnxruntime",
    "pydantic",
    "rich",
    "safetensors",
    "threadpoolctl",
    "tomli-w",
    "typer",
)
GLIBC = (17, 24, 26, 27, 28, 31, 34)  # the minor versions for which wheels are built, none newer than Debian 12's
ABOUT_CORES = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"  # of all of them
# What /proc/cpuinfo says of each, as Linux does: its part, and features beside those. ONNX Runtime chooses kernels by
# it, so it has to be what qemu emulates. The second has products of four integers of 8 bits (asimddp).
PROCESSORS = {
    "cortex-a72": ("0xd08", ""),
    "cortex-a76": ("0xd0b", " atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="made if missing, and anew for another requirements.lock")
    for path in sysroot(parser.parse_args().folder).values():
        print(path)


def sysroot(folder: Path) -> dict[str, Path]:
    """The Python of each of PROCESSORS, in a folder that is made where it is not there yet.

    Raises: SystemExit where a program is not installed, or packages are not reached.
    """
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed; install the system's package {package}.")
    folder = folder.resolve()
    debian, complete, wanted = folder / "debian", folder / "complete.txt", "\n".join(pinned(NEEDED)) + "\n"
    if not complete.exists() or complete.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(debian, ignore_errors=True)
        _unpack_packages(folder, debian)
        _unpack_wheels(folder, debian, wanted)
        complete.write_text(wanted, encoding="utf-8")
    return {name: _python(folder, name) for name in PROCESSORS}


def _unpack_packages(folder: Path, debian: Path) -> None:
    """Of an apt of its own, which knows this architecture alone and thinks that nothing is installed."""
    apt = folder / "apt"
    for each in ("state/lists/partial", "cache/archives/partial"):
        (apt / each).mkdir(parents=True, exist_ok=True)
    (apt / "state" / "status").touch()
    asked = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "state" / "status",
        "Dir::Cache": apt / "cache",
        "Dir::Log": apt,
    }
    options = [part for name, value in asked.items() for part in ("-o", f"{name}={value}")]
    _run("apt-get", "-q", *options, "update")
    _run("apt-get", "-q", "-y", *options, "--no-install-recommends", "--download-only", "install", *PACKAGES)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        _run("dpkg-deb", "-x", package, debian)


def _unpack_wheels(folder: Path, debian: Path, wanted: str) -> None:
    version = _interpreter(debian).name.removeprefix("python")
    requirements = folder / "requirements.txt"
    requirements.write_text(wanted, encoding="utf-8")
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in GLIBC] + ["--platform=manylinux2014_aarch64"]
    abis = [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
    beside = debian / "usr" / "lib" / "python3" / "dist-packages"
    chosen = [*platforms, "--only-binary=:all:", "--implementation=cp", f"--python-version={version}", *abis]
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-deps", "--no-compile")
    _run(*pip, "--upgrade", "--target", beside, *chosen, "--require-hashes", "-r", requirements)


def pinned(names: tuple[str, ...]) -> list[str]:
    """The entries of requirements.lock, with their digests, of these packages and of all that they need."""
    entries = {each.partition("==")[0]: each.rstrip() for each in re.split(r"\n(?=\S)", LOCK.read_text("utf-8"))}
    left, seen = list(names), set[str]()
    while left:
        name = canonicalize_name(left.pop())
        if name not in seen:
            seen.add(name)
            needed = map(Requirement, requires(name) or [])
            there = {"extra": "", "platform_machine": "aarch64"}
            left += [each.name for each in needed if each.marker is None or each.marker.evaluate(there)]
    return [entries[name] for name in sorted(seen)]


def _interpreter(debian: Path) -> Path:
    return next(path for path in (debian / "usr" / "bin").glob("python3.*") if path.name[len("python3.") :].isdigit())


def _python(folder: Path, processor: str) -> Path:
    """A command that is Python on this processor; the processes that it starts by its own name are so, too."""
    debian, root = folder / "debian", folder / processor
    (root / "proc").mkdir(parents=True, exist_ok=True)
    for each in debian.iterdir():
        if not (root / each.name).is_symlink():
            (root / each.name).symlink_to(each)
    part, features = PROCESSORS[processor]
    said = f"Features\t: {ABOUT_CORES}{features}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\n"
    cores = [f"processor\t: {at}\nBogoMIPS\t: 100.00\n{said}CPU part\t: {part}\nCPU revision\t: 0\n\n" for at in (0, 1)]
    (root / "proc" / "cpuinfo").write_text("".join(cores), encoding="utf-8")
    command = root / "usr" / "bin" / f"python-{processor}"
    qemu = ("qemu-aarch64", "-cpu", processor, "-L", root, "-0", command, _interpreter(debian))
    run = shlex.join(map(str, qemu))
    command.write_text(f'#!/bin/sh\nexport PYTHONNOUSERSITE=1\nexec {run} "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    main()
