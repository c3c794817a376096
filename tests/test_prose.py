"""Pages are read at first reading: their sentences are short, on average and one by one."""

import statistics

import pytest
from tests.conftest import REPOSITORY
from tests.support.sentences import sentences, words

DOCS = REPOSITORY / "docs"
AVERAGE, LONGEST = 17, 35  # words of a sentence

# Pages whose sentences are held to that: this list may only grow.
SHORT = (
    *("floating-point.md", "ladder.md", "languages.md", "next-word.md", "notation.md", "on-device-training.md"),
    *("reports.md", "results/adaptive-clipping.md", "results/ages.md", "results/deployment.md"),
    *("results/local-steps.md", "results/mixture.md", "results/network-beside-n-gram.md", "results/next-word.md"),
    *("results/on-a-device.md", "results/paper-1-findings.md", "results/paper-figures.md", "results/people.md"),
    *("results/quantized.md", "results/spanish.md", "results/typing.md", "secure-aggregation-protocols.md"),
    *("shuffling.md", "your-own-model.md"),
    *("results/personalization.md", "threat-model.md", "recipes.md", "typing.md", "device.md", "extending.md"),
    *("deploy.md", "keyboard.md", "architecture.md", "accounting.md", "mechanisms.md", "counts.md"),
    *("personalization.md", "word-discovery.md", "secure-aggregation.md", "for-ml-engineers.md"),
    *("for-operators.md", "for-privacy-engineers.md", "for-researchers.md"),
    *("index.md", "install.md", "which-epsilon.md", "planning.md", "mixture.md", "compare.md", "tour.md"),
    # Of the appendix.
    *("budgets.md", "cluster.md", "dictionary.md", "environments.md", "importing.md", "integrations.md"),
    *("pitfalls.md", "populations.md", "production.md", "results/blogs.md", "results/dictionary.md"),
    *("results/first-hour.md", "results/noise-forecast.md", "results/pretraining.md"),
    *("results/realised-participation.md", "results/same-as-before.md", "results/signal-to-noise.md"),
    *("results/speed.md", "results/tuning.md", "results/utility.md", "results/vocabulary-size.md"),
    *("results/word-discovery.md", "speed.md", "tuning.md"),
)


@pytest.mark.parametrize("name", SHORT)
def test_sentences_are_short(name: str) -> None:
    found = sentences((DOCS / name).read_text(encoding="utf-8"))
    long = [f"{words(each)}: {each}" for each in found if words(each) > LONGEST]
    assert not long, f"{name} has sentences of more than {LONGEST} words; make two of each:\n" + "\n".join(long)
    average = statistics.mean(map(words, found))
    assert average <= AVERAGE, f"the sentences of {name} have {average:.1f} words on average, {AVERAGE} are allowed"


# -- whether this test can fail ------------------------------------------------------------------------------------


def test_a_page_is_split_into_its_sentences() -> None:
    page = """# A title. Of two

One is here, e.g. `tacit train --x 1. No`; it ends. "Two" is 1.5 words
long. **Three** ([page](a.md#b. c)). [four](d.md) is one.
- An item without an end
1. A numbered one. `Code` begins this one.

| a table. | No sentence. |
|---|---|

```console
$ tacit train. No sentence.
```
<!-- remembered: none. No. -->
![A picture. No sentence.](a.png)
Last?
"""
    assert sentences(page) == [
        "One is here, e.g Code; it ends.",
        '"Two" is 1.5 words long.',
        "**Three** ([page]).",
        "[four] is one.",
        "An item without an end",
        "A numbered one.",
        "Code begins this one.",
        "Last?",
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"), [("One two – three.", 3), ("+0.01 (+0.00 to +0.02)", 4), ("Code, a (b)", 3)]
)
def test_words_are_counted(sentence: str, expected: int) -> None:
    assert words(sentence) == expected
