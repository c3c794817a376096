"""UAX #29 one character at a time, and tacit's exceptions one by one: slow and obvious, for tests only.

Without exceptions these are Unicode's own rules, and pass Unicode's own tests. With all of them they are tacit's.
"""

import re
import unicodedata

from tacit.text.unicode_tables import EMOJI, SENTENCE_BREAK, WORD_BREAK

WORDS = {  # where a word ends otherwise than in UAX #29, and why
    "underscore": "`_` and its kind are markup between words, and U+202F is the blank before a French `!`",
    "point": "people leave out the blank behind a sentence: `end.Then`",
    "apostrophe": "an apostrophe joins a letter and a digit: `1980's`",
    "colon": "a colon joins two digits: `10:30`",
    "number": "numbers that are no digits are written as such: `CO₂`, `m²`",
    "run": "no dictionary says where words of a script without spaces end; they are one as long as letters run",
    "picture": "a joiner ties an emoji to no sign that is none, so that it is apart",
    "address": "a web address, or a placeholder for one, is one word, which no vocabulary has",
}
SENTENCES = {  # where a sentence ends otherwise than in UAX #29, and why
    "blank": "`.`, `!`, `?` and `…` without a blank behind stand in addresses, numbers and names",
    "lower case": "many who type leave out capitals: a point before a small letter ends a sentence",
    "comma": "behind a mark and a blank no sentence goes on with a comma or a dash: a keyboard cannot wait for it",
    "title": "`Dr.` and its kind do not end a sentence",
    "letter": "a single letter is an initial, or part of an abbreviation: `J. Smith`, `e.g.`",
    "ellipsis": "`…` trails off as `...` does",
    "line": "VT and FF break a line as the others do",
}
ALL = frozenset([*WORDS, *SENTENCES])
TITLES = {"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "Lt", "Col", "Gen", "Rev", "vs"}
INVISIBLE = "\u00ad\u061c\u200e\u200f\ufeff" + "".join(
    chr(at) for first, last in ((0x202A, 0x202E), (0x2060, 0x2064), (0x2066, 0x206F)) for at in range(first, last + 1)
)
JOINERS = "\u200c\u200d"
POINTS = ".\u2024\ufe52\uff0e"


def expanded(table: str) -> str:
    """The letter of each code point."""
    return "".join(letter * int(length or 1) for letter, length in re.findall(r"([A-Za-z])(\d*)", table))


WORD, SENTENCE, PICTURES = expanded(WORD_BREAK), expanded(SENTENCE_BREAK), expanded(EMOJI)


def word_class(character: str, exceptions: frozenset[str]) -> str:
    """Word_Break; "" of no character."""
    if not character:
        return ""
    found = WORD[ord(character)]
    if found == "P":
        return "N" if "number" in exceptions else "x"
    if found == "O" and "run" not in exceptions:
        return "x"
    return {"U": "x" if "underscore" in exceptions else "U"}.get(found, found)


def is_picture(character: str) -> bool:
    """Extended_Pictographic: every row of the table but skin tones, flags' letters and what begins a keycap."""
    return PICTURES[ord(character)] in "XTP" and WORD[ord(character)] != "R"


def is_word(segment: str) -> bool:
    """Whether a segment has a letter or a number."""
    return any(WORD[ord(character)] in "AHNKOP" for character in segment)


def breaks_word(text: str, at: int, exceptions: frozenset[str] = frozenset()) -> bool:
    """Whether UAX #29 ends a word between text[at - 1] and text[at]; rules are named as there."""
    left, right = text[at - 1], text[at]
    before, after = word_class(left, exceptions), word_class(right, exceptions)
    if left == "\r" and right == "\n":
        return False  # WB3
    if "B" in (before, after):
        return True  # WB3a, WB3b
    if left == "\u200d" and is_picture(right) and "picture" not in exceptions:
        return False  # WB3c
    if before == after == "S":
        return False  # WB3d
    if after in "EFZ":
        return False  # WB4

    kept = [place for place in range(len(text)) if place == 0 or word_class(text[place], exceptions) not in "EFZ"]
    kept = [place for place in range(len(text)) if place in kept or word_class(text[place - 1], exceptions) == "B"]
    back = [place for place in kept if place < at][::-1]
    on = [place for place in kept if place >= at]
    signs = [text[place] for place in (*back[1:2], *back[:1], *on[:1], *on[1:2])]
    classes = [word_class(sign, exceptions) for sign in signs]
    first, left_class = (classes[0], classes[1]) if len(back) > 1 else ("", classes[0])
    left_sign = text[back[0]]
    right_class = word_class(text[on[0]], exceptions)
    last = word_class(text[on[1]], exceptions) if len(on) > 1 else ""

    def between_letters(character: str, kind: str) -> bool:
        return kind in ("L", "M", "Q") and not ("point" in exceptions and character in POINTS)

    letter = ("A", "H")
    if left_class in letter and right_class in letter:
        return False  # WB5
    if left_class in letter and between_letters(text[on[0]], right_class) and last in letter:
        return False  # WB6
    if first in letter and between_letters(left_sign, left_class) and right_class in letter:
        return False  # WB7
    if left_class == "H" and right_class == "Q":
        return False  # WB7a
    if (left_class, right_class, last) == ("H", "D", "H") or (first, left_class, right_class) == ("H", "D", "H"):
        return False  # WB7b, WB7c
    if left_class in ("N", *letter) and right_class in ("N", *letter):
        return False  # WB8, WB9, WB10
    middle = ("C", "M", "Q")
    if first == "N" and left_class in middle and right_class == "N":
        return False  # WB11
    if left_class == "N" and right_class in middle and last == "N":
        return False  # WB12
    if left_class == right_class == "K":
        return False  # WB13
    if left_class in ("A", "H", "N", "K", "U") and right_class == "U":
        return False  # WB13a
    if left_class == "U" and right_class in ("A", "H", "N", "K"):
        return False  # WB13b
    if left_class == right_class == "R":
        flags = 0
        while flags < len(back) and word_class(text[back[flags]], exceptions) == "R":
            flags += 1
        return flags % 2 == 0  # WB15, WB16
    if "apostrophe" in exceptions:
        either = ("N", *letter)
        if (first in either and left_sign == "'" and right_class in either) or (
            left_class in either and text[on[0]] == "'" and last in either
        ):
            return False
    if "colon" in exceptions and "N" in (first, left_class):
        if first == "N" and left_sign == ":" and right_class == "N":
            return False
        if left_class == "N" and text[on[0]] == ":" and last == "N":
            return False
    return not ("run" in exceptions and left_class in ("K", "O") and right_class in ("K", "O"))  # WB999


def word_segments(text: str, exceptions: frozenset[str] = frozenset(), *, emoji: bool = False) -> list[str]:
    """The text, cut where words begin and end."""
    found, begin = [], 0
    while begin < len(text):
        end = emoji_end(text, begin) if emoji else begin
        if end == begin and "address" in exceptions:
            end = address_end(text, begin)
        if end == begin:
            end = begin + 1
            alone = emoji and WORD[ord(text[begin])] in "REFZ"  # half a flag, or what is left behind an emoji
            while end < len(text) and not alone and not breaks_word(text, end, exceptions):
                end += 1
        found.append(text[begin:end])
        begin = end
    return found


def address_end(text: str, at: int) -> int:
    """Where the address or placeholder that begins at `at` ends; `at` if none does."""
    if text[at] == "<":
        close = text.find(">", at)
        if re.fullmatch("[a-z][a-z_]*", text[at + 1 : max(close, at)]):
            return close + 1
    for scheme in ("http://", "https://", "www."):
        if text[at : at + len(scheme)].lower() == scheme:
            end = at + len(scheme)
            while end < len(text) and in_address(text[end]):
                end += 1
            if end > at + len(scheme):
                return end
    return at


def in_address(character: str) -> bool:
    """Neither blank nor control character, nor a mark of another script that ends a sentence."""
    ends = character == "…" or (SENTENCE[ord(character)] == "T" and character not in "!?")
    return not (
        ends or SENTENCE[ord(character)] in "SB" or unicodedata.category(character) == "Cc" or character in "<>"
    )


def emoji_end(text: str, at: int) -> int:
    """Where the emoji that begins at `at` ends, of text in canonical form; `at` if none does."""

    def kind(place: int) -> str:
        return PICTURES[ord(text[place])] if place < len(text) else "x"

    if all(place < len(text) and WORD[ord(text[place])] == "R" for place in (at, at + 1)):
        return at + 2
    if kind(at) == "K" and text[at + 1 : at + 3] == "\ufe0f\u20e3":
        return at + 3
    end = at
    while True:
        begin = end + (end > at)  # behind a joiner
        if not (kind(begin) in "TP" and WORD[ord(text[begin])] != "R" and text[begin] not in "©®™"):
            return end
        stop = begin + 1
        if kind(stop) == "M":
            stop += 1
        elif text[stop : stop + 1] == "\ufe0f":
            stop += 2 if text[stop + 1 : stop + 2] == "\u20e3" else 1
        else:
            tags = stop
            while tags < len(text) and "\U000e0020" <= text[tags] <= "\U000e007e":
                tags += 1
            if tags > stop and text[tags : tags + 1] == "\U000e007f":
                stop = tags + 1
        if text[stop : stop + 1] == "\ufe0e":
            return end
        end = stop
        if text[end : end + 1] != "\u200d":
            return end


def sentence_class(character: str, exceptions: frozenset[str]) -> str:
    """Sentence_Break."""
    if character in "\v\f" and "line" in exceptions:
        return "B"
    if character == "…" and "ellipsis" in exceptions:
        return "A"
    return SENTENCE[ord(character)]


def breaks_sentence(text: str, at: int, exceptions: frozenset[str] = frozenset()) -> bool:
    """Whether UAX #29 ends a sentence between text[at - 1] and text[at]; rules are named as there."""
    if text[at - 1] == "\r" and text[at] == "\n":
        return False  # SB3
    if sentence_class(text[at - 1], exceptions) == "B":
        return True  # SB4
    if sentence_class(text[at], exceptions) in "EF":
        return False  # SB5

    def kind(place: int) -> str:
        return sentence_class(text[place], exceptions)

    kept = [place for place in range(len(text)) if place == 0 or kind(place) not in "EF" or kind(place - 1) == "B"]
    back = [place for place in kept if place < at]
    on = [place for place in kept if place >= at]
    classes = "".join(kind(place) for place in back)
    rest = "".join(kind(place) for place in on)
    found = re.search("([TA])(Q*)(S*)(B?)$", classes)
    if found is None:
        return False  # SB998
    mark, closing, spaces, line = found.groups()
    marks = re.search("[TA]*$", classes[: found.start(1) + 1])
    assert marks is not None
    begin = back[marks.start()]
    points = [text[each] for each in back[marks.start() : marks.end()]]
    certain = any(SENTENCE[ord(each)] == "T" and each not in "!?" for each in points)
    if mark == "A" and not closing + spaces + line and not ("blank" in exceptions and certain):
        if rest[0] == "N":
            return False  # SB6
        if rest[0] == "U" and classes[-2:-1] in ("U", "L"):
            return False  # SB7
    goes_on = mark == "A" and re.match("[^OULBTA]*L", rest) is not None  # SB8
    if "lower case" in exceptions:
        goes_on = goes_on and set(marks[0]) == {"A"} and (len(points) > 1 or points == ["…"])
    if goes_on and not line:
        return False
    if not line and rest[0] in ("CTA" if "comma" not in exceptions else "TA" * (not closing + spaces)):
        return False  # SB8a
    if not spaces + line and rest[0] in "QSB":
        return False  # SB9
    if not line and rest[0] in "SB":
        return False  # SB10
    if "blank" in exceptions and not (certain or spaces or line):
        return False
    if set(marks[0]) == {"A"} and len(points) == 1 and points != ["…"]:
        word = re.search("[AHNPOKEFZ]*$", "".join(WORD[ord(character)] for character in text[:begin]))
        assert word is not None
        if "title" in exceptions and text[word.start() : begin] in TITLES:
            return False
        if "letter" in exceptions and re.fullmatch("[AH][EFZ]*", word[0][-8:]):
            return False
    return True  # SB11


def sentence_segments(text: str, exceptions: frozenset[str] = frozenset()) -> list[str]:
    """The text, cut where sentences end."""
    found, begin = [], 0
    for at in range(1, len(text)):
        if breaks_sentence(text, at, exceptions):
            found.append(text[begin:at])
            begin = at
    return [*found, text[begin:]] if text else []


def canonical(text: str) -> str:
    """Without layout characters and joiners that shape nothing, composed, with straight apostrophes."""
    text = "".join(character for character in text if character not in INVISIBLE)
    kept = "".join(text[at] for at in range(len(text)) if text[at] not in JOINERS or shapes(text, at))
    return unicodedata.normalize("NFC", kept).replace("\u2019", "'")


def shapes(text: str, at: int) -> bool:
    """Whether the joiner at `at` can change how letters are shown, or joins two pictures."""
    base = at - 1
    while base >= 0 and WORD[ord(text[base])] in "EF" and text[base] not in JOINERS:
        base -= 1
    behind = text[at + 1 : at + 2]
    if text[at] == "\u200d" and behind and base >= 0 and is_picture(behind) and is_picture(text[base]):
        return True
    on = text[at:].lstrip(JOINERS)
    if not (at and on) or text[at - 1] in JOINERS:
        return False
    before = ord(text[at - 1])
    unshaped = before < 0x590 or 0x1E00 <= before < 0x2000
    return WORD[before] in "AHOKE" and not unshaped and WORD[ord(on[0])] in "AHOKE"


def slow_sentences(text: str, *, emoji: bool = False, exceptions: frozenset[str] = ALL) -> list[list[str]]:
    """Sentences of a text in canonical form as lists of words, those without a word left out.

    The mark that may end a sentence is no part of a word, with what closes behind it and a blank or the end after that.
    """
    found = []
    for sentence in sentence_segments(text, exceptions):
        words = word_segments(without_stops(sentence) if "address" in exceptions else sentence, exceptions, emoji=emoji)
        found.append([each for each in words if is_word(each) or (emoji and emoji_end(each, 0))])
    return [words for words in found if words]


def without_stops(sentence: str) -> str:
    """With a blank for each mark that stands before a blank, and the closing signs between."""

    def kind(place: int) -> str:
        return sentence_class(sentence[place], ALL)

    kept, at = "", 0
    while at < len(sentence):
        end = at
        while end < len(sentence) and kind(end) in "TA" + "EF" * (end > at):
            end += 1
        certain = any(kind(place) == "T" and sentence[place] not in "!?" for place in range(at, end))
        while at < end < len(sentence) and kind(end) in "QEF":
            end += 1
        if end > at and (certain or end == len(sentence) or kind(end) in "SB"):
            kept, at = kept + " ", end
        else:
            kept, at = kept + sentence[at : max(end, at + 1)], max(end, at + 1)
    return kept
