"""The decoder finds what exhaustive scoring finds, refuses what it cannot read, and is steered by language."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keyboard import slow_decoder

from tacit.errors import InputError
from tacit.keyboard import decoder_loops
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import LONGEST, Lexicon
from tacit.keyboard.touch import LAYOUTS, TouchModel

QWERTY = LAYOUTS["qwerty"]
TOUCH = TouchModel(omission=0.05, transposition=0.04, doubling=0.04, stray=0.03)  # so that every move is met
WORDS = ("we", "well", "we'll", "were", "where", "there", "then", "the", "them", "a", "as", "sa", "assa", "tree")


def decoder_of(words: tuple[str, ...] = WORDS, touch: TouchModel = TOUCH, **options: Any) -> Decoder:
    return Decoder(Lexicon.from_words(words, touch.layout, first_id=0), touch, **options)


def taps_of(word: str, touch: TouchModel = TOUCH, seed: int = 0) -> Any:
    typed = touch.layout.typed_form(word)
    assert typed is not None
    return touch.taps(touch.layout.key_ids(typed), np.random.default_rng(seed))


def middles(typed: str) -> Any:
    """Taps without any noise."""
    return TOUCH.means[QWERTY.key_ids(typed)]


def flat(words: tuple[str, ...] = WORDS) -> Any:
    return np.full(len(words), -math.log(len(words)), np.float32)


some_words = st.lists(st.text("abest", min_size=1, max_size=6), min_size=1, max_size=12, unique=True).map(tuple)


@settings(deadline=None, max_examples=60)
@given(words=some_words, seed=st.integers(0, 2**32), weight=st.sampled_from((0.0, 0.5, 1.0, 2.0)), whole=st.booleans())
def test_a_wide_beam_finds_what_exhaustive_scoring_finds(
    words: tuple[str, ...], seed: int, weight: float, whole: bool
) -> None:
    random = np.random.default_rng(seed)
    language = np.log(random.dirichlet(np.ones(len(words)))).astype(np.float32)
    points = taps_of(words[random.integers(len(words))], seed=seed)
    if not whole:
        points = points[: random.integers(len(points) + 1)]
    decoder = decoder_of(words, language_weight=weight, beam=10**6, margin=math.inf)
    found = (decoder.decode if whole else decoder.completions)(points, language, k=len(words))
    slowly = (slow_decoder.decode if whole else slow_decoder.completions)(TOUCH, words, points, language, weight)
    assert [each.score for each in found] == pytest.approx([score for _, score in slowly], abs=1e-3)
    assert {each.word: each.score for each in found} == pytest.approx(dict(slowly), abs=1e-3)
    for each in found:
        assert words[each.id] == each.word and each.language == pytest.approx(language[each.id])
        assert each.score == pytest.approx(each.spatial + weight * each.language)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), beam=st.integers(1, 8))
def test_a_narrow_beam_never_scores_a_word_too_high(seed: int, beam: int) -> None:
    points = taps_of(WORDS[seed % len(WORDS)], seed=seed)
    exact = dict(slow_decoder.decode(TOUCH, WORDS, points, flat(), 1.0))
    for each in decoder_of(beam=beam).decode(points, flat(), k=5):
        assert each.score <= exact[each.word] + 1e-3


@settings(deadline=None)
@given(totals=st.lists(st.floats(-40, 0, width=32), min_size=1, max_size=60), beam=st.integers(1, 20))
def test_the_best_of_a_layer_stay_and_the_rest_is_forgotten(totals: list[float], beam: int) -> None:
    scores, reached = np.array(totals, np.float32), np.arange(len(totals), dtype=np.int32)
    kept = decoder_loops._pruned(scores, reached, len(totals), np.zeros(len(totals), np.float32), beam)
    stay = set(reached[:kept].tolist())
    least = sorted(totals)[-min(beam, len(totals))]
    assert {at for at, total in enumerate(totals) if total >= least} <= stay
    assert all(totals[at] >= least - 40 * 2**-16 for at in stay)
    assert all((scores[at] > -math.inf) == (at in stay) for at in range(len(totals)))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("tehre", "there"), ("thre", "there"), ("theere", "there"), ("tdree", "tree"), ("rhere", "there")],
)
def test_each_slip_is_undone(typed: str, meant: str) -> None:
    assert decoder_of(("there", "tree", "assa")).decode(middles(typed), flat(("", "", "")))[0].word == meant


def test_language_decides_between_words_that_are_typed_alike() -> None:
    language = np.log(np.array([0.1, 0.8, 0.1], np.float32))
    words = ("well", "we'll", "as")
    best = [each.word for each in decoder_of(words).decode(middles("well"), language)]
    assert best[:2] == ["we'll", "well"]
    assert decoder_of(words).decode(middles("well"), language[[1, 0, 2]])[0].word == "well"


def test_of_equal_words_the_smaller_id_comes_first() -> None:
    words = ("well", "we'll", "Well", "as")
    assert [each.id for each in decoder_of(words).decode(middles("well"), flat(words))] == [0, 1, 2]


def test_a_rescorer_changes_the_order_and_not_the_taps() -> None:
    decoder = decoder_of(("well", "we'll"))
    first = decoder.decode(middles("well"), np.log(np.array([0.9, 0.1], np.float32)))
    again = decoder.rescored(first, [math.log(0.1), math.log(0.9)])
    assert [each.word for each in first] == ["well", "we'll"] and [each.word for each in again] == ["we'll", "well"]
    assert [each.spatial for each in again] == [each.spatial for each in first[::-1]]
    assert again[0].score == pytest.approx(again[0].spatial + math.log(0.9))


def test_impossible_words_are_found_without_language_alone() -> None:
    language = np.array([-np.inf, 0.0], np.float32)
    assert [each.word for each in decoder_of(("as", "tree")).decode(middles("as"), language)] == []
    found = decoder_of(("as", "tree"), language_weight=0.0).decode(middles("as"), language)
    assert found[0].word == "as" and found[0].score == found[0].spatial


def test_a_context_made_once_is_as_good_as_its_log_probabilities() -> None:
    decoder = decoder_of(language_weight=0.7)
    context = decoder.context(flat())
    for word in WORDS:
        points = taps_of(word)
        assert decoder.decode(points, context) == decoder.decode(points, flat())
        assert decoder.completions(points[:2], context) == decoder.completions(points[:2], flat())


@given(st.sampled_from(WORDS), st.integers(0, 99))
def test_taps_looked_at_once_are_as_good_as_their_points(word: str, seed: int) -> None:
    decoder, points = decoder_of(), taps_of(word, seed=seed)
    taps = decoder.taps(points)
    assert taps.letters == decoder.literal(points) and decoder.decode(taps, flat()) == decoder.decode(points, flat())
    for count in range(len(points) + 1):
        begun = taps.first(count)
        assert begun.letters == decoder.literal(points[:count])
        assert decoder.completions(begun, flat()) == decoder.completions(points[:count], flat())


def test_small_and_large_lexicons_take_turns() -> None:
    """They search in the same arrays, which a search must leave as it found them."""
    small, large = decoder_of(("as", "tree")), decoder_of()
    alone = large.decode(middles("well"), flat(), k=9)
    for _ in range(2):
        assert small.decode(middles("as"), flat(("", "")))[0].word == "as"
        assert large.completions(middles("them"), flat())[0].word == "them"
        assert large.decode(middles("well"), flat(), k=9) == alone


def test_no_taps_are_no_word_and_begin_all() -> None:
    decoder, language = decoder_of(("as", "tree", "we")), np.log(np.array([0.2, 0.3, 0.5], np.float32))
    assert decoder.decode([], language) == ()
    assert [each.word for each in decoder.completions([], language)] == ["we", "tree", "as"]
    assert decoder.literal([]) == ""


def test_literal_letters_are_the_keys_that_were_hit() -> None:
    assert decoder_of().literal(middles("qwertzuiopm")) == "qwertzuiopm"


def test_a_users_own_words_are_found_and_keep_other_ids() -> None:
    lexicon = Lexicon.from_words(WORDS, QWERTY, first_id=0).with_words(["zoltan", "the"])
    assert lexicon.words == (*WORDS, "zoltan")
    found = Decoder(lexicon, TOUCH).decode(middles("zoltan"), flat(lexicon.words))
    assert found[0].word == "zoltan" and found[0].id == len(WORDS)


def test_ids_are_those_of_a_vocabulary() -> None:
    lexicon = Lexicon.from_words(["as", "tree"], QWERTY)
    assert Decoder(lexicon, TOUCH).decode(middles("as"), np.full(6, -1.0, np.float32))[0].id == 4


@settings(deadline=None)
@given(words=some_words)
def test_the_trie_holds_just_the_words(words: tuple[str, ...]) -> None:
    lexicon = Lexicon.from_words([*words, *(word.upper() for word in words)], QWERTY, first_id=0)
    spelt = {}
    for node in range(len(lexicon.keys)):
        parent = int(lexicon.parents[node])
        spelt[node] = "" if node == 0 else spelt[parent] + QWERTY.keys[lexicon.keys[node]]
        children = range(lexicon.children[node], lexicon.children[node + 1])
        assert all(lexicon.parents[child] == node for child in children)
        for at in range(lexicon.endings[node], lexicon.endings[node + 1]):
            assert lexicon.word_of(int(lexicon.ids[at])).lower() == spelt[node]
    assert len(set(spelt.values())) == len(lexicon.keys) and sorted(lexicon.ids.tolist()) == list(range(2 * len(words)))
    assert set(spelt.values()) == {word[:end] for word in words for end in range(len(word) + 1)}


def test_words_of_another_script_are_refused_and_single_ones_left_out() -> None:
    with pytest.raises(InputError, match=r"only 1 of 3 words can be typed with the layout 'qwerty'.*choose a layout"):
        Lexicon.from_words(["привет", "слово", "as"], QWERTY)
    lexicon = Lexicon.from_words(["as", "42nd", "tree"], QWERTY)
    assert lexicon.left_out == 1 and lexicon.size == 7 and lexicon.word_of(6) == "tree"


@pytest.mark.parametrize(
    ("words", "message"),
    [([], "no words decodes nothing"), (["a" * 65], "65 letters"), ("as", "words='as' is of the type str")],
)
def test_lexicons_that_cannot_be(words: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Lexicon.from_words(words, QWERTY)


@pytest.mark.parametrize(
    ("points", "language", "k", "message"),
    [
        (np.zeros((LONGEST + 1, 2)), flat(), 3, "65 taps are more than a word has"),
        (np.zeros((2, 3)), flat(), 3, r"shape \(2, 3\) are no taps"),
        ([[math.nan, 0.0]], flat(), 3, "are no taps"),
        (middles("as"), flat()[1:], 3, r"give \(14,\)"),
        (middles("as"), -flat(), 3, "must be 0 or less"),
        (middles("as"), flat() * math.nan, 3, "must be 0 or less"),
        (middles("as"), flat(), 0, "k=0"),
    ],
)
def test_what_cannot_be_decoded(points: Any, language: Any, k: int, message: str) -> None:
    for found in (decoder_of().decode, decoder_of().completions):
        with pytest.raises(InputError, match=message):
            found(points, language, k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam=0"),
        ({"margin": 0.0}, "margin=0.0"),
        ({"language_weight": -1.0}, "language_weight=-1.0"),
        ({"beam": "5"}, "beam='5'"),
        ({"touch": TouchModel(layout=LAYOUTS["qwerty-es"])}, "make both for the same one"),
    ],
)
def test_decoders_that_cannot_be(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Decoder(Lexicon.from_words(WORDS, QWERTY), options.pop("touch", TOUCH), **options)
