"""The device in a browser has tests of its own, of TypeScript (`web/tests`): here they run where Node is."""

import shutil
from pathlib import Path

import pytest
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
