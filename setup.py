"""What pyproject.toml cannot say: the README for a package index, whose page is not in the repository.

Relative links become absolute by the address in `[project.urls] Source`. While there is none they become their text: a
page without a link is better than one with links that lead nowhere. The pages themselves come with the wheel.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|mailto:)([^)\s#]*)(#[^)\s]*)?\)")


def for_an_index(text: str, source: str | None) -> str:
    """The Markdown with no relative link in it, anchors within the page excepted. source: the repository's address."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, path, anchor = link.groups()
        if not path:  # an anchor within the page
            return link.group()
        if source is None:
            return "" if picture else words
        place = f"{source.rstrip('/')}/{'raw' if picture else 'blob'}/HEAD/{path}{anchor or ''}"
        return f"{picture}[{words}]({place})"

    return LINK.sub(absolute, text)


if __name__ == "__main__":
    PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    README = (HERE / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=for_an_index(README, PROJECT.get("urls", {}).get("Source")),
        long_description_content_type="text/markdown",
    )
