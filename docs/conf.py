"""The site: these pages as HTML, by `make docs`. They stay Markdown that a forge shows and the tests run.

The navigation is read from the lists of index.md and appendix.md, so that a page stands in one place only.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tests read this file where Sphinx is not installed
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT.get("urls", {}).get("Source")  # where a link out of docs/ leads, once there is an address

project = author = "tacit"
version = release = PROJECT["version"]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_extra_path = ["openapi.json"]  # beside the pages, not among the downloads in folders of their own
myst_heading_anchors = 6  # a heading is linked as on a forge
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]  # blocks of `...` in JSON are no JSON

html_theme = "furo"
html_title = f"tacit {version}"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

# `make docs LINKS=all` asks every address of the web.
linkcheck_timeout = 20
linkcheck_anchors = False

NAVIGATION = ("index", "appendix")
ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)\s#]+)\) \|", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")


def add_navigation(app: "Sphinx", page: str, source: list[str]) -> None:
    """Hidden trees of contents for a page that lists others: one for each of its headings."""
    if page in NAVIGATION:
        for section in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
            heading, _, body = section.partition("\n")
            listed = [f"{name} <{file}>" for name, file in ROW.findall(body)]
            if listed:
                source[0] += "\n".join(["", "", "```{toctree}", ":hidden:", f":caption: {heading}", "", *listed, "```"])


def leave_the_pages(app: "Sphinx", page: str, source: list[str]) -> None:
    """A link out of docs/ leads to the forge, or is its words where there is no address of one."""
    folder = (HERE / page).parent

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found.groups()
        target = (folder / path).resolve()
        if target.is_relative_to(HERE) and target.suffix == ".json":
            return f'<a href="{path}">{words}</a>'
        if target.is_relative_to(HERE) or found.string[found.start() - 1 : found.start()] == "!":
            return found.group()
        inside = os.path.relpath(target, HERE.parent)
        return f"[{words}]({SOURCE.rstrip('/')}/blob/HEAD/{inside}{anchor or ''})" if SOURCE else words

    source[0] = LINK.sub(link, source[0])


def setup(app: "Sphinx") -> None:
    """Sphinx calls it."""
    app.connect("source-read", leave_the_pages)
    app.connect("source-read", add_navigation)
