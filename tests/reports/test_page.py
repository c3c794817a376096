"""Pages as data: one content, written as HTML, Markdown and JSON; what others wrote is escaped."""

import json
import math
from pathlib import Path

import pytest

from tacit.errors import InputError
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table, Tiles
from tacit.reports.figure import Axis, Figure, Line, Panel
from tacit.reports.page import Page, parts, to_html, to_html_fragment, to_markdown, write, write_both
from tacit.statements.statement import Label

FIGURE = Figure(
    name="line", title="A line", alt="It rises.", panels=(Panel(marks=(Line(x=(1, 2), y=(1, 2)),), x=Axis(), y=Axis()),)
)
BLOCKS: tuple[Block, ...] = (
    Labels((Label("WEAKER", "than <planned>."),)),
    Tiles((("rounds", "20 of 20"),)),
    FigureOf(FIGURE),
    Heading("A section"),
    Paragraph("Two\nlines, `code` in one.\n\n- one\n- two\n\n    tacit verify x"),
    Paragraph("Beside.", soft=True),
    Table((("a | b", "1"), ("c", "2")), ("", "value")),
    Table((("alone", "3"),)),
)
PAGE = Page(title="A <page>", blocks=BLOCKS, record={"value": math.inf, "nothing": math.nan}, kind="report", when="now")


def test_texts_are_cut_into_paragraphs_lists_and_code() -> None:
    text = "Two\nlines.\n\n- one\n- two\n\nBy\n\n    tacit account run x"
    assert parts(text) == [
        ("paragraph", ["Two", "lines."]),
        ("list", ["one", "two"]),
        ("paragraph", ["By"]),
        ("code", ["tacit account run x"]),
    ]


def test_markdown_of_every_block() -> None:
    assert to_markdown(PAGE) == (
        "# A \\<page>\n\n**WEAKER: than \\<planned>.**\n\n| | |\n|---|---|\n| rounds | 20 of 20 |\n\n"
        "![It rises.](line.png)\n\n## A section\n\nTwo\nlines, `code` in one.\n\n- one\n- two\n\n    tacit verify x\n\n"
        "Beside.\n\n| | value |\n|---|---|\n| a \\| b | 1 |\n| c | 2 |\n\n| | |\n|---|---|\n| alone | 3 |\n"
    )


def test_html_escapes_and_fetches_nothing() -> None:
    html = to_html(PAGE)
    assert "A &lt;page&gt;" in html and "than &lt;planned&gt;." in html and "<planned>" not in html
    assert "<p>Two lines, <code>code</code> in one.</p>" in html
    assert "<li>two</li>" in html and "<pre>tacit verify x</pre>" in html
    assert '<svg class="figure" role="img"' in html and 'aria-label="It rises."' in html and "src=" not in html
    assert "<script" not in html and "http" not in html and "url(" not in html


def test_a_fragment_is_the_same_without_a_page_around_it() -> None:
    fragment = to_html_fragment(BLOCKS)
    assert "<html" not in fragment and "<body" not in fragment and "body {" not in fragment
    assert fragment.lstrip().startswith("<style>") and fragment.rstrip().endswith("</div>")
    assert "<p>Two lines, <code>code</code> in one.</p>" in fragment


def test_pages_are_written_with_their_figures_and_what_belongs_beside_them(tmp_path: Path) -> None:
    public = Page(title="Public", blocks=BLOCKS[:1], record={"only": 1})
    files = write_both(tmp_path, published=public, whole=PAGE, files={"more.txt": b"more"})
    names = {"report.html", "report.md", "report.json"}
    assert {each.name for each in (tmp_path / "report").iterdir()} == {*names, "more.txt"}
    assert {each.name for each in (tmp_path / "simulation").iterdir()} == {*names, "line.png"}
    assert json.loads(files.json.read_text()) == {"only": 1} and files.figures == ()
    whole = files.simulation
    assert whole is not None and files.everything == whole == whole.everything
    assert whole.html.read_text() == to_html(PAGE) and whole.markdown.read_text() == to_markdown(PAGE)
    assert json.loads(whole.json.read_text()) == {"value": "inf", "nothing": None}
    drawn = [str(tmp_path / "simulation" / "line.png")]
    assert files.to_record()["simulation"]["files"]["figures"] == drawn and "A <page>" not in files.html.read_text()
    assert "A &lt;page&gt;" in files._repr_html_(), "a notebook shows the page to read"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    with pytest.raises(InputError, match="is a file"):
        write(tmp_path / "report", PAGE)
