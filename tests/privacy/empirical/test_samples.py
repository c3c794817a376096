"""What is no sample, no confidence, no delta: each refused by an error that names value, rule and way out."""

import math

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.privacy.empirical.samples import check_delta, error_of, positive, sample


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "scores has 0 scores, and a bound needs at least 1"),
        ([[1.0]], r"shape \(1, 1\)"),
        ([1.0, math.nan], r"scores\[1\]=nan is no score"),
        ([math.inf, 1.0], r"scores\[0\]=inf is no score"),
        (["a"], "are no numbers"),
        (None, "shape"),
    ],
)
def test_no_sample(values: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        sample("scores", values)  # type: ignore[arg-type]


def test_infinities_can_be_compared_but_what_is_not_a_number_cannot() -> None:
    assert np.isinf(sample("scores", [math.inf, -math.inf], finite=False)).all()
    with pytest.raises(InputError, match="nan is no score"):
        sample("scores", [math.nan], finite=False)


@pytest.mark.parametrize("confidence", [-1, 0, 0.49, 1, 1.5, math.nan])
def test_no_confidence(confidence: float) -> None:
    with pytest.raises(InputError, match=r"at least 0\.5 and below 1; give for example 0\.95"):
        error_of(confidence)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, math.nan])
def test_no_delta(delta: float) -> None:
    with pytest.raises(InputError, match="at least 0 and below 1; give for example 1e-5"):
        check_delta(delta)


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
def test_not_positive(value: float) -> None:
    with pytest.raises(InputError, match="must be finite and above 0"):
        positive("mu", value)
