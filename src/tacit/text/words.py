"""From what somebody typed to sentences and words, before any vocabulary: UAX #29 with tacit's exceptions.

One function, `pieces`, cuts for everybody (training, vocabularies, evaluation, devices), so that a count and an id can
never disagree. Its steps:

1. The canonical form (`canonical`): invisible layout characters go (soft hyphens, marks of direction), joiners (U+200C,
   U+200D) stay only inside words of scripts that they shape and in emoji, then Unicode's composed form (NFC), and the
   curly apostrophe becomes the straight one.
2. Sentences end where UAX #29 ends them, but
   - `.`, `!`, `?` and `…` only before a blank or the end, closing quotes between: they stand in addresses;
   - one point ends a sentence before a lower-case word, too: many who type leave capitals out;
   - behind a mark and a blank no sentence goes on, with a comma or a dash: a keyboard cannot wait for it;
   - not after a single letter (`J. Smith`, `e.g.`) or a title (`Dr.`);
   - `…` is one more mark that trails off, and the line breaks VT and FF end a sentence as the others do.
3. Words are the segments of UAX #29 that have a letter or a number, but
   - `_` and its kind (ExtendNumLet) separate: they are markup, and U+202F is the blank before a French `!`;
   - a point between letters separates: people leave out the blank behind a sentence;
   - an apostrophe joins a letter and a digit (`1980's`), a colon two digits (`10:30`);
   - numbers of other kinds are digits (`m²`, `CO₂`);
   - letters of scripts without spaces are one word as long as they run: no dictionary is asked where to cut;
   - no joiner ties an emoji to a sign that is none;
   - a web address is one word, and so is a placeholder such as `<url>`; neither is ever in a vocabulary.
4. Lower case, where a vocabulary is in it, word by word, as the language's own rule says (`lowered`).

`tests/text/slow_words.py` is the slow, obvious reference; `docs/languages.md` has the exceptions with their reasons.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from tacit.errors import InputError
from tacit.text.character_sets import LAST, characters, members, one_of, ranges_of, run, singles
from tacit.text.unicode_tables import EMOJI, SENTENCE_BREAK, WORD_BREAK

RULES = "tacit-words-2"  # recorded with everything tokenised; changes whenever a rule above does

TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "Lt", "Col", "Gen", "Rev", "vs"})
LINE_END = "\n"  # what every sentence end becomes, and the token that stands for it

_ASCII, _PLANE = 0x7F, 0xFFFF  # the last code points of both
_POINTS = ".\u2024\ufe52\uff0e"  # ATerm
_BREAKS = "\r\v\f\x85\u2028\u2029"  # each becomes "\n"; the two of CR LF are a sentence without a word more
_MARKS = "EFZ"  # Extend, Format and ZWJ: of the character before them (WB4)
_LONGEST = 8  # characters looked back at: enough to tell a title or a single letter from a longer word
_INVISIBLE = re.compile("[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_JOINERS = "\u200c\u200d"
_UNSHAPED = ((0, 0x58F), (0x1E00, 0x1FFF))  # Latin, Greek, Cyrillic: letters that no joiner shapes
_SIGNS = ((0xA9, 0xA9), (0xAE, 0xAE), (0x2122, 0x2122))  # ©, ® and ™ are emoji that are written as text
_LANGUAGE = re.compile("([a-z]{2,3})?")
_DOTLESS = frozenset({"tr", "az"})  # I is the capital of ı, İ of i
_DOT_STAYS = {"\u00cc": "i\u0307\u0300", "\u00cd": "i\u0307\u0301", "\u0128": "i\u0307\u0303"}  # in Lithuanian
_UZBEK = re.compile("(?<=[OoGg])['`\u2018]")  # the comma of two of its letters, however it was typed


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How the words of a vocabulary are written; all of it decides what a text is cut into.

    language: an ISO 639 code where its rules of case matter (`tr`, `az`, `lt`) or its letters (`uz`); "" for none.
    emoji: whether an emoji is a word, or only separates words.
    """

    lowercase: bool = False
    language: str = ""
    emoji: bool = False

    def __post_init__(self) -> None:
        if not _LANGUAGE.fullmatch(self.language):
            raise InputError(
                f"language {self.language!r} is no code of ISO 639; give two or three small letters, as tr for Turkish."
            )


AS_TYPED = Writing()


def pieces(text: str, writing: Writing = AS_TYPED) -> list[str]:
    """The words of a text and, between its sentences, LINE_ENDs; no word is ever spelled in two ways."""
    text = canonical(text, writing)
    last = _last(text)
    marked = _stops(last).sub(_line_end, text)
    for each in _BREAKS:
        marked = marked.replace(each, LINE_END)
    found: list[str] = _cutter(last, writing.emoji and last > _ASCII).findall(marked)
    if not writing.lowercase:
        return found
    if last == _ASCII and writing.language not in _DOTLESS:
        return [word.lower() for word in found]
    return [lowered(word, writing.language) for word in found]


