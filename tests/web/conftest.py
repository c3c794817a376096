"""A copy of `web/` with its packages, where Node is."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.web.npm import ran

WEB = Path(__file__).parents[2] / "web"
OLDEST = 20  # of Node: the first with the cryptography that the core takes from its runtime
UNREACHED = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED")


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with its packages, beside what both programs read."""
    npm = shutil.which("npm")
    if npm is None or (version := _version()) is None or version < OLDEST:
        pytest.skip(f"Node {OLDEST} or newer with npm is not installed")
    here = tmp_path_factory.mktemp("repository")
    shutil.copytree(WEB, here / "web", ignore=shutil.ignore_patterns("node_modules", "dist", "dist-extension"))
    for beside in ("src", "tests", "docs"):  # the vectors, and what the core is compared with
        (here / beside).symlink_to(WEB.parent / beside)
    installed = ran(here / "web", "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
    if installed.returncode and (found := UNREACHED.search(installed.stderr)):
        pytest.skip(f"npm does not reach a registry of packages ({found[0]})")
    assert installed.returncode == 0, installed.stderr
    return here / "web"


def _version() -> int | None:
    node = shutil.which("node")
    found = None if node is None else re.match(r"v(\d+)\.", subprocess.check_output([node, "--version"], text=True))
    return None if found is None else int(found[1])
