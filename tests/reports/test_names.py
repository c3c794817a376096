"""What others wrote is text in every page: no name becomes a heading, a list, a link, a tag or a line of its own."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.support.made_runs import write_run
from tests.support.statements.facts import TRAINING

from tacit.jobs.report import report
from tacit.privacy import Tree
from tacit.reports.blocks import Block, Heading, Labels, Paragraph, StatementOf, Table, Tiles
from tacit.reports.page import Page, to_html, to_markdown
from tacit.statements.markdown import escaped, one_line
from tacit.statements.statement import Label, statement
from tacit.statements.verify import verify

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
FORGED = (
    "x\n\n## 3c. Formal DP statement\n\nepsilon = 0.01\n\n- **nobody** [is](http://evil) <b>at</b> risk `\n    code\n"
)
MEAN = [
    FORGED,
    "<script>alert(1)</script>",
    "a|b|c",
    "![x](y)",
    "&lt;b&gt;",
    "1. one",
    "# head",
    "---",
    "~~no~~",
    "*a*",
]
names = st.sampled_from(MEAN) | st.text(
    st.sampled_from("ab1 \n\t\r\\`*_[]()<>!#|~&;.-+=$:/'\"\x00\x1b\u2028\u202e"), max_size=14
)


def blocks(name: str) -> tuple[Block, ...]:
    """Every kind of block with a name of others' in it, as pages are made."""
    return (
        Labels((Label("UNFINISHED", f"go on with `tacit resume {one_line(name)}`."),)),
        Tiles((("rounds", name), (name, "20"))),
        Heading(f"Of {name}"),
        Paragraph(f"A sentence on {one_line(name)}, and {one_line(name)}."),
        Paragraph(one_line(name)),
        Table(((name, "1"), ("2", name)), ("", name)),
        StatementOf(
            statement(replace(TRAINING, vocabulary_description=name, public_data=(name, name), cohort_rule=name))
        ),
    )


def structure(text: str) -> list[str]:
    """The tokens of Markdown without what they say."""
    found = []
    for token in READER.parse(text):
        kinds = {each.type for each in token.children or ()} - {"text", "text_special", "softbreak"}
        found.append(f"{token.type} {token.tag} {token.level} {sorted(kinds)}")
    return found


class Tags(HTMLParser):
    """The tags of a page in their order, with their attributes but for the words for a picture."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, [(name, value) for name, value in attrs if name != "alt"]))


@given(names)
def test_no_name_changes_what_a_page_is_made_of(name: str) -> None:
    page, plain = (Page(title=title, blocks=blocks(title)) for title in (f"t{name}t", "tnt"))
    assert structure(to_markdown(page)) == structure(to_markdown(plain))
    assert Tags(to_html(page)).found == Tags(to_html(plain)).found
    assert len(to_markdown(page).splitlines()) == len(to_markdown(plain).splitlines())


@given(st.text(st.sampled_from("ab1 \\*_[]()<>!#|~&;.-+=$:/'\""), max_size=20))
def test_a_reader_of_markdown_sees_the_text_as_it_was(text: str) -> None:
    (paragraph,) = [token for token in READER.parse(f"x{escaped(text)}x") if token.type == "inline"]
    assert "".join(each.content for each in paragraph.children or ()) == f"x{text}x"


def test_our_own_markup_stays() -> None:
    assert escaped("the default of `privacy.noise_multiplier` is `a|b`, k_t and C^{-1}") == (
        "the default of `privacy.noise_multiplier` is `a|b`, k_t and C^{-1}"
    )


DATA = {"cache": "c", "source": FORGED, "vocabulary_sha256": "1", "vocabulary_size": 9} | {
    "clients": 120,
    "cache_digest": "2",
}
FORGERIES: dict[str, dict[str, Any]] = {
    "name": {"name": json.dumps(FORGED)[1:-1]},  # as TOML writes it
    "source": {"data": DATA},
    "vocabulary": {"vocabulary": {"kind": "public", "description": FORGED}},
    "folder": {},
}


@pytest.mark.parametrize("where", FORGERIES)
def test_a_report_has_no_heading_that_a_name_brings(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: "3c. Formal DP statement" of one's own in a report that is published."""
    monkeypatch.setattr("tacit.reports.drawing.render", lambda figure, kind: b"")
    path = tmp_path / ("x\n\n## 3c. Formal DP statement\n\nepsilon = 0.01\n" if where == "folder" else "run")
    files = report(write_run(path, strategy=Tree(), done=7, **FORGERIES[where]))
    for written in (files, files.everything):
        lines = written.markdown.read_text().splitlines()
        assert sum(line.lstrip("# ") == "3c. Formal DP statement" for line in lines) == 1
        assert not any(line.startswith(("epsilon = 0.01", "- **nobody**", "    code")) for line in lines)
        assert "<b>at</b>" not in written.html.read_text()
    stated = json.loads((files.html.parent / "statement.json").read_text())
    assert all(line.holds for line in verify(stated)), "its facts are as they were written"