def sentences(text: str, writing: Writing = AS_TYPED) -> list[list[str]]:
    """The words of each sentence that has any."""
    found: list[list[str]] = [[]]
    for piece in pieces(text, writing):
        if piece != LINE_END:
            found[-1].append(piece)
        elif found[-1]:
            found.append([])
    return found if found[-1] else found[:-1]


def is_placeholder(word: str) -> bool:
    """Whether a word stands for something that no keyboard should suggest: `<url>`, or a web address."""
    return word[:8].lower().startswith(("<", "http://", "https://", "www."))


def canonical(text: str, writing: Writing = AS_TYPED) -> str:
    """The canonical form of a text, step 1 above; what its words are made of."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        if _JOINERS[0] in text or _JOINERS[1] in text:
            text = _idle_joiners().sub("\\1", text)
        text = unicodedata.normalize("NFC", text).replace("\u2019", "'")
        if writing.emoji:
            text = _qualified(text)
    return _UZBEK.sub("\u02bb", text) if writing.language == "uz" else text


def lowered(word: str, language: str = "") -> str:
    """A word in lower case as the language has it, composed.

    In Turkish and Azerbaijani I becomes ı and İ i; in Lithuanian a dot stays under an accent. Elsewhere İ becomes i:
    with the dot that Unicode leaves behind it, it would equal no other word.
    """
    if language in _DOTLESS:
        word = word.replace("I", "ı")
    if word.isascii():
        return word.lower()
    if language == "lt":
        word = re.sub("[\u00cc\u00cd\u0128]", lambda found: _DOT_STAYS[found[0]], word)
        word = re.sub("([J\u012e])(?=[\u0300\u0301\u0303])", "\\1\u0307", word)
    return unicodedata.normalize("NFC", word.replace("\u0130", "i").lower())


def capitals(word: str, language: str = "") -> str:
    """A word in capitals as the language has them: the capital of i is İ in Turkish and Azerbaijani."""
    return (word.replace("i", "\u0130") if language in _DOTLESS else word).upper()


def _line_end(stop: re.Match[str]) -> str:
    """A line break where the marks end a sentence, a blank where they do not, themselves where no blank follows."""
    marks, text, end = stop[1], stop.string, stop.end()
    certain = not (marks.isascii() or _certain().isdisjoint(marks))
    if not certain and end < len(text) and text[end] not in _blanks():
        return stop[0]
    if certain or "!" in marks or "?" in marks:
        return LINE_END
    if marks == "." or _one_point().fullmatch(marks):
        before = _word_before().search(text, max(0, stop.start() - _LONGEST), stop.start())
        word = before[0] if before else ""
        return " " if word in TITLES or _single_letter().fullmatch(word) else LINE_END
    decides = _decides_case().search(text, end)
    return " " if decides and decides[0] in _lower() else LINE_END


def _qualified(text: str) -> str:
    """Every emoji as UTS #51 spells it in full: U+FE0F where it would else be shown as text, and nowhere else."""
    text = _shown_as_text().sub("\\g<0>\ufe0f", text)
    text = _keycaps().sub("\\1\ufe0f\u20e3", text)
    return _shown_anyway().sub("\\1", text)


def _last(text: str) -> int:
    """An upper bound of its code points: what the classes of a pattern need not go beyond, which makes it quick."""
    if text.isascii():
        return _ASCII
    return _PLANE if len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text) else LAST


@cache
def _stops(last: int) -> re.Pattern[str]:
    """Marks that may end a sentence, and the closing quotes and brackets behind; begins with its rarest characters.

    A match begins with the first of several marks: a million points are looked at once, not once from each.
    """
    mark = characters(SENTENCE_BREAK, "TA", last, more="…")
    more = characters(SENTENCE_BREAK, "TAEF", last, more="…")
    before_blank = rf"(?={characters(SENTENCE_BREAK, 'SB', last)}|\Z)" if last == _ASCII else ""
    return re.compile(rf"({mark}(?<!{mark}{mark}){more}*+){run(SENTENCE_BREAK, 'QEF', last)}{before_blank}")


