"""Text becomes sentences and ids by one rule: the fast path, its slow reference, and the arrangement of ids."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.slow_words import canonical as slow_canonical
from tests.text.slow_words import slow_sentences

from tacit.errors import InputError
from tacit.text.counted_words import count_words
from tacit.text.tokens import Tokenizer
from tacit.text.vocabulary import BOS, EOS, OOV, Provenance, Vocabulary
from tacit.text.words import AS_TYPED, LINE_END, Writing, canonical, is_placeholder, lowered, pieces, sentences

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
MARKS = (".", "..", "...", "…", "!", "?", "?!", "'", "’", "’s", '"', ")", "(", " ", " ", " ", "\n", "؟", "।", "。")
# Control characters and breaks of lines, joiners and marks, sigma, i of all kinds, scripts with rules of their own.
ODD = (
    *(
        "\r",
        "\r\n",
        "\v",
        "\f",
        "\x1c",
        "\x1f",
        "\x85",
        "\u2028",
        "\u2029",
        "\u202f",
        "\u3000",
        "\u200b",
        "\x00",
        "\x7f",
    ),
    *("\u200c", "\u200d", "\u00ad", "\u200f", "\u2060", "\ufeff", "\u0301", "\u0307", "\ufe0f", "\ufe0e", "\u20e3"),
    *(
        "Σ",
        "σ",
        "ς",
        "ΟΔΟΣ",
        "İ",
        "I",
        "ı",
        "i",
        "ß",
        "ẞ",
        "J\u030c",
        "K",
        "ﬁ",
        "·",
        "‘",
        "ʻ",
        "²",
        "½",
        "_",
        ":",
        ";",
        "‿",
    ),
    *(
        "می\u200cخواهم",
        "ශ්\u200dරී",
        "क्\u200dष",
        'צה"ל',
        "צה״ל",
        "ג׳",
        "ש",
        "東京",
        "カ",
        "かな",
        "ไทย",
        "한국어",
        "ᠮᠣ\u180eᠠ",
    ),
    *(
        "👍🏽",
        "👨\u200d👩\u200d👧",
        "🇩🇪",
        "🇩",
        "1\ufe0f\u20e3",
        "1\u20e3",
        "❤",
        "❤\ufe0f",
        "©",
        "🏴\U000e0067\U000e007f",
        "𝒜",
        "𐐀",
    ),
)
SCRAPS = st.sampled_from(WORDY + OTHER + MARKS + ODD)
TEXTS = (
    st.lists(SCRAPS, max_size=25).map("".join)
    | st.text("aB.'1! \n<>_", max_size=15)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
WRITINGS = st.builds(
    Writing, lowercase=st.booleans(), language=st.sampled_from(["", "tr", "lt", "uz", "el"]), emoji=st.booleans()
)


def tokenizer(writing: Writing = AS_TYPED) -> Tokenizer:
    words = dict.fromkeys(lowered(word, writing.language) if writing.lowercase else word for word in KNOWN)
    return Tokenizer(Vocabulary(words=tuple(words), provenance=PUBLIC, **vars(writing)))


@given(text=TEXTS, emoji=st.booleans())
def test_sentences_are_those_of_the_slow_twin(text: str, emoji: bool) -> None:
    writing = Writing(emoji=emoji)
    assert sentences(text, writing) == slow_sentences(canonical(text, writing), emoji=emoji)


@given(text=TEXTS)
def test_the_canonical_form_is_that_of_the_slow_twin(text: str) -> None:
    assert canonical(text) == slow_canonical(text) == canonical(canonical(text))


@given(text=TEXTS, writing=WRITINGS)
def test_case_changes_spelling_and_no_cut(text: str, writing: Writing) -> None:
    as_typed = pieces(text, Writing(language=writing.language, emoji=writing.emoji))
    spelled = [lowered(word, writing.language) for word in as_typed] if writing.lowercase else as_typed
    assert pieces(text, writing) == spelled


@given(text=TEXTS, writing=WRITINGS)
def test_a_word_of_a_text_is_a_word_alone(text: str, writing: Writing) -> None:
    """So that whatever is counted can be in a vocabulary, and be found by its id."""
    for word in count_words([text], writing):
        assert pieces(word, writing) == [word]
        known = Vocabulary(words=(word,), provenance=PUBLIC, **vars(writing))
        assert known.id_of(word) in Tokenizer(known).encode([text]).ids


@given(texts=st.lists(TEXTS, max_size=6), writing=WRITINGS)
def test_ids_align_with_sentences(texts: list[str], writing: Writing) -> None:
    """Every id stands for the word in its place."""
    cut = tokenizer(writing)
    encoded = cut.encode(texts)
    slow = [(at, words) for at, text in enumerate(texts) for words in sentences(text, writing)]
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


@given(texts=st.lists(TEXTS, max_size=4), writing=WRITINGS)
def test_counts_agree_with_ids(texts: list[str], writing: Writing) -> None:
    """Of a vocabulary of everything counted, each word has as many ids as it was counted."""
    counts = count_words(texts, writing)
    assert LINE_END not in counts and not any(map(is_placeholder, counts))
    if counts:
        known = Vocabulary(words=tuple(counts), provenance=PUBLIC, **vars(writing))
        ids = Tokenizer(known).encode(texts).ids.tolist()
        assert {word: ids.count(known.id_of(word)) for word in counts} == counts


@pytest.mark.parametrize(
    ("text", "cut"),
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
        ("می\u200cخواهم بروم؟ بله", [["می\u200cخواهم", "بروم"], ["بله"]]),
        ("ශ්\u200dරී ලංකා", [["ශ්\u200dරී", "ලංකා"]]),
        ("ന്\u200d ക്ഷ", [["ന്", "ക്ഷ"]]),  # a joiner at the end shapes nothing
        ("co\u00adop Auf\u200clage \u200fשלום\u200f", [["coop", "Auflage", "שלום"]]),
        ('paral·lel צה"ל צה״ל O‘zbek EU:s', [["paral·lel", 'צה"ל', "צה״ל", "O‘zbek", "EU:s"]]),
        ("मैं घर। जाता。है", [["मैं", "घर"], ["जाता"], ["है"]]),
        ("a\rb\u2028c\x85d\r\ne\vf\fg\u2029h", [[letter] for letter in "abcdefgh"]),
        ("www.a\x1fb", [["www.a", "b"]]),
        ("Bonjour\u202f! Ça va\xa0? Oui", [["Bonjour"], ["Ça", "va"], ["Oui"]]),
        ("CO₂ m² 1980's 東京タワー", [["CO₂", "m²", "1980's", "東京タワー"]]),
        ("what?, he said. «Oui.» no", [["what", "he", "said"], ["Oui"], ["no"]]),
        ("... !!! 😀 \n\n", []),
        ("", []),
    ],
)
def test_examples(text: str, cut: list[list[str]]) -> None:
    assert tokenizer().sentences(text) == cut


def test_placeholders_and_specials_in_text_are_out_of_vocabulary() -> None:
    ids = tokenizer().encode(["<url> <bos> <eos> <oov> <pad>"]).ids.tolist()
    assert ids == [BOS, OOV, OOV, OOV, OOV, OOV, EOS]


def test_nothing_gives_nothing() -> None:
    for texts in ([], [""], ["", "..."]):
        encoded = tokenizer().encode(texts)
        assert len(encoded.ids) == len(encoded.lengths) == len(encoded.text_of) == 0


@pytest.mark.parametrize(
    ("language", "typed", "words"),
    [
        ("", "İstanbul ISPARTA", ["istanbul", "isparta"]),
        ("tr", "İstanbul ISPARTA İĞDIR I\u0307z", ["istanbul", "ısparta", "iğdır", "iz"]),
        ("az", "BAKI", ["bakı"]),
        ("lt", "\u00cc \u012e\u0301", ["i\u0307\u0300", "\u012f\u0307\u0301"]),
        ("el", "ΟΔΟΣ ΣΑΣ. ΟΔΟΣ.ΟΔΟΣ ΟΔΟΣ'", ["οδος", "σας", "οδος", "οδος", "οδος"]),
        ("de", "STRASSE STRAẞE", ["strasse", "straße"]),
        ("uz", "O'ZBEK O‘ZBEK Oʻzbek tog’", ["oʻzbek", "oʻzbek", "oʻzbek", "togʻ"]),
    ],
)
def test_lower_case_is_that_of_the_language(language: str, typed: str, words: list[str]) -> None:
    found = pieces(typed, Writing(lowercase=True, language=language))
    assert [word for word in found if word != LINE_END] == words


def test_emoji_are_words_by_choice() -> None:
    text = (
        "hi 👍🏽👨\u200d👩\u200d👧 🇩🇪🇫🇷 1\u20e3 ❤ ❤\ufe0f 👍\ufe0f © ☺\ufe0e 👁\u200d🗨 🏴\U000e0067\U000e0062\U000e007f"
    )
    assert sentences(text) == [["hi", "1\u20e3"]]
    emoji = ["👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "🇫🇷", "1️⃣", "❤️", "❤️", "👍", "👁️\u200d🗨️"]
    assert sentences(text, Writing(emoji=True)) == [["hi", *emoji, "🏴\U000e0067\U000e0062\U000e007f"]]
    known = Vocabulary(words=("hi", "❤\ufe0f"), provenance=PUBLIC, emoji=True)
    assert Tokenizer(known).encode(["hi ❤"]).ids.tolist() == [BOS, 4, 5, EOS]


def test_a_language_is_a_code() -> None:
    with pytest.raises(InputError, match="language 'Turkish' is no code of ISO 639"):
        Writing(language="Turkish")


@pytest.mark.parametrize(
    "text",
    [".", "!)", "a'", "<a", "www.", "\u200c", "ب\u200c", "1:", "… , ", "... 1 ", "א'", "❤\u200d", "🇩"],
    ids=ascii,
)
def test_time_grows_with_the_text_alone(text: str) -> None:
    """Each mark was looked at again from each before it: a million points took hours."""
    for writing in (AS_TYPED, Writing(emoji=True, lowercase=True)):
        assert pieces(text * 50_000 + "x", writing)[-1].endswith("x")
