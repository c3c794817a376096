"""Blocks as plain text, for `print(result)`: what a page or a terminal shows, without colours and figures."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tacit.records import visible
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, StatementOf, Table, Tiles

WIDTH = 80  # columns of a terminal
INDENT, GAP = "   ", "  "


def to_text(blocks: Sequence[Block], *, width: int = WIDTH) -> str:
    """Headings, paragraphs, warnings and tables in lines of at most `width` columns, but for words that are longer and
    tables that are wider; what stands under a heading is indented. Nothing in it moves a terminal's cursor.
    """
    lines: list[str] = []
    indent = ""
    for block in blocks:
        if isinstance(block, Heading) or (isinstance(block, Paragraph) and block.soft):
            indent = ""
        lines += [f"{indent}{line}".rstrip() for line in _lines(block, width - len(indent))]
        if isinstance(block, Heading):
            indent = INDENT
    return "\n".join(lines)


def _lines(block: Block, width: int) -> Iterator[str]:
    match block:
        case Heading(text=text):
            yield from _broken(text, width)
        case Paragraph(text=text):
            yield from _broken(text.replace("\n\n", "\n"), width)
        case Labels(labels=labels):
            for label in labels:
                yield from _broken(f"{label.name}: {label.meaning}", width)
        case Tiles(tiles=tiles):
            yield from _table((), tiles, width)
        case Table(rows=rows, head=head):
            yield from _table(head, rows, width)
        case FigureOf(figure=figure):
            yield from _broken(f"[figure: {figure.alt}]", width)
        case StatementOf(statement=statement):
            yield from _broken(statement.markdown(), width)


def _broken(text: str, width: int) -> Iterator[str]:
    """Broken between words; a text's own lines stay lines, and their beginnings."""
    for line in text.splitlines():
        begins = line[: len(line) - len(line.lstrip())]
        yield from wrap(visible(line), width, subsequent_indent=begins, break_long_words=False, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Columns side by side, numbers to the right; where lines are too long, the last is broken if it has words."""
    cells = [[visible(cell).replace("\n", " ") for cell in row] for row in ([head] if head else []) + list(rows)]
    columns = list(zip(*cells, strict=True))
    wide = [max(map(len, column)) for column in columns]
    left = [at == 0 or any(" " in cell for cell in column[bool(head) :]) for at, column in enumerate(columns)]
    before = sum(wide[:-1]) + len(GAP) * (len(wide) - 1)
    least = max(len(word) for cell in columns[-1] for word in cell.split() or [""])
    last = max(width - before, least) if left[-1] else wide[-1]
    for row in cells:
        shown = [
            cell.ljust(size) if to_left else cell.rjust(size)
            for cell, size, to_left in zip(row, wide, left, strict=True)
        ]
        parts = wrap(row[-1], last, break_long_words=False, break_on_hyphens=False) if left[-1] else shown[-1:]
        yield GAP.join([*shown[:-1], *parts[:1]])
        yield from (" " * before + part for part in parts[1:])
