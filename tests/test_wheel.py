"""What `pip install tacit` brings: a wheel with everything that the command needs, and a page without a dead link."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.support.wheels import built_wheel

import tacit

SOURCE = "https://repository.example/tacit"  # RFC 2606: nobody's
PACKAGE = REPOSITORY / "src" / "tacit"


def setup_py() -> object:
    """The module; nothing is set up by importing it."""
    spec = importlib.util.spec_from_file_location("setup", REPOSITORY / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def for_an_index(text: str, source: str | None) -> str:
    pytest.importorskip("setuptools")
    return str(setup_py().for_an_index(text, source))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("link", "absolute", "words"),
    [
        ("[a page](docs/cli.md)", f"[a page]({SOURCE}/blob/HEAD/docs/cli.md)", "a page"),
        ("[a part](docs/cli.md#tacit)", f"[a part]({SOURCE}/blob/HEAD/docs/cli.md#tacit)", "a part"),
        ("![a curve](docs/curve.svg)", f"![a curve]({SOURCE}/raw/HEAD/docs/curve.svg)", ""),
        ("[here](#tacit)", "[here](#tacit)", "[here](#tacit)"),
        ("[Ray](https://docs.ray.io)", "[Ray](https://docs.ray.io)", "[Ray](https://docs.ray.io)"),
        ("[two\nlines](LICENSE)", f"[two\nlines]({SOURCE}/blob/HEAD/LICENSE)", "two\nlines"),
    ],
)
def test_relative_links_become_absolute_or_words(link: str, absolute: str, words: str) -> None:
    assert for_an_index(link, SOURCE) == for_an_index(link, f"{SOURCE}/") == absolute
    assert for_an_index(link, None) == words


def relative_links(text: str) -> list[str]:
    """Where links of Markdown and HTML lead that say no address."""
    found = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"(?:href|src)=[\"']([^\"']+)", text)
    return [link for link in found if not link.startswith(("https://", "http://", "mailto:", "#"))]


@pytest.mark.parametrize("source", [SOURCE, None])
def test_no_link_of_the_readme_is_relative_on_the_page_of_an_index(source: str | None) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert relative_links(readme), "or nothing is tested"
    assert not relative_links(for_an_index(readme, source))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built from a copy, without the network."""
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.long
class TestTheWheel:
    def test_every_file_of_the_package_is_inside(self, wheel: zipfile.ZipFile) -> None:
        inside = {name for name in wheel.namelist() if name.startswith("tacit/")}
        here = {
            f"tacit/{path.relative_to(PACKAGE)}"
            for path in PACKAGE.rglob("*")
            if path.is_file() and path.parent.name != "__pycache__"
        }
        assert inside == here
        assert any(name.endswith(".toml") for name in inside), "recipes"

    def test_the_pages_that_help_names_are_inside(self, wheel: zipfile.ZipFile) -> None:
        named = {
            match
            for path in PACKAGE.rglob("*.py")
            for match in re.findall(r"docs/[a-z-]+\.md", path.read_text("utf-8"))
        }
        data = f"tacit-{tacit.__version__}.data/data/share/doc/tacit"
        assert named and not {f"{data}/{page}" for page in named} - set(wheel.namelist())

    def test_its_metadata_is_complete(self, wheel: zipfile.ZipFile) -> None:
        text = wheel.read(f"tacit-{tacit.__version__}.dist-info/METADATA").decode()
        metadata = message_from_string(text)
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert metadata["Version"] == tacit.__version__ and metadata["License-Expression"] == "Apache-2.0"
        assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
        assert metadata.get_all("Classifier") == project["classifiers"]
        assert metadata["Description-Content-Type"] == "text/markdown"
        assert str(metadata.get_payload()).lstrip().startswith("# tacit") and not relative_links(text)

    def test_the_command_runs_from_it_alone(self, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
        wheel.extractall(tmp_path / "installed")
        (tmp_path / "empty").mkdir()
        alone = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
        run = [sys.executable, "-P", "-m", "tacit"]
        account = ["account", "tree", "--rounds", "9", "--min-separation", "3", "--noise-multiplier", "1", "--json"]
        for asked in (["--version"], account):
            done = subprocess.run([*run, *asked], cwd=tmp_path / "empty", env=alone, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        where = [sys.executable, "-P", "-c", "import tacit; print(tacit.__file__)"]
        found = subprocess.check_output(where, env=alone, text=True, cwd=tmp_path / "empty")
        assert found.startswith(str(tmp_path / "installed")), "another tacit was tried"


@pytest.mark.long
def test_the_site_is_in_a_wheel_that_was_built_after_it(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    site = {"index.html", "results/people.html", "_static/styles/furo.css", "_images/people.png"}
    later = built_wheel(tmp_path, {f"../../build/site/{name}": {"": "a page"} for name in site})
    home = f"tacit-{tacit.__version__}.data/data/share/doc/tacit/site/"
    assert {name.removeprefix(home) for name in later.namelist() if name.startswith(home)} == site
    assert not [name for name in wheel.namelist() if name.startswith(home)]
