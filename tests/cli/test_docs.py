"""`tacit docs`: the site where it is built, the Markdown where it is not; a browser only where one was asked for."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.jobs import documentation


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to open; none is started."""
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open_new_tab", lambda address: addresses.append(address) or True)
    return addresses


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment into which a wheel without the site was installed."""
    home = tmp_path / "share" / "doc" / "tacit"
    (home / "docs" / "results").mkdir(parents=True)
    for name in ("index", "planning", "results/people"):
        (home / "docs" / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    package = tmp_path / "lib" / "python3" / "site-packages" / "tacit" / "jobs" / "documentation.py"
    monkeypatch.setattr(documentation, "__file__", str(package))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    return home


def built(home: Path, *names: str) -> None:
    (home / "site" / "results").mkdir(parents=True)
    for name in names:
        (home / "site" / f"{name}.html").write_text("<title>", encoding="utf-8")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, ["docs", *words])


def test_the_site_is_opened_where_the_wheel_brought_it(installed: Path, opened: list[str]) -> None:
    built(installed, "index", "results/people")
    assert invoke().stdout == f"{installed}/site/index.html\n"
    assert invoke("results/people").exit_code == 0
    assert opened == [(installed / "site" / f"{name}.html").as_uri() for name in ("index", "results/people")]


def test_without_a_site_the_markdown_is_named_and_no_browser_started(installed: Path, opened: list[str]) -> None:
    result = invoke("planning")
    assert (result.exit_code, opened) == (0, [])
    assert result.stdout.splitlines() == [
        f"{installed}/docs/planning.md",
        "It is Markdown: the site is not built here. `make docs` builds it, in a clone.",
    ]


def test_a_page_that_an_older_site_lacks_is_its_markdown(installed: Path, opened: list[str]) -> None:
    built(installed, "index")
    assert f"{installed}/docs/planning.md" in invoke("docs/planning.md#a-heading").stdout and not opened


@pytest.mark.parametrize("option", ["--print", "--json"])
def test_nothing_is_opened_where_only_the_place_was_asked_for(option: str, installed: Path, opened: list[str]) -> None:
    built(installed, "index")
    result = invoke(option)
    assert result.exit_code == 0 and not opened
    if option == "--json":
        assert json.loads(result.stdout) == {
            "schema": "tacit.docs",
            "version": 1,
            "page": "index",
            "markdown": f"{installed}/docs/index.md",
            "html": f"{installed}/site/index.html",
        }


def test_no_browser_is_said(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(installed, "index")
    monkeypatch.setattr("webbrowser.open_new_tab", lambda address: False)
    result = invoke()
    assert result.exit_code == 0 and "No browser could be started" in result.stderr


@pytest.mark.parametrize("page", ["plannin", "../../secret", "/etc/hostname", "", "index.html"])
def test_what_is_no_page_is_refused_in_one_line(page: str, installed: Path, opened: list[str]) -> None:
    (installed.parent / "secret.md").write_text("no page", encoding="utf-8")
    result = invoke(page)
    assert result.exit_code == 2 and not opened and len(result.stderr.splitlines()) == 1
    assert f"there is no page {page!r}" in result.stderr


def test_without_any_page_it_says_what_has_them(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path / "nobody"))
    result = invoke()
    assert result.exit_code == 2 and "the wheel installs them" in result.stderr


def test_a_clone_has_its_own_pages() -> None:
    found = documentation.documentation("planning")
    assert found.markdown.read_text(encoding="utf-8").startswith("# Planning")
