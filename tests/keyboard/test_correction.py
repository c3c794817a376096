"""What the space bar writes, against the formula written out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.support.evaluation.scripted import QWERTY, keyboard

from tacit.keyboard.correction import at_space, worth_showing
from tacit.text.vocabulary import OOV

BOARD = keyboard({"a": {"dog": 0.5}})
TOUCH = BOARD.decoder.touch


def taps_of(letters: str) -> np.ndarray:
    return TOUCH.means[QWERTY.key_ids(letters)]


def test_a_new_word_stays_and_a_slip_in_a_known_one_goes() -> None:
    logs = BOARD.model.typing().log_probabilities
    new = at_space(BOARD.decoder, taps_of("zebra"), logs)
    assert (new.text, new.kept) == ("zebra", True)
    slip = at_space(BOARD.decoder, taps_of("hone"), logs)
    assert (slip.text, slip.letters, slip.kept) == ("home", "hone", False)
    assert slip.candidates[0].word == "home"


@given(some.lists(some.tuples(some.floats(0, 10), some.floats(0, 4)), min_size=1, max_size=6), some.booleans())
def test_letters_stay_where_they_are_likelier_as_a_new_word(taps: list[tuple[float, float]], rescored: bool) -> None:
    points, session = np.array(taps), BOARD.model.typing()
    session.commit("a")
    rescorer = BOARD.model.typing() if rescored else None
    found = at_space(BOARD.decoder, points, session.log_probabilities, rescorer=rescorer)
    letters = [QWERTY.keys[key] for key in QWERTY.nearest(points)]
    spatial = sum(
        float(TOUCH.log_densities(point[None])[0, QWERTY.keys.index(letter)]) + TOUCH.moves.tapped
        for point, letter in zip(points, letters, strict=True)
    )
    unknown = float((rescorer or session).log_probabilities[OOV])
    alone = spatial + BOARD.decoder.language_weight * (unknown - (len(letters) + 1) * math.log(27))
    assert found.letters == "".join(letters)
    best = max((each.score for each in found.candidates), default=-math.inf)
    if best != pytest.approx(alone, abs=1e-3):
        assert found.kept == (alone > best)
    assert found.text == (found.letters if found.kept else found.candidates[0].word)


@given(some.lists(some.tuples(some.floats(0, 10), some.floats(0, 4)), min_size=1, max_size=5), some.integers(1, 3))
def test_shown_is_what_begins_as_typed_or_is_likelier_than_a_new_word(taps: list[tuple[float, float]], k: int) -> None:
    """Of all words of the lexicon, taken one by one."""
    points, session = np.array(taps), BOARD.model.typing()
    logs = session.log_probabilities
    found, letters = worth_showing(BOARD.decoder, points, logs, k), BOARD.decoder.literal(points)
    kept = at_space(BOARD.decoder, points, logs)
    spatial = TOUCH.log_densities(points)[range(len(letters)), QWERTY.key_ids(letters)].sum()
    new = spatial + len(letters) * TOUCH.moves.tapped + logs[OOV] - (len(letters) + 1) * math.log(27)
    everything = BOARD.decoder.completions(points, logs, len(BOARD.decoder.lexicon.words))
    fit = [each for each in everything if each.word.startswith(letters) or each.score >= new]
    assert [each.word for each in found] == [each.word for each in fit[:k]]
    assert kept.kept or found, "what the blank would write is likelier than the letters"


def test_letters_that_begin_no_word_show_nothing() -> None:
    logs = BOARD.model.typing().log_probabilities
    assert worth_showing(BOARD.decoder, taps_of("qx"), logs) == ()
    assert BOARD.decoder.completions(taps_of("qx"), logs), "and not because nothing is in reach"
    assert worth_showing(BOARD.decoder, taps_of("hon"), logs)[0].word == "home"
