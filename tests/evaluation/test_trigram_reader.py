"""The trigram word by word: exactly the probabilities that it gives one by one, and a keyboard over it."""

import numpy as np
from hypothesis import given
from tests.evaluation.trigrams import Sentence, V, populations, trained
from tests.support.keyboard.tabled import words_of

from tacit.evaluation.trigram_reader import TrigramReader
from tacit.keyboard.suggest import TypingSession
from tacit.text.vocabulary import BOS, OOV, PAD, SPECIALS


@given(populations)
def test_each_word_has_the_probability_of_the_trigram(clients: list[list[Sentence]]) -> None:
    trigram = trained(clients)
    reader, everything = TrigramReader(trigram), np.arange(V)
    for u in (BOS, *range(OOV, V)):
        for v in (BOS, *range(OOV, V)):
            if v == BOS and u != BOS:
                continue
            state, _ = reader.step(reader.begin(), u)
            _, logs = reader.step(state, v)
            wanted = trigram.probability(np.full(V, u), np.full(V, v), everything)
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(logs, np.log(wanted), rtol=1e-6, atol=1e-6)
            assert logs.dtype == np.float32 and np.isneginf(logs[[PAD, BOS]]).all()
            assert abs(np.exp(logs.astype(np.float64)).sum() - 1) < 1e-5


@given(populations)
def test_a_keyboard_suggests_what_the_trigram_does(clients: list[list[Sentence]]) -> None:
    trigram, vocabulary = trained(clients), words_of(*"abcde")
    session = TypingSession(TrigramReader(trigram), vocabulary)
    before, last = BOS, BOS
    for word in ("c", "a", "c", "zz", "b"):
        session.commit(word)
        before, last = last, vocabulary.id_of(word)
        wanted = trigram.probability(np.full(V, before), np.full(V, last), np.arange(V))[SPECIALS:]
        found = session.next_words(3)
        np.testing.assert_allclose([each.probability for each in found], np.sort(wanted)[::-1][:3], rtol=1e-5)
