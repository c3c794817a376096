"""One is one: what people read has no `1 rounds`."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.plurals import quantity


@given(count=st.integers(0, 10**9))
def test_a_count_and_its_noun(count: int) -> None:
    number, noun = quantity(count, "round").split(" ")
    assert int(number.replace(",", "")) == count and (noun == "round") == (count == 1)


def test_as_people_write_it() -> None:
    assert [quantity(each, "report") for each in (0, 1, 2, 1000)] == [
        "0 reports",
        "1 report",
        "2 reports",
        "1,000 reports",
    ]
    assert [quantity(each, "entry", "entries") for each in (1, 2)] == ["1 entry", "2 entries"]
