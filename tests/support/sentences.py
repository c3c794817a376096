"""The sentences of a page, and how many words each has."""

import re

from tests.support.pages import FENCE

ITEM = re.compile(r"^ *(?:[-*>]|\d+\.) +", re.MULTILINE)
NO_END = re.compile(r"\b(e\.g|i\.e|cf|vs|etc|No|Fig|Eq|al)\.")
END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*[\[A-Z\d])")


def sentences(text: str) -> list[str]:
    """Those of a page's paragraphs and list items: no code, tables, headings, pictures or targets of links."""
    text = re.sub(r"^ *```.*?^ *```$", "\n", FENCE.sub("\n", text), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *(?:#|\||!\[).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]+`", "Code", text))
    paragraphs = re.split(r"\n\s*\n", ITEM.sub("\n\n", text))
    return [
        " ".join(sentence.split())
        for paragraph in paragraphs
        for sentence in END.split(NO_END.sub(r"\1", paragraph))
        if re.search(r"\w", sentence)
    ]


def words(sentence: str) -> int:
    """How many it has; a piece of code is one."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())
