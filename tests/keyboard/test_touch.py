"""Keys, what is pressed for a word, and how taps scatter: by statistics with fixed seeds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.keyboard import slow_decoder

from tacit.errors import InputError
from tacit.keyboard.touch import LAYOUTS, TouchModel

QWERTY, SPANISH = LAYOUTS["qwerty"], LAYOUTS["qwerty-es"]
CLEAN = TouchModel(omission=0.0, transposition=0.0, doubling=0.0, stray=0.0)


@pytest.mark.parametrize(
    ("word", "english", "spanish"),
    [
        ("Hello", "hello", "hello"),
        ("don't", "dont", "dont"),
        ("o\u2019clock", "oclock", "oclock"),
        ("niño", "nino", "niño"),
        ("nin\u0303o", "nino", "niño"),
        ("MAÑANA", "manana", "mañana"),
        ("corazón", "corazon", "corazon"),
        ("pingüino", "pinguino", "pinguino"),
        ("œuvre", None, None),
        ("слово", None, None),
        ("2nd", None, None),
        ("'", None, None),
        ("", None, None),
    ],
)
def test_what_is_pressed_for_a_word(word: str, english: str | None, spanish: str | None) -> None:
    assert QWERTY.typed_form(word) == english
    assert SPANISH.typed_form(word) == spanish


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_keys_lie_in_staggered_rows_and_hit_themselves(layout: object) -> None:
    assert layout in (QWERTY, SPANISH)
    for each in (QWERTY, SPANISH):
        assert "".join(each.keys[key] for key in each.nearest(each.centres)) == each.keys
        gaps = np.linalg.norm(each.centres[:, None] - each.centres, axis=2) + 9 * np.eye(len(each.keys))
        assert gaps.min() == 1.0
    assert QWERTY.centres[QWERTY.keys.index("a")] == pytest.approx((1.0, 1.5 * 1.35))
    assert SPANISH.centres[SPANISH.keys.index("ñ")] == pytest.approx((9.5, 1.5 * 1.35))
    assert QWERTY.keys[int(QWERTY.nearest([[-5.0, 99.0]])[0])] == "z"


def test_keys_that_are_not_there_are_named() -> None:
    with pytest.raises(InputError, match="'ñ', for which the layout 'qwerty' has no key"):
        QWERTY.key_ids("niño")


def test_taps_scatter_as_the_model_says_and_no_other_way() -> None:
    key = QWERTY.keys.index("g")
    taps = CLEAN.taps(np.full(4_000, key), np.random.default_rng(1)) - CLEAN.means[key]
    for axis, deviation in enumerate((CLEAN.deviation_x, CLEAN.deviation_y)):
        assert kstest(taps[:, axis] / deviation, "norm").pvalue > 0.01
        assert kstest(taps[:, axis] / (1.2 * deviation), "norm").pvalue < 1e-3
    assert abs(np.corrcoef(taps.T)[0, 1]) < 0.05
    assert CLEAN.means[key] - QWERTY.centres[key] == pytest.approx((CLEAN.offset_x, CLEAN.offset_y))


@given(seed=st.integers(0, 2**32), x=st.floats(-3, 14), y=st.floats(-3, 8))
def test_densities_are_the_gaussians(seed: int, x: float, y: float) -> None:
    touch = replace(CLEAN, deviation_y=0.4)
    found = touch.log_densities([(x, y)])
    assert found.shape == (1, 26) and found.dtype == np.float32
    assert found[0] == pytest.approx([slow_decoder.density(touch, (x, y), key) for key in range(26)], rel=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_confusion_matrix_is_the_share_of_taps(layout: object) -> None:
    assert layout in LAYOUTS.values()
    touch = replace(CLEAN, layout=layout, deviation_x=0.4, deviation_y=0.5)  # type: ignore[arg-type]
    keys = len(touch.layout.keys)
    exact = touch.confusion()
    assert exact.sum(axis=1) == pytest.approx(np.ones(keys))
    each = 3_000
    taps = touch.taps(np.repeat(np.arange(keys), each), np.random.default_rng(2))
    hits = touch.layout.nearest(taps).reshape(keys, each)
    counted = np.stack([np.bincount(row, minlength=keys) for row in hits]) / each
    spread = np.sqrt(np.maximum(exact * (1 - exact), 1e-4) / each)
    assert np.abs((counted - exact) / spread).max() < 5
    narrower = replace(touch, deviation_x=0.36).confusion()
    assert np.abs((counted - narrower) / spread).max() > 5


@pytest.mark.parametrize("slip", ["omission", "transposition", "doubling", "stray"])
def test_each_slip_is_as_frequent_as_it_is_said_to_be(slip: str) -> None:
    """Of 20,000 letters, each other than its neighbours, tapped without scatter."""
    touch = replace(CLEAN, deviation_x=1e-3, deviation_y=1e-3, offset_x=0.0, offset_y=0.0, **{slip: 0.1})
    meant = QWERTY.key_ids("qpzm" * 5_000)
    taps, n = touch.taps(meant, np.random.default_rng(3)), len(meant)
    hits = QWERTY.nearest(taps)
    off = np.abs(taps - QWERTY.centres[hits]).max(axis=1) > 0.01
    # A letter after one that was left out stays; a swap takes two letters; more than one may be added.
    expected = {
        "omission": (n - len(taps), n * 0.1 / 1.1),
        "transposition": ((np.resize(hits, n) != meant).sum() / 2, n * 0.1 / 1.1),
        "doubling": ((hits[1:] == hits[:-1]).sum(), n * 0.1 / 0.9),
        "stray": (off.sum(), n * 0.1 / 0.9),
    }
    seen, wanted = expected[slip]
    assert seen == pytest.approx(wanted, rel=0.08) and wanted > 1_500


# How often each letter occurs in English texts, in percent, a to z: Wikipedia, "Letter frequency".
PERCENT = (
    8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.15, 0.77, 4.0, 2.4,
    6.7, 7.5, 1.9, 0.095, 6.0, 6.3, 9.1, 2.8, 0.98, 2.4, 0.15, 2.0, 0.074,
)  # fmt: skip


def wrong_letters(touch: TouchModel, words: int = 3_000) -> float:
    """Edit distance of the keys hit to the keys meant, by letters meant: words of five letters of English text."""
    random = np.random.default_rng(7)
    share = np.array([PERCENT[ord(letter) - ord("a")] for letter in QWERTY.keys])
    distance = 0
    for meant in random.choice(26, (words, 5), p=share / share.sum()):
        hits = QWERTY.nearest(touch.taps(meant, random))
        row = list(range(len(hits) + 1))
        for letter in meant:
            diagonal, row[0] = row[0], row[0] + 1
            for at, hit in enumerate(hits, 1):
                diagonal, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, diagonal + (letter != hit))
        distance += row[-1]
    return distance / (5 * words)


def test_without_decoding_8_to_9_percent_of_the_letters_are_wrong() -> None:
    assert 0.08 < wrong_letters(TouchModel()) < 0.09
    assert not 0.08 < wrong_letters(TouchModel(deviation_x=0.23, deviation_y=0.23)) < 0.09


def test_a_word_is_never_left_out_whole() -> None:
    forgetful, random = replace(CLEAN, omission=0.9), np.random.default_rng(4)
    assert {len(forgetful.taps(QWERTY.key_ids("a"), random)) for _ in range(50)} == {1}
    assert min(len(forgetful.taps(QWERTY.key_ids("as"), random)) for _ in range(50)) == 1


def test_the_same_seed_is_the_same_taps() -> None:
    keys, touch = QWERTY.key_ids("there"), TouchModel()
    first, again, other = (touch.taps(keys, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deviation_x": 0.0}, "deviation_x=0.0 key widths; it must be positive"),
        ({"deviation_y": math.nan}, "deviation_y nan is no finite number"),
        ({"omission": 0.7, "transposition": 0.3}, "sum is below 1"),
        ({"stray": -0.1}, "stray=-0.1 must be probabilities"),
    ],
)
def test_touch_models_that_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TouchModel(**options)  # type: ignore[arg-type]
