"""The properties of characters that cut text, for the browser: python web/tests/make_unicode_tables.py."""

import re
from itertools import groupby, zip_longest
from pathlib import Path
from string import ascii_letters
from textwrap import wrap

from tacit.text.unicode_tables import EMOJI, SENTENCE_BREAK, UNICODE, WORD_BREAK

TABLES = Path(__file__).parents[1] / "train" / "unicode_tables.ts"
ABOUT = f"""\
/**
 * Properties of Unicode {UNICODE} as runs of letters: written by web/tests/make_unicode_tables.py, not by hand.
 *
 * The same as in src/tacit/text/unicode_tables.py, which says what a letter stands for. Its two tables of breaks are
 * one here, and shorter: PAIRS says for each letter what it stands for in that of words and in that of sentences.
 * Copyright (c) 1991-2022 Unicode, Inc. All rights reserved. Terms of use: https://www.unicode.org/copyright.html
 */
"""


def letters(table: str) -> str:
    """The letter of each code point."""
    return "".join(letter * int(count or 1) for letter, count in re.findall(r"([A-Za-z])(\d*)", table))


def paired() -> tuple[str, str]:
    """Runs of letters that stand for two letters each; and which, as `aXY bXY`."""
    pairs = zip_longest(letters(WORD_BREAK), letters(SENTENCE_BREAK), fillvalue="x")
    runs = [("".join(pair), len(list(each))) for pair, each in groupby(pairs)]
    names = dict(zip(dict(runs), ascii_letters, strict=False))
    table = "".join(names[pair] + (str(length) if length > 1 else "") for pair, length in runs)
    return table, " ".join(name + pair for pair, name in names.items())


def written(name: str, table: str) -> str:
    """One table as a constant."""
    lines = " +\n".join(f'  "{line}"' for line in wrap(table, 110, drop_whitespace=False))
    return f"export const {name} =\n{lines};\n"


if __name__ == "__main__":
    breaks, pairs = paired()
    tables = {"BREAKS": breaks, "PAIRS": pairs, "EMOJI": EMOJI}
    TABLES.write_text("\n".join([ABOUT, *(written(name, table) for name, table in tables.items())]), encoding="utf-8")
