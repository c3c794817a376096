"""A count and what it counts, as people write it: `1 round`, `1,000 rounds`."""


def quantity(count: int, noun: str, many: str | None = None) -> str:
    """The count in digits, by thousands, and the noun. many: the noun of any count but one, where it is no `s` more."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"
