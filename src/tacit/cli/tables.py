"""Tables of figures, none of which is ever cut off."""

from collections.abc import Sequence

from rich.measure import Measurement
from rich.table import Table

from tacit.cli.console import console


def print_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print the rows; a narrow window breaks the last column's words, then whole lines."""
    table = Table(box=None, pad_edge=False)
    for index, heading in enumerate(headings):
        words = any(" " in row[index] for row in rows)
        table.add_column(
            heading,
            justify="left" if words or index == 0 else "right",
            min_width=None if words else max(len(heading), *(len(row[index]) for row in rows)),
        )
    for row in rows:
        table.add_row(*row)
    needed = Measurement.get(console, console.options.update(max_width=1000), table).minimum
    console.print(table, width=max(console.width, needed))
