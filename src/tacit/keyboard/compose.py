"""Smart compose: several words at once, shown where the model is sure enough of all of them together.

arXiv:2305.18465 calls it "longer inline suggestions ..., which can be triggered per character when the confidence is
high". The confidence is the product of the words' probabilities, each after all before it. No two phrases of one length
can both come, so at most 1 / threshold of them pass: with so many beams the search leaves none out.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tacit.errors import InputError, of_type

LONGEST_PHRASE = 4  # words
BEAMS = 4


class Session(Protocol):
    """What a phrase is looked for in: a `suggest.TypingSession`."""

    def after(self, word: str) -> "Session":
        """The session once one more word is typed."""
        ...

    def words_above(self, threshold: float, prefix: str) -> Sequence[tuple[str, float]]:
        """The next words that begin with `prefix` and have this probability, and it."""
        ...


class Composed(NamedTuple):
    """The words that a sentence goes on with."""

    words: tuple[str, ...]  # the first one whole, its typed beginning included
    probability: float  # the product of the words' probabilities; of the first one given how it begins

    def __str__(self) -> str:
        return " ".join(self.words)


def compose(
    session: Session,
    prefix: str,
    *,
    threshold: float,
    longest: int = LONGEST_PHRASE,
    beams: int = BEAMS,
) -> Composed | None:
    """The longest phrase of at most `longest` words that passes the threshold; of equally long ones the likeliest.

    prefix: what is typed of its first word; "" before it. A phrase ends where the sentence's end is likelier than the
    next word. beams: phrases of each length that are carried on with, one step of the model for each. None where no
    phrase passes, or none goes beyond what is typed. Raises: InputError.
    """
    best = None
    for phrases in _by_length(session, prefix, threshold, longest, beams):
        best = _first_new(phrases, prefix) or best
    return best


def words_brought(session: Session, prefix: str, wanted: Sequence[str | None], *, threshold: float) -> int | None:
    """How many words the phrase of `compose` writes for who wants these, whatever their case: all of its own, or 0
    where it has another word; None where no phrase appears.

    It asks no more of the model than that takes: no phrase is carried on with once none of its length is wanted.
    Raises: as `compose`.
    """
    spelled = [word and word.lower() for word in wanted]
    best = None
    for phrases in _by_length(session, prefix, threshold, LONGEST_PHRASE, BEAMS):
        best = _first_new(phrases, prefix) or best
        if best and not any(_begins(spelled, phrase) for phrase in phrases):
            return 0  # the phrase that is shown is one of these, or begins like one
    if best is None:
        return None
    return len(best.words) if _begins(spelled, best) else 0


def _by_length(session: Session, prefix: str, threshold: float, longest: int, beams: int) -> Iterator[list[Composed]]:
    """The likeliest phrases that pass, of one word, of two, and so on as long as there are any; likeliest first."""
    of_type("prefix", prefix, str)
    of_type("threshold", threshold, int, float)
    if not 0 < threshold <= 1:
        raise InputError(f"threshold={threshold:g} is no probability above 0; a phrase passes with that or more.")
    for name, value in (("longest", longest), ("beams", beams)):
        of_type(name, value, int)
        if value < 1:
            raise InputError(f"{name}={value} composes nothing; give 1 or more.")
    kept = [(Composed((), 1.0), session)]
    for place in range(longest):
        if place:
            kept = [(phrase, here.after(phrase.words[-1])) for phrase, here in kept]
        grown = [
            (Composed((*phrase.words, word), phrase.probability * probability), here)
            for phrase, here in kept
            for word, probability in here.words_above(threshold / phrase.probability, "" if place else prefix)
        ]
        if not grown:
            return
        grown.sort(key=lambda each: (-each[0].probability, each[0].words))
        kept = grown[:beams]
        yield [phrase for phrase, _ in kept]


def _first_new(phrases: Sequence[Composed], prefix: str) -> Composed | None:
    """The likeliest that goes beyond what is typed."""
    return next((phrase for phrase in phrases if phrase.words != (prefix,)), None)


def _begins(spelled: Sequence[str | None], phrase: Composed) -> bool:
    """Whether the wanted words begin with the phrase."""
    return list(spelled[: len(phrase.words)]) == [word.lower() for word in phrase.words]
