"""How many pages stand in front, and how long their sentences are."""

import pytest
from tests.count_prose import DOCS, Prose, front_pages, prose, table


@pytest.mark.parametrize(("words", "long"), [(40, 0), (41, 1)])
def test_a_long_sentence_is_told(words: int, long: int) -> None:
    assert prose(" ".join(["word"] * words) + ". Another, of five words.") == Prose(words + 4, 2, long)


def test_about_25_pages_stand_in_front_and_each_has_its_line() -> None:
    front = front_pages()
    assert 20 <= len(front) <= 30 and all(page.is_file() for page in front)
    lines = table()
    assert len(lines) == len(front) + 2
    assert [line.split()[0] for line in lines[:-2]] == [page.relative_to(DOCS).as_posix() for page in front]


def test_the_pages_in_front_are_read_in_two_hours() -> None:
    """At 250 words a minute; what is more belongs into the appendix, or can be said shorter."""
    in_front = table()[-2]
    assert int(in_front.split("not made")[1].split()[0].replace(",", "")) <= 30_000
