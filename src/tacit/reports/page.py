"""Pages as data: blocks in their order, and the one place that writes them as HTML, Markdown and JSON.

    Page(title, blocks, record)    `record` is the page for programs: plain values, which report.json holds
    blocks                         what a page is made of (`blocks.py`)

`write` puts pages and their figures into a folder. `to_html_fragment` is the same HTML without a page around it, for
what a notebook or a dashboard shows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tacit.errors import InputError
from tacit.files import write_whole
from tacit.records import json_ready
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, StatementOf, Table, Tiles
from tacit.reports.figure import Figure
from tacit.statements.markdown import escaped, one_line, paragraphs

if TYPE_CHECKING:
    from jinja2 import Template

    from tacit.statements import Statement

# The folders of a run in which its pages are: nothing exact is ever written into the first.
PUBLISHED, SIMULATION = "report", "simulation"
STYLE = "page.css"
FOR_READERS = (PUBLISHED, SIMULATION)  # of a run's folder, what a report is written into

Part: TypeAlias = tuple[str, list[str]]  # ("paragraph" | "list" | "code", lines)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is shown under one title. `kind` and `when` stand small above and below it, in HTML only.

    headline: of the record what one wants to know first. brief: what a command prints of it; left out, how it begins.
    """

    title: str
    blocks: tuple[Block, ...]
    record: Mapping[str, Any] = field(default_factory=dict)
    headline: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    when: str = ""
    brief: tuple[Block, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """In the order of the page."""
        return tuple(block.figure for block in self.blocks if isinstance(block, FigureOf))


@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """What `write` wrote for a page, and the page itself; of a run, also that of its simulation."""

    page: Page = field(repr=False)
    html: Path
    markdown: Path
    json: Path
    figures: tuple[Path, ...]
    others: tuple[Path, ...] = ()
    simulation: "ReportFiles | None" = None  # the page with everything in it, which is not to be published

    @property
    def everything(self) -> "ReportFiles":
        """The page to look at: that of the simulation, where there is one."""
        return self.simulation or self

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file that was written."""
        own = (self.html, self.markdown, self.json, *self.figures, *self.others)
        return own if self.simulation is None else (*own, *self.simulation.paths)

    def where(self) -> list[Block]:
        """The page to read and the one that may be published, a word and a line each: a cut path cannot be clicked."""
        pages = {"report": self.html}
        if self.simulation is not None:
            pages = {
                "read (exact, keep it to yourself)": self.simulation.html,
                "publish (what was released, and its statement)": self.html,
            }
        return [Paragraph(f"{word}: {page}") for word, page in pages.items()]

    def blocks(self) -> list[Block]:
        """What people read of it in a few lines: its brief, or how it begins, to its tiles; and where it is."""
        shown = self.everything.page.blocks
        if self.everything.page.brief:
            return [*self.everything.page.brief, *self.where()]
        head = next((at for at, block in enumerate(shown) if isinstance(block, Tiles)), -1) + 1
        return [*shown[:head], *(block for block in shown[head:] if isinstance(block, Labels)), *self.where()]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: the headline, and where the files are; the same of the simulation's page."""
        apart = {} if self.simulation is None else {"simulation": self.simulation._shown()}
        return {"schema": "tacit.report", "version": 1, **self._shown(), **apart}

    def _shown(self) -> dict[str, Any]:
        files = {"html": str(self.html), "markdown": str(self.markdown), "json": str(self.json)}
        return {**self.page.headline, "files": {**files, "figures": [str(path) for path in self.figures]}}

    def __str__(self) -> str:
        from tacit.reports.text import to_text  # which writes these blocks

        return to_text(self.blocks())

    def _repr_html_(self) -> str:
        page = self.everything.page
        return to_html_fragment((Heading(page.title), *page.blocks))


def write(folder: Path, page: Page, *, files: Mapping[str, bytes] | None = None) -> ReportFiles:
    """Write report.html, report.md, report.json and NAME.png of each figure into the folder, each whole or not at all.

    files: what else belongs there, by name. Raises: InputError where the folder is a file.
    """
    from tacit.reports.drawing import render

    contents = {f"{figure.name}.png": render(figure, "png") for figure in page.figures}
    drawn = tuple(folder / name for name in contents)
    contents["report.md"] = to_markdown(page).encode()
    contents["report.json"] = to_json(page.record)
    contents["report.html"] = to_html(page).encode()
    contents |= files or {}
    write_files(folder, contents)
    return ReportFiles(
        page=page,
        html=folder / "report.html",
        markdown=folder / "report.md",
        json=folder / "report.json",
        figures=drawn,
        others=tuple(folder / name for name in files or {}),
    )


def write_both(
    folder: Path,
    *,
    published: Page | None,
    whole: Page | None,
    files: Mapping[str, bytes] | None = None,
    exact: Mapping[str, bytes] | None = None,
) -> ReportFiles:
    """Write a run's pages into its folders `report` and `simulation`: what may be published, and everything.

    published: None where nothing may be. whole: None where nothing else is known, as of real devices. files: what else
    may be published, by name. exact: what else stands beside everything. Raises: as `write`.
    """
    everything = None if whole is None else write(folder / SIMULATION, whole, files=exact)
    if published is not None:
        return replace(write(folder / PUBLISHED, published, files=files), simulation=everything)
    assert everything is not None  # every run has a page
    return everything


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that is made where it is not there. Raises: InputError where it is a file."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file, and figures go into a folder; name another.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)


def to_json(record: Mapping[str, Any]) -> bytes:
    """A record as the content of a file."""
    return (json.dumps(json_ready(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


# -- HTML --------------------------------------------------------------------------------------------------------------


def to_html(page: Page) -> str:
    """One file with everything in it: no script, nothing is fetched."""
    return _filled(page.blocks, page)


def to_html_fragment(blocks: Sequence[Block]) -> str:
    """The blocks with their style, for a page that is there already: a notebook's cell (`_repr_html_`), a dashboard."""
    return _filled(blocks, None)


def blocks_to_html(blocks: Sequence[Block]) -> str:
    """The blocks alone, for a page that links to the style (`stylesheet`) and allows none within."""
    return _template("blocks.html.j2").render(groups=_groups(blocks))


def stylesheet() -> str:
    """The style of blocks and figures within an element of the class `tacit`, light and dark."""
    return _template(STYLE).render()


def _filled(blocks: Sequence[Block], page: Page | None) -> str:
    return _template("page.html.j2").render(page=page, groups=_groups(blocks))


@cache
def _template(name: str) -> "Template":
    """A part of a page, compiled once in a process: that takes longer than to fill it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # only where a page is made

    environment = Environment(
        loader=PackageLoader("tacit.reports", "templates"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    if name != STYLE:
        from tacit.reports.svg import numbers, svg
        from tacit.statements.statement import SECTIONS

        environment.globals["sections"] = SECTIONS
        environment.filters |= {
            "parts": parts,
            "pieces": lambda line: list(enumerate(line.split("`"))),
            "one_line": one_line,
            "svg": svg,
            "numbers": numbers,
        }
    return environment.get_template(name)


def _groups(blocks: Sequence[Block]) -> list[tuple[str, list[Any]]]:
    """(name of the block's class, blocks): figures that follow each other are one group, side by side."""
    found: list[tuple[str, list[Any]]] = []
    for block in blocks:
        kind = type(block).__name__
        if kind == "FigureOf" and found and found[-1][0] == kind:
            found[-1][1].append(block)
        else:
            found.append((kind, [block]))
    return found


def parts(text: str) -> list[Part]:
    """A text as what it is made of: paragraphs, lists ("- ") and code (four spaces)."""
    found: list[Part] = []
    for part in text.split("\n\n"):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            found.append(("code", [line[4:] for line in lines]))
        elif all(line.startswith("- ") for line in lines):
            found.append(("list", [line[2:] for line in lines]))
        else:
            found.append(("paragraph", lines))
    return found


# -- Markdown ----------------------------------------------------------------------------------------------------------


def to_markdown(page: Page) -> str:
    """The page with its figures beside it, as NAME.png."""
    return "\n\n".join([f"# {_single(page.title)}", *map(_markdown, page.blocks)]) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.depth} {_single(block.text)}"
        case Paragraph():
            return paragraphs(block.text)
        case Labels():
            return "\n\n".join(f"**{escaped(label.name)}: {escaped(label.meaning)}**" for label in block.labels)
        case Tiles():
            return _markdown_table(("", ""), block.tiles)
        case Table():
            return _markdown_table(block.head or ("",) * len(block.rows[0]), block.rows)
        case FigureOf():
            return f"![{_single(block.figure.alt)}]({block.figure.name}.png)"
        case StatementOf():
            return _statement_section(block.statement)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, *rows]
    written = [f"| {' | '.join(map(_single, line))} |" for line in lines]
    return "\n".join([written[0].replace("|  ", "| "), "|---" * len(head) + "|", *written[1:]])


def _single(text: str) -> str:
    """What has no lines of its own: a cell, a heading, the words for a figure."""
    return escaped(one_line(text))


def _statement_section(statement: "Statement") -> str:
    """The statement as a section of a page: its title, then its labels, all one level deeper."""
    labels, title, items = statement.markdown().partition(f"# {statement.title}\n")
    text = f"{title}\n{labels}{items}".replace("\n\n\n", "\n\n").rstrip("\n")
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines())
