"""A counted model's dictionary: exactly what its tables and its bend say, words of more text, one spelling a form."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.keyboard.tabled import words_of

from tacit.keyboard.dictionaries.bigram_steps import sayable
from tacit.keyboard.dictionaries.entries import BEGINNING, Dictionary, header_attributes
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary, static_dictionary
from tacit.keyboard.dictionaries.format_403 import dictionary_of_files, dynamic_dictionary
from tacit.keyboard.dictionaries.from_counts import Counts
from tacit.keyboard.dictionaries.from_model import Asking, _Both, asked_of, known_by
from tacit.keyboard.dictionaries.more_words import MoreWords
from tacit.keyboard.dictionaries.reference_engine import DictionaryEngine
from tacit.keyboard.mixture import MixtureReader
from tacit.networks.ngram.bend import Bend, Observed, ObservedCells
from tacit.networks.ngram.kneser_ney import kneser_ney
from tacit.networks.ngram.reader import NGramReader
from tacit.networks.ngram.tables import NGramTables
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS, Vocabulary

WORDS = ("the", "cat", "dog", "and", "The", "Cat", "canción", "mañana", "👋")
VOCABULARY = Vocabulary(words=WORDS, provenance=words_of("a").provenance, emoji=True)
TEXT = [
    "the cat and the dog and the cat", "The dog and the cat 👋", "the Cat and mañana la canción", "mañana la canción 👋"
] * 5  # fmt: skip
HOSTILE = "a\tb ☠️ <script> ,f=255 word=x \u202e x\x1fy \U0010ffff"


def tables_of(texts: list[str]) -> NGramTables:
    ids = [BOS]
    for text in texts:
        ids += [*(VOCABULARY.id_of(each) for each in VOCABULARY.pieces(text)), EOS, BOS]
    return NGramTables.packed(kneser_ney(np.array(ids[:-1]), vocabulary=VOCABULARY.size, order=3, cutoffs=(1, 1)), 0.3)


TABLES = tables_of(TEXT)


def bend_of(**pairs: float) -> Bend:
    """Counts of epsilon infinity: pairs that are typed more than the public text says."""
    counts = np.full((9, 9), 5.0)
    for names, count in pairs.items():
        first, second = (WORDS.index(each) for each in names.split("_"))
        counts[first, second] = count
    return Bend.fitted(TABLES, Observed(ObservedCells.dense(counts.sum(0), 1e-3), ObservedCells.dense(counts, 1e-3)))


def probability(f: float) -> float:
    return float(1.15 ** (f - 255))


def slow_followers(weights: Any) -> list[tuple[str, float]]:
    """The shares of the known words after one, those that differ in capitals as one, the likeliest first."""
    shares, spelled = Counter[str](), dict[str, tuple[float, str]]()
    total = sum(weights[id] for id in range(len(weights)) if id != EOS)
    for id in range(SPECIALS, VOCABULARY.size):
        word = VOCABULARY.word_of(id)
        shares[word.lower()] += weights[id] / total
        spelled[word.lower()] = max(
            spelled.get(word.lower(), (-1.0, "")), (weights[id], word), key=lambda each: each[0]
        )
    return [(spelled[form][1], share) for form, share in shares.most_common()]


@pytest.mark.parametrize("bent", [False, True])
def test_what_follows_is_exactly_what_the_tables_and_the_bend_say(bent: bool) -> None:
    bend = bend_of(cat_dog=4000.0) if bent else None
    reader = MixtureReader(TABLES, bend) if bent else NGramReader(TABLES)
    made = asked_of(reader, VOCABULARY, followers=True, pairs=True)
    assert {entry.word for entry in made.entries} == set(WORDS)
    for word in WORDS:
        id = VOCABULARY.id_of(word)
        plain = TABLES.after_pairs(id)
        wanted = slow_followers((plain if bend is None else bend.bent(plain, (id,))).astype(np.float64))
        found = made.followers[(word,)]
        assert [each for each, _ in found] == [each for each, _ in wanted[: len(found)]]
        for (_, f), (_, share) in zip(found, wanted, strict=False):
            assert probability(f) == pytest.approx(share, rel=1e-5)
    assert (made.followers[("cat",)][0][0] == "dog") is bent  # a released pair is there, and only then
    assert made.followers[(BEGINNING,)]
    for context, followers in made.followers.items():
        if len(context) == 2 and context[0] != BEGINNING:
            ids = tuple(map(VOCABULARY.id_of, context))
            plain = TABLES.after(ids)
            shares = dict(slow_followers((plain if bend is None else bend.bent(plain, ids)).astype(np.float64)))
            for word, f in followers:
                assert probability(f) == pytest.approx(shares.get(word, 1.15**-254), rel=1e-4)


def test_words_that_differ_in_capitals_take_one_place() -> None:
    known = Counts(TABLES)
    ids = SPECIALS + np.arange(len(WORDS))
    asking = Asking(known, VOCABULARY, ids)
    weights = np.zeros(VOCABULARY.size)
    for word, weight in {"the": 1.0, "The": 3.0, "cat": 3.5, "Cat": 0.2, "dog": 2.0}.items():
        weights[VOCABULARY.id_of(word)] = weight
    found = asking.likeliest(weights, 3)
    assert [word for word, _ in found] == ["The", "cat", "dog"]
    assert probability(found[0][1]) == pytest.approx(4.0 / 9.7) and probability(found[2][1]) == pytest.approx(2 / 9.7)


@given(st.lists(st.floats(0.0, 10.0), min_size=9, max_size=9), st.integers(1, 9))
def test_one_spelling_a_form_as_the_slow_way_has_it(known: list[float], most: int) -> None:
    asking = Asking(Counts(TABLES), VOCABULARY, SPECIALS + np.arange(len(WORDS)))
    weights = np.array([0.0] * SPECIALS + known)
    if not sum(known) > 1e-3:
        return
    found = asking.likeliest(weights, most)
    wanted = dict(slow_followers(weights))
    assert len({word.lower() for word, _ in found}) == len(found)
    for word, f in found:
        assert word in wanted and probability(f) == pytest.approx(wanted[word], rel=1e-6)


def test_a_network_beside_counts_says_its_share() -> None:
    class Always:
        """Says "dog" whatever stood before."""

        def begin(self) -> None:
            return None

        def step(self, state: None, token: int) -> tuple[None, Any]:
            scores = np.full(VOCABULARY.size, -30.0, np.float32)
            scores[VOCABULARY.id_of("dog")] = 0.0
            return None, scores

    reader = MixtureReader(TABLES, None, Always(), weight=0.5)
    assert isinstance(known_by(reader), _Both) and isinstance(known_by(MixtureReader(TABLES)), Counts)
    made = asked_of(reader, VOCABULARY, followers=True)
    counted = asked_of(NGramReader(TABLES), VOCABULARY, followers=True)
    own, alone = ({entry.word: entry.f for entry in each.entries} for each in (made, counted))
    assert own["dog"] > alone["dog"] + 1 and own["cat"] < alone["cat"] - 1
    assert made.followers[("cat",)][0][0] == "dog" != counted.followers[("cat",)][0][0]
    assert probability(made.followers[("cat",)][0][1]) > 0.5


# -- more words ----------------------------------------------------------------------------------------------------


def more_of(texts: list[str], most: int = 100) -> MoreWords:
    return MoreWords.counted(texts, VOCABULARY, source="public text of a test", most=most)


def test_more_words_share_what_unknown_words_have_and_follow_their_counts() -> None:
    texts = ["zebra cat", "zebra cat", "zebra dog", "zebra", "yak the", "<user> <url> zebra cat"]
    more = more_of(texts)
    assert {word: each.times for word, each in more.words.items()} == {"zebra": 5, "yak": 1}
    assert more.unknown == 8  # placeholders are unknown, too, and no words of a dictionary
    made = asked_of(NGramReader(TABLES), VOCABULARY, followers=True, more=more)
    known = known_by(NGramReader(TABLES))
    shares, usual = known.shares.copy(), known.after(OOV).copy()
    shares[EOS] = usual[:SPECIALS] = 0.0
    own = {entry.word: probability(entry.f) for entry in made.entries}
    assert own["zebra"] == pytest.approx(shares[OOV] / shares.sum() * 5 / 8, rel=1e-6)
    smoothed = 2 * usual / usual.sum()
    smoothed[[VOCABULARY.id_of("cat"), VOCABULARY.id_of("dog")]] += 3, 1
    wanted = slow_followers(smoothed)[:3]
    found = made.followers[("zebra",)]
    assert [word for word, _ in found] == [word for word, _ in wanted]
    np.testing.assert_allclose([probability(f) for _, f in found], [share for _, share in wanted], rtol=1e-6)
    assert wanted[0][0] == "cat"
    assert ("yak",) not in asked_of(NGramReader(TABLES), VOCABULARY, followers=False, more=more).followers
    assert list(more_of(texts, most=1).words) == ["zebra"]


@settings(max_examples=40)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_text_gives_words_that_every_format_reads_back(texts: list[str]) -> None:
    made = asked_of(NGramReader(TABLES), VOCABULARY, followers=True, pairs=True, more=more_of([*texts, HOSTILE]))
    whole = Dictionary(
        attributes=header_attributes(locale="en", description="a test", date=0),
        entries=made.entries,
        followers=made.followers,
    )
    read = read_static_dictionary(static_dictionary(sayable(whole)))
    assert {entry.word for entry in read.entries} == {entry.word for entry in made.entries}
    both = dictionary_of_files(dynamic_dictionary(whole))
    assert {key: {word for word, _ in found} for key, found in both.followers.items() if found} == {
        key: {word for word, _ in found} for key, found in whole.followers.items() if found
    }


def test_spanish_and_emoji_are_shown_by_the_engine() -> None:
    """Accents are letters of their own, and a capital finds what its small letter has."""
    made = asked_of(NGramReader(TABLES), VOCABULARY, followers=True, more=more_of(["¿corazón mañana, corazón mañana?"]))
    attributes = header_attributes(locale="es", description="un ensayo", date=0)
    whole = Dictionary(attributes=attributes, entries=made.entries, followers=made.followers)
    engine = DictionaryEngine(read_static_dictionary(static_dictionary(sayable(whole))))
    assert engine.next_words(["corazón"])[0].word == engine.next_words(["Corazón"])[0].word == "mañana"
    assert not engine.next_words(["corazon"])  # without its accent it is another word
    assert "👋" in [each.word for each in engine.next_words(["canción"])]
