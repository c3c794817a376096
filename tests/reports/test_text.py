"""What `print` shows of a result."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table, Tiles
from tacit.reports.figure import Axis, Figure, Line, Panel
from tacit.reports.page import Page, write
from tacit.reports.text import to_text
from tacit.statements.statement import Label

FIGURE = Figure(
    name="line", title="A line", alt="It rises.", panels=(Panel(marks=(Line(x=(1, 2), y=(1, 2)),), x=Axis(), y=Axis()),)
)
BLOCKS: tuple[Block, ...] = (
    Labels((Label("WEAKER", "than planned."),)),
    Tiles((("rounds", "20 of 20"), ("zCDP", "1"))),
    FigureOf(FIGURE),
    Heading("A section"),
    Paragraph("Two\nlines.\n\n- one"),
    Table((("a", "1"), ("cc", "20")), ("", "value")),
    Paragraph("Beside.", soft=True),
)


def test_every_block() -> None:
    assert to_text(BLOCKS).splitlines() == [
        "WEAKER: than planned.",
        "rounds  20 of 20",
        "zCDP    1",
        "[figure: It rises.]",
        "A section",
        "   Two",
        "   lines.",
        "   - one",
        "       value",
        "   a       1",
        "   cc     20",
        "Beside.",
    ]


def test_the_last_column_is_broken_between_words() -> None:
    rows = (("first", "one two three"), ("second", "four"))
    assert to_text([Table(rows)], width=16).splitlines() == ["first   one two", "        three", "second  four"]


def test_it_moves_no_cursor() -> None:
    hostile = "\x1b[2J\r"
    blocks = [Heading(hostile), Paragraph(hostile), Labels((Label("A", hostile),)), Table(((hostile, hostile),))]
    assert not set(to_text(blocks)) & set(hostile[:1] + "\r")


@given(st.text(st.sampled_from("ab \n"), max_size=300), st.integers(10, 90))
def test_sentences_keep_their_words_and_fit_the_width(text: str, width: int) -> None:
    shown = to_text([Heading("of"), Paragraph(text)], width=width).splitlines()[1:]
    assert " ".join(shown).split() == text.split()
    assert all(len(line) <= width or " " not in line.strip() for line in shown)


def test_files_of_a_report_are_printed_as_the_command_does(tmp_path: Path) -> None:
    written = write(tmp_path, Page(title="t", blocks=BLOCKS))
    assert str(written).startswith("WEAKER: than planned.\nrounds  20 of 20\n")
    assert str(written).endswith(str(written.html))
