"""What somebody sees who types: hand-made texts, key by key."""

import unicodedata
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.keyboard.tabled import drawn, table_of, words_of

from tacit.errors import InputError
from tacit.jobs.live_keyboard import live_keyboard
from tacit.keyboard.decoder import Decoder
from tacit.keyboard.lexicon import Lexicon
from tacit.keyboard.live_keyboard import Key, LiveKeyboard
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.touch import LAYOUTS, TouchModel
from tacit.text.vocabulary import Vocabulary

VOCABULARY = words_of("the", "quick", "thank", "you", "for", "don't", "dr")
ROWS = {
    "<bos>": {"the": 0.4, "thank": 0.3, "quick": 0.1, "don't": 0.1},
    "the": {"quick": 0.5, "the": 0.2},
    "thank": {"you": 0.9},
    "you": {"for": 0.6, "<eos>": 0.2},
    "<oov>": {"you": 0.4, "for": 0.3, "the": 0.1},
}
MODEL = PhoneModel(name="m", reader=table_of(VOCABULARY, ROWS), vocabulary=VOCABULARY, digest="")


def typed(keys: Iterable[str], model: PhoneModel = MODEL) -> LiveKeyboard:
    keyboard = live_keyboard(model)
    for key in keys:
        keyboard.press(key)
    return keyboard


def test_next_words_then_words_that_may_be_meant() -> None:
    assert typed("").offered.strip == ("the", "thank", "quick")
    assert typed("q").offered.strip[0] == "quick"
    assert typed("Tha").offered.strip[0] == "Thank"
    assert typed("thank ").offered.strip[0] == "you"


def test_a_blank_corrects_what_is_no_word_and_backspace_takes_that_back_for_good() -> None:
    keyboard = typed("teh")
    assert keyboard.offered.correction == "the"
    keyboard.press(" ")
    assert (keyboard.text, keyboard.typed, keyboard.offered.strip[0]) == ("the ", "", "quick")
    keyboard.press(Key.BACKSPACE)
    assert (keyboard.text, keyboard.typed, keyboard.offered.correction) == ("", "teh", None)
    keyboard.press(" ")
    assert (keyboard.text, keyboard.offered.strip[0]) == ("teh ", "you"), "read as an unknown word"


def test_capitals_are_those_of_the_language() -> None:
    turkish = replace(words_of("izmir", "iyi", "ırmak"), language="tr", lowercase=True)
    rows = {"<bos>": {"izmir": 0.5, "iyi": 0.3, "ırmak": 0.1}}
    model = PhoneModel(name="m", reader=table_of(turkish, rows), vocabulary=turkish, digest="")
    assert typed("İ", model).offered.strip[:2] == ("İzmir", "İyi")
    assert typed("İZ", model).offered.strip[0] == "İZMİR"
    assert typed("IRMAK ", model).text == "IRMAK " and typed("Irmak ", model).text == "Irmak ", "ırmak is known"


@pytest.mark.parametrize("text", ["the ", "zanzibar ", "x8 ", "The Quick "])
def test_a_blank_keeps_what_is_well_or_beyond_it(text: str) -> None:
    assert typed(text).text == text


def test_apostrophes_are_put_in() -> None:
    assert typed("dont ").text == "don't "


def test_a_phrase_is_taken_whole_and_given_back_whole() -> None:
    keyboard = typed("tha")
    assert keyboard.offered.phrase == "nk you for"
    keyboard.press(Key.PHRASE)
    assert (keyboard.text, keyboard.typed) == ("thank you for ", "")
    keyboard.press(Key.BACKSPACE)
    assert (keyboard.text, keyboard.typed, keyboard.offered.phrase) == ("", "tha", "nk you for")


def test_words_are_picked_and_marks_follow_them_closely() -> None:
    keyboard = typed([Key.FIRST, Key.SECOND, "."])
    assert keyboard.text == "the the." and keyboard.offered.strip[0] == "the", "a sentence begins"
    keyboard.press(Key.FIRST)
    assert keyboard.text == "the the. the "
    assert typed("thank, ").text == "thank, "
    assert typed(["t", "h", "e", Key.ENTER, Key.SECOND]).text == "the\nthank "


