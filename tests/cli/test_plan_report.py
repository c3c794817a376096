"""The pages of `tacit plan`: the answer first, a figure at least, the numbers, and nothing that a browser must run."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli.plan import app

ES_ES = "--population 4.21M --rounds 2000"
FAST = "--mechanism tree --mechanism blt-b400"
LINES = [
    (f"steps {ES_ES} --epsilon 4 --mechanism tree", "reports a round and noise multiplier", 1),
    (f"run {ES_ES} --report-goal 6500 {FAST}", "At the same utility blt-b400 promises epsilon", 1),
    (f"target {ES_ES} --epsilon 4 {FAST}", "blt-b400 reaches the target with the fewest reports", 1),
    (f"target {ES_ES} --epsilon 1 --most-reports 20000 --mechanism blt-b400", "No report goal reaches the target", 1),
    (f"timer {ES_ES} --rounds-per-day 150 --report-goal 6500 --mechanism tree --epsilon 9", "is the shortest", 1),
    (f"timer {ES_ES} --rounds-per-day 150 --report-goal 6500 --mechanism tree --epsilon 0.1", "No timer reaches", 1),
    (f"timer {ES_ES} --rounds-per-day 150 --report-goal 6500 --mechanism tree", "promises the most of those tried", 1),
    (f"rounds {ES_ES} --report-goal 6500 --mechanism tree --epsilon 8", "tree affords the most rounds", 1),
    (f"rounds {ES_ES} --report-goal 6500 --mechanism tree --epsilon 0.01", "The budget affords no round.", 1),
    ("epsilon --population 300,3k --rounds 50 --mechanism tree", "90% of the accuracy without noise is kept by", 3),
]


@pytest.mark.parametrize(("line", "answer", "figures"), LINES, ids=[line for line, _, _ in LINES])
def test_a_page_begins_with_its_answer(line: str, answer: str, figures: int, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, [*shlex.split(line), "--report", str(tmp_path / "page")])
    assert found.exit_code == 0, found.output
    assert f"report: {tmp_path / 'page' / 'report.html'}" in found.stdout.replace("\n", "")
    page = (tmp_path / "page" / "report.html").read_text()
    first = re.search(r"</h1>\s*<div>\s*<p>(.*?)</p>", page, re.DOTALL)
    assert first is not None and answer in first.group(1)
    assert page.count('<svg class="figure"') == figures == len(list((tmp_path / "page").glob("*.png")))
    assert "style=" not in page and "<script" not in page and "<table" in page
    told = CliRunner().invoke(app, [*shlex.split(line), "--json"])
    assert json.loads((tmp_path / "page" / "report.json").read_text()) == json.loads(told.stdout)


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = f"epsilon --population 300M --rounds 100000 --report {tmp_path / 'file'}"
    found = CliRunner().invoke(app, shlex.split(line))
    assert found.exit_code == 2 and "is a file" in found.stderr and found.stderr.count("\n") == 1
