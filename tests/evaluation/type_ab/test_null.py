"""A keyboard against itself, as the benchmark typing_ab.py asks it 200 times; and what a model foresees of a text."""

import math

import numpy as np
import pytest
from benchmarks.keyboard.typing_ab import coverage, foreseen, nothing_changes
from tests.support.evaluation.scripted import WORDS, keyboard

from tacit.data.typed_sentences import TypingUser
from tacit.evaluation.type_ab.launch_rule import decide, gains_of
from tacit.evaluation.type_ab.typist import POPULATION
from tacit.keyboard.phone_model import PhoneModel
from tacit.text.vocabulary import Provenance, Vocabulary


@pytest.mark.parametrize(
    ("users", "tests"), [(12, 12), pytest.param(30, 200, marks=pytest.mark.nightly)], ids=["small", "large"]
)
def test_intervals_of_no_change_cover_zero(users: int, tests: int) -> None:
    """The share that they cover is within what chance allows of 95%, less a point for few users."""
    typing = [TypingUser(n, f"user {n}", (WORDS[n % 5 :],)) for n in range(users)]
    found = list(nothing_changes(keyboard(), POPULATION, typing, tests))
    shares = coverage(found)
    assert {"words a minute", "words modified ratio", "uncorrected characters"} <= set(shares)
    assert "compose picked rate" not in shares, "no phrase was offered"
    least = 0.94 - 3 * (0.94 * 0.06 / tests) ** 0.5
    assert all(share >= least for share in shares.values()), shares
    assert tests < 200 or shares["words a minute"] < 1, "an interval that always covers is too wide"
    judgements = [decide(gains_of(changes)).judgement for changes in found]
    assert judgements.count("neutral") >= least * tests


class Unigram:
    """Two special ids of no chance, two of a tenth, then the words."""

    def begin(self) -> None:
        return None

    def step(self, state: None, token: int) -> tuple[None, np.ndarray]:
        return None, np.log(np.array([1e-12, 1e-12, 0.1, 0.1, 0.1, 0.4, 0.2, 0.1], np.float32))


def test_what_is_foreseen_of_known_words_only() -> None:
    words = Vocabulary(words=("mat", "the", "cat", "sat"), provenance=Provenance(kind="public", description="a rhyme"))
    model = PhoneModel(name="unigram", reader=Unigram(), vocabulary=words, digest="")
    found = list(foreseen(model, [TypingUser(0, "ann", (("the", "cat", "zebra"), (None, "sat")))]))
    nats, likelier = np.array(found).T
    np.testing.assert_allclose(nats, [-math.log(0.4), -math.log(0.2), math.nan, math.nan, -math.log(0.1)], rtol=1e-6)
    np.testing.assert_array_equal(likelier, [0, 1, math.nan, math.nan, 2])