@cache
def _cutter(last: int, emoji: bool) -> re.Pattern[str]:
    """Words, and line ends, of a text without stops."""

    def one(letters: str, *, but: str = "", more: str = "") -> str:
        return characters(WORD_BREAK, letters, last, but=but, more=more)

    def word(letters: str, joins: str) -> str:
        """From one of the letters on, and what may join the next."""
        return one(letters) + run(WORD_BREAK, letters + _MARKS, last) + f"(?:{joins})?+"

    marks = run(WORD_BREAK, _MARKS, last)
    before_letter = rf"{one('LM', but=_POINTS)}{marks}(?={one('AH')})"
    apostrophe = rf"'{marks}(?={one('AHNP')})"
    parts = [
        word("A", f"{before_letter}|{apostrophe}"),
        word("NP", rf"{one('CM', more=':')}{marks}(?={one('NP')})|{apostrophe}"),
        word("H", rf"{before_letter}|'{marks}|\"{marks}(?={one('H')})"),
    ]
    every = [
        _emoji() if emoji else "",
        LINE_END,
        "<[a-z][a-z_]*>",
        rf"(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ww][Ww][Ww]\.){_in_address(last)}+",
        f"(?:{'|'.join(parts)})++",
        one("OK") + run(WORD_BREAK, "OK" + _MARKS, last),
    ]
    return re.compile("|".join(filter(None, every)))


def _in_address(last: int) -> str:
    """Neither a blank nor a control character nor a mark of another script that ends a sentence."""
    ends = [each for letter in "BST" for each in ranges_of(SENTENCE_BREAK)[letter] if each[0] > _ASCII]
    return one_of([(0x21, LAST)], last, [*ends, *singles("<>…"), (0x7F, 0x9F)])


def _emoji() -> str:
    """An emoji sequence of UTS #51 (ED-17), of qualified text: flag, keycap, or pictures with a joiner between."""
    flag, tone, keycap = characters(WORD_BREAK, "R"), characters(EMOJI, "M"), characters(EMOJI, "K")
    pictures = [each for letter in "PT" for each in ranges_of(EMOJI)[letter]]
    picture = one_of(pictures, but=[*ranges_of(WORD_BREAK)["R"], *_SIGNS])
    one = rf"{picture}(?:{tone}|\ufe0f\u20e3?|[\U000e0020-\U000e007e]+\U000e007f)?+(?!\ufe0e)"
    return rf"{flag}{{2}}|{keycap}\ufe0f\u20e3|{one}(?:\u200d{one})*+"


@cache
def _idle_joiners() -> re.Pattern[str]:
    """Joiners that shape nothing: not between two letters or marks of a script they shape; group 1 is what stays."""
    joiners, flags = singles(_JOINERS), ranges_of(WORD_BREAK)["R"]
    shaped = [each for letter in "AHOKE" for each in ranges_of(WORD_BREAK)[letter]]
    before, behind = one_of(shaped, but=[*joiners, *_UNSHAPED]), one_of(shaped, but=joiners)
    picture = one_of([each for letter in "PTX" for each in ranges_of(EMOJI)[letter]], but=flags)
    mark = one_of([each for letter in "EF" for each in ranges_of(WORD_BREAK)[letter]], but=joiners)
    between_pictures = rf"({picture}{mark}*+\u200d(?={picture}))"
    return re.compile(rf"{between_pictures}|(?<!{before})[{_JOINERS}]+|[{_JOINERS}]++(?!{behind})")


@cache
def _shown_as_text() -> re.Pattern[str]:
    return re.compile(rf"{characters(EMOJI, 'T')}(?![\ufe0e\ufe0f]|{characters(EMOJI, 'M')})")


@cache
def _shown_anyway() -> re.Pattern[str]:
    return re.compile(rf"({characters(EMOJI, 'PM')})\ufe0f")


@cache
def _keycaps() -> re.Pattern[str]:
    return re.compile(rf"({characters(EMOJI, 'K')})\u20e3")


@cache
def _certain() -> frozenset[str]:
    """Marks that end a sentence whatever follows: each but those that stand in addresses."""
    return members(SENTENCE_BREAK, "T") - {"!", "?"}


@cache
def _blanks() -> frozenset[str]:
    return members(SENTENCE_BREAK, "SBEF")


@cache
def _lower() -> frozenset[str]:
    return members(SENTENCE_BREAK, "L")


@cache
def _one_point() -> re.Pattern[str]:
    return re.compile(f"[{_POINTS}]{characters(SENTENCE_BREAK, 'EF')}*")


@cache
def _decides_case() -> re.Pattern[str]:
    """The first character that says whether a sentence goes on in lower case (SB8)."""
    return re.compile(characters(SENTENCE_BREAK, "LUOBTA", more="…\v\f"))


@cache
def _word_before() -> re.Pattern[str]:
    return re.compile(rf"{characters(WORD_BREAK, 'AHNPOK' + _MARKS)}+\Z")


@cache
def _single_letter() -> re.Pattern[str]:
    return re.compile(rf"{characters(WORD_BREAK, 'AH')}{characters(WORD_BREAK, _MARKS)}*")
