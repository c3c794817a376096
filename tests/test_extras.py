"""Packages that few need: what is missing is named where it is used, with the command that brings it."""

import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.extras import EXTRAS, has_extra, of_extra

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEVELOPMENT = {"browser", "dev", "docs", "peers"}  # never imported by tacit


def hidden(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """As if the module were not installed."""
    for part in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, part)
    monkeypatch.setitem(sys.modules, module, None)


def test_every_extra_is_declared_and_brings_its_package() -> None:
    declared = PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - DEVELOPMENT
    for name in EXTRAS:
        brought = {canonicalize_name(Requirement(line).name) for line in declared[name]}
        if name == "deployment":  # a server is many packages; one stands for them
            assert canonicalize_name(EXTRAS[name].package) in brought
            continue
        if name == "export":  # what writes graphs comes with what runs them
            brought -= {"onnx"}
        assert len(brought) == 1
        if name != "gpu":  # jax itself, whose own extra brings the plugin
            assert brought == {canonicalize_name(EXTRAS[name].package)}


def test_no_extra_is_a_dependency_and_development_has_those_that_tests_use() -> None:
    always = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    development = {canonicalize_name(Requirement(line).name) for line in PROJECT["optional-dependencies"]["dev"]}
    extras = {canonicalize_name(extra.package) for extra in EXTRAS.values()}
    assert not always & extras
    assert {"ray", "dp-accounting"} <= development


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_missing_is_named_with_the_command_that_brings_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = EXTRAS[name]
    monkeypatch.setattr("tacit.extras.EXTRAS", {name: extra._replace(module="no_such_module_of_an_extra")})
    assert not has_extra(name)
    with pytest.raises(InputError) as refused:
        of_extra(name)
    assert extra.use in str(refused.value) and extra.package in str(refused.value)
    assert str(refused.value).endswith(f"`pip install 'tacit[{name}]'` does.")


def test_what_else_an_extra_brings_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden(monkeypatch, "onnx")
    with pytest.raises(InputError, match=r"needs onnx, which .* `pip install 'tacit\[export\]'` does"):
        of_extra("export", "onnx")


def test_a_package_that_is_there_and_lacks_something_itself_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_installed.py").write_text("import no_such_module_of_a_package\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tacit.extras.EXTRAS", {"half": EXTRAS["cluster"]._replace(module="half_installed")})
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_a_package"):
        of_extra("half")


AMPLIFIED = (
    *("account", "amplified", "--mechanism", "banded-toeplitz", "--coefficients", "1,0.5,0.375", "--rounds", "90"),
    *("--population", "60000", "--batch", "200", "--noise-multiplier", "4"),
)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("dp_accounting", AMPLIFIED), ("ray", ("train", "RECIPE", "--out", "run", "--cluster", "auto"))],
    ids=["amplification", "cluster"],
)
def test_the_command_says_so_in_one_line(
    module: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.training.tiny import tiny_cache, tiny_toml

    if "RECIPE" in arguments:
        recipe = tmp_path / "tiny.toml"
        recipe.write_text(tiny_toml(tiny_cache(tmp_path / "cache").path), encoding="utf-8")
        arguments = tuple(str(recipe) if word == "RECIPE" else word for word in arguments)
    monkeypatch.chdir(tmp_path)
    hidden(monkeypatch, module)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "pip install 'tacit[" in done.stderr
    assert not (tmp_path / "run").exists()
