"""What a keyboard's dictionary holds: words, what follows them, and how likely both are, as Android's formats count.

f is 255 for probability 1, and each step down divides it by 1.15; f=0 is a word that must never be suggested. It is a
real number here, and each format rounds it as it can. Writers: `combined_list`, `format_202` and `format_403`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tacit.errors import InputError, of_type

STEP, CERTAIN, LEAST = math.log(1.15), 255, 1  # of f; LEAST is the lowest of a word that may be suggested
LONGEST = 48  # characters: the native readers' arrays
WHITELIST = 15  # the strength of a shortcut that always replaces what was typed
BEGINNING = ""  # in the place of a word before: the beginning of a sentence

Followers: TypeAlias = tuple[tuple[str, float], ...]  # words with their f
Context: TypeAlias = tuple[str, ...]  # words before, the oldest first

_LOCALE = re.compile(r"[a-z]{2,3}(_[A-Za-z0-9]{2,8})*")


class Shortcut(NamedTuple):
    """What may stand in a word's place."""

    target: str
    strength: int  # 0 to WHITELIST


class Entry(NamedTuple):
    """A word."""

    word: str
    f: float
    discovered: bool = False  # by a discovery run
    offensive: bool = False  # only suggested where the user allows it
    not_a_word: bool = False  # never suggested itself: it only has shortcuts
    shortcuts: tuple[Shortcut, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """Words, what follows one or two of them, and what the header says.

    Raises: InputError where a word is there twice, or not at all and yet follows or precedes one, or a number is no f.
    """

    attributes: Mapping[str, str]  # of the header
    entries: tuple[Entry, ...]
    followers: Mapping[Context, Followers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {entry.word for entry in self.entries}
        if len(known) != len(self.entries):
            raise InputError("a word is in the dictionary twice; give each once.")
        for entry in self.entries:
            _check_word(entry.word)
            _check_f(entry.word, entry.f)
            for target, strength in entry.shortcuts:
                _check_word(target)
                if not 0 <= strength <= WHITELIST:
                    raise InputError(f"the shortcut {target!r} has the strength {strength}; give 0 to {WHITELIST}.")
        for context, followers in self.followers.items():
            _check_context(context, known)
            if len({word for word, _ in followers}) != len(followers):
                raise InputError(f"a word follows {' '.join(context)!r} twice; give each once.")
            for word, f in followers:
                if word not in known:
                    raise InputError(
                        f"{word!r} follows {' '.join(context)!r} and is no word of the dictionary; add it."
                    )
                _check_f(word, f)


def frequency(log_probability: float) -> float:
    """f of a probability, whose natural logarithm is given: LEAST to CERTAIN. Raises: InputError where it is none."""
    if not log_probability <= 0:
        raise InputError(f"{log_probability} is no logarithm of a probability; give 0 or less.")
    return max(float(LEAST), CERTAIN + log_probability / STEP)


def whole(f: float) -> int:
    """The nearest whole f, 0 to CERTAIN."""
    return math.floor(f + 0.5)


def checked_locale(locale: str) -> str:
    """As Android writes it (`en`, `pt_BR`). Raises: InputError where it is none."""
    of_type("locale", locale, str)
    if not _LOCALE.fullmatch(written := locale.replace("-", "_")):
        raise InputError(f"the locale {locale!r} is none; give a language, and a country if need be: en, pt_BR.")
    return written


def header_attributes(*, locale: str, description: str, date: int) -> dict[str, str]:
    """What every header says, in the order of the sample; `date` in seconds since 1970. Raises: InputError."""
    locale = checked_locale(locale)
    if not description.strip() or re.search(r"[,=:\x00-\x1f]", description):
        raise InputError(f"the description {description!r} cannot stand in a header; leave out commas, = and colons.")
    named = {"dictionary": f"main:{locale.lower()}", "locale": locale, "description": description}
    return {**named, "date": str(date), "version": "1"}


def has_room(word: str) -> bool:
    """Whether the binary formats can hold it: 1 to LONGEST characters of Unicode, none of them 0."""
    return 0 < len(word) <= LONGEST and not re.search("[\0\ud800-\udfff]", word)


def by_f(followers: Iterable[tuple[str, float]]) -> Followers:
    """The likeliest first; of equally likely ones in the order of the alphabet."""
    return tuple(sorted(followers, key=lambda each: (-each[1], each[0])))


def _check_word(word: str) -> None:
    if not has_room(word):
        raise InputError(f"{word!r} cannot be in a dictionary, which holds words of 1 to {LONGEST} characters.")


def _check_f(word: str, f: float) -> None:
    if not 0 <= f <= CERTAIN:
        raise InputError(f"f={f} of {word!r} is outside of 0 to {CERTAIN}; `frequency` makes it of a probability.")


def _check_context(context: Context, known: set[str]) -> None:
    if not 1 <= len(context) <= 2:
        raise InputError(f"{context!r} are no one or two words before another; give one or two.")
    if strange := [word for place, word in enumerate(context) if word not in known and (place or word != BEGINNING)]:
        raise InputError(f"{strange[0]!r} comes before others and is no word of the dictionary; add it.")
