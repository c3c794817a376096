"""What people read of a result, its blocks, as text; tables of figures, none of which is ever cut off."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, Protocol

from tacit.cli.console import Recorded, console, say, styled


class Shown(Recorded, Protocol):
    """A result that people read as it stands."""

    def blocks(self) -> Sequence[Any]:
        """What people read of it."""
        ...


def say_blocks(result: Shown, as_json: bool) -> None:
    """One JSON object of the result on standard output, or its blocks for people."""
    say(result, as_json, lambda each: print_blocks(each.blocks()))


def print_blocks(blocks: Sequence[Any]) -> None:
    """Print headings, paragraphs, warnings and tables; what stands under a heading is indented."""
    from tacit.reports.blocks import Heading, Labels, Paragraph, Table, Tiles  # NumPy and statements come with them

    indent = ""
    for block in blocks:
        match block:
            case Heading(text=text):
                console.print(styled(text, "bold"))
                indent = "   "
            case Paragraph(text=text, soft=soft):
                indent = "" if soft else indent
                for line in text.split("\n\n"):
                    for part in _lines(line, max(console.width - len(indent), 1) if console.is_terminal else None):
                        console.print(indent + part)
            case Labels(labels=labels):
                for label in labels:
                    console.print(styled(f"{label.name}:", "bold red"), label.meaning)
            case Tiles(tiles=tiles):
                print_table((), tiles)
            case Table(rows=rows, head=head):
                print_table(head, rows)


def _lines(text: str, width: int | None) -> Iterator[str]:
    """The text broken between words, if there is a width; its own lines stay."""
    for line in text.splitlines():
        if width is None or len(line) <= width:
            yield line
        else:
            yield from wrap(line, width, break_long_words=False, break_on_hyphens=False)


def print_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print the rows, under their headings if there are any; a narrow window breaks the last column's words, then
    whole lines.
    """
    from rich.measure import Measurement
    from rich.table import Table as Drawn

    table = Drawn(box=None, pad_edge=False, show_header=bool(headings))
    for index, heading in enumerate(headings or [""] * len(rows[0])):
        cells = [heading, *(row[index] for row in rows)]
        words = any(" " in cell for cell in cells[1:])
        table.add_column(
            heading,
            justify="left" if words or index == 0 else "right",
            min_width=max(
                console.render_str(part).cell_len for cell in cells for part in (cell.split() if words else [cell])
            ),
        )
    for row in rows:
        table.add_row(*row)
    needed = Measurement.get(console, console.options.update(max_width=1000), table).minimum
    table.width = needed if needed > console.width else None
    console.print(table, crop=False)
