"""What docs/conf.py makes of the pages before Sphinx reads them: the navigation, and links that leave docs/.

`make docs` builds the site itself, with warnings as errors.
"""

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest
from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(change: Any, page: str, text: str) -> str:
    source = [text]
    change(None, page, source)
    return source[0]


def test_every_page_is_in_a_tree_of_contents_once(conf: ModuleType) -> None:
    trees = "".join(
        read(conf.add_navigation, page, (DOCS / f"{page}.md").read_text(encoding="utf-8")).split("```{toctree}", 1)[1]
        for page in conf.NAVIGATION
    )
    listed = re.findall(r"^.+ <(\S+\.md)>$", trees, re.MULTILINE)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}
    assert len(listed) == len(set(listed)) and set(listed) == pages


def test_headings_are_captions_and_other_pages_get_no_tree(conf: ModuleType) -> None:
    text = "# A\n\n[not listed](b.md)\n\n## Start\n\n| page | for |\n|---|---|\n| [b](b.md) | [c](c.md) |\n\n## Empty\n"
    tree = read(conf.add_navigation, "index", text).removeprefix(text).split("\n")
    assert [line for line in tree if line] == ["```{toctree}", ":hidden:", ":caption: Start", "b <b.md>", "```"]
    assert read(conf.add_navigation, "planning", text) == text


@pytest.mark.parametrize(
    ("page", "link", "without", "at_a_forge"),
    [
        ("index", "[a page](planning.md#there)", "[a page](planning.md#there)", None),
        ("results/people", "[up](../planning.md)", "[up](../planning.md)", None),
        ("index", "![a picture](results/people.png)", "![a picture](results/people.png)", None),
        ("index", "[the web](https://example.org/a)", "[the web](https://example.org/a)", None),
        ("protocol", "[openapi.json](openapi.json)", '<a href="openapi.json">openapi.json</a>', None),
        ("index", "[log](../CHANGELOG.md)", "log", "[log](https://forge.example/tacit/blob/HEAD/CHANGELOG.md)"),
        ("results/a", "[b](../../benchmarks/#x)", "b", "[b](https://forge.example/tacit/blob/HEAD/benchmarks#x)"),
    ],
)
def test_a_link_out_of_the_pages_leads_to_the_forge_or_is_its_words(
    conf: ModuleType, monkeypatch: pytest.MonkeyPatch, page: str, link: str, without: str, at_a_forge: str | None
) -> None:
    monkeypatch.setattr(conf, "SOURCE", None)
    assert read(conf.leave_the_pages, page, f"See {link}.") == f"See {without}."
    monkeypatch.setattr(conf, "SOURCE", "https://forge.example/tacit/")
    assert read(conf.leave_the_pages, page, f"See {link}.") == f"See {at_a_forge or without}."
