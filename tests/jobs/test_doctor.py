"""`tacit.doctor`: what it says of this machine; a check that fails or crashes is a line; nothing is private."""

import getpass
import json
import platform
import re
import tomllib
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.code_digest import code_digest
from tacit.extras import EXTRAS
from tacit.jobs import doctor as job
from tacit.jobs import machine_checks
from tacit.jobs.doctor import PACKAGES, Checked, Diagnosis, doctor
from tacit.jobs.machine_checks import CHECKS
from tacit.progress import Event, StageEnded

in_a_process = job._checked


def checked_here(name: str, function: str) -> Checked:
    """The check in this process, which has loaded what it needs; but not what limits its process for good."""
    if function == "memory_limit":
        return in_a_process(name, function)
    return Checked(name, json.loads(json.dumps(getattr(machine_checks, function)())))


@pytest.fixture(scope="module", params=["here", pytest.param("in processes", marks=pytest.mark.long)])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """Below, one check is a process of its own, as all of them are for users."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "here":
            patch.setattr(job, "_checked", checked_here)
        folder = tmp_path_factory.mktemp("secret-project")
        patch.chdir(folder)
        patch.setenv("TACIT_TEST_TOKEN", "a-secret-token")
        return doctor()


def test_all_is_well_here_and_said(found: Diagnosis) -> None:
    record = found.to_record()
    assert record == json.loads(json.dumps(record))
    assert (record["schema"], record["version"], record["healthy"]) == ("tacit.doctor", 1, True), found.failed
    assert found.versions["tacit"] == tacit.__version__
    assert found.versions["code of devices"] == code_digest() != found.versions["build"]
    assert found.versions["Python"].endswith(platform.python_version())
    assert "missing" not in found.packages.values()
    assert found.extras.keys() == EXTRAS.keys()
    assert [check.name for check in found.checks] == list(CHECKS)
    assert found.machine["usable_cores"] <= found.machine["cores"]
    assert 0 < found.machine["free_memory_gib"] <= found.machine["memory_gib"]


def test_nothing_in_it_is_private(found: Diagnosis) -> None:
    said = json.dumps(found.to_record()) + str(found.blocks())
    assert not {getpass.getuser(), platform.node()} & set(re.findall(r"\w+", said))
    assert not [each for each in ("secret-project", "a-secret-token", str(REPOSITORY), "/") if each in said]


def test_it_knows_every_package_that_tacit_asks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {Requirement(line).name for line in project["dependencies"]}
    assert set(PACKAGES) == asked | {"jaxlib", "llvmlite"}


def diagnosed(monkeypatch: pytest.MonkeyPatch, *functions: str) -> Diagnosis:
    """With functions of the module of checks in place of the checks; those that it lacks fail."""
    monkeypatch.setattr(job, "CHECKS", {f"check {name}": SimpleNamespace(__name__=name) for name in functions})
    return doctor()


def test_a_check_that_fails_is_a_line_without_folders_and_the_next_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    failing, working = diagnosed(monkeypatch, "no_such_check", "linear_algebra").checks
    assert failing.failed is not None and "cannot import name 'no_such_check'" in failing.failed
    assert "machine_checks.py" in failing.failed and "/" not in failing.failed
    assert working.failed is None and "openblas" in working.found["libraries"]


def test_a_check_that_crashes_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "CHECKS", {"crash": SimpleNamespace(__name__="Any; import os; os.abort(); found = dict")})
    (crashed,) = doctor().checks
    assert crashed.failed == "ended with code -6"


def test_a_check_that_hangs_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PATIENCE", 0.01)
    (slow,) = diagnosed(monkeypatch, "machine_code").checks
    assert slow.failed is not None and slow.failed.startswith("took more than")


@pytest.mark.parametrize(
    ("complaint", "shown"),
    [
        ("No such file or directory: '/home/jo/x y/caches/a'", "No such file or directory: 'a'"),
        ("cannot cache function 'place': no locator available for file '/home/jo/venv/z.py'", "file 'z.py'"),
        (r"C:\Users\jo\venv\z.py is broken", "z.py is broken"),
        ("half of it: 1/2 and a/b", "1/2 and a/b"),
    ],
)
def test_folders_are_left_out_of_paths(complaint: str, shown: str) -> None:
    assert job._FOLDERS.sub("", complaint).endswith(shown)
    assert "jo" not in job._FOLDERS.sub("", complaint)


def test_the_command_shows_each_check_and_fails_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Checked("noise", {}, "AES-128 does not give the published vector")
    seen = Diagnosis(versions={"tacit": "1"}, packages={}, extras={}, machine={}, checks=(broken, Checked("JAX", {})))
    assert "1 of the checks FAIL." in seen._repr_html_()
    monkeypatch.setattr(job, "doctor", lambda progress: seen)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "FAILS: AES-128" in result.stdout and "1 of the checks FAIL" in result.stdout
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1 and json.loads(result.stdout)["checks"][0]["failed"].startswith("AES-128")


def test_it_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Event] = []
    monkeypatch.setattr(job, "CHECKS", {"algebra": SimpleNamespace(__name__="linear_algebra")})
    doctor(progress=heard.append)
    assert heard[-1] == StageEnded("checking")
