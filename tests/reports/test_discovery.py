"""The report of a discovery: words with their intervals, and nothing exact in what may be published."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.statements.facts import DISCOVERY

from tacit.records import json_ready
from tacit.reports.blocks import Labels
from tacit.reports.discover import MOST, page, published, released_page
from tacit.reports.page import to_html, to_markdown
from tacit.statements.discover import DiscoveryFacts
from tacit.statements.statement import statement

ROWS = [
    {"word": word, "pass": 1, "layer": 3, "votes": 40 - at, "count": 100.0 - at, "low": 0.0, "high": 120.0}
    | {"of_reports": 1000}
    for at, word in enumerate([f"word{number}" for number in range(MOST + 20)])
]
FIGURES: dict[str, Any] = {
    "run": "secret/folder",
    "words": len(ROWS),
    "users": 9000,
    "counting_users": 1000,
    "resampled_users": False,
    "seed": 7,
    "coverage": {"value": 0.5, "low": 0.4, "high": 0.6},
    "confidence": 0.95,
    "guarantee": {},
    "anonymity": None,
    "simulation": {
        "clients": 9000,
        "coverage": 0.4321,
        "largest_coverage": 0.8765,
        "words_nobody_typed": 3,
        "words_left_out": {"outside the alphabet": 17},
    },
}


def record(figures: dict[str, Any], rows: list[dict[str, Any]], facts: DiscoveryFacts = DISCOVERY) -> dict[str, Any]:
    """Of everything, as a run's file gives it back."""
    found: dict[str, Any] = json_ready({"figures": figures, "found": rows, "statement": statement(facts).to_record()})
    return found


def test_what_is_exact_is_in_the_report_and_not_in_what_is_released() -> None:
    everything = record(FIGURES, ROWS)
    whole, alone = page(everything), released_page(published(everything))
    for text in (to_html(whole), to_markdown(whole)):
        assert "SIMULATION ONLY" in text and "43.2%" in text and "word0" in text
    for text in (to_html(alone), to_markdown(alone)):
        assert "SIMULATION" not in text and "43.2%" not in text and "word0" in text and "Privacy statement" in text
    assert whole.record["found"] == alone.record["found"] == ROWS
    assert not {"run", "seed", "simulation"} & alone.record.keys()
    assert [figure.name for figure in alone.figures] == ["words-released"]


def test_the_page_has_the_most_frequent_words_and_says_how_many_more() -> None:
    text = to_markdown(page(record(FIGURES, ROWS)))
    assert f"| word{MOST - 1} |" in text and f"| word{MOST} |" not in text
    assert "And 20 more, in words.csv." in text and "50.0%" in text


@pytest.mark.parametrize("rows", [[], [{"word": "a", "pass": 1, "layer": 1, "votes": 9}]])
def test_no_words_and_no_counts(rows: list[dict[str, Any]]) -> None:
    shown = page(record({**FIGURES, "words": len(rows), "coverage": None, "confidence": None}, rows))
    text = to_markdown(shown)
    assert ("None was found." in text) == (not rows) == (not shown.figures)


def test_what_is_weaker_than_it_looks_stands_above_the_words() -> None:
    everything = record({**FIGURES, "resampled_users": True}, ROWS, replace(DISCOVERY, resampled=True))
    for shown in (page(everything), released_page(published(everything))):
        first = shown.blocks[0]
        assert isinstance(first, Labels) and "RESAMPLED USERS" in {label.name for label in first.labels}
        assert "each once" not in to_markdown(shown) and "drawn anew from fewer people" in to_markdown(shown)
    plain = page(record(FIGURES, ROWS))
    assert "users asked, each once" in to_markdown(plain) and not isinstance(plain.blocks[0], Labels)
