"""Documentation is executed: Python runs, `tacit account` prints what is shown, the CLI page is current."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.render_api import PAGE as API
from tests.render_api import render_api
from tests.render_cli import PAGE, render_cli_help
from tests.render_mechanisms import TABLES, rendered
from tests.small_sizes import is_smaller
from tests.support.pages import PAGES, WITH_COMMANDS, Command, blocks, commands, differs
from typer.testing import CliRunner

from tacit.jobs.machine_checks import CHECKS
from tacit.privacy.delta import DELTA_TOO_LARGE

# Fast and exact, and of no run: those of runs are tests/test_pages.py's.
SESSIONS = [
    command
    for page in PAGES
    for command in commands(page)
    if command.words[:2] == ["tacit", "account"] and not is_smaller(command.words[1:])
]


# Their Python takes long; that of a page with commands runs between them anyway (test_pages.py).
SLOW = {
    "api.md",
    *("changing-recipes.md", "keyboard.md", "secure-aggregation.md", "your-own-data.md"),
    *("on-device-training.md", "planning.md", "production.md", "tuning.md"),
    *("budgets.md", "device.md", "populations.md", "speed.md", "typing.md", "word-discovery.md"),
}
SLOWER = {"extending.md", "integrations.md", "your-own-model.md"}  # without commands
CODE = [
    pytest.param(page, marks=[pytest.mark.long] if page.name in SLOWER else [], id=page.name)
    for page in PAGES
    if blocks(page, "python") and not (page.name in SLOW and page in WITH_COMMANDS)
]


def test_pages_that_are_left_out_here_are_run_between_their_commands() -> None:
    assert {page.name for page in WITH_COMMANDS} >= SLOW


@pytest.mark.parametrize("page", CODE)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after another in one namespace, in an empty folder; of the checks of `tacit.doctor`,
    each of which is a process, a page asks one: tests/jobs/test_doctor.py has them all.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tacit.jobs.doctor.CHECKS", {"BLAS": CHECKS["BLAS"]})
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page, "python"):
        padded = "\n" * (block.line - 1) + block.text  # a failure then points at the page's own line
        exec(compile(padded, str(page), "exec"), namespace)


@pytest.mark.parametrize("command", SESSIONS, ids=lambda command: command.text)
def test_account_sessions_print_what_they_show(command: Command) -> None:
    from tacit.cli.commands import app

    result = CliRunner().invoke(app, command.words[1:])
    assert result.exit_code == 0, f"{command.place}\n{result.output}"
    wrong = differs(command.shown, result.stdout, exactly=True)
    assert wrong is None, f"{command.place}\n{wrong}"


def test_cli_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_cli_help(), "docs/cli.md is old; run `make rendered`"


def test_api_page_is_current() -> None:
    assert API.read_text(encoding="utf-8") == render_api(), "docs/api.md is old; run `make rendered`"


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.name)
def test_tables_of_mechanisms_are_current(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == rendered(page), f"docs/{page.name} is old; run `make rendered`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To files that are there, and to headings that they have."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            name, _, heading = target.partition("#")
            there = (page.parent / name) if name else page
            assert there.exists(), f"{page.name} links to {target}, which is not there"
            assert not heading or heading in headings(there), (
                f"{page.name} links to {target}, and there is no such heading"
            )


def headings(page: Path) -> set[str]:
    """As links name them: lower case, signs left out, blanks as hyphens."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", each)).strip().lower().replace(" ", "-") for each in found
    }


def test_the_readme_is_short() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"\]\(", text)) <= 25 and len(text.splitlines()) <= 100


def test_every_page_is_in_the_navigation_once() -> None:
    """In the lists of the first page or in those of the appendix, from which the site takes its navigation."""
    docs = REPOSITORY / "docs"
    listed = [
        target
        for page in ("index.md", "appendix.md")
        for target in re.findall(
            r"^\| \[[^\]]+\]\(([^)#\s]+)\)", (docs / page).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path.name != "index.md"]
    assert sorted(listed) == sorted(pages)


def glossary() -> dict[str, str]:
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M
    )
    return {word: meaning for word, meaning in rows if word not in ("word", "---")}


def test_the_glossary_has_a_sentence_and_a_link_for_each_word() -> None:
    words = glossary()
    assert list(words) == sorted(words, key=str.lower)
    for word, meaning in words.items():
        assert re.fullmatch(r"[A-Z](?:[^.]|\.(?=\w))*; \[[\w -]+\]\([\w/#.-]+\)\.", meaning), f"{word}: {meaning}"


def test_the_glossary_has_every_word_of_the_notation_and_every_label_of_a_statement() -> None:
    notation = (REPOSITORY / "docs" / "notation.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([^|]+) \|", notation, re.MULTILINE)[2:]
    names = {name.strip("` ").replace("_", " ") for cell in table for name in cell.split(",")}
    sources = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src/tacit/statements").glob("*.py"))
    labels = set(re.findall(r'Label\(\s*"([A-Z -]+)"', sources)) | {DELTA_TOO_LARGE}
    assert len(names) > 12 and len(labels) > 6
    words = {word.lower() for word in glossary()}
    assert {name.lower() for name in names | labels} - words == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_named_in_the_docs_exist(page: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    mentioned = set(re.findall(r"`make ([\w-]+)`", page.read_text(encoding="utf-8")))
    assert mentioned <= targets, f"{page.name} names {sorted(mentioned - targets)}; the Makefile has no such target"
