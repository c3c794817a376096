"""Where the pages of the documentation are on this machine: those of a clone, or those that the wheel brought."""

import site
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.jobs.result import JobResult

if TYPE_CHECKING:
    from tacit.reports.blocks import Block

FIRST_PAGE = "index"


@dataclass(frozen=True, kw_only=True)
class Documentation(JobResult):
    """A page, in the forms in which it is here."""

    page: str
    """Its name, `planning` or `results/people`."""
    markdown: Path
    """Its source, which people can read as well."""
    html: Path | None
    """Its place in the site; None where no site was built, or an older one."""

    @property
    def address(self) -> str:
        """What a browser opens: the page of the site, or else the Markdown."""
        return (self.html or self.markdown).as_uri()

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit docs --json` prints."""
        html = None if self.html is None else str(self.html)
        place = {"page": self.page, "markdown": str(self.markdown), "html": html}
        return {"schema": "tacit.docs", "version": 1, **place}

    def blocks(self) -> "list[Block]":
        """What people read of it: where it is, and how the site is had where there is none."""
        from tacit.reports.blocks import Paragraph

        if self.html is not None:
            return [Paragraph(str(self.html))]
        no_site = "It is Markdown: the site is not built here. `make docs` builds it, in a clone."
        return [Paragraph(str(self.markdown)), Paragraph(no_site)]


def documentation(page: str = FIRST_PAGE) -> Documentation:
    """A page of the documentation, by its name or as help names it (`docs/planning.md`); nothing is fetched.

    Raises: InputError where there is no such page, or no page at all.
    """
    folders = found_folders()
    if folders is None:
        raise InputError(
            "the pages of the documentation are not beside this tacit; the wheel installs them, and a clone has them."
        )
    pages, built = folders
    names = sorted(path.relative_to(pages).with_suffix("").as_posix() for path in pages.rglob("*.md"))
    name = page.partition("#")[0].removeprefix("docs/").removesuffix(".md")
    if name not in names:
        near = get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"there is no page {page!r}; {meant}`tacit docs` opens the list of all.")
    html = built / f"{name}.html"
    return Documentation(page=name, markdown=pages / f"{name}.md", html=html if html.is_file() else None)


def found_folders() -> tuple[Path, Path] | None:
    """The folder of the Markdown pages, and where a site of them would be; None where neither kind is here."""
    clone = Path(__file__).resolve().parents[3]
    shipped = [Path(base, "share", "doc", "tacit") for base in (sys.prefix, site.getuserbase())]
    places = [(clone / "docs", clone / "build" / "site"), *((each / "docs", each / "site") for each in shipped)]
    return next((place for place in places if (place[0] / f"{FIRST_PAGE}.md").is_file()), None)
