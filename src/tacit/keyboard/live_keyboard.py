"""A keyboard as whoever types sees it: the strip above the keys, what a blank would correct, and a phrase to take.

Keys are pressed one at a time: a character as it is, or one of `Key`. It has no screen: a terminal draws it
(`tacit keyboard`), and so may a page. What is typed is kept: only a correction that was shown changes it, and capitals
stay where they are.
"""

import unicodedata
from concurrent.futures import Future
from enum import StrEnum
from typing import NamedTuple

from tacit.errors import of_type
from tacit.keyboard.compose import BEAMS
from tacit.keyboard.correction import at_space, worth_showing
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.graphemes import graphemes
from tacit.keyboard.lexicon import LONGEST
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import TypingSession
from tacit.keyboard.touch import KeyboardLayout, Keys
from tacit.networks.metrics import SHOWN
from tacit.text.vocabulary import OOV
from tacit.text.words import LINE_END, capitals, lowered, pieces

MARKS = ".,!?;:…"  # follow a word without a blank
OPENING, CLOSING, DASHES = (
    "¿¡([{«“‘",
    ")]}»”",
    "-–—",
)  # stand beside a word without one, before, behind and on both sides
QUOTATION = '"'  # opens where a blank stands before it
IN_NUMBERS = (".", ",", ":")  # between digits they are part of a word: 3.14, 10:30
ALIKE = 4  # so many times as many words are looked at where some are spelled as typed and others only pressed alike
RARE = 0.001  # of all words that begin as typed: rarer ones are not offered for that alone
THRESHOLD = 1 / BEAMS  # of phrases: no more of them can pass than the search has beams, so that it leaves none out


class Key(StrEnum):
    """Keys that write no character of their own."""

    BACKSPACE = "backspace"  # takes the last character (grapheme) away, or undoes what wrote the last word
    ENTER = "enter"
    FIRST = "first"  # takes the first word of the strip
    SECOND = "second"
    THIRD = "third"
    PHRASE = "phrase"  # takes the phrase


PICKS = (Key.FIRST, Key.SECOND, Key.THIRD)


class Offered(NamedTuple):
    """What the keyboard shows."""

    strip: tuple[str, ...]  # at most SHOWN words: the next ones, or those that may be meant by what is typed
    correction: str | None  # what a blank would write in place of what is typed
    phrase: str  # what taking the phrase would add behind what is typed; "" where none is likely enough
    corrects: bool = True  # whether the decoder is there, without which nothing is corrected


class _Before(NamedTuple):
    """How it was before something was written."""

    text: str
    typed: str
    session: TypingSession
    own_blank: bool


