"""The reference engine: reads dictionaries of formats 202 and 403 by their rules, and speaks lines.

    python -m tacit.keyboard.dictionaries.reference_engine

Before a word it shows what the dictionary lists behind the words before, as LatinIME does: nothing where nothing is
listed. Letters and touches are decoded by tacit's own decoder, with the dictionary in the place of a model.
"""

import math
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.keyboard.correction import at_space
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.dictionaries.engine_lines import VERSION, Suggested, Typed
from tacit.keyboard.dictionaries.entries import BEGINNING, CERTAIN, STEP, Dictionary
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary
from tacit.keyboard.dictionaries.format_403 import read_dynamic_dictionary
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.touch import LAYOUTS, KeyboardLayout, Points, TouchModel
from tacit.text.vocabulary import OOV, SPECIALS
from tacit.version import __version__

MOST = 18  # suggestions, as many as LatinIME gives
UNKNOWN = 0.01  # the probability that a word is none of the dictionary's


def read_dictionary(path: Path) -> Dictionary:
    """A file of format 202, or a folder of format 403. Raises: InputError where it is neither."""
    if path.is_dir():
        return read_dynamic_dictionary(path)
    try:
        return read_static_dictionary(read_bounded(path), str(path))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}); give a .dict file, or a folder.") from error


class DictionaryEngine:
    """Words and what follows them, and where the keys are."""

    def __init__(self, dictionary: Dictionary, layout: KeyboardLayout = LAYOUTS["qwerty"]) -> None:
        self._dictionary = dictionary
        self._entries = [entry for entry in dictionary.entries if entry.f > 0 and not entry.not_a_word]
        self._ids = {entry.word: id for id, entry in enumerate(self._entries, SPECIALS)}
        self._known = {entry.word for entry in dictionary.entries}
        own = np.full(SPECIALS + len(self._entries), -np.inf)
        own[SPECIALS:] = [(entry.f - CERTAIN) * STEP for entry in self._entries]
        own[OOV] = math.log(UNKNOWN)
        self._own: NDArray[np.float64] = own  # ln p of each word, whatever stands before
        self.show_keys(layout)

    def show_keys(self, layout: KeyboardLayout) -> None:
        """Other keys."""
        self._decoder: Decoder | None = None
        self._touch = TouchModel(layout=layout)

    def next_words(self, before: Sequence[str]) -> tuple[Suggested, ...]:
        """What is listed behind the last word, and behind the last two, which counts where both are."""
        found = self._listed(before)
        best = sorted(
            ((f, word) for word, f in found.items() if word in self._ids), key=lambda each: (-each[0], each[1])
        )
        return tuple(Suggested(word, f) for f, word in best[:MOST])

    @property
    def decoder(self) -> Decoder:
        """For these keys; made, and where need be compiled, when it is asked for first."""
        if self._decoder is None:
            lexicon = Lexicon.from_words([entry.word for entry in self._entries], self._touch.layout)
            self._decoder = Decoder(lexicon, self._touch)
            self._decoder.prepare()
        return self._decoder

    def of_touches(self, touches: Points, before: Sequence[str]) -> Typed:
        """What tacit's decoder makes of them. Raises: InputError where they are too many."""
        logs = self._own.copy()
        for word, f in self._listed(before).items():
            if word in self._ids:
                logs[self._ids[word]] = (f - CERTAIN) * STEP
        context, taps = self.decoder.context(logs), self.decoder.taps(touches)
        correction = at_space(self.decoder, taps, context)
        found = self.decoder.completions(taps, context, MOST)
        return Typed(correction.text, tuple(Suggested(each.word, each.score) for each in found))

    def of_letters(self, letters: str, before: Sequence[str]) -> Typed:
        """What it makes of touches in the middle of these keys. Raises: InputError for signs without a key."""
        form = self._touch.layout.typed_form(letters)
        if form is None:
            raise InputError(f"{letters!r} has signs without a key")
        return self.of_touches(self._touch.layout.centres[self._touch.layout.key_ids(form)], before)

    def _listed(self, before: Sequence[str]) -> dict[str, float]:
        words = [word if word in self._known else word.lower() for word in before[-2:]]
        words = [BEGINNING] * (len(before) < 2) + words
        found: dict[str, float] = {}
        for context in (tuple(words[-1:]), tuple(words[-2:])):
            found |= dict(self._dictionary.followers.get(context, ()))
        return found


def layout_of(height: float, keys: Sequence[tuple[str, float, float]]) -> KeyboardLayout:
    """A layout whose keys have these middles, in key widths, row by row. Raises: InputError where they are no rows."""
    rows = [list(row) for _, row in groupby(keys, key=lambda key: key[2])]
    letters = tuple("".join(key for key, _, _ in row) for row in rows)
    layout = KeyboardLayout("of the engine", letters, tuple(row[0][1] - 0.5 for row in rows), height)
    middles = np.array([[x, y] for _, x, y in keys])
    if len(layout.keys) != len(keys) or not np.allclose(layout.centres, middles, atol=1e-3):
        raise InputError("the keys do not stand in rows, each one wide")
    return layout


class _Conversation:
    """Answers lines."""

    def __init__(self) -> None:
        self._engine: DictionaryEngine | None = None
        self._layout = LAYOUTS["qwerty"]

    def answer(self, line: str) -> str:
        """To one line; a refusal where it says something else than the protocol has."""
        kind, *fields = line.split("\t")
        try:
            return "\t".join(self._answer(kind, fields))
        except (InputError, ValueError, IndexError) as error:
            return f"no\t{' '.join(str(error).split())}"

    def _answer(self, kind: str, fields: list[str]) -> list[str]:
        if kind == "hello":
            return ["hello", VERSION, f"tacit {__version__}"]
        if kind == "dictionary":
            self._engine = DictionaryEngine(read_dictionary(Path(fields[0])), self._layout)
            return ["ok"]
        if kind == "keys":
            keys = [(key[0], *map(float, key[2:].split())) for key in fields[1:]]
            self._layout = layout_of(float(fields[0]), keys)  # type: ignore[arg-type]  # two numbers each
            if self._engine:
                self._engine.show_keys(self._layout)
                assert self._engine.decoder  # now, while there is time
            return ["ok"]
        if self._engine is None:
            raise InputError("no dictionary was named")
        if kind == "next":
            return ["words", *_said(self._engine.next_words(fields))]
        if kind == "letters":
            typed = self._engine.of_letters(fields[0], fields[1:])
        elif kind == "touches":
            points = np.array([[float(each) for each in point.split(",")] for point in fields[0].split()])
            typed = self._engine.of_touches(points, fields[1:])
        else:
            raise InputError(f"{kind!r} is no line of the protocol")
        return ["typed", typed.text, *_said(typed.suggested)]


def _said(suggested: Sequence[Suggested]) -> list[str]:
    return [field for word, score in suggested for field in (word, f"{score:.6g}")]


def speak(lines: TextIO, out: TextIO) -> None:
    """Answers every line until there are no more."""
    conversation = _Conversation()
    for line in lines:
        out.write(conversation.answer(line.rstrip("\n")) + "\n")
        out.flush()


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    speak(sys.stdin, sys.stdout)
