"""Settings of an A/B test of typing: what they refuse, how they are kept, and the typist with one parameter changed."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
import tomli_w

from tacit.data.typed_sentences import Share
from tacit.errors import InputError
from tacit.evaluation.type_ab.settings import TypingSettings, typist_on, variants
from tacit.evaluation.type_ab.typist import POPULATION


@pytest.mark.parametrize(
    "settings",
    [
        TypingSettings(),
        TypingSettings(
            share=Share(split="validation", users=3),
            typist=typist_on("qwerty-es"),
            condition="rescore",
            search="trigram:cache",
            more_words="found",
            compose=0.5,
            language_weight=0.8,
            sensitivity=4,
        ),
    ],
)
def test_they_are_read_as_they_were_written(settings: TypingSettings) -> None:
    assert TypingSettings.from_plain(tomllib.loads(tomli_w.dumps(settings.to_plain()))) == settings


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"condition": "both"}, "'both' is unknown; choose one of search, rescore, network"),
        ({"search": "trigram:cache"}, "in the condition network each model searches itself"),
        ({"compose": 0.0}, "compose=0 is no probability above 0"),
        ({"language_weight": -1.0}, "language_weight=-1 must be 0 or more"),
        ({"language_weight": float("nan")}, "no finite number"),
        ({"sensitivity": 1}, r"0 \(not asked\) or at least two users"),
        ({"share": {}}, "share={} is of the type dict; give Share"),
        ({"more_words": ("selfie",)}, "more_words=.* is of the type tuple; give str"),
        ({"typist": "quick"}, "give Typist"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        TypingSettings(**wrong)


def test_a_layout_brings_its_language() -> None:
    assert typist_on("qwerty") == POPULATION
    spanish = typist_on("qwerty-es")
    assert spanish.touch.layout.name == "qwerty-es" and spanish.language == "es"
    with pytest.raises(InputError, match="'azerty' is unknown; choose one of qwerty, qwerty-es"):
        typist_on("azerty")


def test_each_variant_changes_one_parameter() -> None:
    found = list(variants(POPULATION))
    assert len({(each.parameter, each.factor) for each in found}) == len(found) > 40
    for parameter, factor, value, typist in found:
        name = parameter.removeprefix("touch.")
        base, owner = (POPULATION.touch, typist.touch) if "." in parameter else (POPULATION, typist)
        assert getattr(owner, name) == value == min(getattr(base, name) * factor, 1 if value == 1 else value)
        back = replace(owner, **{name: getattr(base, name)})
        assert (replace(typist, touch=back) if "." in parameter else back) == POPULATION
    assert not {"touch", "language"} & {each.parameter for each in found}


def test_what_never_happens_has_no_variant() -> None:
    assert "misspelling" not in {each.parameter for each in variants(replace(POPULATION, misspelling=0.0))}
    assert {each.value for each in variants(replace(POPULATION, catch=0.7)) if each.parameter == "catch"} == {0.35, 1.0}
