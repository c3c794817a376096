"""Ten Chromium pages look at live pages for an hour, and the server's memory stays flat.

A run commits a round every ten seconds; another is moved, damaged, deleted and put back, a change a minute; a page is
loaded anew every minute. Prints a JSON line a minute. Needs Playwright and a Chromium of the distribution.

    python benchmarks/view_browsers.py
    python benchmarks/view_browsers.py --minutes 5
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright  # type: ignore[import-not-found, unused-ignore]

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what is measured is made as tests make it

from benchmarks.view import BLT, cpu, peak, resident
from tests.support.made_runs import write_run
from tests.support.view.rounds import a_round
from tests.support.view.viewing import Viewed, viewing

from tacit.jobs.report import report
from tacit.privacy import Tree

ADDRESSES = (
    *("/", "/", "/run/0/open", "/run/0/open", "/run/0/open", "/run/0/open"),
    *("/run/0/victim", "/run/0/done", "/compare?run=0/done&run=0/two", "/plan"),
)
EVERY = 10.0  # seconds between two rounds
CHANGES = ("moved", "back", "damaged", "mended", "deleted", "made")


def change(what: str, folder: Path, original: Path) -> None:
    """Something that becomes of a run whose page is open."""
    victim, other = folder / "victim", folder / "other"
    if what == "moved":
        victim.rename(other)
    elif what == "back":
        other.rename(victim)
    elif what == "damaged":
        (victim / "run.db").write_bytes(b"SQLite format 3\0" + os.urandom(5_000))
    else:
        shutil.rmtree(victim, ignore_errors=True)
        if what != "deleted":
            shutil.copytree(original, victim)


def look(viewed: Viewed, folder: Path, original: Path, minutes: float) -> None:
    answers, errors = [0], list[str]()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = []
        for address in ADDRESSES:
            page = browser.new_context().new_page()
            page.on("response", lambda _: answers.__setitem__(0, answers[0] + 1))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(viewed.url + address)
            pages.append(page)
        begun = next_round = next_minute = time.monotonic()
        rounds = 0
        while (now := time.monotonic()) - begun < 60 * minutes:
            if now >= next_round:
                a_round(folder / "open", BLT)
                rounds, next_round = rounds + 1, now + EVERY
            if now >= next_minute:
                minute = round((now - begun) / 60)
                say(viewed.process, minute=minute, rounds=rounds, answers=answers[0], errors=len(errors))
                if minute:
                    change(CHANGES[(minute - 1) % len(CHANGES)], folder, original)
                pages[minute % len(pages)].reload()
                next_minute += 60
            pages[0].wait_for_timeout(500)
        say(viewed.process, minute=minutes, rounds=rounds, answers=answers[0], errors=len(errors))
        assert f"{100 + rounds} of 10,000 rounds" in pages[2].inner_text("#state"), "the page says the last round"
        browser.close()


def say(process: int, **more: Any) -> None:
    seen = {"resident_mb": resident(process), "peak_mb": peak(process), "cpu_s": cpu(process)}
    print(json.dumps({**more, **{name: round(value, 1) for name, value in seen.items()}}), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=60.0, help="how long they look")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder, original = Path(made) / "runs", Path(made) / "original"
        write_run(folder / "open", strategy=BLT, rounds=10_000, done=100, every=20)
        report(write_run(folder / "done", strategy=Tree()))
        report(write_run(folder / "two", strategy=Tree(), noise=8.0))
        shutil.copytree(write_run(original, strategy=Tree(), done=7), folder / "victim")
        with viewing(folder) as viewed:
            look(viewed, folder, original, asked.minutes)


if __name__ == "__main__":
    main()
