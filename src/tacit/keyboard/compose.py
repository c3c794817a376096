"""Smart compose: several words at once, shown where the model is sure enough of all of them together.

arXiv:2305.18465 calls it "longer inline suggestions ..., which can be triggered per character when the confidence is
high". The confidence is the product of the words' probabilities, each after all before it. No two phrases of one length
can both come, so at most 1 / threshold of them pass: with so many beams the search leaves none out.
"""

from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import InputError, of_type

if TYPE_CHECKING:
    from tacit.keyboard.suggest import TypingSession

LONGEST_PHRASE = 4  # words
BEAMS = 4


class Composed(NamedTuple):
    """The words that a sentence goes on with."""

    words: tuple[str, ...]  # the first one whole, its typed beginning included
    probability: float  # the product of the words' probabilities; of the first one given how it begins

    def __str__(self) -> str:
        return " ".join(self.words)


def compose(
    session: "TypingSession",
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
    of_type("prefix", prefix, str)
    of_type("threshold", threshold, int, float)
    if not 0 < threshold <= 1:
        raise InputError(f"threshold={threshold:g} is no probability above 0; a phrase passes with that or more.")
    for name, value in (("longest", longest), ("beams", beams)):
        of_type(name, value, int)
        if value < 1:
            raise InputError(f"{name}={value} composes nothing; give 1 or more.")
    kept, best = [(Composed((), 1.0), session)], None
    for place in range(longest):
        grown = [
            (Composed((*phrase.words, word), phrase.probability * probability), here)
            for phrase, here in kept
            for word, probability in here.words_above(threshold / phrase.probability, "" if place else prefix)
        ]
        grown.sort(key=lambda each: (-each[0].probability, each[0].words))
        del grown[beams:]
        best = next((phrase for phrase, _ in grown if place or phrase.words != (prefix,)), best)
        if not grown or place + 1 == longest:
            break
        kept = [(phrase, _after(here, phrase.words[-1])) for phrase, here in grown]
    return best


def _after(session: "TypingSession", word: str) -> "TypingSession":
    """The session as it would be with this word."""
    after = session.fork()
    after.commit(word)
    return after
