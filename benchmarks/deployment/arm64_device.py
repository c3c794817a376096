"""A device on 64-bit ARM predicts and trains what one on this processor does, and takes part in a round beside others.

One network of 0.66 M parameters, pre-trained on a little of the text that ships with tacit, is exported as float32,
int8 and int4. Each is read over 500 contexts of that text by this Python and by the Python of each ARM processor that
`arm64_sysroot.py` makes and qemu emulates; `train.onnx` makes a few steps on both. Then `tacit serve` waits for three
reports, of two devices on this processor and one on ARM, all with --onnx; a round that is released has all three.

    python benchmarks/deployment/arm64_device.py --sysroot FOLDER       made if missing, from packages of the net
    ... --processors cortex-a76                                         that one alone

Prints one JSON line per processor and kind of numbers, and one per round. Takes some minutes. Seconds are those of an
emulator, and say nothing of a phone.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from arm64_sysroot import PROCESSORS, sysroot

import tacit
from tacit.data import Cache
from tacit.networks.cifg.network import Cifg
from tacit.text.vocabulary import PAD, SPECIALS
from tacit.training.pretrain import Pretraining

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
CONTEXTS, WORDS, A_CLIENT = 500, 20, 2  # sentences of each
SENTENCES, SEED = 4_000, 1
NUMBERS = {"float32": None, "int8": "int8", "int4": "int4"}
SHOWN = 3  # words, as a keyboard shows them
REPORTS = 3
PATIENCE = 900.0  # seconds for a round
T = TypeVar("T")
DEVICE = re.compile(r"a device: tacit device --server (\S+) --operator-key (\w+)")  # as the server prints it
# The shipped recipe of the quick start, for one round; everybody has long enough.
CHANGES = {
    "rounds.rounds": 1,
    "rounds.report_goal": REPORTS,
    "rounds.min_separation": 1,
    "deployment.selecting_minutes": 10,
    "deployment.reporting_minutes": 10,
    "evaluation.every": 1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sysroot", type=Path, required=True, help="a folder for 260 MB; kept")
    parser.add_argument("--processors", nargs="+", choices=PROCESSORS, default=list(PROCESSORS))
    asked = parser.parse_args()
    pythons = sysroot(asked.sysroot)
    with TemporaryDirectory() as name:
        folder = Path(name)
        cache = exports(folder)
        np.save(folder / "sentences.npy", sentences(cache))
        plain = computed(Path(sys.executable), folder, "float32", platform.machine())
        for numbers in NUMBERS:
            here = computed(Path(sys.executable), folder, numbers, platform.machine())
            for each in asked.processors:
                there = computed(pythons[each], folder, numbers, "aarch64")
                said({"processor": each, "numbers": numbers, **apart(here, there, plain)})
        for each in asked.processors:
            said({"processor": each, **one_round(folder / each, folder, cache, pythons[each])})


def said(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def exports(folder: Path) -> Cache:
    """The cache of the text, and beside it `start`, whose exports are named after their numbers."""
    cache = tacit.import_data("chat", folder / "cache")
    network = Cifg(vocabulary=cache.manifest.vocabulary.size, embedding=32, units=64)
    settings = Pretraining(sentences=SENTENCES, every=SENTENCES)
    tacit.pretrain(cache, folder / "start", model=network, settings=settings, seed=SEED, declared_public=True)
    for numbers, quantize in NUMBERS.items():
        tacit.export(folder / "start", folder / numbers, quantize=quantize)
    return cache


def sentences(cache: Cache) -> np.ndarray:
    """(N, L+1), padded: of validation clients, a few each, as many as have CONTEXTS words and ends, cut off there."""
    rows, left = list[np.ndarray](), CONTEXTS
    for client in cache.clients("validation").tolist():
        for row in cache.padded(client, np.arange(min(A_CLIENT, cache.sentence_count(client))), WORDS):
            row[left + 1 :] = PAD
            rows.append(row)
            left -= int(np.count_nonzero(row[1:] != PAD))
            if not left:
                return np.array(rows)
    raise ValueError(f"the text has no {CONTEXTS} contexts.")


def computed(python: Path, folder: Path, numbers: str, machine: str) -> dict[str, Any]:
    """What `arm64_words.py` writes, run by this Python, and how long it took."""
    out, began = folder / "out.npz", time.monotonic()
    script = Path(__file__).with_name("arm64_words.py")
    command = (python, script, folder / numbers, folder / "sentences.npy", out)
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode or done.stdout.strip() != machine:
        raise SystemExit(f"{python} ended with {done.returncode}, on {done.stdout.strip()!r}:\n{done.stderr[-4000:]}")
    with np.load(out) as found:
        return dict(found) | {"seconds": time.monotonic() - began}


def apart(here: dict[str, Any], there: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """How far two processors are from each other, and each from float32 on this one."""
    exact, ours, theirs = (each["log_probabilities"] for each in (plain, here, there))
    first, second = (np.argsort(-each[:, SPECIALS:], axis=1, kind="stable")[:, :SHOWN] for each in (ours, theirs))
    return {
        "contexts": len(ours),
        "largest_difference_of_a_probability": rounded(np.abs(np.exp(ours) - np.exp(theirs)).max()),
        "largest_difference_of_log_p": rounded(np.abs(ours - theirs).max()),
        "mean_difference_of_log_p": rounded(np.abs(ours - theirs).mean()),
        "from_float32_here": rounded(np.abs(ours - exact).mean()),
        "from_float32": rounded(np.abs(theirs - exact).mean()),
        "other_first_word": int((first[:, 0] != second[:, 0]).sum()),
        "other_three_words": int((np.sort(first) != np.sort(second)).any(axis=1).sum()),
        "other_order_of_three": int((first != second).any(axis=1).sum()),
        "update_apart": rounded(np.linalg.norm(here["update"] - there["update"]) / np.linalg.norm(here["update"])),
        "seconds_here": round(here["seconds"], 1),
        "seconds": round(there["seconds"], 1),
    }


def rounded(value: Any) -> float:
    return float(f"{value:.2g}")


def one_round(folder: Path, made: Path, cache: Cache, python: Path) -> dict[str, Any]:
    """A round of REPORTS devices, each with another client's text; the last is this Python's. In a new folder."""
    folder.mkdir()
    changes = {"data.cache": made / "cache", "model.init": made / "start", **CHANGES}
    sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    serve = ["serve", "chat-devices", "--out", str(folder / "served"), "--workers", "1", "--port", "0", *sets]
    with running(Path(sys.executable), serve, folder / "serve.log") as server, ExitStack() as stack:
        logs, processes, took = [folder / "serve.log"], [server], dict[int, float]()
        told = until(lambda: DEVICE.search(logs[0].read_text(encoding="utf-8")), processes, logs)
        began = time.monotonic()
        for number, client in enumerate(cache.clients("train")[:REPORTS].tolist()):
            logs.append(folder / f"device-{number}.log")
            device = ["device", "--server", told[1], "--operator-key", told[2], "--data", str(made / "cache")]
            device += ["--client", str(client), "--state", str(folder / f"device-{number}"), "--first-time", "--json"]
            which = python if number == REPORTS - 1 else Path(sys.executable)
            device += ["--onnx", str(made / "float32")]
            processes.append(stack.enter_context(running(which, device, logs[-1])))

        def all_reported() -> bool:
            for number, log in enumerate(logs[1:]):
                if number not in took and '"what": "reported"' in log.read_text(encoding="utf-8"):
                    took[number] = time.monotonic() - began
            return len(took) == REPORTS

        until(all_reported, processes, logs)
        code = server.wait(PATIENCE)
    statement = folder / "served" / "runs" / "chat-devices" / "report" / "statement.json"
    verify = [sys.executable, "-m", "tacit", "verify", str(statement)]
    verified = subprocess.run(verify, env=ENVIRONMENT, capture_output=True, check=False)
    return {
        "reports": len(took),
        "released": code == 0,
        "verified": verified.returncode == 0,
        "seconds_here": [round(took[number], 1) for number in range(REPORTS - 1)],
        "seconds": round(took[REPORTS - 1], 1),
    }


@contextmanager
def running(python: Path, command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`tacit` with these words, all that it prints in the log; ended with the block."""
    with log.open("wb") as file:
        started = subprocess.Popen([python, "-m", "tacit", *command], env=ENVIRONMENT, stdout=file, stderr=file)
        try:
            yield started
        finally:
            started.terminate()
            started.wait(PATIENCE)


def until(found: Callable[[], T | None], alive: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path]) -> T:
    """What comes of it, when something does. Raises: SystemExit, with what was printed, where nothing does."""
    last = time.monotonic() + PATIENCE
    while not (result := found()):
        if time.monotonic() > last or any(each.poll() for each in alive):
            raise SystemExit("\n".join(["the round did not end:", *(log.read_text(encoding="utf-8") for log in logs)]))
        time.sleep(0.05)
    return result


if __name__ == "__main__":
    main()