def test_a_mark_ends_a_sentence_where_training_text_does() -> None:
    """Not behind a single letter, nor before a comma."""
    first = typed("").offered.strip
    assert typed("thank.").offered.strip == typed("thank!").offered.strip == first
    assert typed("thank,").offered.strip != first and typed("x.").offered.strip != first


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("8 ", "8 "),
        ("7th of 2nd ", "7th of 2nd "),
        ("3.14 10:30 1,000, ", "3.14 10:30 1,000, "),
        ("8. teh ", "8. the "),
        ("8.teh ", "8.the "),
        ("8..", "8.."),
        (["8", ".", Key.ENTER], "8.\n"),
        ("teh-teh (teh) ¿teh? ", "the-the (the) ¿the? "),
        ('"teh" ', '"the" '),
        ("teh@teh #teh a/b ", "teh@teh #teh a/b "),
        (["(", Key.FIRST, ")", Key.FIRST], "(the) quick "),
        (['"', Key.FIRST, "-", Key.FIRST], '"the -quick '),
    ],
)
def test_digits_and_signs_are_typed_as_they_are(keys: Iterable[str], text: str) -> None:
    assert typed(keys).text == text


def test_before_the_decoder_is_there_words_begin_as_typed_and_nothing_is_corrected() -> None:
    coming: Future[Decoder] = Future()
    keyboard = LiveKeyboard(MODEL, coming)
    assert keyboard.offered[:2] == (("the", "thank", "quick"), None) and not keyboard.ready
    for key in "Th":
        keyboard.press(key)
    assert keyboard.offered.strip == ("The", "Thank") and not keyboard.offered.corrects
    for key in (Key.BACKSPACE, Key.BACKSPACE, *"teh"):
        keyboard.press(key)
    assert keyboard.offered[:2] == ((), None)
    coming.set_result(Decoder(Lexicon.from_words(VOCABULARY.words, LAYOUTS["qwerty"]), TouchModel()))
    assert keyboard.ready and keyboard.offered.corrects and keyboard.offered.correction == "the", "without a key"
    again = live_keyboard(MODEL, wait=False)
    for key in "t":
        again.press(key)
    assert again.offered.strip[:1] == ("the",) or not again.ready
    assert again._coming.result(60) and again.offered == typed("t").offered


def test_a_number_offers_nothing_and_is_given_back_key_by_key() -> None:
    keyboard = typed("8.")
    assert (keyboard.text, keyboard.typed) == ("", "8.") and keyboard.offered[:3] == ((), None, "")
    keyboard.press("5")
    assert keyboard.typed == "8.5"
    for left in ("8.", "8", ""):
        keyboard.press(Key.BACKSPACE)
        assert keyboard.typed == left


ROMANCE = words_of("esta", "está", "están", "ano", "año", "años", "man", "mañana", "el", "él", "fue")


@pytest.mark.parametrize("layout", ["qwerty", "qwerty-es"])
def test_accents_come_by_themselves_and_where_they_are_typed_they_are_meant(layout: str) -> None:
    model = PhoneModel(
        name="m", reader=table_of(ROMANCE, {"<bos>": dict.fromkeys(ROMANCE.words, 0.08)}), vocabulary=ROMANCE, digest=""
    )

    def shown(text: str) -> tuple[tuple[str, ...], str | None]:
        keyboard = live_keyboard(model, layout=layout)
        for key in text:
            keyboard.press(key)
        return keyboard.offered.strip, keyboard.offered.correction

    assert set(shown("esta")[0]) == {"esta", "está", "están"}
    assert shown("está")[0][:2] == ("está", "están") and shown("Él")[0][0] == "Él"
    assert shown("estn")[1] in ("están", "esta", "está"), "an accent is put in"
    assert shown("mañ")[0][0] == "mañana" and shown("mañ")[1] != "man", "none is taken away"
    assert shown("año")[0][:2] == ("año", "años")
    assert "ano" in shown("ano")[0] and ("año" in shown("ano")[0]) == (layout == "qwerty")


def test_letters_that_begin_no_word_have_an_empty_strip() -> None:
    assert typed("zxq").offered.strip == typed("kkkk").offered.strip == ()
    assert typed("q").offered.strip[0] == "quick", "however rare it is"
    assert typed("teh").offered.strip[0] == "the" and typed("thnak").offered.strip[0] == "thank"


def test_keys_are_counted_and_others_do_nothing() -> None:
    keyboard = typed([Key.FIRST, "\x1b", "\x00", "up", Key.PHRASE])
    assert (keyboard.text, keyboard.keys) == ("the quick ", 2)
    assert typed("x" * 70).offered.strip == (), "more taps than a word has"
    with pytest.raises(InputError, match="key=3 is of the type int"):
        keyboard.press(3)  # type: ignore[arg-type]


KEYS = st.sampled_from([*'tehQUICK 137.,:-("\x1bé\u0301\u200d👩💻', *Key])


