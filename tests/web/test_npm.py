"""The device in a browser has tests of its own, of TypeScript (`web/tests`): here they run where Node is."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.support.web.npm import ran


@pytest.mark.long
def test_the_types_hold_and_the_tests_of_the_core_pass(web: Path) -> None:
    found = ran(web, "npm", "test")
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]


@pytest.mark.long
def test_the_page_works_in_a_browser(web: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    found = ran(web, "npm", "run", "test:browser")
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]


@pytest.mark.nightly
def test_what_a_page_costs_is_measured(web: Path) -> None:
    """`benchmarks/web_device.py` at its smallest: a page and a Python device take part in one round."""
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    found = ran(REPOSITORY, sys.executable, "benchmarks/web_device.py", "--small", "--web", str(web))
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
    lines = {line["what"]: line for line in map(json.loads, found.stdout.splitlines())}
    assert lines["the round"]["released"] and lines["first visit, bytes"]["bytes"] > 5e4
    keys = [line for what, line in lines.items() if what.endswith("from key to words, ms")]
    assert len(keys) == 2 and all(line["count"] > 50 and line["median"] > 0 for line in keys)
