"""A keyboard as whoever types sees it: the strip above the keys, what a blank would correct, and a phrase to take.

Keys are pressed one at a time: a character as it is, or one of `Key`. It has no screen: a terminal draws it
(`tacit keyboard`), and so may a page.
"""

import unicodedata
from concurrent.futures import Future
from enum import StrEnum
from typing import NamedTuple

from tacit.errors import of_type
from tacit.keyboard.compose import BEAMS
from tacit.keyboard.correction import at_space, worth_showing
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import LONGEST
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import TypingSession
from tacit.keyboard.touch import KeyboardLayout, Keys
from tacit.networks.metrics import SHOWN
from tacit.text.vocabulary import OOV
from tacit.text.words import LINE_END, pieces

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

    BACKSPACE = "backspace"  # takes the last letter away, or undoes what wrote the last word
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


class LiveKeyboard:
    """What somebody types, and what the keyboard offers meanwhile."""

    def __init__(self, model: PhoneModel, decoder: Decoder | Future[Decoder], *, threshold: float = THRESHOLD) -> None:
        """decoder: for the model's vocabulary, or for when it is ready: until then words are offered that begin as
        typed, and nothing is corrected. threshold: the probability from which on a phrase is offered.
        """
        self.text = ""  # all that is written, up to the word under the cursor
        self.typed = ""  # of that word
        self.keys = 0  # pressed so far
        self._vocabulary, self._threshold = model.vocabulary, threshold
        self._coming = decoder if isinstance(decoder, Future) else _here(decoder)
        self._session = model.typing()
        self._undo: list[_Before] = []
        self._kept = ""  # a word whose correction was undone: it is not corrected again
        self._offered: Offered | None = None

    def press(self, key: str) -> None:
        """A key: a character, or one of `Key`; what writes nothing (control characters) does nothing.

        Letters and digits are part of a word, and so are signs like @ and #, which leave it as it is; marks, brackets,
        quotation marks and dashes end it.
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
                    self._write(self.typed + self.offered.phrase, " ")
            case Key.FIRST | Key.SECOND | Key.THIRD:
                if (place := PICKS.index(Key(key))) < len(self.offered.strip):
                    self._write(self.offered.strip[place], " ")
            case " ":
                if word or not self.text[-1:].isspace():
                    self._write(word, " ")
            case Key.ENTER:
                self._write(word, "\n")
            case _ if key in IN_NUMBERS and self.typed[-1:].isdigit():
                self.typed += key
            case _ if _is_sign(key) and key in MARKS + OPENING + CLOSING + DASHES + QUOTATION:
                self._write(word, key)
            case _ if _is_sign(key):
                self.typed += key
            case _:
                return
        self.keys += 1
        self._offered = None

    @property
    def offered(self) -> Offered:
        """What is shown now."""
        if self._offered is None or self.ready != self._offered.corrects:
            ready = self.ready
            phrase = self._session.compose(self.typed, threshold=self._threshold)
            strip, correction = (self._strip(), self._correction()) if ready else (self._begun(), None)
            self._offered = Offered(strip, correction, str(phrase or "")[len(self.typed) :], ready)
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
        return tuple(self._cased(each.word) for each in self._session.words_above(RARE, self.typed)[:SHOWN])

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
            words.sort(key=lambda word: not word.lower().startswith(self.typed.lower()))
        return tuple(words[:SHOWN])

    def _correction(self) -> str | None:
        """The word that a blank would write in place of what is typed; None where that stands."""
        keys = self._tapped()
        if keys is None or self.typed == self._kept or self._vocabulary.id_of(self.typed) != OOV:
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

    def _cased(self, word: str) -> str:
        """With a capital where what is typed begins with one."""
        return word[:1].upper() + word[1:] if self.typed[:1].isupper() else word

    # -- what is written -----------------------------------------------------------------------------------------------

    def _write(self, words: str, after: str) -> None:
        """Words in place of what is typed, and what follows them; the session reads both."""
        self._undo.append(_Before(self.text, self.typed, self._session))
        begun = bool(self.typed) or _opens(self.text)
        if after in MARKS + CLOSING and not words:
            closes = self.text[-2:-1] not in (*MARKS,)  # behind another mark the blank is between sentences
            self.text = (self.text.removesuffix(" ") if closes else self.text) + after
        else:
            self.text += words + after if begun else f" {words}{after}" if words else after
        self.typed, self._session = "", self._session.fork()
        self._session.commit(words)
        last = (self.text.split() or [""])[-1]
        if after == LINE_END or (after in MARKS and LINE_END in pieces(last)):
            self._session.commit(LINE_END)

    def _erase(self) -> None:
        if self.typed:
            self.typed = self.typed[:-1]
        elif self._undo:
            self.text, self.typed, self._session = self._undo.pop()
            self._kept = self.typed


def _is_sign(key: str) -> bool:
    """Whether a key writes itself."""
    return len(key) == 1 and key.isprintable()


def _opens(text: str) -> bool:
    """Whether a word may follow a text without a blank."""
    quoted = text.endswith(QUOTATION) and (len(text) == 1 or text[-2].isspace())
    return not text or text[-1].isspace() or text[-1] in OPENING + DASHES or quoted


def _here(decoder: Decoder) -> Future[Decoder]:
    """Of one that is ready."""
    there: Future[Decoder] = Future()
    there.set_result(decoder)
    return there
