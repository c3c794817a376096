"""A simulated typist at a keyboard engine that speaks lines, and questions about next words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.type_ab.measures import Measure
from tacit.evaluation.type_ab.replay import Hands, Keyboard
from tacit.evaluation.type_ab.typist import Typist
from tacit.keyboard.correction import CANDIDATES, Correction
from tacit.keyboard.decoder import Decoder, Taps, WordCandidate
from tacit.keyboard.dictionaries.engine_lines import Engine
from tacit.networks.metrics import SHOWN


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineKeyboard:
    """An engine with its dictionary and keys, in the place of the model and decoder of another keyboard.

    beside: says where the keys are, and how many words the strip shows.
    """

    engine: Engine
    beside: Keyboard

    @property
    def decoder(self) -> Decoder:
        """Only says which letters were hit."""
        return self.beside.decoder

    def hands(self, person: Typist, key: NDArray[np.uint64]) -> Hands:
        """See `Keyboard`."""
        return _EngineHands(self.engine, self.beside, person, key)


class _EngineHands(Hands):
    """What the keyboard does, the engine does; the person is the same."""

    def __init__(self, engine: Engine, beside: Keyboard, person: Typist, key: NDArray[np.uint64]) -> None:
        super().__init__(beside, person, key)
        self._engine = engine

    def _begin(self) -> None:
        self._before: list[str] = []

    def _commit(self, text: str) -> None:
        self._before += text.split()

    def _next_words(self) -> Sequence[str]:
        return [each.word for each in self._engine.next_words(self._before)[: self.keyboard.shown]]

    def _completions(self, taps: Taps) -> Sequence[str]:
        typed = self._engine.of_touches(taps.points, self._before)
        return [each.word for each in typed.suggested[: self.keyboard.shown]]

    def _corrected(self, taps: Taps) -> Correction:
        typed = self._engine.of_touches(taps.points, self._before)
        candidates = tuple(
            WordCandidate(word, -1, 0.0, 0.0, score) for word, score in typed.suggested[:CANDIDATES]
        )  # of an engine only its own score is known
        return Correction(typed.text, taps.letters, typed.text == taps.letters, candidates)


# -- next-word questions -------------------------------------------------------------------------------------------


class Answered(NamedTuple):
    """Sums over one user's places: each word that is spelled, behind the true words of its sentence."""

    places: float = 0
    first: float = 0  # the first word shown is the one that comes
    shown: float = 0  # one of SHOWN is
    nothing: float = 0  # no word is shown


QUESTIONS: Mapping[str, Measure] = MappingProxyType(
    {
        "top-1": Measure("first", "places", "more", "places whose next word is the first one shown", "the usual one"),
        f"top-{SHOWN}": Measure("shown", "places", "more", f"places whose next word is among {SHOWN}", "the usual one"),
        "nothing shown": Measure("nothing", "places", "less", "places where no word is shown", "the usual one"),
    }
)


def answered(
    next_words: Callable[[Sequence[str]], Sequence[str]], sentences: Iterable[Sequence[str | None]], unspelled: str
) -> Answered:
    """What is shown at each place, best first, held against the word that comes there, without regard to case.

    unspelled: stands among the words before for one that the text does not spell.
    """
    places = first = shown = nothing = 0
    for sentence in sentences:
        before: list[str] = []
        for word in sentence:
            if word is not None:
                found = [each.lower() for each in next_words(before)[:SHOWN]]
                places += 1
                first += found[:1] == [word.lower()]
                shown += word.lower() in found
                nothing += not found
            before.append(unspelled if word is None else word)
    return Answered(places, first, shown, nothing)
