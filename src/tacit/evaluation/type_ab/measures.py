"""What is counted while somebody types, and the measures that are made of it.

Every count is a sum over words, so that users add up; every measure is one sum over another. The first five measures
and the words a minute are those of the papers' launches (arXiv:2305.18465, section 3, "A/B test metrics").
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple


class Tally(NamedTuple):
    """Sums over one user, or several."""

    sentences: float = 0
    words: float = 0  # meant and written, however they stand in the end
    untypable: float = 0  # neither typed nor counted anywhere else
    characters: float = 0  # of the words as meant, one blank after each
    needed: float = 0  # key presses without any help or error: the letters and a space for each word
    keystrokes: float = 0  # key presses made: letters, spaces, backspaces, picks, and taps to place the caret
    saved: float = 0  # needed - keystrokes
    seconds: float = 0
    strips: float = 0  # strips of next words that were shown, one before each word that is begun
    accurate: float = 0  # of them hold the word that stands there in the end
    picked: float = 0  # of them are picked from
    completed: float = 0  # words picked from the strip while they were typed
    looks: float = 0  # at the strip, at inline phrases, and at what is wrong
    triggered: float = 0  # words at which an inline phrase appears
    composed: float = 0  # phrases taken
    composed_words: float = 0  # words in them
    corrected: float = 0  # words where the space wrote something else than the letters that were hit
    modified: float = 0  # words changed by hand, before the space or after it
    wrong_words: float = 0  # words that stand wrong in the end
    wrong_characters: float = 0  # insertions, deletions and substitutions that would mend them


def total(tallies: Iterable[Tally]) -> Tally:
    """The sums over all of them; zeros over none."""
    rows = list(tallies)
    return Tally(*map(sum, zip(*rows, strict=True))) if rows else Tally()


class Measure(NamedTuple):
    """scale * numerator / denominator, both fields of `Tally`."""

    numerator: str
    denominator: str
    better: Literal["more", "less"]
    definition: str
    source: str
    scale: float = 1.0
    unit: Literal["%", ""] = "%"

    def of(self, tally: Tally) -> float:
        """The measure; nan where its denominator is 0."""
        below = getattr(tally, self.denominator)
        return float(self.scale * getattr(tally, self.numerator) / below) if below else float("nan")


LAUNCHES = "arXiv:2305.18465, section 3"
PALIN = "Palin et al., MobileHCI 2019"

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "picked rate": Measure(
            "picked", "strips", "more", "strips of next words that a word is picked from, of those shown", LAUNCHES
        ),
        "accuracy": Measure(
            "accurate", "strips", "more", "strips of next words that hold the word finally written", LAUNCHES
        ),
        "compose trigger rate": Measure(
            "triggered", "words", "more", "words at which an inline phrase appears, of all written", LAUNCHES
        ),
        "compose picked rate": Measure(
            "composed", "triggered", "more", "inline phrases that are taken, of those that appear", LAUNCHES
        ),
        "words modified ratio": Measure(
            "modified", "words", "less", "words modified during typing or after they were committed", LAUNCHES
        ),
        "words a minute": Measure("words", "seconds", "more", "words written in a minute", LAUNCHES, 60.0, ""),
        "keystrokes saved": Measure(
            "saved", "needed", "more", "key presses spared, of those needed without help or error", "the usual one"
        ),
        "keystrokes a character": Measure(
            "keystrokes", "characters", "less", "key presses for a character", "MacKenzie, Mobile HCI 2002", 1.0, ""
        ),
        "uncorrected characters": Measure(
            "wrong_characters", "characters", "less", "characters that stand wrong in the end (edit distance)", PALIN
        ),
    }
)
