"""The next words for what has been typed so far: what a keyboard shows above its keys.

A `TypingSession` carries the state of the network from word to word, so that each committed word is one step and
nothing is read again. How a network steps is its `Reader`: one of its own where it has one (`HasReader`; recurrent
networks have one in NumPy), else `Rereader`, which asks for the scores of the whole sentence again, and is the slow
reference of the others.

What a phrase needs of the words after this one is read ahead, and a word that was read ahead is not read again when it
is committed: every step is a function of the state and the word alone, so that nothing changes by it.

A sentence begins anew after each sentence end, as in training. Words that the vocabulary lacks are read as unknown.
Suggested are words of the vocabulary, and of the user's own dictionary where one is given: never padding, a beginning
or an end, nor an unknown word.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from math import exp, inf, log
from numbers import Real
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, conceivable, of_type
from tacit.keyboard.compose import BEAMS, LONGEST_PHRASE, Composed, compose, words_brought
from tacit.keyboard.user_words import NO_WORDS, UserWords
from tacit.networks.metrics import SHOWN
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS, Vocabulary
from tacit.text.words import LINE_END

Scores = NDArray[np.float32]  # (V,) of the word that comes next; their softmax is its probability
READ_AHEAD = 32  # words from one place whose states are kept: four for each of the first letters of a word
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
    """A network that carries a state from word to word, and needs no JAX for it."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each parameter, by the names of `language_model.leaves`; they are float32."""
        ...

    def reader(self, weights: Mapping[str, NDArray[Any]]) -> Reader:
        """As `Rereader`, but for rounding. weights: NumPy arrays of these names and shapes."""
        ...


def reader_of(network: Any, parameters: Any) -> Reader:
    """How a `LanguageModel` with these parameters reads: by its own reader where it has one."""
    if not isinstance(network, HasReader):
        return Rereader(network, parameters)
    from tacit.networks.language_model import leaves

    return network.reader({name: np.asarray(leaf) for name, leaf in leaves(parameters).items()})


class _Place:
    """Where a session stands: the network's state there, and what has been asked about it so far."""

    __slots__ = ("ahead", "logs", "scores", "state")

    def __init__(self, state: Any, scores: Scores) -> None:
        self.state, self.scores = state, scores
        self.logs: Scores | None = None  # of `scores`, once they are asked for
        self.ahead: dict[int, _Place] = {}  # by token: where a session would stand after it

    def again(self) -> "_Place":
        """The same place, which remembers what is asked from now on by itself."""
        same = _Place(self.state, self.scores)
        same.logs, same.ahead = self.logs, dict(self.ahead)
        return same


