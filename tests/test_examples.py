"""The notebooks of examples/ run from an empty folder, small; what they show was shown by the code that they hold."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests import notebook
from tests.conftest import REPOSITORY
from tests.support.jobs.few_shipped import few_shipped

NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def little_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few of the people whose text tacit ships, and short passages of the novels."""
    (tmp_path / "shipped").mkdir()
    few_shipped(monkeypatch, tmp_path / "shipped", people=400, characters=80)


@pytest.mark.nightly
@pytest.mark.usefixtures("little_text")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_an_empty_folder(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_HOUR", "quick")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    found = loaded(path)
    notebook.run(found)
    silent = [cell["source"][0] for cell in notebook.code_cells(found)[1:] if not cell["outputs"]]
    assert not silent, f"{silent} show nothing"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_of_the_code_beside_them(path: Path) -> None:
    """Their numbers are not compared, for noise is drawn anew each time."""
    found = loaded(path)
    way = f"python -m tests.notebook examples/{path.name}"
    assert found["metadata"].get(notebook.DIGEST) == notebook.digest(found), f"the code has changed: {way}"
    assert [cell["execution_count"] for cell in notebook.code_cells(found)] == list(
        range(1, len(notebook.code_cells(found)) + 1)
    )
    assert path.stat().st_size < 240_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    text = "".join(line for cell in loaded(path)["cells"] if cell["cell_type"] == "markdown" for line in cell["source"])
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert (path.parent / target).exists(), f"{path.name} links to {target}, which is not there"


def test_a_cell_shows_what_jupyter_would() -> None:
    made: dict[str, Any] = {
        "cells": [
            {"cell_type": "markdown", "source": ["no code"]},
            {
                "cell_type": "code",
                "source": [
                    "class Page:\n",
                    "    def _repr_html_(self):\n",
                    "        return 5 * 'b'\n",
                    "page = Page()",
                ],
            },
            {"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x"], "outputs": []},
            {"cell_type": "code", "source": ["page"], "outputs": []},
            {"cell_type": "code", "source": ["import matplotlib.pyplot as plt\n", "plt.plot([x])\n", "y = 1"]},
        ],
        "metadata": {},
    }
    notebook.run(made)
    _, printed, page, drawn = (cell["outputs"] for cell in notebook.code_cells(made))
    assert [each["text"] for each in printed] == [["2\n"]]
    assert page[0]["data"] == {"text/html": ["bbbbb"]}
    assert list(drawn[0]["data"]) == ["image/png"]
    before = notebook.digest(made)
    assert made["metadata"][notebook.DIGEST] == before
    made["cells"][2]["source"][0] = "x = 3\n"
    assert notebook.digest(made) != before
