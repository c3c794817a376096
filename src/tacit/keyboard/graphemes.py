"""What people take for one character, which Backspace takes away: an extended grapheme cluster of Unicode (UAX #29).

A joined emoji, a flag, a letter with its accents or a syllable of Hangul is one. Rule GB9c is left out, so that the
consonants of an Indic conjunct go one by one. The pattern is that of UAX #29, table 1c.
"""

import re
from functools import cache
from unicodedata import category

from tacit.text.character_sets import LAST, Ranges, one_of, ranges_of, singles
from tacit.text.unicode_tables import EMOJI, WORD_BREAK

# Values of Grapheme_Cluster_Break that no property of our tables gives, by UAX #29, table 2.
_LEADING: Ranges = ((0x1100, 0x115F), (0xA960, 0xA97C))  # L, V and T of Hangul, and LV or LVT
_VOWELS: Ranges = ((0x1160, 0x11A7), (0xD7B0, 0xD7C6))
_TRAILING: Ranges = ((0x11A8, 0x11FF), (0xD7CB, 0xD7FB))
_SYLLABLES: Ranges = ((0xAC00, 0xD7A3),)
_WITHOUT_TRAILING = tuple((point, point) for point in range(0xAC00, 0xD7A4, 28))  # LV
_PREPEND: Ranges = (
    *((0x600, 0x605), (0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0xD4E, 0xD4E)),
    *((0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x111C2, 0x111C3), (0x1193F, 0x1193F), (0x11941, 0x11941)),
    *((0x11A3A, 0x11A3A), (0x11A84, 0x11A89), (0x11D46, 0x11D46), (0x11F02, 0x11F02)),
)
_STANDS_ALONE: Ranges = (  # spacing marks that begin a cluster, though they extend a word
    *((0x102B, 0x102C), (0x1038, 0x1038), (0x1062, 0x1064), (0x1067, 0x106D), (0x1083, 0x1083), (0x1087, 0x108C)),
    *((0x108F, 0x108F), (0x109A, 0x109C), (0x1A61, 0x1A61), (0x1A63, 0x1A64), (0xAA7B, 0xAA7B), (0xAA7D, 0xAA7D)),
    (0x11720, 0x11721),
)
_AM = singles("\u0e33\u0eb3")  # of Thai and Lao: vowels that extend what is before them
_TAGS: Ranges = ((0xE0020, 0xE007F),)
_SURROGATES = (0xD800, 0xDFFF)


def graphemes(text: str) -> list[str]:
    """The clusters of a text in order; together they are the text."""
    if text.isascii() and "\r\n" not in text:
        return list(text)
    return _cluster().findall(text)


@cache
def _cluster() -> re.Pattern[str]:
    words = ranges_of(WORD_BREAK)
    joiner, flag = one_of(words["Z"]), one_of(words["R"])
    extends = [*words["E"], *words["Z"], *_AM, *_TAGS]
    mark = one_of(extends, but=_STANDS_ALONE)
    picture = one_of([each for letter in "PTX" for each in ranges_of(EMOJI)[letter]], but=words["R"])
    signs = [(point, point) for point in range(LAST + 1) if category(chr(point)) in ("Cc", "Cf", "Zl", "Zp")]
    control = one_of([*signs, _SURROGATES], but=[*extends, *_PREPEND])
    leading, vowel, trailing = one_of(_LEADING), one_of(_VOWELS), one_of(_TRAILING)
    closed = one_of(_SYLLABLES, but=_WITHOUT_TRAILING)
    block = f"(?:{one_of(_WITHOUT_TRAILING)}{vowel}*|{vowel}+|{closed}){trailing}*"
    hangul = f"{leading}*{block}|{leading}+|{trailing}+"
    core = f"{hangul}|{flag}{{2}}|{picture}(?:{mark}*{joiner}{picture})*|(?!{control})."
    prepend = one_of(_PREPEND)
    return re.compile(f"\r\n|{control}|{prepend}*(?:{core}){mark}*|{prepend}+{mark}*|.", re.DOTALL)