class TypingSession:
    """What somebody types, word by word, and what the model would suggest next."""

    def __init__(
        self, reader: Reader, vocabulary: Vocabulary, *, user_words: Mapping[str, int] | UserWords = NO_WORDS
    ) -> None:
        """user_words: how often the user typed each word of a dictionary of their own, or shares; see `UserWords`.

        Raises: InputError where one is no word, or no count.
        """
        self._reader = reader
        self._vocabulary = vocabulary
        self._own = user_words if isinstance(user_words, UserWords) else UserWords.from_counts(user_words, vocabulary)
        self._begin()

    def commit(self, text: str) -> None:
        """Whole words were typed, with any sentence ends between or after them; one step for each word.

        Raises: InputError where `text` is no text.
        """
        of_type("text", text, str)
        conceivable("text", text)
        for word in self._vocabulary.pieces(text):
            if word == LINE_END:
                self._begin()
            else:
                self._step(self._vocabulary.id_of(word))

    def fork(self) -> "TypingSession":
        """A session that goes on from here by itself; the copy costs nothing, since no state is ever changed."""
        return copy(self)

    def after(self, word: str) -> "TypingSession":
        """The session as it would be with one more word, which is one of its own suggestions; asked again it costs
        nothing, and neither does committing that word then.
        """
        token, ahead = self._vocabulary.id_of(word), self._place.ahead
        if token not in ahead:
            if len(ahead) >= READ_AHEAD:
                ahead.clear()
            ahead[token] = _Place(*self._reader.step(self._place.state, token))
        session = copy(self)
        session._place = ahead[token]
        return session

    @property
    def log_probabilities(self) -> Scores:
        """(V,) float32: the natural logarithm of each id's probability to come next, by the softmax over all ids.

        The array is the session's own; do not write to it. Raises: InputError where the scores are no numbers.
        """
        place = self._place
        if place.logs is None:
            highest = place.scores.max()
            if not np.isfinite(highest):  # NaN where one of them is; -infinity is a probability of 0
                raise InputError("the model's scores are no finite numbers, so it suggests nothing; train it again.")
            total = float(np.exp(place.scores - highest).sum(dtype=np.float64))
            place.logs = place.scores - np.float32(highest + np.log(total))
        return place.logs

    def next_words(self, k: int = SHOWN) -> tuple[Suggestion, ...]:
        """The k likeliest words, the likeliest first; of equally likely ones first the more frequent.

        Raises: InputError where there are not so many words, or the model's scores are no numbers.
        """
        of_type("k", k, int)
        words, own = self._vocabulary.words, self._own.words
        if not 1 <= k <= len(words) + len(own):
            raise InputError(
                f"k={k} suggestions cannot be shown; ask for 1 to {len(words) + len(own):,}, all words there are."
            )
        logs = self.log_probabilities[SPECIALS:]
        if own:
            logs = np.concatenate([logs, self._own_logs])
        among = np.flatnonzero(logs >= np.partition(logs, -k)[-k])
        best = among[np.argsort(-logs[among], kind="stable")][:k]
        return tuple(
            Suggestion(words[at] if at < len(words) else own[at - len(words)], exp(logs[at])) for at in best.tolist()
        )

    def words_above(self, least: float, prefix: str = "") -> tuple[Suggestion, ...]:
        """Every word that comes next with a probability of at least `least` > 0, the likeliest first.

        Without a prefix: of those that are likelier than the sentence's end. With one, of those that begin with it, and
        the probability is given that the word begins so; an unknown word is taken to do that as often as the words of
        the vocabulary do. Raises: InputError where `least` is no probability above 0.
        """
        of_type("least", least, Real)
        if not 0 < least <= 1:
            raise InputError(f"least={least} is no probability above 0; give 0.2, say.")
        logs = self.log_probabilities
        own = list(zip(self._own.words, self._own_logs.tolist(), strict=True)) if self._own.words else []
        if not prefix:
            cut = max(log(least), float(logs[EOS]))
            ids, mass = np.flatnonzero(logs[SPECIALS:] >= cut) + SPECIALS, 1.0
        else:
            prefix = self._spelled(prefix)
            ids = self._vocabulary.ids_beginning(prefix)
            own = [(word, each) for word, each in own if word.startswith(prefix)]
            unknown = exp(logs[OOV]) * self._own.others * len(ids) / len(self._vocabulary.words)
            mass = float(np.exp(logs[ids]).sum(dtype=np.float64)) + sum(exp(each) for _, each in own) + unknown
            cut = log(least * mass) if mass else inf
            ids = ids[logs[ids] >= cut]
        found = [(word, each) for word, each in own if each >= cut]
        known = self._vocabulary.words
        found += [(known[at - SPECIALS], each) for at, each in zip(ids.tolist(), logs[ids].tolist(), strict=True)]
        found.sort(key=lambda each: (-each[1], each[0]))
        return tuple(Suggestion(word, min(exp(each) / mass, 1.0)) for word, each in found)

    def rescore(self, words: Sequence[str]) -> tuple[float, ...]:
        """The natural logarithm of each word's probability to come next, of candidates for one place, say.

        A word of the user's own has its share of the probability of unknown words (`UserWords`); what is left of that
        the different words that nobody knows share evenly, for the model cannot tell them apart.
        """
        of_type("words", words, list, tuple)
        logs, of_own = self.log_probabilities, dict(zip(self._own.words, self._own_logs.tolist(), strict=True))
        spelled = [self._spelled(word) for word in words]
        ids = [self._vocabulary.id_of(word) for word in spelled]
        strangers = {word for word, id in zip(spelled, ids, strict=True) if id == OOV and word not in of_own}
        left = self._own.others / max(len(strangers), 1)
        unknown = float(logs[OOV]) + (log(left) if left else -inf)
        return tuple(
            float(logs[id]) if id != OOV else of_own.get(word, unknown) for word, id in zip(spelled, ids, strict=True)
        )

    def compose(
        self, prefix: str = "", *, threshold: float, longest: int = LONGEST_PHRASE, beams: int = BEAMS
    ) -> Composed | None:
        """The words that the sentence goes on with, where they are likely enough; see `compose.compose`."""
        return compose(self, prefix, threshold=threshold, longest=longest, beams=beams)

    def words_brought(self, prefix: str, wanted: Sequence[str | None], *, threshold: float) -> int | None:
        """How many of the words that somebody wants a phrase would write; see `compose.words_brought`."""
        return words_brought(self, prefix, wanted, threshold=threshold)

    @property
    def with_own_words(self) -> Scores:
        """(V + own,) float32: as `log_probabilities`, and behind them the user's own words, which OOV then lacks.

        What a decoder takes whose lexicon has `UserWords.words`, too (`Lexicon.with_words`). Do not write to it.
        Raises: as `log_probabilities`.
        """
        if not self._own.words:
            return self.log_probabilities
        logs = np.concatenate([self.log_probabilities, self._own_logs.astype(np.float32)])
        logs[OOV] += log(self._own.others) if self._own.others else -inf
        return logs

    @property
    def _own_logs(self) -> NDArray[np.float64]:
        """Of the user's own words, (words,)."""
        return np.float64(self.log_probabilities[OOV]) + self._own.log_shares

    def _spelled(self, word: str) -> str:
        """As the vocabulary writes a word."""
        of_type("word", word, str)
        return self._vocabulary.spelled(word)

    def _begin(self) -> None:
        """Before the first word of a sentence."""
        self._place = _Place(*self._reader.step(self._reader.begin(), BOS))

    def _step(self, token: int) -> None:
        """One token further; a step that was taken ahead is not taken again."""
        known = self._place.ahead.get(token)
        self._place = known.again() if known else _Place(*self._reader.step(self._place.state, token))


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
