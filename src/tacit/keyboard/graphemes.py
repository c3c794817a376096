"""What people take for one character, which Backspace takes away: an extended grapheme cluster of Unicode (UAX #29).

A joined emoji, a flag, a letter with its accents or a syllable of Hangul is one. Oniguruma's `\\X` finds them, which
`tokenizers` brings; of rule GB9c it knows nothing, so that the consonants of an Indic conjunct go one by one.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # five megabytes, which a keyboard of ASCII words never needs
    from tokenizers.pre_tokenizers import Split


def graphemes(text: str) -> list[str]:
    """The clusters of a text in order; together they are the text."""
    if text.isascii() and "\r\n" not in text:
        return list(text)
    return [cluster for cluster, _ in _splitter().pre_tokenize_str(text)]


@cache
def _splitter() -> "Split":
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    return Split(Regex(r"\X"), behavior="isolated")
