"""What a model would suggest, as pages and the command show it: a row for each prompt, a column for each word."""

from collections.abc import Sequence

from tacit.reports.blocks import Table

BEGINNING = "(the first word)"  # in place of a prompt without a word
Words = Sequence[tuple[str, float]]  # with their probabilities, the likeliest first


def suggestion_table(after: Sequence[tuple[str, Words]]) -> Table:
    """(prompt, words) for each prompt, all with equally many words."""
    places = range(1, len(after[0][1]) + 1)
    rows = ((prompt.strip() or BEGINNING, *(f"{word} {share:.0%}" for word, share in words)) for prompt, words in after)
    return Table(tuple(rows), ("after", *(_ordinal(place) for place in places)))


def _ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place}th")
