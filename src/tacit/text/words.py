"""From what somebody typed to sentences and words, before any vocabulary.

One rule for everybody (training, vocabularies, evaluation), so that a count and an id can never disagree:

- text is put in Unicode's composed form (NFC) and curly apostrophes become straight;
- a sentence ends at a line break, and at `.`, `!`, `?` or `…` (with closing quotes or brackets) before a
  blank or the end. Not after a single letter (`J. Smith`, `e.g.`) or a title (`Dr.`), nor where two or more
  dots trail off into a lower-case word (`well... maybe`);
- a word is a run of letters, marks and digits with apostrophes inside it (`don't`), or a number with its
  inner points (`3.14`, `10:30`). A web address is one word, and so is a placeholder such as `<url>` that took
  the place of one; both are never in a vocabulary. Everything else (punctuation, emoji) only separates words.

`tests/text/slow_words.py` is the slow, obvious reference, one character at a time.
"""

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # five megabytes, which a keyboard of ASCII words never needs
    from tokenizers.pre_tokenizers import Split

RULES = "tacit-words-1"  # recorded with everything tokenised; changes whenever a rule above does

TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "Lt", "Col", "Gen", "Rev", "vs"})

_STOP = re.compile(r"([.!?…]+)[\"'”)\]»]*(?=\s|\Z)")  # begins with its rarest characters: ten times faster

_WORD_BEFORE = re.compile(r"\w+\Z")
_LONGEST = 8  # characters looked back at: enough to tell a title or a single letter from a longer word
_NOT_BLANK = re.compile(r"\S")


def _pieces_pattern(letter: str, digit: str) -> str:
    return (
        rf"\n|<[a-z_]+>|(?:https?://|www\.)[^\s<>]+"
        rf"|{letter}+(?:(?:'|(?<={digit})[.,:](?={digit})){letter}+)*"
    )


_ANY_PIECE = _pieces_pattern(r"[\p{L}\p{M}\p{N}]", r"\p{N}")
_ASCII_PIECE = re.compile(_pieces_pattern("[A-Za-z0-9]", "[0-9]"))

LINE_END = "\n"  # what every sentence end becomes, and the token that stands for it


def marked(text: str, *, lowercase: bool) -> str:
    """The text with every sentence end replaced by one line break, composed, with straight apostrophes."""
    text = _STOP.sub(_line_end, straight(text))
    return text.lower() if lowercase else text


def straight(text: str) -> str:
    """The text composed, with straight apostrophes."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).replace("\u2019", "'")


def _line_end(stop: re.Match[str]) -> str:
    """A line break where the stop ends a sentence, else a blank."""
    marks, text, begin = stop[1], stop.string, stop.start()
    if "!" in marks or "?" in marks:
        return LINE_END
    if marks == ".":
        before = _WORD_BEFORE.search(text, max(0, begin - _LONGEST), begin)
        word = before[0] if before else ""
        return " " if word in TITLES or (len(word) == 1 and word.isalpha()) else LINE_END
    follower = _NOT_BLANK.search(text, stop.end())
    return " " if follower and follower[0].islower() else LINE_END


@cache
def splitter() -> "Split":
    """The `tokenizers` step that keeps the words and line ends of a marked text, and drops the rest."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    return Split(Regex(_ANY_PIECE), behavior="removed", invert=True)


def pieces(marked_text: str) -> list[str]:
    """The words and line ends of a marked text in order; by a quicker road where the text is ASCII."""
    if marked_text.isascii():
        return _ASCII_PIECE.findall(marked_text)
    return [piece for piece, _ in splitter().pre_tokenize_str(marked_text)]


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence that has any, spelled as they were typed."""
    found: list[list[str]] = [[]]
    for piece in pieces(marked(text, lowercase=False)):
        if piece != LINE_END:
            found[-1].append(piece)
        elif found[-1]:
            found.append([])
    return found if found[-1] else found[:-1]


def is_placeholder(word: str) -> bool:
    """Whether a word stands for something that no keyboard should suggest: `<url>`, or a web address."""
    return word.startswith(("<", "http://", "https://", "www."))
