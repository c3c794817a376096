"""What starting costs: nothing is loaded that the answer does not need."""

import subprocess
import sys

import pytest

HEAVY = {"jax", "numba", "optax", "torch", "matplotlib", "pyarrow", "tokenizers", "ray", "fastapi"}


def loaded_by(code: str) -> set[str]:
    """The packages that a fresh process has loaded after this."""
    names = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{names}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("module", ["tacit", "tacit.errors", "tacit.privacy", "tacit.statements"])
def test_accounting_needs_no_accelerator(module: str) -> None:
    assert not loaded_by(f"import {module}") & HEAVY