@given(st.lists(KEYS, max_size=12), st.integers(0, 5))
def test_undone_it_is_as_it_was(keys: list[str], seed: int) -> None:
    """Whatever was typed, backspace alone leads back to nothing, and what is offered is that of a fresh keyboard."""
    model = PhoneModel(name="m", reader=drawn(seed, VOCABULARY.size, 3.0), vocabulary=VOCABULARY, digest="")
    keyboard = typed(keys, model)
    for _ in range(30):
        keyboard.press(Key.BACKSPACE)
    assert keyboard.text == keyboard.typed == "" and keyboard.offered == typed("", model).offered


PICKED = ["q", Key.FIRST], [Key.SECOND], [Key.PHRASE]
WORDS = "the ", "teh ", "thank. ", "x. ", "Dr. ", "you! ", ", ", "un "
SIGNS = "8. ", "3.5 ", "10:30, ", "8.the ", "(the) ", '"you!" ', "thank-you ", "¿the? ", "#the ", "teh) "
WRITTEN = st.sampled_from([*PICKED, *WORDS, *SIGNS])


@given(st.lists(WRITTEN, max_size=12), st.integers(0, 5))
def test_what_is_offered_is_that_of_the_text(written: list[str], seed: int) -> None:
    """However it was written, a session that reads the text at once suggests the same words."""
    model = PhoneModel(name="m", reader=drawn(seed, VOCABULARY.size, 3.0), vocabulary=VOCABULARY, digest="")
    keyboard, session = typed([key for keys in written for key in keys], model), model.typing()
    session.commit(keyboard.text)
    assert keyboard.offered.strip == tuple(each.word for each in session.next_words())


# -- what is typed is kept ---------------------------------------------------------------------------------------------

CASED = words_of("hello", "help", "Paris", "NASA", "iPhone", "I", lowercase=False)
HELLO = PhoneModel(
    name="m",
    reader=table_of(CASED, {"<bos>": dict.fromkeys(CASED.words, 0.1), "hello": {"help": 0.9}}),
    vocabulary=CASED,
    digest="",
)
LOWER = replace(CASED, words=tuple(word.lower() for word in CASED.words), lowercase=True)


@pytest.mark.parametrize("vocabulary", [CASED, LOWER], ids=["capitals kept", "lower case"])
@pytest.mark.parametrize(
    "word", ["HELLO", "hELLO", "HeLLo", "heLLo", "Hello", "hello", "PARIS", "NASA", "iPhone", "IPHONE"]
)
def test_capitals_stay_as_they_are_typed(word: str, vocabulary: Vocabulary) -> None:
    model = PhoneModel(name="m", reader=HELLO.reader, vocabulary=vocabulary, digest="")
    assert typed(f"{word} ", model).text == f"{word} "
    for end in range(1, len(word)):
        assert typed(word[:end], model).typed == word[:end]


@pytest.mark.parametrize(
    ("keys", "first", "correction"),
    [
        ("hel", "hello", None),
        ("Hel", "Hello", None),
        ("HEL", "HELLO", None),
        ("hEL", "hELlo", None),  # as it is typed, as far as it is
        ("hELx", None, None),
        ("HWLLO", None, "HELLO"),
        ("Hwllo", None, "Hello"),
        ("hwllo", None, "hello"),
        ("hwLLo", None, None),
        ("iPh", "iPhone", None),
        ("NAS", "NASA", None),
    ],
)
def test_suggestions_go_on_in_the_capitals_of_what_is_typed(
    keys: str, first: str | None, correction: str | None
) -> None:
    offered = typed(keys, HELLO).offered
    if first is not None:
        assert offered.strip[0] == first
    if correction is not None or first is None:
        assert offered.correction == correction
    coming = LiveKeyboard(HELLO, Future())
    for key in keys:
        coming.press(key)
    assert first is None or coming.offered.strip[0] == first, "without the decoder, too"
    assert typed("IPH", HELLO).offered.strip[0] == "IPHONE", "of capitals inside, too, with it"


@pytest.mark.parametrize(
    ("keys", "phrase"), [("tha", "nk you for"), ("Tha", "nk you for"), ("THA", "NK YOU FOR"), ("tHA", "nk you for")]
)
def test_a_phrase_goes_on_in_the_capitals_of_what_is_typed(keys: str, phrase: str) -> None:
    keyboard = typed(keys)
    assert keyboard.offered.phrase == phrase
    keyboard.press(Key.PHRASE)
    assert keyboard.text == f"{keys}{phrase} "


