"""A typing session that learns: the user's own words and pairs beside the model, where they helped before.

A sentence is learnt when it has ended (`own_text`). Until more words were right with the caches alone than without them
alone, what is shown is the model's to the bit. Nothing is written anywhere: what was learnt goes with the session.
"""

from collections.abc import Mapping

import numpy as np

from tacit.keyboard.own_text import OwnText, Predicted
from tacit.keyboard.suggest import Reader, Scores, TypingSession
from tacit.keyboard.user_cache import ALONE
from tacit.keyboard.user_words import NO_WORDS, UserWords
from tacit.text.vocabulary import BOS, SPECIALS, Vocabulary
from tacit.text.words import LINE_END


class LearningSession(TypingSession):
    """See TypingSession; a fork learns by itself from there on."""

    def __init__(
        self, reader: Reader, vocabulary: Vocabulary, *, user_words: Mapping[str, int] | UserWords = NO_WORDS
    ) -> None:
        """See TypingSession."""
        self._learnt = OwnText.none(vocabulary.size)
        self._sentence: tuple[int, ...] = ()
        self._predicted: tuple[Predicted, ...] = ()
        super().__init__(reader, vocabulary, user_words=user_words)

    @property
    def own_text(self) -> OwnText:
        """What was learnt so far."""
        return self._learnt

    def end(self) -> None:
        """The sentence has ended, if one has begun."""
        if self._sentence:
            self.commit(LINE_END)

    def after(self, word: str) -> "LearningSession":
        """See TypingSession."""
        session = super().after(word)
        assert isinstance(session, LearningSession)  # a copy of this one
        session._sentence = (*self._sentence, self._vocabulary.id_of(word))
        return session

    @property
    def log_probabilities(self) -> Scores:
        """See TypingSession: of the model, with the user's caches where they helped."""
        place = self._place
        if place.logs is None:
            alone = super().log_probabilities
            place.logs = self._mixed(alone) if self._learnt.helped else alone
        return place.logs

    def _mixed(self, alone: Scores) -> Scores:
        """(V,) logarithms of the model's probabilities mixed with the caches; as they are where the caches weigh
        nothing.
        """
        if self._learnt.mix == ALONE:
            return alone
        with np.errstate(divide="ignore"):
            return np.log(self._learnt.mixed(np.exp(alone), self._before, self._learnt.mix))

    @property
    def _before(self) -> int:
        """The token that the next word follows."""
        return self._sentence[-1] if self._sentence else BOS

    def _begin(self) -> None:
        if self._sentence:
            self._learnt = self._learnt.learnt(self._sentence, self._predicted)
        self._sentence, self._predicted = (), ()
        super()._begin()

    def _step(self, token: int) -> None:
        if token >= SPECIALS:
            self._predicted = (*self._predicted, self._judged(token))
        self._sentence = (*self._sentence, token)
        super()._step(token)

    def _judged(self, token: int) -> Predicted:
        """How a word was predicted that is typed now, by the model alone and with the caches, shown or not."""
        scores = self._place.scores
        logs = scores - scores.max()
        logs -= np.float32(np.log(np.exp(logs).sum(dtype=np.float64)))
        first, first_mixed = (int(np.argmax(each[SPECIALS:])) + SPECIALS for each in (logs, self._mixed(logs)))
        shares = float(np.exp(logs[token])), *self._learnt.shares(self._before, token)
        return Predicted(shares, gained=(first_mixed == token) - (first == token))
