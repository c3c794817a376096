"""Text of options to values: what each parser takes, and the sentence for what it does not."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli import values
from tacit.errors import InputError
from tacit.privacy.local_anonymity import Anonymity


def k_and_delta(text: str, name: str) -> Any:
    """By the type of its value."""
    return values.typed(text, name, Anonymity, "20,1e-3")


@pytest.mark.parametrize(
    ("parser", "text", "value"),
    [
        (values.number, "0.5", 0.5),
        (values.numbers, "0.99, 0.7,", (0.99, 0.7)),
        (values.numbers, "", ()),
        (values.whole_number, "5", 5),
        (values.rounds, "128,1152", (128, 1152)),
        (values.count, "4.21M", 4_210_000),
        (values.count, "4_210_000", 4_210_000),
        (values.count, "4.21e6", 4_210_000),
        (values.count, "2k", 2000),
        (values.seconds, "1.5h", 5400.0),
        (values.seconds, " 2 d ", 172800.0),
        (k_and_delta, "20,1e-6", Anonymity(k=20, delta=1e-6)),
        (values.from_to_step, "-0.1:0.1:0.05", (-0.1, -0.05, 0.0, 0.05, 0.1)),
    ],
)
def test_what_is_written_is_read(parser: Callable[[str, str], Any], text: str, value: Any) -> None:
    assert parser(text, "option") == value


@pytest.mark.parametrize(
    ("parser", "text", "sentence"),
    [
        (values.number, "x", r"--option 'x' is no number\."),
        (values.numbers, "1,a", "is not a list of numbers; write for example 0.99,0.7"),
        (values.whole_number, "1.5", "is no whole number"),
        (values.rounds, "soon", "'soon' is not a list of rounds; write for example 128,1152"),
        (values.count, "0", "is no number of at least 1; write 4210000, 4.21M or 4.21e6"),
        (values.count, "inf", "is no number of at least 1"),
        (values.count, "", "is no number of at least 1"),
        (values.seconds, "2 years", "is no duration; write a number and a unit"),
        (values.seconds, "0h", "give a time above 0"),
        (k_and_delta, "20", "is not k,delta; write for example 20,1e-3"),
        (values.from_to_step, "1:2", "cannot be read; write FROM:TO:STEP"),
        (values.from_to_step, "2:1:0.5", "FROM below TO and STEP above 0"),
        (values.from_to_step, "1:2:0", "FROM below TO and STEP above 0"),
    ],
)
def test_what_cannot_be_read_is_named(parser: Callable[[str, str], Any], text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parser(text, "option")


@given(st.integers(1, 10**12))
def test_whole_numbers_come_back_as_counts(number: int) -> None:
    assert values.count(str(number), "population") == number


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parser in (values.number, values.numbers, values.rounds, values.count, values.seconds, k_and_delta):
        try:
            parser(text, "option")
        except InputError as error:
            assert "--option" in str(error)
