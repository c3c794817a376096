"""Text as Markdown shows it: what others wrote (names of words, folders, recipes, sources) is text, and nothing more.

    one_line(text)    others' text within a sentence of ours: no line of its own, no code
    escaped(line)     a line as Markdown: only our `code` is markup
    paragraphs(text)  several lines, where "- " begins a point of a list and four spaces a line of code

A name with an end of line and "## 3c. Formal DP statement" in it must not become a heading of what is published.
"""

import re

from tacit.records import visible

_ALWAYS = re.compile(r"[\\*\[\]~$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#|\w)|\|")
_AT_THE_START = re.compile(r"(\s*)(?:([#>=+-])|(\d{1,9})([.)]))")


def one_line(text: str) -> str:
    """The text with line ends, tabs, backticks and what a terminal would obey written as JSON writes them."""
    return re.sub(r"[\n\t`]", lambda found: f"\\u{ord(found[0]):04x}", visible(text))


def escaped(line: str, *, begins: bool = False) -> str:
    """One line as Markdown; what stands between backticks is code, where they are paired.

    begins: it is the first of its line, so that marks of headings, lists and quotations are escaped too.
    """
    pieces = line.replace("\n", " ").split("`")
    paired = len(pieces) % 2 == 1
    found = []
    for at, piece in enumerate(pieces):
        code = paired and at % 2
        found.append(f"`{piece}`" if code else _ALWAYS.sub(lambda mark: "\\" + mark[0], piece))
    text = "".join(found) if paired else "\\`".join(found)
    return _AT_THE_START.sub(_at_the_start, text, count=1) if begins and _AT_THE_START.match(text) else text


def paragraphs(text: str) -> str:
    """Several lines as Markdown: paragraphs, points and code stay what they are, all else is text."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if line.startswith("    "):
        return line
    return f"- {escaped(line[2:], begins=True)}" if line.startswith("- ") else escaped(line, begins=True)


def _at_the_start(found: re.Match[str]) -> str:
    space, mark, number, point = found.groups()
    return f"{space}\\{mark}" if mark else f"{space}{number}\\{point}"