CHARACTERS = ["👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "1️⃣", "❤️", "e\u0301", "각", "نی\u200c"[1:], "ක්\u200dෂ"[:3], "a"]


@pytest.mark.parametrize("after", ["", "x", "the ", "8."])
def test_backspace_takes_one_character_away(after: str) -> None:
    """However many code points it has, one at a time, and joiners are typed like letters."""
    keyboard = typed(after)
    text, before = keyboard.text, keyboard.text + keyboard.typed
    for character in CHARACTERS:
        for point in character:
            keyboard.press(point)
    assert keyboard.text + keyboard.typed == before + "".join(CHARACTERS)
    for left in range(len(CHARACTERS) - 1, -1, -1):
        keyboard.press(Key.BACKSPACE)
        assert keyboard.text + keyboard.typed == before + "".join(CHARACTERS[:left])
    assert keyboard.text.startswith(text)


def test_a_character_is_one_key_however_many_code_points_it_has() -> None:
    """As a page of emoji presses them."""
    keyboard = typed(["👨‍👩‍👧‍👦", "e\u0301", "up", "\r\n", "", "\ud83d"])
    assert (keyboard.typed, keyboard.keys) == ("👨‍👩‍👧‍👦e\u0301", 2)


KEPT = st.one_of(st.text(max_size=12), st.text(" aehTEHqu.,!\u00a0\u200c\u200d\u3000👩💻🏽é\u0301-'\n8", max_size=12))


def keys_of(text: str) -> list[str]:
    """As a terminal sends them."""
    return [Key.ENTER if sign == "\n" else sign for sign in text]


def without_controls(text: str) -> str:
    return "".join(sign for sign in text if sign in "\n" or unicodedata.category(sign) not in ("Cc", "Cs"))


@given(KEPT)
def test_what_is_typed_comes_out(text: str) -> None:
    """All of it where nothing is corrected; else all but what was announced to be."""
    plain = LiveKeyboard(MODEL, Future())
    for key in keys_of(text):
        plain.press(key)
    assert plain.text + plain.typed == without_controls(text)
    keyboard, wanted = live_keyboard(MODEL), ""
    for key in keys_of(text):
        before, correction = keyboard.typed, keyboard.offered.correction
        keyboard.press(key)
        wanted += without_controls("\n" if key is Key.ENTER else key)
        if correction is not None and not keyboard.typed.startswith(before):
            wanted = wanted[: -len(before) - 1] + correction + wanted[-1:]
        assert keyboard.text + keyboard.typed == wanted


@given(KEPT, KEPT)
def test_what_is_pasted_comes_out(before: str, text: str) -> None:
    keyboard = live_keyboard(MODEL)
    keyboard.paste(before)
    keyboard.paste(text)
    pasted = without_controls(before) + without_controls(text)
    assert keyboard.text + keyboard.typed == pasted and keyboard.keys == 2
    whole = MODEL.typing()
    whole.commit(keyboard.text)
    assert keyboard.typed or keyboard.offered.strip == tuple(each.word for each in whole.next_words())
    for _ in range(len(pasted) + 2):
        keyboard.press(Key.BACKSPACE)
    assert keyboard.text + keyboard.typed == ""


def test_pasted_words_are_not_corrected_and_line_ends_are_lines() -> None:
    keyboard = typed("x")
    keyboard.paste("y teh\r\nteh\rteh\x1b[Ateh\tteh")
    keyboard.press(" ")
    assert keyboard.text == "xy teh\nteh\nteh[Ateh\tteh "
    with pytest.raises(InputError, match="text=3 is of the type int"):
        keyboard.paste(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("bonjour !", "bonjour !"),
        ("a  b ", "a  b "),
        (["t", Key.FIRST, " ", "x", " "], "the x "),  # its own blank counts for one that is typed
        (["t", Key.FIRST, "!"], "the!"),
        (["t", Key.FIRST, " ", "!"], "the !"),
        ("teh\u3000teh\u00a0", "the\u3000the\u00a0"),
    ],
)
def test_blanks_that_are_typed_are_kept(keys: Iterable[str], text: str) -> None:
    assert typed(keys).text == text


def test_what_cannot_be_typed_with_is_refused() -> None:
    with pytest.raises(InputError, match="layout 'azerty' is unknown; it is one of qwerty, qwerty-es"):
        live_keyboard(MODEL, layout="azerty")
    with pytest.raises(InputError, match="threshold=0 is no probability above 0"):
        live_keyboard(MODEL, threshold=0)
    greek = words_of("και", "το", "να")
    with pytest.raises(InputError, match="choose a layout of their script"):
        live_keyboard(PhoneModel(name="m", reader=drawn(0, 7, 1.0), vocabulary=greek, digest=""))
