"""What a model would suggest, as pages and the command show it: a row for each prompt, a column for each word."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.reports.page import Table

if TYPE_CHECKING:  # tokenizers would come with it
    from tacit.keyboard.suggest import Suggestion

BEGINNING = "(the first word)"  # in place of a prompt without a word


def suggestion_table(after: "Sequence[tuple[str, Sequence[Suggestion]]]") -> Table:
    """(prompt, words) for each prompt, all with equally many words."""
    places = range(1, len(after[0][1]) + 1)
    rows = ((prompt.strip() or BEGINNING, *map(_cell, words)) for prompt, words in after)
    return Table(tuple(rows), ("after", *(_ordinal(place) for place in places)))


def _cell(suggested: "Suggestion") -> str:
    return f"{suggested.word} {suggested.probability:.0%}"


def _ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place}th")
