"""Text in scripts that write no blank between words, which is refused: nothing here says where its words end."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from tacit.errors import SourceError
from tacit.text.character_sets import LAST, one_of, ranges_of, run
from tacit.text.unicode_tables import SCRIPTS, UNSPACED, WORD_BREAK

MOST = 0.2  # of what is written: a language that is quoted stays below, one that is written is far above
# Letters (no marks) in a row, on average: of words that somebody put blanks between there are fewer, of sentences more.
CUT = {"Han": 3.0, "Hiragana": 3.0, "Katakana": 6.0, "Myanmar": 3.5, "Khmer": 7.0}
CUT_OTHERWISE = 6.0


class UncutScripts:
    """Counts, over all text of a source, how much of it is in rows of letters that no blank cuts into words."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._characters = self._rows = 0
        self._letters: Counter[str] = Counter()  # of each script

    def check(self, texts: Iterable[str]) -> None:
        """Count more text. Raises: SourceError once too much of all that was counted is such."""
        for text in texts:
            self._add(text)
        self._refuse()

    def checked(self, texts: Iterable[str]) -> Iterator[str]:
        """The same texts. Raises: SourceError at their end, where too much of them is such."""
        for text in texts:
            self._add(text)
            yield text
        self._refuse()

    def _add(self, text: str) -> None:
        self._characters += len(text)
        for row in () if text.isascii() else _row().findall(text):
            self._rows += 1
            self._letters[script_of(row[0])] += sum(map(str.isalpha, row))

    def _refuse(self) -> None:
        if not self._rows:
            return
        script, letters = self._letters.most_common(1)[0][0], self._letters.total()
        if letters / self._characters > MOST and letters / self._rows > CUT.get(script, CUT_OTHERWISE):
            raise SourceError(
                f"{letters / self._characters:.0%} of what '{self._description}' has is in scripts without blanks "
                f"between words, most of it {script}, and tacit does not know where such words end. Put a blank or "
                "U+200B between them first, as a segmenter of the language does, on the devices, too."
            )


def script_of(letter: str) -> str:
    """Which of the scripts without blanks a letter is in."""
    place = ord(letter)
    found = next(name for name, at in _scripts() if any(first <= place <= last for first, last in at))
    return UNSPACED[ord(found) - ord("a")]


@cache
def _scripts() -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    return [(name, ranges) for name, ranges in ranges_of(SCRIPTS).items() if name != "x"]


@cache
def _row() -> re.Pattern[str]:
    letters = [each for _, ranges in _scripts() for each in ranges]
    return re.compile(one_of(letters) + run(WORD_BREAK, "OKEF", LAST))
