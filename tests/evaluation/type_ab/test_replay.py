"""The simulated typist: texts whose key presses and seconds are counted by hand, and what must hold for any text."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.support.evaluation.scripted import WORDS, keyboard

from tacit.errors import InputError
from tacit.evaluation.type_ab.intended_words import with_lapses
from tacit.evaluation.type_ab.measures import MEASURES, total
from tacit.evaluation.type_ab.paired_bootstrap import changes_of
from tacit.evaluation.type_ab.replay import Tally, distance, type_sentences
from tacit.evaluation.type_ab.typist import POPULATION, Typist, flawless
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.touch import LAYOUTS, Points, TouchModel
from tacit.keyboard.user_words import NO_WORDS, UserWords

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


# -- looks, picks and phrases, counted by hand ---------------------------------------------------------------------

SCRIPT = {"": {"the": 0.9}, "the": {"cat": 0.9}, "cat": {"sat": 0.9}}


def test_what_the_strip_shows_is_picked_and_a_look_in_vain_costs_its_time() -> None:
    looks = replace(CALM, look_before=1.0)
    found = typed(keyboard(SCRIPT), looks, [["the", "cat", "home"]])
    assert (found.strips, found.accurate, found.picked, found.looks) == (3, 2, 2, 3)
    assert found.keystrokes == 1 + 1 + 5
    assert found.seconds == pytest.approx(7 * 0.25 + 3 * looks.look)
    assert found.saved == 8 - 2


def test_a_word_is_picked_while_it_is_typed() -> None:
    found = typed(typist=replace(CALM, look_while=1.0), text=[["because"]])
    assert (found.keystrokes, found.completed, found.picked, found.looks) == (1 + 1, 1, 0, 1)  # after its b


def test_a_phrase_appears_once_a_word_and_is_taken_where_it_is_read_and_right() -> None:
    board, reads = keyboard(SCRIPT, compose=0.5), replace(CALM, read_composed=1.0)
    taken = typed(board, reads, [["the", "cat", "sat"]])
    assert (taken.triggered, taken.composed, taken.composed_words, taken.words) == (1, 1, 3, 3)
    assert (taken.keystrokes, taken.looks, taken.strips) == (1, 1, 1)
    wrong = typed(board, reads, [["the", "dog"]])
    assert (wrong.triggered, wrong.composed, wrong.looks, wrong.keystrokes) == (2, 0, 2, 8)  # none again at "d"
    late = typed(keyboard(compose=0.5), reads, [["home", "because"]])
    assert (late.triggered, late.composed, late.keystrokes) == (2, 2, 2 + 2)  # each after its first letter
    unread = typed(board, CALM, [["the", "cat", "sat"]])
    assert (unread.triggered, unread.composed, unread.keystrokes) == (3, 0, 12)


# -- errors and repairs, counted by hand -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Slipping(TouchModel):
    """Hits the middle of keys, but of other words."""

    slips: tuple[tuple[str, str], ...] = ()
    met: dict[str, list[Points]] = field(default_factory=dict, hash=False, compare=False)

    def taps(self, keys: Any, random: np.random.Generator) -> Points:
        meant = "".join(self.layout.keys[key] for key in keys)
        points = self.means[self.layout.key_ids(dict(self.slips).get(meant, meant))]
        noise = random.standard_normal(points.shape)
        self.met.setdefault(meant, []).append(noise)
        return points + 1e-3 * noise


def slipping(**slips: str) -> Slipping:
    return Slipping(**{**vars_of(CALM.touch), "slips": tuple(slips.items())})


def vars_of(touch: TouchModel) -> dict[str, Any]:
    return {each.name: getattr(touch, each.name) for each in fields(touch)}


def test_the_keyboard_corrects_a_slip() -> None:
    found = typed(keyboard({"the": {"cat": 0.5}}), replace(CALM, touch=slipping(cat="cst")), [["the", "cat"]])
    assert (found.corrected, found.wrong_words, found.modified, found.keystrokes) == (1, 0, 0, 8)


DIG = [["a", "dig", "home"]]  # "dig" is no word here, and i is beside o
DOG = {"a": {"dog": 0.9}, "dog": {"home": 0.9}}


def test_a_wrong_correction_that_nobody_sees_stands_and_is_the_context_of_what_follows() -> None:
    found = typed(keyboard(DOG), replace(CALM, notice=0.0, reread=0.0, look_before=1.0), DIG)
    assert (found.corrected, found.modified, found.wrong_words, found.wrong_characters) == (1, 0, 1, 1)
    assert (found.picked, found.keystrokes) == (1, 2 + 4 + 1)  # "home", which is likely after "dog" alone


@pytest.mark.parametrize("at_once", [True, False])
def test_a_wrong_correction_is_undone_by_a_backspace_and_a_pick(at_once: bool) -> None:
    sees = replace(CALM, notice=float(at_once), reread=1.0)
    found = typed(keyboard(DOG), sees, DIG)
    assert (found.modified, found.wrong_words, found.looks) == (1, 0, 1)
    assert found.keystrokes == 2 + 4 + 5 + 2
    assert found.seconds == pytest.approx(13 * 0.25 + sees.look + (0 if at_once else sees.reach))


def test_what_is_not_shown_is_typed_again_from_the_first_wrong_letter() -> None:
    board = keyboard({"a": {"dog": 0.9}})
    slips = replace(CALM, touch=slipping(dig="dug"), notice=1.0)  # u, i and o lie side by side; dog is written
    found = typed(board, slips, [["a", "dig"]])
    assert (found.corrected, found.modified, found.wrong_words) == (1, 1, 0)
    assert found.keystrokes == 2 + 4 + 1 + 2 + 2 + 1  # the space away, two letters away, two anew, a space


def test_wrong_letters_seen_before_the_space_are_typed_again() -> None:
    catches = replace(CALM, touch=slipping(home="hone"), catch=1.0)
    found = typed(typist=catches, text=[["home"]])
    assert (found.keystrokes, found.modified, found.looks, found.corrected) == (4 + 2 + 2 + 1, 1, 1, 0)


def test_a_forgotten_space_joins_two_words() -> None:
    forgets = replace(CALM, forgotten_space=1.0, notice=0.0, reread=0.0)
    left = typed(typist=forgets, text=[["the", "cat"]])
    assert (left.words, left.wrong_words, left.wrong_characters, left.keystrokes, left.strips) == (2, 2, 1, 7, 1)
    seen = typed(typist=replace(forgets, notice=1.0), text=[["the", "cat"]])
    assert (seen.modified, seen.wrong_words, seen.keystrokes) == (2, 0, 7 + 1 + 3 + 4 + 1)


def test_words_without_spaces_are_no_more_taps_than_a_keyboard_takes() -> None:
    twice = replace(CALM, forgotten_space=1.0, doubled_letter=1.0, touch=replace(CALM.touch, doubling=0.5))
    assert typed(typist=twice, text=[["because"] * 12]).words == 12


def test_a_misspelling_is_not_seen_by_who_takes_it_for_right() -> None:
    errs = replace(CALM, misspelling=1.0, notice=1.0, reread=1.0, catch=1.0)
    found = typed(keyboard(words=["the", "cat", "on"]), errs, [["zebra"]])  # known to nobody: the letters stand
    assert (found.modified, found.wrong_words, found.looks) == (0, 1, 0)
    known = typed(keyboard(words=["the", "cat", "on", "zebra"]), errs, [["zebra"]])
    assert (known.modified, known.wrong_words) == (0, 0)  # and a keyboard that knows it mends it


def test_what_cannot_be_typed_is_counted_and_stands_in_the_text() -> None:
    board = keyboard({"7": {"home": 0.9}, "sat": {"home": 0.9}}, words=[*WORDS, "7"])
    found = typed(board, replace(CALM, look_before=1.0), [["7", "home"], [None, "home"], ["x" * 40]])
    assert (found.untypable, found.words, found.strips, found.picked) == (3, 2, 2, 1)


# -- what holds for any text ---------------------------------------------------------------------------------------

texts = some.lists(some.lists(some.sampled_from([*WORDS, "zebra", "3", None]), max_size=6), max_size=4)
LIVELY = replace(POPULATION, forgotten_space=0.2, misspelling=0.3, look_before=0.4, look_while=0.4, notice=0.4)


@given(texts, some.integers(0, 5), some.sampled_from([None, 0.3]))
def test_sums_fit_together(text: list[list[str | None]], seed: int, compose: float | None) -> None:
    board = keyboard(SCRIPT, compose=compose, search={"": {"cat": 0.5}} if seed % 2 else None)
    found = typed(board, LIVELY, text, seed=seed)
    assert found.words + found.untypable == sum(map(len, text))
    assert found.sentences == len(text)
    assert found.picked <= found.strips >= found.accurate >= 0
    assert found.picked + found.completed + found.composed_words + found.modified <= found.words
    assert found.composed <= found.triggered <= found.strips
    assert found.wrong_words <= found.words and found.wrong_characters >= (found.wrong_words > 0)
    assert found.saved == found.needed - found.keystrokes
    pace = LIVELY.person(seed, "ann").interval
    assert found.seconds >= found.keystrokes * pace + found.looks * LIVELY.look - 1e-9


@given(texts, some.integers(0, 5))
def test_a_flawless_typist_modifies_nothing_and_leaves_nothing_wrong(text: list[list[str | None]], seed: int) -> None:
    apart = [[word for word in row if word not in ("well", "we'll")] for row in text]  # pressed alike
    found = typed(text=apart, seed=seed)
    assert found.modified == found.wrong_words == found.wrong_characters == found.corrected == 0
    assert found.keystrokes == found.needed


def test_more_noise_never_raises_what_is_right() -> None:
    text = [list(WORDS)] * 20
    blind = replace(CALM, notice=0.0, reread=0.0)
    touches = [replace(CALM.touch, deviation_x=d, deviation_y=d) for d in (0.05, 0.26, 0.4, 0.6, 0.9)]
    wrong = [typed(typist=replace(blind, touch=touch), text=text).wrong_characters for touch in touches]
    assert wrong == sorted(wrong) and wrong[0] < wrong[-1]


def test_the_same_keyboard_twice_changes_nothing() -> None:
    rows = [
        [typed(keyboard(SCRIPT), LIVELY, [list(WORDS)] * 2, user=user) for user in ("ann", "bob", "eve")]
        for _ in range(2)
    ]
    for name, change in changes_of(*rows, resamples=20).items():
        assert change.difference == (0.0, 0.0, 0.0) or not rows[0][0].triggered, name


def test_random_numbers_do_not_depend_on_what_a_keyboard_shows() -> None:
    met = []
    for board in (keyboard(), keyboard({"": {"dog": 0.9}, "dog": {"went": 0.5}}, compose=0.3)):
        touch = slipping()
        typist = replace(CALM, touch=touch, look_before=0.5, look_while=0.3, read_composed=1.0)
        typed(board, typist, [["dog", "went", "home", "because"]] * 20)
        met.append(touch.met)
    assert len(met[0]["dog"]) == 20 and "dog" not in met[1]  # a phrase wrote it
    for word in ("home", "because"):
        assert len(met[0][word]) == 20
        assert all(np.array_equal(*pair) for pair in zip(met[0][word], met[1][word], strict=True))


@given(some.text("abc", max_size=6), some.text("abc", max_size=6))
def test_distance_is_its_slow_twin_s(one: str, other: str) -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))

    assert distance(one, other) == slow(one, other)


def test_a_lapse_leaves_a_letter_out_or_doubles_it() -> None:
    person = replace(CALM, forgotten_letter=0.1, doubled_letter=0.1)
    assert with_lapses(np.arange(3), np.array([0.05, 0.5, 0.95]), person).tolist() == [1, 2, 2]
    assert with_lapses(np.arange(2), np.zeros(2), person).tolist() == [0]


def test_a_network_ranks_what_the_search_found() -> None:
    """Both words are pressed alike, so that the models alone decide."""
    network, search, text = {"a": {"we'll": 0.9}}, {"a": {"well": 0.9}}, [["a", "we'll"]]
    assert typed(keyboard(search), text=text).wrong_words == 1
    assert typed(keyboard(network, search=search), text=text).wrong_words == 0
    looks = replace(CALM, look_while=1.0)
    assert typed(keyboard(network, search=search, shown=1), looks, text).completed == 1


def test_a_typist_of_another_layout_is_refused() -> None:
    spanish = replace(CALM, touch=replace(CALM.touch, layout=LAYOUTS["qwerty-es"]))
    with pytest.raises(InputError, match="'qwerty-es' and the keyboard has 'qwerty'"):
        typed(typist=spanish)


def test_a_keyboard_of_parts_that_do_not_belong_together_is_refused() -> None:
    with pytest.raises(InputError, match="shown=13 words do not fit"):
        keyboard(shown=13)
    board = keyboard()
    with pytest.raises(InputError, match="lexicon is not the vocabulary of scripted"):
        replace(board, decoder=keyboard(words=["other", "words", "here"]).decoder)


def test_words_that_only_the_lexicon_has_are_corrected_to() -> None:
    """Without them the letters that were hit stay, or another word takes their place."""
    board = keyboard()
    more = UserWords.by_share({"selfie": 0.5}, board.model.vocabulary)
    lexicon = board.decoder.lexicon.with_words(more.words)
    larger = replace(board, decoder=Decoder(lexicon, board.decoder.touch), more_words=more)
    text = [["the", "selfie"]] * 60
    before, after = (typed(each, replace(POPULATION, catch=0.0), text) for each in (board, larger))
    assert before.words == after.words and before.needed == after.needed
    assert after.modified < 0.5 * before.modified
    assert typed(replace(larger, search=board.model.reader), text=[["the", "selfie"]]).keystrokes == 11
    with pytest.raises(InputError, match="and more words with Lexicon"):
        replace(larger, more_words=NO_WORDS)
