"""What it costs to take part in a browser, beside the Python device: bytes, milliseconds, CPU-seconds, megabytes.

A model of 0.66 M random numbers and 10,000 words is exported, its page built, and one round of two reports served by
`tacit serve --web`: Chromium sends one and `tacit device --onnx` the other. Prints a JSON line for each figure, with
its goal; those of the browser are measured by web/tests/measure.ts. CPU-seconds are those of all the browser's
processes, megabytes their proportional set size; `page` is what all renderers have more than without one. Wall-clock
figures hold for a machine that does nothing else. Needs Node, `npm ci` in web/, and Chromium (or CHROMIUM=PATH).

    python benchmarks/web_device.py            about two minutes
    python benchmarks/web_device.py --small    a smoke test
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jax

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what is measured is made as tests make it
sys.path.append(str(Path(__file__).parent / "keyboard"))

from suggestion_latency import a_word, by_onnx
from tests.support.training.tiny import tiny_recipe

import tacit
from tacit.data import Cache, VocabularyChoice
from tacit.data.formats.shipped import Chat
from tacit.data.vocabulary_choice import NOVELS
from tacit.jobs.import_data import import_data
from tacit.keyboard.model_folder import load_model, write_model
from tacit.networks.cifg.network import Cifg

WEB = Path(__file__).parents[1] / "web"
SENTENCES = 32  # of a round
# The command, and then what its process took.
DEVICE = """
import json, re, runpy, sys, time
from pathlib import Path
sys.argv = sys.argv[1:]
try:
    runpy.run_module('tacit', run_name='__main__')
