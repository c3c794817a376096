"""The alphabet says which characters of some words it lacks."""

from tacit.text.alphabet import Alphabet


def test_what_words_lack_is_named_in_both_cases_and_then_nothing_is_lacking() -> None:
    words = ["el", "Él", "año", "años", "sí", "straße", "3ª"]
    lacked = Alphabet().lacked_by(words)
    assert lacked == "ñÑªÉéßíÍ"
    wide = Alphabet().with_characters(lacked)
    assert wide.lacked_by(words) == "" and all(wide.spells(word) for word in words)
    assert Alphabet().lacked_by(["the", "don't"]) == "" == Alphabet("é").lacked_by(["é"])
    assert Alphabet("aé").lacked_by(["ÉA"]) == "AÉ"  # another case is another character
