"""The next words for what has been typed so far: what a keyboard shows above its keys.

A `TypingSession` carries the state of the network from word to word, so that each committed word is one step and
nothing is read again. How a network steps is its `Reader`: one of its own where it has one (`HasReader`; the CIFG's is
NumPy), else `Rereader`, which asks for the scores of the whole sentence again, and is the slow twin of the others.

A sentence begins anew after each sentence end, as in training. Words that the vocabulary lacks are read as unknown.
Suggested are words of the vocabulary alone: never padding, a beginning or an end, nor an unknown word.
"""

from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, conceivable, of_type
from tacit.keyboard.metrics import SHOWN
from tacit.keyboard.vocabulary import BOS, PAD, SPECIALS, Vocabulary
from tacit.keyboard.words import LINE_END, marked, pieces

Scores = NDArray[np.float32]  # (V,) of the word that comes next; their softmax is its probability
SHORTEST, LONGEST = 8, 64  # tokens: what `Rereader` compiles for first, then for twice as many, up to these


class Suggestion(NamedTuple):
    """A word that may come next."""

    word: str
    probability: float  # by the softmax over the whole vocabulary, the special tokens included


class Reader(Protocol):
    """How a network reads a sentence, token by token: state in, state out, and nothing else is remembered."""

    def begin(self) -> Any:
        """The state before the first token."""
        ...

    def step(self, state: Any, token: int) -> tuple[Any, Scores]:
        """The state after this token and the scores of the next; the state that was given stays as it is."""
        ...


@runtime_checkable
class HasReader(Protocol):
    """A network that carries a state from word to word."""

    def reader(self, parameters: Any) -> Reader:
        """As `Rereader`, but for rounding."""
        ...


def reader_of(network: Any, parameters: Any) -> Reader:
    """How a `LanguageModel` with these parameters reads: by its own reader where it has one."""
    return network.reader(parameters) if isinstance(network, HasReader) else Rereader(network, parameters)


class TypingSession:
    """What somebody types, word by word, and what the model would suggest next."""

    def __init__(self, reader: Reader, vocabulary: Vocabulary) -> None:
        self._reader = reader
        self._vocabulary = vocabulary
        self._begin()

    def commit(self, text: str) -> None:
        """Whole words were typed, with any sentence ends between or after them; one step for each word.

        Raises: InputError where `text` is no text.
        """
        of_type("text", text, str)
        conceivable("text", text)
        for word in pieces(marked(text, lowercase=self._vocabulary.lowercase)):
            if word == LINE_END:
                self._begin()
            else:
                self._step(self._vocabulary.id_of(word))

    def next_words(self, k: int = SHOWN) -> tuple[Suggestion, ...]:
        """The k likeliest words, the likeliest first; of equally likely ones first the more frequent.

        Raises: InputError where the vocabulary has not so many words, or the model's scores are no numbers.
        """
        of_type("k", k, int)
        words = self._vocabulary.words
        if not 1 <= k <= len(words):
            raise InputError(f"k={k} suggestions cannot be shown; ask for 1 to {len(words):,}, all words there are.")
        scores = self._scores[SPECIALS:]
        if not np.isfinite(self._scores).all():
            raise InputError("the model's scores are no finite numbers, so it suggests nothing; train it again.")
        among = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        best = among[np.argsort(-scores[among], kind="stable")][:k]
        return tuple(Suggestion(words[at], float(self._probabilities[at + SPECIALS])) for at in best)

    @property
    def _probabilities(self) -> NDArray[np.float64]:
        powers = np.exp(self._scores.astype(np.float64) - float(self._scores.max()))
        return np.asarray(powers / powers.sum())

    def _begin(self) -> None:
        """Before the first word of a sentence."""
        self._state = self._reader.begin()
        self._step(BOS)

    def _step(self, token: int) -> None:
        self._state, self._scores = self._reader.step(self._state, token)


# -- for any network -----------------------------------------------------------------------------------------------


class Rereader:
    """Any network, by the scores of the whole sentence so far: its state are the tokens, and each step is longer.

    Of a sentence of more than LONGEST tokens it reads the beginning and the last ones, for a network may bear no more.
    """

    def __init__(self, network: Any, parameters: Any) -> None:
        self._network, self._parameters = network, parameters

    def begin(self) -> tuple[int, ...]:
        """See Reader."""
        return ()

    def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Scores]:
        """See Reader. Scores look back only, so that the padding behind the last token changes nothing."""
        tokens = (*state, token)
        if len(tokens) > LONGEST:
            tokens = (tokens[0], *tokens[2:])
        length = SHORTEST
        while length < len(tokens):
            length *= 2
        padded = np.full((1, length), PAD, np.int32)
        padded[0, : len(tokens)] = tokens
        scores = _scores(self._network)(self._parameters, padded)
        return tokens, np.asarray(scores[0, len(tokens) - 1])


@lru_cache(maxsize=8)
def _scores(network: Any) -> Any:
    """(parameters, tokens (1, L)) -> scores (1, L, V), compiled for each L."""
    import jax

    return jax.jit(network.logits)
