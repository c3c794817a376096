"""The project's own files: what is pinned answers what is asked for, and the version stands in one place."""

import ast
import re
import subprocess
import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.conftest import REPOSITORY
from tests.render_licences import ABOUT, PAGE, licence, pins, rows

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


@pytest.mark.parametrize(("lock", "extra"), [("requirements.lock", "dev"), ("deployment.lock", "deployment")])
def test_a_lock_answers_every_dependency_by_digest(lock: str, extra: str) -> None:
    """Lines `name==version`, for some platforms where it says so, each with digests; no address of anybody's index."""
    lines = (REPOSITORY / lock).read_text(encoding="utf-8").splitlines()
    named = [line.removesuffix(" \\") for line in lines if not line.startswith("    ")]
    hashes = [line for line in lines if line.startswith("    ")]
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)
    assert all(re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.]+( ; [A-Za-z0-9_ .'=!<>]+)?", line) for line in named)
    last = [number for number, line in enumerate(lines) if not line.endswith("\\")]
    assert len(last) == len(named) and all(lines[number].startswith("    ") for number in last), "each has a digest"
    pinned = pins(lock)
    assert "tacit" not in pinned and len(pinned) == len(named)
    for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        wanted = Requirement(text)
        version = pinned.get(canonicalize_name(wanted.name), "nothing")
        assert version != "nothing" and version in wanted.specifier, f"{text}: {lock} pins {version}"
    for name, version in pinned.items():  # what they need in turn, as far as it is installed here in these versions
        for text in (requires(name) or []) if licence(name, version) is not None else []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert canonicalize_name(needed.name) in pinned, f"{name} needs {text}, which {lock} lacks"


def test_both_locks_pin_the_same_versions() -> None:
    developed, served = pins("requirements.lock"), pins("deployment.lock")
    assert served.keys() - developed.keys() <= {"colorama"}, "of platforms that tacit is not tested on"
    assert all(developed.get(name, version) == version for name, version in served.items())


def test_the_page_of_licences_has_every_package_that_is_pinned() -> None:
    lines = PAGE.read_text(encoding="utf-8").removeprefix(ABOUT).splitlines()
    told = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    known = rows()
    assert [(name, version, where) for name, version, _, where in told] == [
        (name, version, where) for name, (version, _, where) in known.items()
    ]
    for name, _, said, _ in told:
        assert said and known[name][1] in (None, said), name  # None: another version is installed


COLUMNS = ["promise", "holds if", "test", "open"]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(?:(\w+)::)?(test_\w+))?`")
NONE = "-"  # of a cell that has nothing to say


def rows_of_threats() -> list[dict[str, str]]:
    """Of all tables of the page, by their columns."""
    lines = (REPOSITORY / "docs/threat-model.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells and all(len(each) == len(COLUMNS) for each in cells)
    assert [each for each in cells if each[0] == "promise"] == [COLUMNS] * cells.count(["---"] * len(COLUMNS))
    return [dict(zip(COLUMNS, each, strict=True)) for each in cells if each not in (COLUMNS, ["---"] * len(COLUMNS))]


def is_a_test(file: str, group: str | None, name: str | None) -> bool:
    """Whether pytest would collect it: a file with tests, or the function of its module or of its class."""
    path = REPOSITORY / file
    if not path.is_file():
        return False
    parts: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    if group is not None:
        parts = [each for part in parts if isinstance(part, ast.ClassDef) and part.name == group for each in part.body]
    functions = {part.name for part in parts if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
    return name in functions if name else any(each.startswith("test_") for each in functions)


def test_every_test_that_the_threat_model_names_is_there() -> None:
    text = (REPOSITORY / "docs/threat-model.md").read_text(encoding="utf-8")
    named = {found.groups() for found in NAMED.finditer(text)}
    assert len(named) > 100 and text.count("`tests/") == len(NAMED.findall(text)), "each is named as pytest does"
    assert not sorted(map(str, (each for each in named if not is_a_test(*each))))


def test_every_promise_of_the_threat_model_has_a_test_or_says_that_it_is_open() -> None:
    rows = rows_of_threats()
    assert len(rows) > 50 and len({row["promise"] for row in rows}) == len(rows)
    for row in rows:
        assert all(row.values()), row
        assert NAMED.search(row["test"]) or (row["test"] == NONE and row["open"] != NONE), row["promise"]
        assert not [cell for column, cell in row.items() if column != "test" and len(cell.split()) > 35], row["promise"]


def test_a_test_that_is_not_there_is_missed() -> None:
    """The two above would say nothing of a page that names what it likes."""
    this = "tests/test_project.py"
    assert is_a_test(this, None, None) and is_a_test(this, None, "test_a_test_that_is_not_there_is_missed")
    assert not is_a_test(this, None, "test_nothing") and not is_a_test("tests/test_nothing.py", None, None)
    assert not is_a_test(this, "TestNothing", "test_changelog_keeps_its_form") and not is_a_test(
        "tests/conftest.py", None, None
    )
    adversary = "tests/secure_aggregation/masked/test_masked_adversary.py"
    assert is_a_test(adversary, "TestALyingServer", "test_two_stories_get_no_share_of_both_kinds")


def test_the_image_holds_the_wheel_for_a_user_who_is_not_root() -> None:
    """What can be said of a Dockerfile without building it."""
    text = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    told = [line.split(maxsplit=1) for line in lines]
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT"}
    assert {instruction for instruction, _ in told} == known
    versions = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    bases = [words.split()[0] for instruction, words in told if instruction == "FROM"]
    for base in bases:
        tag, _, sha256 = base.partition("@sha256:")
        assert tag.removeprefix("python:").removesuffix("-slim") in versions and re.fullmatch("[0-9a-f]{64}", sha256)
    assert len(set(bases)) == 1, "what was built runs on what it was built on"
    users = [words for instruction, words in told if instruction == "USER"]
    assert users == ["tacit"] and told[-1] == ["ENTRYPOINT", '["tacit"]']
    kept = (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines()
    assert "COPY dist/*.whl deployment.lock /tmp/" in lines and {"!dist/*.whl", "!deployment.lock"} <= {*kept}
    for instruction, words in told:
        if instruction == "RUN":
            subprocess.run(["sh", "-n", "-c", words], check=True)  # the shell reads it, and runs nothing
