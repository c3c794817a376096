"""Unicode's properties and break tests, made small: python -m tests.render_unicode FOLDER.

The folder has these files of one version of the Unicode Character Database, under these names:
WordBreakProperty.txt, SentenceBreakProperty.txt, DerivedGeneralCategory.txt, Scripts.txt, emoji-data.txt,
WordBreakTest.txt, SentenceBreakTest.txt.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from tests.conftest import REPOSITORY

TABLES = REPOSITORY / "src" / "tacit" / "text" / "unicode_tables.py"
GOLDEN = REPOSITORY / "tests" / "golden"
TESTS = ("WordBreakTest.txt", "SentenceBreakTest.txt")
LAST = 0x10FFFF
NOTICE = (
    "Copyright (c) 1991-2022 Unicode, Inc. All rights reserved. Terms of use: https://www.unicode.org/copyright.html"
)

WORD = {
    "ALetter": "A",
    "Hebrew_Letter": "H",
    "Numeric": "N",
    "Katakana": "K",
    "Extend": "E",
    "Format": "F",
    "ZWJ": "Z",
    "MidLetter": "L",
    "MidNumLet": "M",
    "MidNum": "C",
    "Single_Quote": "Q",
    "Double_Quote": "D",
    "ExtendNumLet": "U",
    "Regional_Indicator": "R",
    "WSegSpace": "S",
    "Newline": "B",
    "CR": "B",
    "LF": "B",
}
SENTENCE = {
    "Lower": "L",
    "Upper": "U",
    "OLetter": "O",
    "Numeric": "N",
    "STerm": "T",
    "ATerm": "A",
    "SContinue": "C",
    "Close": "Q",
    "Sp": "S",
    "Extend": "E",
    "Format": "F",
    "Sep": "B",
    "CR": "B",
    "LF": "B",
}
EMOJI = {"Extended_Pictographic": "X", "Emoji": "T", "Emoji_Presentation": "P", "Emoji_Modifier": "M"}
# Han, Hiragana and Katakana, and the scripts of line-break class SA: no blank stands between their words.
UNSPACED = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tai_Tham", "New_Tai_Lue", "Tai_Viet")


def read(path: Path) -> Iterator[tuple[int, int, str]]:
    """First and last code point, and the value."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\w+)", line):
            yield int(found[1], 16), int(found[2] or found[1], 16), found[3]


def letters(path: Path, names: Mapping[str, str]) -> list[str]:
    """A letter for the value of each code point; a later row of the file wins."""
    table = ["x"] * (LAST + 1)
    for first, last, value in read(path):
        if value in names:
            table[first : last + 1] = names[value] * (last + 1 - first)
    return table


def word_break(folder: Path) -> list[str]:
    """Word_Break, and of what it calls Other: `O` letters, `P` numbers."""
    table = letters(folder / "WordBreakProperty.txt", WORD)
    for first, last, category in read(folder / "DerivedGeneralCategory.txt"):
        kind = {"L": "O", "N": "P"}.get(category[0])
        for at in range(first, last + 1) if kind else ():
            if kind and table[at] == "x":
                table[at] = kind
    return table


def emoji(folder: Path) -> list[str]:
    """`P` shown as an emoji, `T` as text unless U+FE0F follows, `M` a skin tone, `K` begins a keycap, `X` no emoji."""
    table = ["x"] * (LAST + 1)
    for name, letter in EMOJI.items():
        for first, last, value in read(folder / "emoji-data.txt"):
            if value == name:
                table[first : last + 1] = letter * (last + 1 - first)
    for at in (ord("#"), ord("*"), *range(ord("0"), ord("9") + 1)):
        table[at] = "K"
    return table


def runs(table: list[str]) -> str:
    """Each run of one letter, and its length unless that is 1."""
    lengths = ((letter, sum(1 for _ in run)) for letter, run in groupby(table))
    return "".join(letter if length == 1 else f"{letter}{length}" for letter, length in lengths)


def python(name: str, text: str) -> str:
    """A constant of the module, in lines that fit."""
    lines = "\n".join(f'    "{part}"' for part in wrap(text, 110))
    return f"{name} = (\n{lines}\n)\n"


def tables(folder: Path) -> str:
    """The module."""
    version = re.search(r"-([\d.]+)\.txt", (folder / "WordBreakProperty.txt").read_text(encoding="utf-8"))
    assert version is not None
    scripts = letters(folder / "Scripts.txt", {name: chr(ord("a") + at) for at, name in enumerate(UNSPACED)})
    parts = {
        "WORD_BREAK": runs(word_break(folder)),
        "SENTENCE_BREAK": runs(letters(folder / "SentenceBreakProperty.txt", SENTENCE)),
        "EMOJI": runs(emoji(folder)),
        "SCRIPTS": runs(scripts),
    }
    names = ", ".join(f'"{name.replace("_", " ")}"' for name in UNSPACED)
    return (
        f'"""Properties of Unicode {version[1]} as runs of letters: tests/render_unicode.py wrote them.\n\n'
        "A letter stands for a value (the renderer names them), a number behind it for how often it comes, from U+0000 "
        "on.\nSource: the Unicode Character Database, files WordBreakProperty, SentenceBreakProperty, "
        "DerivedGeneralCategory,\nScripts and emoji-data.\n"
        f'{NOTICE}\n"""\n\n'
        f'UNICODE = "{version[1]}"\n'
        + "".join(python(name, text) for name, text in parts.items())
        + f"UNSPACED = ({names})  # the scripts a, b, c ...\n"
    )


def small_test(path: Path) -> str:
    """Where breaks are, without the comments but for the first, which name file and date."""
    head, *_ = path.read_text(encoding="utf-8").splitlines()
    rows = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return "\n".join([head, f"# {NOTICE}", "# Comments left out by tests/render_unicode.py.", *filter(None, rows), ""])


def main() -> None:
    """Write the module and the two tests."""
    folder = Path(sys.argv[1])
    TABLES.write_text(tables(folder), encoding="utf-8")
    for name in TESTS:
        (GOLDEN / name).write_text(small_test(folder / name), encoding="utf-8")


if __name__ == "__main__":
    main()
