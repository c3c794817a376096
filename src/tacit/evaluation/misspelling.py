"""How somebody who does not know a spelling might write it: what sounds alike, or a letter too few or too many.

Rules, not lists: no text is needed at run time. `benchmarks/typing_ab.py --fit` says which share of real misspellings
they reach. A rule replaces one place of the typed form (lower case, letters only).
"""

import re
from functools import lru_cache
from typing import Literal

Language = Literal["en", "es"]

# What sounds alike, both ways round.
_ALIKE: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": (
        ("ie", "ei"),
        ("able", "ible"),
        ("ance", "ence"),
        ("ant", "ent"),
        ("tion", "sion"),
        ("ph", "f"),
        ("ea", "ee"),
        ("er", "or"),
        ("er", "ar"),
        ("ou", "o"),
        ("ai", "ay"),
        ("ch", "tch"),
        ("sc", "s"),
        ("wh", "w"),
        ("ght", "t"),
        ("ce", "se"),
        ("ci", "si"),
        ("ck", "k"),
        ("ge", "je"),
        ("a", "e"),
        ("e", "i"),
        ("i", "y"),
        ("a", "o"),
    ),
    "es": (
        ("b", "v"),
        ("ce", "se"),
        ("ci", "si"),
        ("z", "s"),
        ("ge", "je"),
        ("gi", "ji"),
        ("ll", "y"),
        ("h", ""),
        ("x", "s"),
        ("qu", "k"),
        ("hue", "we"),
    ),
}
SHORTEST = 4  # letters: everybody knows how shorter words are written
_DOUBLED = re.compile(r"([bcdfglmnprstz])\1")
_SINGLE = re.compile(r"(?<=[aeiou])([bcdfglmnprst])(?=[aeiouy])")


@lru_cache(maxsize=1 << 16)
def misspellings(form: str, language: Language = "en") -> tuple[str, ...]:
    """Every form that one rule makes of a typed form, in the order of the alphabet; none for short words.

    Letters are doubled and halved in English alone. Nothing is inserted where nothing stands: `h` is left out in
    Spanish, and put in nowhere.
    """
    if len(form) < SHORTEST:
        return ()
    found = set()
    for one, other in _ALIKE[language]:
        for old, new in ((one, other), (other, one)):
            found |= {form[: at.start()] + new + form[at.end() :] for at in re.finditer(old, form) if old}
    if language == "en":
        found |= {form[: at.start()] + at[1] + form[at.end() :] for at in _DOUBLED.finditer(form)}
        found |= {form[: at.start()] + at[1] * 2 + form[at.end() :] for at in _SINGLE.finditer(form)}
        if form.endswith("e"):
            found.add(form[:-1])
    return tuple(sorted(found - {form}))
