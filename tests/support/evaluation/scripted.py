"""A tiny keyboard whose model says what a test tells it to."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tacit.evaluation.type_ab.replay import Keyboard
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Scores
from tacit.keyboard.touch import LAYOUTS, TouchModel
from tacit.text.vocabulary import SPECIALS, Provenance, Vocabulary

WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "went", "home", "well", "we'll", "because")
QWERTY = LAYOUTS["qwerty"]


class Scripted:
    """See `suggest.Reader`. After a word the likely ones are those of the script; all others share what is left."""

    def __init__(self, vocabulary: Vocabulary, script: Mapping[str, Mapping[str, float]]) -> None:
        self.vocabulary = vocabulary
        self.script = {vocabulary.id_of(word) if word else 1: row for word, row in script.items()}

    def begin(self) -> int:
        """The last token is all that is remembered."""
        return 0

    def step(self, state: int, token: int) -> tuple[int, Scores]:
        """ln of probabilities; "" in the script is a sentence's beginning."""
        row = self.script.get(token, {})
        rest = (1 - sum(row.values())) / (self.vocabulary.size - 2 - len(row))
        scores = np.full(self.vocabulary.size, np.log(rest), np.float32)
        scores[:2] = -np.inf
        for word, probability in row.items():
            scores[self.vocabulary.id_of(word)] = np.log(probability)
        return token, scores


def keyboard(
    script: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    *,
    words: Sequence[str] = WORDS,
    touch: TouchModel | None = None,
    compose: float | None = None,
    search: Mapping[str, Mapping[str, float]] | None = None,
    shown: int = 3,
) -> Keyboard:
    """With a model, or two, that follow scripts: {previous word: {next word: probability}}."""
    vocabulary = Vocabulary(words=tuple(words), provenance=Provenance(kind="word list", description="tiny"))
    model = PhoneModel(name="scripted", reader=Scripted(vocabulary, script), vocabulary=vocabulary, digest="")
    return Keyboard(
        model=model,
        decoder=Decoder(Lexicon.from_words(vocabulary.words, QWERTY, first_id=SPECIALS), touch or TouchModel()),
        search=None if search is None else Scripted(vocabulary, search),
        compose=compose,
        shown=shown,
    )
