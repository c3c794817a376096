"""Wheels of this repository, or of a copy of it that was changed, built without the network."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY


def built_wheel(folder: Path, changes: Mapping[str, Mapping[str, str]] | None = None) -> zipfile.ZipFile:
    """The wheel. changes: by the path of a file in the package, what stands there once now, and what in its place;
    a file that is not there is made of the text in place of nothing.
    """
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("pyproject.toml is for setuptools 77 or newer; `make install` has it")
    copy, out = folder / "copy", folder / "dist"
    listed = ["git", "-C", str(REPOSITORY), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in filter(None, subprocess.check_output(listed, text=True).split("\0")):
        if (REPOSITORY / name).is_file() and not name.startswith("tests/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
    for name, replaced in (changes or {}).items():
        file = copy / "src" / "tacit" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        for before, after in replaced.items():
            assert text.count(before) == 1 or not text, f"{name} has {text.count(before)} times {before!r}"
            text = text.replace(before, after) if text else after
        file.write_text(text, encoding="utf-8")
    build = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, str(out)], cwd=copy, capture_output=True, text=True, check=True
    )
    return zipfile.ZipFile(out / built.stdout.split()[-1])
