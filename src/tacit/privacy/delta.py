"""Which delta means something: the probability with which a promise may fail, beside how many clients it is made to."""

from decimal import ROUND_DOWN, Decimal

from tacit.errors import InputError

DELTA_TOO_LARGE = "DELTA TOO LARGE"  # the label of a statement
LARGEST = 1e-5  # however few clients there are
PAPERS_DELTA = 1e-10  # of arXiv:2305.18465, for populations of tens of millions
EXPONENT = 1.1  # a convention: delta below 1/population by more and more (arXiv:2303.00654 advises well below)


def default_delta(population: int) -> float:
    """The delta at which epsilon is given where nobody says another: min(1e-5, population^-1.1), rounded down to one
    significant digit.

    Always below 1/population, so that no mechanism that publishes a client's text keeps the promise. Raises: InputError
    for a population of nobody.
    """
    if population < 1:
        raise InputError(f"a population of {population} has no delta; give at least one client.")
    exact = Decimal(repr(min(LARGEST, float(population) ** -EXPONENT)))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted()), rounding=ROUND_DOWN))


def allows_publishing(delta: float, population: int) -> bool:
    """Whether delta is 1/population or more: who publishes the data of a client drawn at random keeps (0, delta)-DP."""
    return population >= (1 - 1e-9) / delta  # 1/population as a float may lie below it


def publishing_warning(delta: float, population: int) -> str | None:
    """What is wrong with a delta of 1/population or more, in a sentence; None where it is less."""
    if not allows_publishing(delta, population):
        return None
    return (
        f"delta {delta:g} is 1/{population:,} or more: to publish all data of one of {population:,} clients outright, "
        f"drawn at random, keeps such a promise; give a smaller one, such as {default_delta(population):g}."
    )
