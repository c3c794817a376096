"""What counts as prose, and how many pages stand in front."""

import pytest
from tests.count_prose import DOCS, front_pages, prose

PAGE = """# A heading of five words

One sentence of six words here. And a [link with four](page.md#there) more, 1.5 of it.

![a picture](of.png)

| a | table |
|---|---|

```console
$ tacit demo
```

- an item
- another: `code` too
"""


def test_prose_is_what_one_reads() -> None:
    found = prose(PAGE)
    assert (found.words, found.sentences, found.long) == (6 + 9 + 2 + 3, 4, 0)


@pytest.mark.parametrize("words, long", [(40, 0), (41, 1)])
def test_a_long_sentence_is_told(words: int, long: int) -> None:
    assert prose(" ".join(["word"] * words) + ". Another.").long == long


def test_about_25_pages_stand_in_front() -> None:
    assert 20 <= len(front_pages()) <= 30 and all(
        page.is_relative_to(DOCS) and page.is_file() for page in front_pages()
    )
