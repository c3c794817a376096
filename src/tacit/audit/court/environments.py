"""Peers' own code: each in an environment of its own, asked by a script that imports nothing of tacit.

A script reads {"runs", "seed", "out"} as JSON from standard input and writes {"package", "cases"} to the file `out`;
`peer_case` says what a case is. What a peer prints is nobody's concern, and what it does is bounded by PATIENCE.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tacit.audit.court.peer_case import PeerCase, peer_case
from tacit.errors import InputError
from tacit.parsing import parsed_json

RUNS = 3000  # of a sampled case, with the canary and without
PATIENCE = 300.0  # seconds a script may take; those of today take 2 to 40
SCRIPTS = Path(__file__).parent / "peers"

ADACLIP = "https://github.com/meta-pytorch/opacus/pull/807"
DROPOUT = "https://github.com/flwrlabs/flower/pull/1357"
BIT_VECTOR = "https://github.com/opendp/opendp/pull/2708"
DEVIATIONS = "https://github.com/opendp/opendp/issues/2923"
FLIP_THREAD = "https://github.com/londonaicentre/FLIP/issues/1145"
NULL_SCORES = "https://github.com/google-deepmind/jax_privacy/pull/270"
ORDERS = "https://github.com/tensorflow/privacy/issues/166"
SMALL_DELTA = "https://github.com/microsoft/prv_accountant/issues/17"


@dataclass(frozen=True)
class Peer:
    """A release of a peer's package: which script asks it, what pip installs, and which promises are known broken.

    known: by case, the thread that says so. bare: installed without what it depends on, after the rest.
    """

    script: str
    requires: tuple[str, ...]
    known: Mapping[str, str] = field(default_factory=dict)
    bare: tuple[str, ...] = ()


TORCH = "torch>=2.7"
PEERS: Mapping[str, Peer] = MappingProxyType(
    {
        "dp-accounting": Peer("dp_accounting", ("dp-accounting==0.6.0",), {"orders": ORDERS}),
        "flower": Peer("flower", ("flwr==1.42.0",), {"dropout": DROPOUT}),
        "jax-privacy": Peer("jax_privacy", ("jax-privacy==2.0.0",), {"epsilon_from_gdp": NULL_SCORES}),
        "nvflare": Peer("nvflare", ("nvflare==2.9.0",)),
        "nvflare-2.6.3": Peer("nvflare", ("nvflare==2.6.3",), {"sparse": FLIP_THREAD}),
        "opacus": Peer("opacus", ("opacus==1.6.0", TORCH)),
        "opacus-1.5.4": Peer("opacus", ("opacus==1.5.4", TORCH), {"adaptive": ADACLIP}),
        "opendp": Peer("opendp", ("opendp==0.16.0",), {"deviations": DEVIATIONS}),
        "opendp-0.14.1": Peer("opendp", ("opendp==0.14.1",), {"bit-vector": BIT_VECTOR, "deviations": DEVIATIONS}),
        "pfl": Peer("pfl", ("pfl==0.6.0", TORCH)),
        "prv-accountant": Peer("prv_accountant", ("prv_accountant==0.2.0",)),
        "tf-privacy": Peer("tf_privacy", ("tensorflow-cpu==2.15.1",), bare=("tensorflow-privacy==0.9.0",)),
        "tf-privacy-0.6.0": Peer(
            "tf_privacy_accounts", ("numpy", "scipy", "six"), {"orders": ORDERS}, ("tensorflow-privacy==0.6.0",)
        ),
        "prv-accountant-0.1.0": Peer("prv_accountant", ("prv_accountant==0.1.0",), {"delta": SMALL_DELTA}),
    }
)


def interpreter_of(name: str, folder: Path) -> Path | None:
    """The Python of the peer's environment, if there is one."""
    path = folder / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return path if path.is_file() else None


def install_peer(name: str, folder: Path) -> None:
    """Make the peer's environment below the folder, of this Python, and download its packages into it.

    Raises: InputError where pip refuses, with its last line.
    """
    made = [sys.executable, "-m", "venv", str(folder / name)]
    _run(f"the environment of {name} cannot be made", made, limit=None)
    pip = [str(interpreter_of(name, folder)), "-m", "pip", "install", "--quiet"]
    for packages, alone in (PEERS[name].requires, ()), (PEERS[name].bare, ("--no-deps",)):
        if packages:
            _run(f"pip does not install {' '.join(packages)}", [*pip, *alone, *packages], limit=None)


def run_peer(name: str, folder: Path, seed: int) -> list[PeerCase]:
    """What the installed peer claims, and the scores of its runs. Raises: InputError where its script fails."""
    peer = PEERS[name]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "cases.json"
        settings = json.dumps({"runs": RUNS, "seed": seed, "out": str(out)})
        command = [str(interpreter_of(name, folder)), "-I", str(SCRIPTS / f"{peer.script}.py")]
        _run(f"the script of the peer {name} fails", command, limit=PATIENCE, settings=settings)
        said = parsed_json(out.read_bytes()) if out.is_file() else None
    if not isinstance(said, dict) or not isinstance(said.get("cases"), list):
        raise InputError(f"the script of the peer {name} named no cases; it and the package disagree.")
    return [peer_case(name, str(said.get("package", name)), case, peer.known) for case in said["cases"]]


def _run(complaint: str, command: list[str], *, limit: float | None, settings: str = "") -> None:
    try:
        done = subprocess.run(
            command, input=settings, capture_output=True, encoding="utf-8", errors="replace", timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{complaint}: it did not end within {limit:g} s.") from error
    except OSError as error:
        raise InputError(f"{complaint}: {error.strerror}.") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise InputError(f"{complaint}: {last}")
