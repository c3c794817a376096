"""A number estimated from a sample, or from randomized reports, and how far off it may be."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value, and the ends of an interval that is meant to hold what it estimates."""

    value: float
    low: float
    high: float
