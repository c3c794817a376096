"""Live pages come at once: a second after the start, a run of 10,000 rounds, 500 runs, and a round after its commit.

Prints one JSON line for each figure, with its goal. Servers are started as somebody starts them, each figure in a fresh
one; the runs are written by hand, as tests write them. Beside it, if there is one: TensorBoard with the same curves.

    python benchmarks/view.py
    python benchmarks/view.py --tensorboard PATH    of its command, which lives in another environment
    python benchmarks/view.py --minutes 5           how long ten browsers look
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what is measured is made as tests make it

from tests.support.made_runs import write_run
from tests.support.view.rounds import a_round
from tests.support.view.viewing import Viewed, viewing

from tacit.jobs.report import report
from tacit.privacy.strategy import PUBLISHED_BLT
from tacit.runs import Run

BLT = PUBLISHED_BLT["b400"]
STATIC = ("/static/view.css", "/static/view.js", "/static/icon.svg")
FIRST = 60.0  # seconds that anything may take
READ = 4.0  # seconds that somebody looks at a page before the next


def say(figure: str, value: float, unit: str, goal: float | None = None, **more: Any) -> None:
    print(json.dumps({"figure": figure, "value": round(value, 4), "unit": unit, "goal": goal, **more}), flush=True)


def peak(process: int) -> float:
    """The largest resident memory of a process so far, in MB."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def resident(process: int) -> float:
    """MB."""
    return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def cpu(process: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fetched(url: str, *addresses: str) -> tuple[float, int]:
    """(seconds, bytes as they were sent) of these pages, one after the other."""
    begun = time.perf_counter()
    with httpx.Client(base_url=url, timeout=FIRST) as asked:
        sent = sum(asked.get(each).raise_for_status().num_bytes_downloaded for each in addresses)
    return time.perf_counter() - begun, sent


def first_page(folder: Path) -> None:
    begun = time.perf_counter()
    with viewing(folder) as (url, process):
        fetched(url, "/")
        say("first page after the start", time.perf_counter() - begun, "s", 1.0, cpu=cpu(process))
        _, sent = fetched(url, "/", "/run/0", *STATIC)
        say("list, run and what belongs to them", sent / 1e3, "kB", 300)


def long_run(folder: Path, what: str, *arguments: str) -> None:
    """Its page in a fresh server: wall seconds, and those that the server computed, whatever others do."""
    with viewing(folder, arguments=arguments) as (url, process):
        fetched(url, "/servers")  # somebody comes by way of another page, and reads it
        time.sleep(READ)
        before = cpu(process)
        taken, sent = fetched(url, "/run/0")
        say(what, taken, "s", 0.8, cpu=round(cpu(process) - before, 2), kB=round(sent / 1e3, 1))
        say(f"{what}: peak memory", peak(process), "MB", 150)


def many_runs(folder: Path) -> None:
    with viewing(folder) as (url, process):
        begun = time.perf_counter()
        with httpx.Client(base_url=url, timeout=FIRST) as asked:
            first = asked.get("/").raise_for_status()
            seen, shown = time.perf_counter() - begun, first.text.count("<article")
            while asked.get("/?format=json").json()["waiting"]:
                time.sleep(0.02)
            say("500 runs listed: first answer", seen, "s", 1.0, rows=shown, cpu=cpu(process))
            say("500 runs listed: all rows read", time.perf_counter() - begun, "s", 1.0, cpu=cpu(process))
        taken, _ = fetched(url, "/")
        say("500 runs listed again", taken, "s")
        idle(url, process, "500 runs", "/changes")


def idle(url: str, process: int, what: str, address: str) -> None:
    """CPU while a browser waits and nothing happens."""
    with httpx.stream("GET", f"{url}{address}", timeout=FIRST) as waiting:
        assert waiting.status_code == 200
        time.sleep(2)
        begun, before = time.perf_counter(), cpu(process)
        time.sleep(15)
        share = (cpu(process) - before) / (time.perf_counter() - begun)
    say(f"idle, {what}, one browser waits", 100 * share, "% of a core", 2)


def new_round(folder: Path) -> None:
    with viewing(folder) as (url, process):
        mark = httpx.get(f"{url}/run/0?format=json", timeout=FIRST).json()["mark"]
        taken = []
        for _ in range(5):
            with httpx.stream("GET", f"{url}/changes?place=0&known={mark}", timeout=FIRST) as waiting:
                time.sleep(0.7)
                committed: list[float] = []
                writer = threading.Thread(target=lambda to=committed: to.append(a_round(folder, BLT)))
                writer.start()
                mark = next(json.loads(line[5:])["mark"] for line in waiting.iter_lines() if line.startswith("data:"))
                fetched(url, "/run/0")
                seen = time.perf_counter()
                writer.join()
            taken.append(seen - committed[0])
            mark = httpx.get(f"{url}/run/0?format=json", timeout=FIRST).json()["mark"]
        say("a new round on the page after its commit, the longest of five", max(taken), "s", 2.0)
        idle(url, process, "one run", "/changes?place=0")


def ten_browsers(folder: Path, minutes: float) -> None:
    """A run under way that commits a round every second, and ten who fetch its page at each."""
    with viewing(folder) as (url, process):
        ends = time.monotonic() + 60 * minutes
        answers = [0]

        def look() -> None:
            with httpx.Client(base_url=url, timeout=FIRST) as asked:
                while time.monotonic() < ends:
                    asked.get("/run/0").raise_for_status()
                    answers[0] += 1
                    time.sleep(1)

        browsers = [threading.Thread(target=look) for _ in range(10)]
        for each in browsers:
            each.start()
        seen = []
        while time.monotonic() < ends:
            a_round(folder, BLT)
            seen.append(resident(process))
            time.sleep(1)
        for each in browsers:
            each.join()
        tenth = max(1, len(seen) // 10)
        begun, ended = float(np.mean(seen[tenth : 2 * tenth])), float(np.mean(seen[-tenth:]))
        say("ten browsers: memory after the first tenth", begun, "MB", minutes=minutes, pages=answers[0])
        say("ten browsers: memory at the end", ended, "MB", round(1.1 * begun, 1))


def same_page(folder: Path) -> None:
    """A run that does not change: whatever memory grows with is then the server's own, and none of the run's."""
    with viewing(folder) as (url, process), httpx.Client(base_url=url, timeout=FIRST) as asked:
        for pages in range(3_000):
            asked.get("/run/0").raise_for_status()
            if pages == 2_000:
                begun = resident(process)
        say("3,000 pages of one state: memory after 2,000", begun, "MB")
        say("3,000 pages of one state: memory at the end", resident(process), "MB", round(1.01 * begun, 1))


@contextmanager
def tensorboard(command: str, folder: Path) -> Iterator[Viewed]:
    port = "18766"
    process = subprocess.Popen(
        [command, "--logdir", str(folder), "--port", port, "--host", "127.0.0.1", "--load_fast=false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        ends = time.monotonic() + FIRST
        while time.monotonic() < ends:
            with suppress(httpx.TransportError):
                if httpx.get(url, timeout=5).status_code == 200:
                    break
            time.sleep(0.02)
        yield Viewed(url, process.pid)
    finally:
        process.terminate()
        process.wait()


def beside(command: str, folder: Path) -> None:
    """The same curves in TensorBoard: what was measured of 10,000 rounds."""
    from tensorboardX import SummaryWriter  # type: ignore[import-untyped]

    with Run.open(folder / "long", read_only=True) as run, SummaryWriter(str(folder / "events" / "long")) as events:
        for step in run.steps():
            for name, value in step.measures.items():
                events.add_scalar(name, value, step.step)
    begun = time.perf_counter()
    with tensorboard(command, folder / "events") as (url, process):
        say("TensorBoard: first page after the start", time.perf_counter() - begun, "s")
        _, sent = fetched(url, "/", "/index.js")
        say("TensorBoard: page and script", sent / 1e3, "kB")
        begun = time.perf_counter()
        with httpx.Client(base_url=url, timeout=FIRST) as asked:
            while "long" not in asked.get("/data/plugin/scalars/tags").json():
                time.sleep(0.05)
            sent = sum(
                asked.get("/data/plugin/scalars/scalars", params={"run": "long", "tag": tag}).num_bytes_downloaded
                for tag in ("loss", "clipped")
            )
        say("TensorBoard: two curves of 10,000 rounds", time.perf_counter() - begun, "s", kB=sent / 1e3)
        say("TensorBoard: peak memory", peak(process), "MB")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tensorboard", help="the command of TensorBoard")
    arguments.add_argument("--minutes", type=float, default=2.0, help="how long ten browsers look")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_run(folder / "short", strategy=BLT, rounds=100, every=10)
        report(folder / "short")
        for number in range(500):
            shutil.copytree(folder / "short", folder / "many" / f"run-{number:03}")
        write_run(folder / "long", strategy=BLT, rounds=10_000, every=100)
        write_run(folder / "open", strategy=BLT, rounds=10_000, done=100, every=20)
        first_page(folder / "short")
        many_runs(folder / "many")
        long_run(folder / "long", "10,000 rounds, under way")
        long_run(folder / "long", "10,000 rounds, under way, exact", "--simulation")
        report(folder / "long")
        long_run(folder / "long", "10,000 rounds, finished")
        new_round(folder / "open")
        same_page(folder / "open")
        ten_browsers(folder / "open", asked.minutes)
        if asked.tensorboard:
            beside(asked.tensorboard, folder)


if __name__ == "__main__":
    main()
