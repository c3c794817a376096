"""Text becomes sentences and ids by one rule: the fast path, its slow reference, and the arrangement of ids."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.slow_words import slow_sentences

from tacit.text import tokens
from tacit.text.counted_words import count_words
from tacit.text.tokens import Tokenizer
from tacit.text.vocabulary import BOS, EOS, OOV, Provenance, Vocabulary
from tacit.text.words import LINE_END, is_placeholder, marked, pieces, splitter

PUBLIC = Provenance(kind="public", description="a test")
KNOWN = ("the", "don't", "I", "dog", "café", "3.14", "well", "Dr")
# Pieces that make every rule fire, in any order and glued together or not.
WORDY = (
    *KNOWN,
    "Smith",
    "e.g",
    "naïve",
    "cafe\u0301",
    "ß",
    "x",
    "J",
    "10:30",
    "Mr",
    "vs",
    "Привет",
    "हिन्दी",
    "1",
    "٣",
)
OTHER = (
    "<url>",
    "<a b>",
    "http://a.b/c?d.e",
    "www.x",
    "<",
    ">",
    ",",
    ";",
    "-",
    "_",
    "😀",
    "\n\n",
    "\t",
    "\u00a0",
)
MARKS = (".", "..", "...", "…", "!", "?", "?!", "'", "’", "’s", '"', ")", "(", " ", " ", " ", "\n")
SCRAPS = st.sampled_from(WORDY + OTHER + MARKS)
TEXTS = st.lists(SCRAPS, max_size=25).map("".join) | st.text("aB.'1! \n<>_", max_size=15)


def tokenizer(*, lowercase: bool = False) -> Tokenizer:
    words = tuple(dict.fromkeys(word.lower() for word in KNOWN)) if lowercase else KNOWN
    return Tokenizer(Vocabulary(words=words, provenance=PUBLIC, lowercase=lowercase))


@given(text=TEXTS, lowercase=st.booleans())
def test_sentences_are_those_of_the_slow_twin(text: str, lowercase: bool) -> None:
    assert tokenizer(lowercase=lowercase).sentences(text) == slow_sentences(text, lowercase=lowercase)


@given(text=TEXTS)
def test_both_roads_cut_the_same_pieces(text: str) -> None:
    line = marked(text, lowercase=False)
    assert pieces(line) == [piece for piece, _ in splitter().pre_tokenize_str(line)]


@given(texts=st.lists(TEXTS, max_size=6), lowercase=st.booleans(), at_once=st.sampled_from([1, 40, 10_000]))
def test_ids_align_with_sentences(texts: list[str], lowercase: bool, at_once: int) -> None:
    """Every id stands for the word in its place; batches change nothing."""
    cut = tokenizer(lowercase=lowercase)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "CHARACTERS_AT_ONCE", at_once)
        encoded = cut.encode(texts)
    slow = [(at, words) for at, text in enumerate(texts) for words in slow_sentences(text, lowercase=lowercase)]
    expected = [[BOS, *(cut.vocabulary.id_of(word) for word in words), EOS] for _, words in slow]
    assert encoded.lengths.tolist() == [len(ids) for ids in expected]
    assert encoded.text_of.tolist() == [at for at, _ in slow]
    assert encoded.ids.tolist() == list(chain.from_iterable(expected))
    assert {encoded.ids.dtype, encoded.lengths.dtype, encoded.text_of.dtype} == {np.dtype(np.int32)}


@given(sentence=st.lists(st.sampled_from(KNOWN), min_size=1, max_size=8))
def test_known_words_come_back(sentence: list[str]) -> None:
    cut = tokenizer()
    ids = cut.encode([" ".join(sentence)]).ids
    assert [cut.vocabulary.word_of(int(id)) for id in ids] == ["<bos>", *sentence, "<eos>"]


@given(texts=st.lists(TEXTS, max_size=4))
def test_counts_agree_with_sentences(texts: list[str]) -> None:
    cut = tokenizer()
    words = [word for text in texts for words in cut.sentences(text) for word in words]
    counts = count_words(texts)
    assert counts.total() == sum(not is_placeholder(word) for word in words)
    assert all(counts[word] == words.count(word) for word in counts)
    assert LINE_END not in counts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello there, Dr. Smith! How are you", [["Hello", "there", "Dr", "Smith"], ["How", "are", "you"]]),
        (
            'It was J. Smith (yes.) He said "no." Then',
            [["It", "was", "J", "Smith", "yes"], ["He", "said", "no"], ["Then"]],
        ),
        ("well... maybe. So... What?!", [["well", "maybe"], ["So"], ["What"]]),
        ("so…then 3.14 at 10:30.", [["so", "then", "3.14", "at", "10:30"]]),
        ("I don’t know. ok", [["I", "don't", "know"], ["ok"]]),
        ("well-known foo_bar 'em dogs'", [["well", "known", "foo", "bar", "em", "dogs"]]),
        ("see http://a.b/c?dd. or <url>\nnext", [["see", "http://a.b/c?dd"], ["or", "<url>"], ["next"]]),
        ("... !!! 😀 \n\n", []),
        ("", []),
    ],
)
def test_examples(text: str, sentences: list[list[str]]) -> None:
    assert tokenizer().sentences(text) == sentences


def test_placeholders_and_specials_in_text_are_out_of_vocabulary() -> None:
    ids = tokenizer().encode(["<url> <bos> <eos> <oov> <pad>"]).ids.tolist()
    assert ids == [BOS, OOV, OOV, OOV, OOV, OOV, EOS]


def test_nothing_gives_nothing() -> None:
    for texts in ([], [""], ["", "..."]):
        encoded = tokenizer().encode(texts)
        assert len(encoded.ids) == len(encoded.lengths) == len(encoded.text_of) == 0
