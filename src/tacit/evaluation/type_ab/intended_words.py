"""What somebody means to write between two spaces, and what their fingers do about it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.type_ab.typist import Typist
from tacit.keyboard.correction import Correction
from tacit.keyboard.touch import Keys, Points


class IntendedWords(NamedTuple):
    """What is typed between two spaces: one word, or several whose spaces were forgotten."""

    words: tuple[str, ...]
    forms: tuple[str, ...]  # what should be pressed for each
    beliefs: tuple[str, ...]  # what the typist presses for each, but for lapses and slips
    points: Points  # (m, 2)
    looks: tuple[bool, ...]  # (m,) at the strip, after each tap
    slots: tuple[float, ...]  # of the first word

    def then(self, other: "IntendedWords") -> "IntendedWords":
        """Both, with the space between them forgotten."""
        words, forms, beliefs = self.words + other.words, self.forms + other.forms, self.beliefs + other.beliefs
        points = np.concatenate([self.points, other.points])
        return IntendedWords(words, forms, beliefs, points, self.looks + other.looks, self.slots)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def belief(self) -> str:
        """What the typist takes for right: the text, but for what they cannot spell."""
        each = zip(self.words, self.forms, self.beliefs, strict=True)
        return " ".join(word if belief == form else belief for word, form, belief in each)

    def standing(self, correction: Correction) -> str:
        """What the space left in the text: the very text that is meant, where that is so but for case and signs."""
        same = correction.text.lower() == self.text.lower()
        return self.text if same or (correction.kept and (correction.letters,) == self.forms) else correction.text

    def offered(self, correction: Correction) -> bool:
        """Whether the strip holds the word that is meant: among the candidates, or as the letters that were hit."""
        shown = {each.word.lower() for each in correction.candidates}
        return self.text.lower() in shown or (not correction.kept and (correction.letters,) == self.forms)


def with_lapses(keys: Keys, chances: NDArray[np.float64], person: Typist) -> Keys:
    """The keys (n,) without the forgotten ones and with the doubled ones twice; at least the first. chances: (n,)."""
    often = np.where(chances < person.forgotten_letter, 0, 1)
    often[chances >= 1 - person.doubled_letter] = 2
    if not often.any():
        often[0] = 1
    return np.repeat(keys, often)
