"""What encoding for secure aggregation costs: the papers' bound, its limits, and the tables' starred rows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy import Guarantee, Participation, Tree
from tacit.privacy.encoding import clip_inflation, inflated_clip_norm

TABLES = json.loads((Path(__file__).parent.parent / "golden" / "tree_tables.json").read_text())
# Clip norm 5: (dimension, scale, inflated clip norm), from an independent implementation of arXiv:2305.18465, Alg. 2.
ENCODINGS = [
    (2**22, 64, 16.772838906994846),
    (2**22, 512, 5.386434059282634),
    (2**22, 1448, 5.0501532906041735),
    (2**22, 4096, 5.0063741108991495),
    (20 * 2**17, 128, 8.067742750512075),
    (20 * 2**17, 512, 5.245269658156529),
]


@pytest.mark.parametrize(("dimension", "scale", "inflated"), ENCODINGS)
def test_encodings_worked_out_elsewhere(dimension: int, scale: int, inflated: float) -> None:
    assert inflated_clip_norm(5.0, dimension, scale) == pytest.approx(inflated, rel=1e-12)
    assert clip_inflation(5.0, dimension, scale) == pytest.approx(inflated / 5, rel=1e-12)


@given(clip=st.floats(1e-3, 1e3), dimension=st.integers(1, 2**24), scale=st.floats(1e-2, 1e6))
def test_only_the_product_of_clip_norm_and_scale_matters(clip: float, dimension: int, scale: float) -> None:
    factor = clip_inflation(clip, dimension, scale)
    assert factor >= 1
    assert factor == pytest.approx(clip_inflation(1.0, dimension, scale * clip), rel=1e-9)
    assert factor >= clip_inflation(clip, dimension, 2 * scale)


def test_what_is_rounded_once_is_mostly_within_the_bound() -> None:
    # The rounding of one attempt must be accepted with probability at least 1 - alpha.
    random, dimension, scale = np.random.default_rng(5), 1024, 50.0
    bound = inflated_clip_norm(1.0, dimension, scale) * scale
    accepted = 0
    for _ in range(200):
        contribution = random.standard_normal(dimension)
        contribution *= scale / np.linalg.norm(contribution)
        accepted += np.linalg.norm(np.floor(contribution + random.random(dimension))) <= bound
    assert accepted >= 200 * (1 - math.exp(-0.5))


def test_the_guarantee_of_encoded_sums_has_the_longer_norm_and_the_same_noise() -> None:
    plan = Participation(rounds=40, min_separation=6, max_participations=3)
    plain = Guarantee(participation=plan, strategy=Tree(), clip_norm=5.0, noise_multiplier=7.0)
    encoded = Guarantee(participation=plan, strategy=Tree(), clip_norm=5.0, noise_multiplier=7.0, clip_inflation=1.25)
    assert encoded.zcdp == pytest.approx(plain.zcdp * 1.25**2, rel=1e-12)
    assert encoded.seed_stddev == plain.seed_stddev
    again = Guarantee.for_zcdp(0.5, participation=plan, strategy=Tree(), clip_norm=5.0, clip_inflation=1.25)
    assert again.zcdp == pytest.approx(0.5, rel=1e-12)


def test_the_tables_rows_with_secure_aggregation() -> None:
    # Paper 1, Table 1, en-US* and es-ES*: printed as 0.25 and 0.52; without inflation en-US* would print as 0.24.
    for scale, prints in ((4096, True), (2896, True), (1e9, False)):
        factor = clip_inflation(5.0, 2**22, scale)
        printed = {row["task"]: row["paper_rho"] for row in TABLES["rows"] if row["task"].endswith("*")}
        assert set(printed) == {"en-US*", "es-ES*"}
        rounded = {
            row["task"]: round(
                Guarantee(
                    participation=Participation.from_rounds_between(
                        rounds=row["rounds"], rounds_between=row["min_s"], max_participations=row["max_p"]
                    ),
                    strategy=Tree(),
                    clip_norm=5.0,
                    noise_multiplier=row["noise_multiplier"],
                    clip_inflation=factor,
                ).zcdp,
                2,
            )
            for row in TABLES["rows"]
            if row["task"] in printed
        }
        assert (rounded == printed) is prints


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ((0.0, 8, 1.0), "clip_norm=0.0"),
        ((math.inf, 8, 1.0), "clip_norm=inf"),
        ((1.0, 0, 1.0), "dimension=0"),
        ((1.0, 8.5, 1.0), "dimension=8.5"),
        ((1.0, True, 1.0), "dimension=True"),
        ((1.0, 8, -1.0), "scale=-1.0"),
        ((1.0, 8, math.nan), "scale=nan"),
    ],
)
def test_what_is_no_encoding_is_refused(values: tuple[float, int, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        inflated_clip_norm(*values)


@pytest.mark.parametrize("probability", [0.0, 1.0, math.nan])
def test_a_retry_probability_lies_between_zero_and_one(probability: float) -> None:
    with pytest.raises(InputError, match="retry_probability"):
        inflated_clip_norm(1.0, 8, 1.0, retry_probability=probability)
