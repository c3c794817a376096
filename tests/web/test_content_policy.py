"""A page has one policy of content, whoever serves it: that of `tacit serve --web` is the one that a build writes."""

import json
from pathlib import Path

import pytest
from tests.support.web.npm import ran

from tacit.server.http.web_page import HEADERS

SHOWS = "import { hostHeaders } from %s; console.log(JSON.stringify(hostHeaders([])))"
OF_A_SERVER = {"Vary"}  # which chooses between encodings of a file


@pytest.mark.long
def test_the_server_sends_what_a_build_tells_other_hosts_to_send(web: Path, tmp_path: Path) -> None:
    script = tmp_path / "policy.mjs"
    built = ran(web, "npx", "esbuild", "page/content_policy.ts", "--format=esm", f"--outfile={script}")
    assert built.returncode == 0, built.stderr
    shown = ran(web, "node", "--input-type=module", "--eval", SHOWS % json.dumps(script.as_uri()))
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == {name: value for name, value in HEADERS.items() if name not in OF_A_SERVER}
