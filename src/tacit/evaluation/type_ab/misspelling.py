"""How somebody who does not know a spelling might write it: what sounds alike, or a letter too few or too many.

Rules, not lists: no text is needed at run time. `benchmarks/keyboard/typing_ab.py --fit` says which share of real
misspellings they reach. A rule replaces one place of the typed form (lower case, letters only).
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

Language = Literal["en", "es"]

# What sounds alike, either in the place of the other.
_ALIKE: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": (
        ("ie", "ei"),
        ("able", "ible"),
        ("tion", "sion"),
        ("ea", "ee"),
        ("ou", "o"),
        ("ai", "ay"),
        ("ce", "se"),
        ("ci", "si"),
        ("ge", "je"),
        ("i", "y"),
    ),
    "es": (("b", "v"), ("ce", "se"), ("ci", "si"), ("z", "s"), ("ge", "je"), ("gi", "ji"), ("ll", "y"), ("x", "s")),
}
# What is simpler, and sounds like the first.
_SIMPLER: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": (("ph", "f"), ("tch", "ch"), ("sc", "s"), ("wh", "w"), ("ght", "t"), ("ck", "k"), ("ed", "d")),
    "es": (("h", ""), ("qu", "k"), ("hue", "we")),
}
SHORTEST = 4  # letters: everybody knows how shorter words are written
_DOUBLED = re.compile(r"([bcdfglmnprstz])\1")
_SINGLE = re.compile(r"(?<=[aeiou])([bcdfglmnprst])(?=[aeiouy])")
_VOWEL = re.compile(r"(?<=[^aeiouy])[aeiou](?=[^aeiouy])")
_SILENT_E = re.compile(r"(?<=[^aeiouy])e$")


@lru_cache(maxsize=1 << 16)
def misspellings(form: str, language: Language = "en") -> tuple[str, ...]:
    """Every form that one rule makes of a typed form, in the order of the alphabet; none for short words.

    In English letters are doubled and halved too, and a vowel between consonants becomes another one or is left out,
    because most of them sound alike without stress.
    """
    if len(form) < SHORTEST:
        return ()
    found: set[str] = set()
    both_ways = [(new, old) for old, new in _ALIKE[language]]
    for old, new in (*_ALIKE[language], *both_ways, *_SIMPLER[language]):
        found.update(_replaced(form, re.finditer(old, form), new))
    if language == "en":
        for at in _DOUBLED.finditer(form):
            found.update(_replaced(form, [at], at[1]))
        for at in _SINGLE.finditer(form):
            found.update(_replaced(form, [at], at[1] * 2))
        for vowel in ("", *"aeiou"):
            found.update(_replaced(form, _VOWEL.finditer(form), vowel))
        found.update(_replaced(form, _SILENT_E.finditer(form), ""))
    return tuple(sorted(found - {form}))


def _replaced(form: str, places: Iterable[re.Match[str]], new: str) -> list[str]:
    """The form with one of the places changed, for each of them."""
    return [form[: at.start()] + new + form[at.end() :] for at in places]
