"""The properties of characters that cut text, for the browser: python web/tests/make_unicode_tables.py."""

from pathlib import Path
from textwrap import wrap

from tacit.text.unicode_tables import EMOJI, SENTENCE_BREAK, UNICODE, WORD_BREAK

TABLES = Path(__file__).parents[1] / "train" / "unicode_tables.ts"
ABOUT = f"""\
/**
 * Properties of Unicode {UNICODE} as runs of letters: written by web/tests/make_unicode_tables.py, not by hand.
 *
 * The same text as in src/tacit/text/unicode_tables.py, which says what a letter stands for.
 * Copyright (c) 1991-2022 Unicode, Inc. All rights reserved. Terms of use: https://www.unicode.org/copyright.html
 */
"""


def written(name: str, table: str) -> str:
    """One table as a constant."""
    lines = " +\n".join(f'  "{line}"' for line in wrap(table, 110))
    return f"export const {name} =\n{lines};\n"


if __name__ == "__main__":
    tables = {"WORD_BREAK": WORD_BREAK, "SENTENCE_BREAK": SENTENCE_BREAK, "EMOJI": EMOJI}
    TABLES.write_text("\n".join([ABOUT, *(written(name, table) for name, table in tables.items())]), encoding="utf-8")
