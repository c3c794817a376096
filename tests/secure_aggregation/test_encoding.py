"""Updates as integers: within the norm that the accountant counts, always; unbiased; and sums that come back."""

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import InputError
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.secure_aggregation import decode, encode
from tacit.secure_aggregation import encoding as under_test
from tacit.secure_aggregation.hadamard import hadamard_matrix

SIGNS, PRIVATE = bytes(range(32)), bytes(range(100, 132))


def integers(residues: NDArray[np.uint32], encoding: Encoding) -> NDArray[np.int64]:
    """Of one update, less the shift."""
    return residues.astype(np.int64) - encoding.largest


def update_of(length: int, norm: float, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal(length)
    scaled: NDArray[np.float32] = (drawn * (norm / max(float(np.linalg.norm(drawn)), 1e-30))).astype(np.float32)
    return scaled


def slow(update: NDArray[np.float32], encoding: Encoding, signs: bytes) -> NDArray[np.float64]:
    """The twin: what is rounded, by the matrix in float64."""
    bits = np.unpackbits(under_test.sign_bits(signs, encoding), bitorder="little")[: encoding.dimension]
    padded = np.zeros(encoding.dimension)
    padded[: len(update)] = update.astype(np.float64) * min(1, encoding.clip_norm / max(np.linalg.norm(update), 1e-30))
    rotated = hadamard_matrix(encoding.dimension) @ (padded * encoding.scale * (1.0 - 2.0 * bits))
    return np.clip(rotated / math.sqrt(encoding.dimension), -encoding.largest, encoding.largest)


encodings = st.builds(
    encoding_within,
    parameters=st.integers(1, 600),
    clip_norm=st.floats(1e-3, 1e3),
    report_goal=st.integers(1, 1000),
    inflation=st.floats(1.0001, 3.0),
    sigmas=st.floats(0.5, 10.0),
)


@given(encoding=encodings, norm=st.floats(0, 3), seed=st.integers(0, 2**32))
def test_each_integer_is_a_neighbour_of_what_is_rounded(encoding: Encoding, norm: float, seed: int) -> None:
    update = update_of(encoding.parameters, norm * encoding.clip_norm, seed)
    found = integers(encode(update, encoding, signs=SIGNS, rounding=PRIVATE), encoding)
    expected = slow(update, encoding, SIGNS)
    errs = 1e-5 * encoding.scale * encoding.clip_norm  # the rotation's, in float32
    assert np.abs(found - expected).max() < 1 + errs


@pytest.mark.parametrize("attempts", [64, 0])  # 0: every draw was too long, and it is rounded toward zero
@given(encoding=encodings, norm=st.floats(0, 1e4), seed=st.integers(0, 2**32), data=st.data())
def test_no_encoded_update_is_longer_than_is_counted(
    attempts: int, encoding: Encoding, norm: float, seed: int, data: st.DataObject
) -> None:
    update = update_of(encoding.parameters, norm * encoding.clip_norm, seed)
    if data.draw(st.booleans()):  # the worst for rounding: all that rotates into one coordinate, or equal ones
        update = np.full_like(update, update[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(under_test, "ATTEMPTS", attempts)
        residues = encode(update, encoding, signs=SIGNS, rounding=PRIVATE)
    found = integers(residues, encoding)
    assert np.abs(found).max() <= encoding.largest
    assert int((found**2).sum()) <= encoding.longest_squared
    if attempts == 0:
        assert int((found**2).sum()) <= (encoding.scale * encoding.clip_norm) ** 2


@settings(max_examples=30)
@given(encoding=encodings, clients=st.integers(0, 12), seed=st.integers(0, 2**32))
def test_a_decoded_sum_is_the_sum_within_its_rounding(encoding: Encoding, clients: int, seed: int) -> None:
    encoding = encoding_within(encoding.parameters, encoding.clip_norm, max(1, clients))  # 10 sigmas: nothing clipped
    total, plain = np.zeros(encoding.dimension, np.uint32), np.zeros(encoding.parameters)
    for client in range(clients):
        update = update_of(encoding.parameters, encoding.clip_norm * 0.9, seed + client)
        total += encode(update, encoding, signs=SIGNS, rounding=seed.to_bytes(31, "big") + bytes([client]))
        plain += update
    total &= np.uint32(encoding.modulus - 1)
    found = decode(total, encoding, signs=SIGNS, reports=clients)
    assert found.dtype == np.float32 and found.shape == plain.shape
    within = clients * (math.sqrt(encoding.dimension) / encoding.scale + 1e-4 * encoding.clip_norm)
    assert np.linalg.norm(found - plain) <= within


def decoded_often(encoding: Encoding, update: NDArray[np.float32], *, as_if: Encoding) -> NDArray[np.float64]:
    """(repetitions, parameters) of one update encoded again and again, under fresh signs."""
    return np.array(
        [
            decode(
                encode(update, encoding, signs=time.to_bytes(32, "big"), rounding=time.to_bytes(32, "little")),
                as_if,
                signs=time.to_bytes(32, "big"),
                reports=1,
            )
            for time in range(400)
        ],
        np.float64,
    )


def test_encodings_finer_than_their_arithmetic_are_refused() -> None:
    """What float32 cannot clip at `largest` would be beyond it; a squared norm of 64 bits would pass as a small one."""
    fine = Encoding(parameters=1, dimension=1, clip_norm=1.0, scale=2.0**25 + 6, report_goal=1, sigmas=0.5)
    assert fine.largest == 2**24 + 3
    with pytest.raises(InputError, match="finer than float32"):
        encode(np.ones(1, np.float32), fine, signs=bytes(32), rounding=bytes(32))
    with pytest.raises(InputError, match="64 bits tell; allow a larger inflation"):
        encoding_within(3 * 2**20, 1.0, 60, inflation=1 + 1e-10)
    finest = encoding_within(3 * 2**20, 1.0, 60, inflation=1 + 1e-9)
    assert finest.longest_squared < 2**62 and finest.largest <= 2**24


def test_rounding_is_unbiased_and_a_wrong_scale_is_seen() -> None:
    encoding = encoding_within(150, 1.0, 1, inflation=1.2)
    update = update_of(150, 1.0, seed=3)
    around = {
        name: stats.ttest_1samp(decoded_often(encoding, update, as_if=other) @ update, float(update @ update)).pvalue
        for name, other in {"right": encoding, "wrong": encoding.with_clip_norm(1.05)}.items()
    }
    assert around["right"] > 0.01 and around["wrong"] < 1e-6


def test_the_rounding_error_has_the_variance_of_its_fractions() -> None:
    # A coordinate with fraction f has variance f (1 - f), 1/6 on average of uniform fractions.
    encoding = encoding_within(2000, 1.0, 1)
    update = update_of(2000, 1.0, seed=8)
    errors = (decoded_often(encoding, update, as_if=encoding) - update) * encoding.scale
    assert float((errors**2).mean()) == pytest.approx(1 / 6, rel=0.02)


def test_signs_and_draws_follow_from_their_seeds_alone() -> None:
    encoding = encoding_within(150, 1.0, 1, inflation=1.2)
    update = update_of(150, 1.0, seed=3)
    first = encode(update, encoding, signs=SIGNS, rounding=PRIVATE)
    np.testing.assert_array_equal(first, encode(update, encoding, signs=SIGNS, rounding=PRIVATE))
    assert (first != encode(update, encoding, signs=SIGNS, rounding=PRIVATE[::-1])).any()
    assert (first != encode(update, encoding, signs=SIGNS[::-1], rounding=PRIVATE)).any()


def test_a_published_vector() -> None:
    # For whoever writes a device's part in another language: AES-256 in counter mode from block 0, bits lowest first.
    encoding = Encoding(parameters=5, dimension=12, clip_norm=1.0, scale=100.0, report_goal=3)
    update = np.array([0.5, -0.25, 0.125, 0.0, 0.75], np.float32)
    residues = encode(update, encoding, signs=SIGNS, rounding=PRIVATE)
    assert (encoding.largest, encoding.bits) == (289, 11)
    assert residues.tolist() == [293, 299, 264, 293, 256, 264, 307, 249, 242, 242, 300, 293]
    np.testing.assert_allclose(decode(residues, encoding, signs=SIGNS, reports=1), update, atol=0.02)


@pytest.mark.parametrize(
    ("update", "complaint"),
    [
        (np.array([0, np.nan, 0], np.float32), "NaN or an infinity"),
        (np.array([0, np.inf, 0], np.float32), "NaN or an infinity"),
        (np.zeros(4, np.float32), "shape (4,) in float32 is not (3,)"),
        (np.zeros((3, 1), np.float32), "shape (3, 1)"),
        (np.zeros(3), "float64"),
        ([0.0, 0.0, 0.0], "of the type list is not (3,) in float32"),
    ],
)
def test_updates_that_cannot_be_encoded_are_refused(update: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        encode(update, encoding_within(3, 1.0, 1), signs=SIGNS, rounding=PRIVATE)


def test_seeds_totals_and_reports_that_cannot_be_are_refused() -> None:
    encoding = encoding_within(3, 1.0, 2)
    residues = encode(np.ones(3, np.float32), encoding, signs=SIGNS, rounding=PRIVATE)
    for signs, rounding, complaint in (
        (b"short", PRIVATE, "signs has 5"),
        (SIGNS, b"", "rounding has 0"),
        ("x" * 32, PRIVATE, "signs is of the type str"),
    ):
        with pytest.raises(InputError, match=complaint):
            encode(np.ones(3, np.float32), encoding, signs=signs, rounding=rounding)  # type: ignore[arg-type]
    for total, reports, complaint in (
        (residues, 3, "reports=3"),
        (residues, -1, "reports=-1"),
        (residues, 1.5, "reports=1.5 is no whole number"),
        (residues, "1", "reports='1' is no whole number"),
        (list(residues), 1, "of the type list"),
        (residues[:2], 1, "shape (2,)"),
        (residues.astype(np.int64), 1, "int64"),
        (residues + np.uint32(4 * encoding.largest), 1, "spoilt"),
        (residues, 0, "0 reports can make"),
    ):
        with pytest.raises(InputError, match=re.escape(complaint)):
            decode(total, encoding, signs=SIGNS, reports=reports)
    wide = Encoding(parameters=3, dimension=4, clip_norm=1.0, scale=1e12, report_goal=1)
    with pytest.raises(InputError, match="bits"):
        encode(np.ones(3, np.float32), wide, signs=SIGNS, rounding=PRIVATE)
