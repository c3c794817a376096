"""Notebooks run without Jupyter: cell after cell in one namespace, with what a reader would see of each.

`python -m tests.notebook examples/first-hour.ipynb` runs one at its full size, in a new folder, and writes what it
shows into the file, with a digest of the code that showed it. No magics, no kernel, nothing to install.
"""

import ast
import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

SHOWN = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_"}  # by a value in a cell's last line
DIGEST = "shown_by"  # of a notebook's metadata: which code its outputs are of


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digest(notebook: dict[str, Any]) -> str:
    """SHA-256 of all code, in order."""
    code = "\0".join("".join(cell["source"]) for cell in code_cells(notebook))
    return hashlib.sha256(code.encode()).hexdigest()


def run(notebook: dict[str, Any]) -> None:
    """Run every code cell in this folder, and put its outputs in place of those that it had."""
    import matplotlib

    matplotlib.use("agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        cell["outputs"] = _shown("".join(cell["source"]), f"cell {number}", namespace)
        cell["execution_count"] = number
    notebook["metadata"][DIGEST] = digest(notebook)


def _shown(code: str, name: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """What was printed, the figures that are open, and the value of a last line that is an expression."""
    import matplotlib.pyplot as plt

    tree, printed, value = ast.parse(code), io.StringIO(), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    for form, method in SHOWN.items():
        if hasattr(value, method):
            outputs.append(_output({form: _lines(getattr(value, method)())}))
    for figure in map(plt.figure, plt.get_fignums()):
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=80)
        outputs.append(_output({"image/png": b64encode(image.getvalue()).decode()}))
    plt.close("all")
    return outputs


def _output(data: dict[str, Any]) -> dict[str, Any]:
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(notebook)
        os.chdir(before)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
