"""The device in a browser has tests of its own, of TypeScript (`web/tests`): here they run where Node is."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
OLDEST = 20  # of Node: the first with the cryptography that the core takes from its runtime
PATIENCE = 600
UNREACHED = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with its packages, beside what both programs read."""
    npm = shutil.which("npm")
    if npm is None or (version := _version()) is None or version < OLDEST:
        pytest.skip(f"Node {OLDEST} or newer with npm is not installed")
    here = tmp_path_factory.mktemp("repository")
    shutil.copytree(WEB, here / "web", ignore=shutil.ignore_patterns("node_modules", "dist"))
    for beside in ("src", "tests", "docs"):  # the vectors, and what the core is compared with
        (here / beside).symlink_to(WEB.parent / beside)
    installed = _run(here / "web", "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
    if installed.returncode and (found := UNREACHED.search(installed.stderr)):
        pytest.skip(f"npm does not reach a registry of packages ({found[0]})")
    assert installed.returncode == 0, installed.stderr
    return here / "web"


def _version() -> int | None:
    node = shutil.which("node")
    found = None if node is None else re.match(r"v(\d+)\.", subprocess.check_output([node, "--version"], text=True))
    return None if found is None else int(found[1])


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    beside = {"TACIT_PYTHON": sys.executable}  # for tests that speak with a server in Python
    environment = os.environ | beside | {"CI": "true", "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, timeout=PATIENCE, check=False
    )


@pytest.mark.long
def test_the_types_hold_and_the_tests_of_the_core_pass(web: Path) -> None:
    found = _run(web, "npm", "test")
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]


@pytest.mark.long
def test_the_page_works_in_a_browser(web: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    found = _run(web, "npm", "run", "test:browser")
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]


@pytest.mark.long
def test_what_a_page_costs_is_measured(web: Path) -> None:
    """`benchmarks/web_device.py` at its smallest: a page and a Python device take part in one round."""
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    found = _run(WEB.parent, sys.executable, "-m", "benchmarks.web_device", "--small", "--web", str(web))
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
    lines = {line["what"]: line for line in map(json.loads, found.stdout.splitlines())}
    assert lines["the round"]["released"] and lines["first visit, bytes"]["bytes"] > 2e6
    assert all(line["median"] > 0 for what, line in lines.items() if what.startswith("a suggestion, "))
