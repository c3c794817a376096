"""The simulated typist: texts whose key presses and seconds are counted by hand, and what must hold for any text."""

from dataclasses import replace

import pytest
from tests.evaluation.scripted import WORDS, keyboard

from tacit.errors import InputError
from tacit.evaluation.typing import Tally, type_sentences
from tacit.evaluation.typing_measures import MEASURES, total
from tacit.evaluation.typist import POPULATION, Typist, flawless
from tacit.keyboard.touch import LAYOUTS, TouchModel

TEXT = [["the", "cat", "sat"], ["a", "dog", "went", "home"]]
CALM = flawless(TouchModel(), interval=0.25)


def typed(board=None, typist: Typist = CALM, text=TEXT, *, seed: int = 1, user: str = "ann") -> Tally:
    return type_sentences(board or keyboard(), typist, text, seed=seed, user=user)


def test_without_errors_and_looks_every_letter_and_space_is_pressed_once() -> None:
    found = typed()
    presses = 4 + 4 + 4 + 2 + 4 + 5 + 5  # "the " "cat " "sat " "a " "dog " "went " "home "
    assert (found.words, found.sentences, found.keystrokes, found.needed) == (7, 2, presses, presses)
    assert found.seconds == presses * 0.25
    assert found.characters == presses
    assert found.saved == found.modified == found.wrong_characters == found.corrected == found.looks == 0


def test_the_same_arguments_give_the_same_tally_and_another_seed_or_user_another() -> None:
    text = [list(WORDS)] * 5
    assert typed(typist=POPULATION, text=text) == typed(typist=POPULATION, text=text)
    assert typed(typist=POPULATION, text=text) != typed(typist=POPULATION, text=text, seed=2)
    assert typed(typist=POPULATION, text=text) != typed(typist=POPULATION, text=text, user="bob")


def test_users_add_up() -> None:
    one, other = typed(), typed(user="bob", text=TEXT[:1])
    assert total([one, other]).words == one.words + other.words == 10
    assert total([]) == Tally()
    assert MEASURES["words a minute"].of(one) == pytest.approx(60 * 7 / (28 * 0.25))


def test_a_typist_of_another_layout_is_refused() -> None:
    spanish = replace(CALM, touch=replace(CALM.touch, layout=LAYOUTS["qwerty-es"]))
    with pytest.raises(InputError, match="'qwerty-es' and the keyboard has 'qwerty'"):
        typed(typist=spanish)