except SystemExit as end:
    assert not end.code, end.code
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps({"seconds": time.process_time(), "kilobytes": int(peak[1])}))
"""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    network: Cifg
    sealed: int  # numbers


FULL = Sizes(Cifg(vocabulary=10_000, embedding=32, units=64), 2_424_832)
SMALL = Sizes(Cifg(vocabulary=500, embedding=8, units=16), 16_384)
GOALS = {  # of a line's figures, by what it says of itself
    "own code, gzip": {"bytes": 35_000},
    "to keys, ms": {"offlineMedian": 300},
    "a suggestion, training, from input to words, ms": {"p95": 2.0},
    f"a round, {SENTENCES} sentences, CPU-s of all the browser's processes": {"seconds": 3.0},
    "memory, MB (PSS), the most in the round": {"page": 250},
    "first visit, bytes": {"bytes": 3_500_000},
    "sealed report": {"first": 0.5},
    "Python device: memory, MB": {"peak": 150},
}


def say(line: dict[str, Any]) -> None:
    goal = GOALS.get(line["what"])
    print(json.dumps(line if goal is None else line | {"goal": goal}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--web", type=Path, default=WEB, help="a folder web/ with its packages")
    asked = parser.parse_args()
    sizes = SMALL if asked.small else FULL
    if not (asked.web / "node_modules").is_dir():
        parser.error(f"'{asked.web}' has no packages; run npm ci there.")
    say({"what": "machine", "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)})
    with tempfile.TemporaryDirectory() as made:
        measured(Path(made), asked.web, sizes, small=asked.small)


def measured(folder: Path, web: Path, sizes: Sizes, *, small: bool) -> None:
    """All of it; the server ends when its round has both reports."""
    words = VocabularyChoice(public=(NOVELS,))
    cache = import_data(Chat(200), folder / "data", vocabulary=words, vocabulary_size=sizes.network.vocabulary)
    random = sizes.network.init(jax.random.key(0))
    write_model(folder / "model", sizes.network, random, cache.vocabulary_json.encode())
    tacit.export(folder / "model", folder / "phone")
    node(web, "run", "-s", "build", "--", folder / "phone", folder / "dist")
    sealing(web, folder / "sealing.mjs", sizes.sealed)
    model, phone = load_model(folder / "model"), folder / "phone"
    say({"what": "Python device: a suggestion, ms"} | a_word(model, phone, *by_onnx(model, phone)))
    failures, stop = list[BaseException](), threading.Event()

    def beside(told: Any) -> None:
        try:
            first_visit(told.url, folder / "dist")
            pages = [folder / "dist", told.url, told.operator_key, "small" if small else "full"]
            for line in node(web, "run", "-s", "measure", "--", *pages).splitlines():
                say(json.loads(line))
            python_device(told, folder, cache)
        except BaseException as failure:
            failures.append(failure)
            stop.set()

    served = tacit.serve(
        [recipe(cache, sizes.network)],
        folder / "served",
        workers=1,
        address=tacit.Address(port=0),
        web=folder / "dist",
        serving=lambda told: threading.Thread(target=beside, args=(told,)).start(),
        stop=stop,
    )
    if failures:
        raise failures[0]
    say({"what": "the round", "released": served.finished})


def node(web: Path, *arguments: str | Path) -> str:
    """What npm printed. Raises: SystemExit with its complaint where it failed."""
    done = subprocess.run(["npm", *map(str, arguments)], cwd=web, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def sealing(web: Path, out: Path, numbers: int) -> None:
    """One sealed report, in a process of Node that has done nothing else."""
    bundle = ("--bundle", "--platform=node", "--format=esm", "--log-level=error", f"--outfile={out}")
    node(web, "exec", "--", "esbuild", "tests/sealing_cost.ts", *bundle)
    command = ["node", str(out), "lattice/lattice.wasm", str(numbers)]
    for line in subprocess.run(command, cwd=web, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        say(json.loads(line))


def recipe(cache: Cache, network: Cifg) -> Any:
    """A round of two reports, whose price the default policies of both devices allow."""
    made = tiny_recipe(
        cache.path,
        model={"embedding": network.embedding, "units": network.units},
        client={"batch_size": 8, "sentences": SENTENCES, "words": 20},
        rounds={"rounds": 1, "report_goal": 2, "min_separation": 1},
        privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 1.0},
        deployment={"population": "default", "devices": 40, "pause_minutes": 0.0, "over_selection": 1.0},
    )
    return made.model_copy(update={"run": made.run.model_copy(update={"seed": None})})  # or devices know the noise


def first_visit(url: str, dist: Path) -> None:
    """Every file of the page once, as the server sends it to browsers."""
    names = [*json.loads((dist / "bundle.json").read_text("utf-8"))["files"], "bundle.json", "sw.js"]
    with httpx.Client(base_url=url, headers={"Accept-Encoding": "br"}) as client:
        sent = {name: client.head(f"/{name}").raise_for_status().headers["content-length"] for name in names}
    bytes_of = {name: int(length) for name, length in sent.items()}
    model = sum(length for name, length in bytes_of.items() if name.startswith("model/"))
    say({"what": "first visit, bytes", "bytes": sum(bytes_of.values()), "model": model})


def python_device(told: Any, folder: Path, cache: Cache) -> None:
    """`tacit device --onnx` in a process of its own, with the text of a client who has enough."""
    client = max(cache.clients("train").tolist(), key=cache.sentence_count)
    state = folder / "state"
    state.mkdir()
    (state / "policy.toml").write_text("send_after_s = 1\n", encoding="utf-8")
    options = ["--server", told.url, "--operator-key", told.operator_key, "--onnx", str(folder / "phone")]
    options += ["--data", str(cache.path), "--client", str(client), "--state", str(state)]
    command = [sys.executable, "-c", DEVICE, "tacit", "device", *options, "--first-time", "--once", "--json"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    if not any('"reported"' in line for line in said):
        sys.exit(f"the device took part in nothing: {said}")
    used, sentences = json.loads(said[-1]), min(SENTENCES, cache.sentence_count(client))
    what = "Python device: a round with its start, CPU-s"
    say({"what": what, "seconds": round(used["seconds"], 2), "sentences": sentences})
    say({"what": "Python device: memory, MB", "peak": round(used["kilobytes"] * 1024 / 1e6)})


if __name__ == "__main__":
    main()
