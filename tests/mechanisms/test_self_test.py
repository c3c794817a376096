"""The noise's self-test passes here, and notices a wrong cipher and a wrong loop."""

import inspect
from typing import Any

import pytest

from tacit.mechanisms import self_test, ziggurat
from tacit.mechanisms.seeds import SeedVector


def test_noise_is_right_here() -> None:
    assert self_test.noise_fault() is None


def test_the_loops_are_interpreted() -> None:
    """Or the comparison would be of a thing with itself."""
    assert inspect.unwrap(ziggurat.place) is not ziggurat.place
    assert inspect.isfunction(inspect.unwrap(ziggurat.place)) and inspect.isfunction(inspect.unwrap(ziggurat.settle))


def test_a_cipher_that_is_not_aes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "VECTOR_CIPHER", self_test.VECTOR_CIPHER[::-1])
    assert "published vector" in str(self_test.noise_fault())


@pytest.mark.parametrize("changed", ["UNITS", "RISE"], ids=["every number", "one of a hundred, drawn again"])
def test_a_loop_that_computes_otherwise_is_noticed(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code has the tables in it, so that other tables are other loops for the interpreter alone."""
    assert self_test.noise_fault() is None  # compiled by now
    monkeypatch.setattr(ziggurat, changed, getattr(ziggurat, changed) * 1.5)
    assert "compiled loops" in str(self_test.noise_fault())


def test_one_wrong_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = self_test._interpreted()

    def wrong() -> Any:
        right.view("u8")[-1] ^= 1
        return right

    monkeypatch.setattr(self_test, "_interpreted", wrong)
    assert "compiled loops" in str(self_test.noise_fault())


def test_the_words_are_those_that_seeds_are_drawn_from() -> None:
    block = SeedVector(self_test.KEY).block(0)
    assert (self_test._words(0, 1 << 10) == block._words.take()[: 1 << 10]).all()