class LiveKeyboard:
    """What somebody types, and what the keyboard offers meanwhile."""

    def __init__(
        self,
        model: PhoneModel,
        decoder: Decoder | Future[Decoder],
        *,
        threshold: float = THRESHOLD,
        learns: bool = False,
    ) -> None:
        """decoder: for the model's vocabulary, or for when it is ready: until then words are offered that begin as
        typed, and nothing is corrected. threshold: the probability from which on a phrase is offered. learns: mix in
        what was typed, where that helped before (`learning_session`).
        """
        self.text = ""  # all that is written, up to the word under the cursor
        self.typed = ""  # of that word
        self.keys = 0  # pressed so far
        self._vocabulary, self._threshold = model.vocabulary, threshold
        self._coming = decoder if isinstance(decoder, Future) else _here(decoder)
        self._session: TypingSession = model.learning() if learns else model.typing()
        self._undo: list[_Before] = []
        self._own_blank = False  # whether the text ends in a blank that nobody typed, behind a word that was taken
        self._kept = ""  # a word whose correction was undone: it is not corrected again
        self._offered: Offered | None = None

    def press(self, key: str) -> None:
        """A key: a character (of several code points, it may be), or one of `Key`; control characters do nothing.

        Letters and digits are part of a word, and so are joiners and signs like @ and #, which leave it as it is;
        marks, brackets, quotation marks, dashes and blanks of any width end it.
        """
        of_type("key", key, str)
        if self._in_number and (key == Key.ENTER or (_is_sign(key) and not key.isdigit())):
            self._write(self.typed[:-1], self.typed[-1])  # the mark was none of a number
            self._offered = None
        word = self.offered.correction or self.typed
        match key:
            case Key.BACKSPACE:
                self._erase()
            case Key.PHRASE:
                if self.offered.phrase:
                    self._write(self.typed + self.offered.phrase, " ", own=True)
            case Key.FIRST | Key.SECOND | Key.THIRD:
                if (place := PICKS.index(Key(key))) < len(self.offered.strip):
                    self._write(self.offered.strip[place], " ", own=True)
            case " " if self._own_blank and not word:
                self._own_blank = False  # it is there already
            case Key.ENTER:
                self._write(word, "\n")
            case _ if key in IN_NUMBERS and self.typed[-1:].isdigit():
                self.typed += key
            case _ if _is_sign(key) and key in MARKS + OPENING + CLOSING + DASHES + QUOTATION:
                self._write(word, key)
            case _ if _is_sign(key) and key.isspace():
                self._write(word, key)
            case _ if _is_sign(key):
                self.typed += key
            case _:
                return
        self.keys += 1
        self._offered = None

    def paste(self, text: str) -> None:
        """Text from elsewhere, which stands as it is: what is no word is not corrected. Control characters are left
        out, but for line ends and tabs. It counts as a key.
        """
        of_type("text", text, str)
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        whole = self.typed + "".join(sign for sign in lines if sign in "\n\t" or _is_sign(sign))
        end = 1 + max((at for at, sign in enumerate(whole) if sign.isspace()), default=-1)
        if end:
            self._remember()
            self.text += whole[:end]
            self._session.commit(whole[:end])
            self._own_blank = False
        self.typed = self._kept = whole[end:]
        self.keys += 1
        self._offered = None

    @property
    def offered(self) -> Offered:
        """What is shown now."""
        if self._offered is None or self.ready != self._offered.corrects:
            ready = self.ready
            phrase = self._session.compose(self._prefix, threshold=self._threshold)
            strip, correction = (self._strip(), self._correction()) if ready else (self._begun(), None)
            self._offered = Offered(strip, correction, self._in_capitals(self._behind(str(phrase or ""))), ready)
        return self._offered

    @property
    def ready(self) -> bool:
        """Whether the decoder is there, and with it corrections."""
        return self._coming.done()

    @property
    def _in_number(self) -> bool:
        """Whether what is typed ends in a mark that is part of a word only if a digit follows."""
        return self.typed.endswith(IN_NUMBERS) and self.typed[-2:-1].isdigit()

    # -- what is offered -----------------------------------------------------------------------------------------------

    def _begun(self) -> tuple[str, ...]:
        """Without the decoder: the next words, or those of them that begin as typed."""
        if not self.typed:
            return tuple(each.word for each in self._session.next_words(min(SHOWN, len(self._vocabulary.words))))
        return tuple(self._cased(each.word) for each in self._session.words_above(RARE, self._prefix)[:SHOWN])

    def _strip(self) -> tuple[str, ...]:
        if not self.typed:
            return self._begun()
        logs, keys = self._session.log_probabilities, self._tapped()
        if keys is None:
            return ()
        accented = self._accented(self.typed)
        found = worth_showing(self._decoder, self._layout.centres[keys], logs, SHOWN * (ALIKE if accented else 1))
        words = [self._cased(each.word) for each in found]
        if accented:  # no tap of the decoder's, and meant all the same
            words.sort(key=lambda word: not self._small(word).startswith(self._small(self.typed)))
        return tuple(words[:SHOWN])

    def _correction(self) -> str | None:
        """The word that a blank would write in place of what is typed; None where that stands."""
        keys = self._tapped()
        if keys is None or self.typed == self._kept or self._is_known or self._is_mixed:
            return None
        correction = at_space(self._decoder, self._layout.centres[keys], self._session.log_probabilities)
        unaccented = self._accented(self.typed) and not self._accented(correction.text)
        return None if correction.kept or unaccented else self._cased(correction.text)

    @property
    def _decoder(self) -> Decoder:
        return self._coming.result()

    @property
    def _layout(self) -> KeyboardLayout:
        return self._decoder.lexicon.layout

    def _accented(self, word: str) -> bool:
        """Whether it has an accent that the layout has no key for, so that whoever types one means it."""
        return any(
            len(unicodedata.normalize("NFD", sign)) > 1 for sign in word.lower() if sign not in self._layout.keys
        )

    def _tapped(self) -> Keys | None:
        """The keys of what is typed; None where nothing is, or where the layout has not all of its keys."""
        form = self._layout.typed_form(self.typed)
        return None if not form or len(form) > LONGEST else self._layout.key_ids(form)

    @property
    def _prefix(self) -> str:
        """How the words begin that go on with what is typed: in its capitals, where the vocabulary has such words."""
        there = len(self._vocabulary.ids_beginning(self._spelled(self.typed)))
        return self.typed if there else self._small(self.typed)

    def _behind(self, words: str) -> str:
        """What follows the prefix in words that begin with it."""
        return words[len(self._spelled(self._prefix)) :]

    def _spelled(self, word: str) -> str:
        """As the vocabulary writes a word, or the beginning of one."""
        return self._vocabulary.spelled(word)

    def _small(self, word: str) -> str:
        return lowered(word, self._vocabulary.language)

    def _large(self, word: str) -> str:
        return capitals(word, self._vocabulary.language)

    @property
    def _is_known(self) -> bool:
        """Whether the vocabulary has the word, in these capitals or, where any were typed, in fewer."""
        small = self._small(self.typed)
        forms = {self.typed} if small == self.typed else {self.typed, small, self._large(small[:1]) + small[1:]}
        return any(self._vocabulary.id_of(form) != OOV for form in forms)

    @property
    def _is_mixed(self) -> bool:
        """Whether there are capitals inside the word and small letters too, which somebody means: iPhone, McKay."""
        return not self._is_shouted and any(sign.isupper() for sign in self.typed[1:])

    @property
    def _is_shouted(self) -> bool:
        """Whether all letters are capitals, and more than one."""
        return self.typed.isupper() and sum(sign.isupper() for sign in self.typed) > 1

    def _in_capitals(self, words: str) -> str:
        """Words that go on with a shouted one are shouted too."""
        return self._large(words) if self._is_shouted else words

    def _cased(self, word: str) -> str:
        """In the capitals of what is typed: all, the first, or those inside where the word goes on with it."""
        if self._is_shouted:
            return self._large(word)
        begun = unicodedata.normalize("NFC", self.typed)
        if self._is_mixed and self._small(word[: len(begun)]) == self._small(begun):
            return self.typed + word[len(begun) :]
        return self._large(word[:1]) + word[1:] if self.typed[:1].isupper() else word

    # -- what is written -----------------------------------------------------------------------------------------------

    def _write(self, words: str, after: str, *, own: bool = False) -> None:
        """Words in place of what is typed, and what follows them; the session reads both.

        own: `after` is the keyboard's, who types gives it up for a mark.
        """
        self._remember()
        begun = bool(self.typed) or _opens(self.text)
        if after in MARKS + CLOSING and not words:
            self.text = (self.text.removesuffix(" ") if self._own_blank else self.text) + after
        else:
            self.text += words + after if begun else f" {words}{after}" if words else after
        self.typed, self._own_blank = "", own
        self._session.commit(words)
        last = after if after.isspace() else (self.text.split() or [""])[-1] if after in MARKS else ""
        if LINE_END in pieces(last):
            self._session.commit(LINE_END)

    def _remember(self) -> None:
        """What is written next can be undone."""
        self._undo.append(_Before(self.text, self.typed, self._session, self._own_blank))
        self._session = self._session.fork()

    def _erase(self) -> None:
        if self.typed:
            self.typed = "".join(graphemes(self.typed)[:-1])
        elif self._undo:
            self.text, self.typed, self._session, self._own_blank = self._undo.pop()
            self._kept = self.typed


def _is_sign(key: str) -> bool:
    """Whether a key writes itself: one character of Unicode's, none of them a control or half of a pair."""
    signs = not any(unicodedata.category(point) in ("Cc", "Cs") for point in key)
    return signs and (len(key) == 1 or (key != "" and graphemes(key) == [key]))


def _opens(text: str) -> bool:
    """Whether a word may follow a text without a blank."""
    quoted = text.endswith(QUOTATION) and (len(text) == 1 or text[-2].isspace())
    return not text or text[-1].isspace() or text[-1] in OPENING + DASHES or quoted


def _here(decoder: Decoder) -> Future[Decoder]:
    """Of one that is ready."""
    there: Future[Decoder] = Future()
    there.set_result(decoder)
    return there
