"""The project's own files: what is pinned answers what is asked for, and the version stands in one place."""

import re
import subprocess
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.conftest import REPOSITORY

import tacit

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_version_is_the_package_s() -> None:
    assert tacit.__version__ == PROJECT["version"]


def test_changelog_keeps_its_form() -> None:
    """Keep a Changelog's; and each change is one sentence of at most 25 words, with its command or its page."""
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)[:2] == ["Unreleased", PROJECT["version"]]
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert "Added" in kinds and kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    changes = re.findall(r"^- (.+)$", text, re.MULTILINE)
    assert changes and not [each for each in changes if "`" not in each and "](" not in each]
    assert not [each for each in changes if len(re.sub(r" \(\[.*", "", each).split()) > 25]


def test_lock_is_portable_and_answers_every_dependency() -> None:
    """requirements.lock holds `name==version` lines only, and what pyproject.toml asks for is in it."""
    lines = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert "tacit" not in pinned
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        wanted = Requirement(text)
        version = pinned.get(canonicalize_name(wanted.name), "nothing")
        assert version != "nothing" and version in wanted.specifier, f"{text}: the lock pins {version}"


def test_every_attack_that_the_threat_model_names_is_a_test() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)`", (REPOSITORY / "docs/threat-model.md").read_text(encoding="utf-8"))
    assert len(set(named)) > 10
    assert not [name for name in named if not (REPOSITORY / name).is_file()]


def test_the_image_holds_the_wheel_for_a_user_who_is_not_root() -> None:
    """What can be said of a Dockerfile without building it."""
    text = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    told = [line.split(maxsplit=1) for line in lines]
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT"}
    assert {instruction for instruction, _ in told} == known
    versions = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    bases = [words.split()[0] for instruction, words in told if instruction == "FROM"]
    assert all(base.removeprefix("python:").removesuffix("-slim") in versions for base in bases)
    users = [words for instruction, words in told if instruction == "USER"]
    assert users == ["tacit"] and told[-1] == ["ENTRYPOINT", '["tacit"]']
    assert "COPY dist/*.whl /tmp/" in lines and "!dist/*.whl" in (REPOSITORY / ".dockerignore").read_text("utf-8")
    for instruction, words in told:
        if instruction == "RUN":
            subprocess.run(["sh", "-n", "-c", words], check=True)  # the shell reads it, and runs nothing
