"""The two texts that tacit ships: these very bytes, people who are numbers, and text that is nobody's."""

import hashlib
import re
from itertools import islice

import pytest
from tests.conftest import REPOSITORY

from tacit.data.formats.shipped import Chat, Novels, shipped
from tacit.data.manifest import PUBLIC
from tacit.data.sources import open_source

DIGESTS = {
    "chat.parquet": "ae65a4238d5963357f8d0111a6a4869c1664563592b2ba637d843f6bbd7fee9c",
    "novels.parquet": "a4d9dbbdee82326a1ae8c36303e6cf8442d72d80ca9cfa6210ac7ab20b2c0898",
}
PEOPLE, MESSAGES, MOST_WORDS = 16_827, 164_339, 500


@pytest.mark.parametrize("name", DIGESTS)
def test_they_are_the_bytes_that_were_measured(name: str) -> None:
    """As `benchmarks/utility/shipped_corpora.py` printed them."""
    assert hashlib.sha256(shipped(name).read_bytes()).hexdigest() == DIGESTS[name]


def test_people_are_numbers_and_say_nothing_that_leads_to_them() -> None:
    people = list(Chat().clients())
    texts = [text for person in people for text in person.texts]
    assert (len(people), len(texts)) == (PEOPLE, MESSAGES)
    assert [person.client_id for person in people] == [f"{number:05d}" for number in range(1, PEOPLE + 1)]
    assert max(sum(len(text.split()) for text in person.texts) for person in people) <= MOST_WORDS
    telling = re.compile(r"https?://\S|www\.\S|\S+@\S+\.\S|\b\d+\.\d+\.\d+\.\d+\b|\b\d{6,}\b")
    assert not [text for text in texts if telling.search(text)]


def test_a_part_of_the_people_are_the_first() -> None:
    few = Chat(7)
    assert few.expected_clients == 7
    assert list(few.clients()) == list(islice(Chat().clients(), 7))


def test_novels_are_public_and_chat_is_not() -> None:
    novels, chat = open_source("novels"), open_source("chat")
    assert isinstance(novels, Novels) and novels.description.startswith(PUBLIC)
    assert isinstance(chat, Chat) and PUBLIC not in chat.description
    passages = list(novels.clients())
    assert sum(len(text.split()) for passage in passages for text in passage.texts) > 1_250_000


def test_the_page_beside_them_says_where_they_are_from_and_how_much_there_is() -> None:
    page = (REPOSITORY / "src/tacit/data/shipped/README.md").read_text(encoding="utf-8")
    for words in (f"{MESSAGES:,} messages of {PEOPLE:,} people", "CC BY 4.0", "Kummerfeld", "public domain", "9,306"):
        assert words in page
