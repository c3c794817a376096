"""Who types: every parameter of behaviour, and how people differ.

Errors are of three kinds, after Shi et al., "Simulating Errors in Touchscreen Typing", CHI 2025 (Typoist,
arXiv:2502.03560): slips of the finger (`touch`), lapses of memory (a letter or a space forgotten, a letter typed
twice), and mistakes of knowledge (`misspelling`). docs/typing.md has the table of parameters with the source of each:
what is measured, what is fitted to measurements, and what is assumed.
"""

import hashlib
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, of_type
from tacit.evaluation.type_ab.misspelling import Language
from tacit.keyboard.touch import TouchModel

PERSON = 1 << 63  # a sentence that nobody types: its random numbers make the person


@dataclass(frozen=True, kw_only=True)
class Typist:
    """Somebody, or where spreads are positive somebody unknown: `person` draws one.

    Times are in seconds; everything without another unit is a probability. Raises: InputError for what is neither.
    """

    touch: TouchModel = field(default_factory=TouchModel)
    language: Language = "en"  # of misspellings
    interval: float = 0.307  # from a key press to the next: fitted
    # -- lapses and mistakes
    forgotten_letter: float = 0.002  # each letter
    doubled_letter: float = 0.001  # each letter
    forgotten_space: float = 0.003  # each word
    misspelling: float = 0.01  # each word that has a plausible misspelling
    # -- the strip of words above the keys, and what is offered in the line
    look_before: float = 0.15  # looks at the strip before a word
    look_while: float = 0.10  # looks at the strip after a letter
    read_composed: float = 0.5  # reads an inline phrase when it appears
    look: float = 0.40  # one look, or reading a phrase
    # -- what is seen of errors, and their repair: fitted
    catch: float = 0.034  # sees wrong letters before the space
    notice: float = 0.124  # sees a wrong word as soon as it stands there
    reread: float = 0.057  # sees it at the end of the sentence
    reach: float = 1.5  # to put the caret at an earlier word
    # -- how people differ: standard deviations between them
    spread_interval: float = 0.35  # of ln interval
    spread_precision: float = 0.20  # of ln deviations of touch
    spread_looking: float = 1.0  # of the log odds of looking and reading
    spread_noticing: float = 0.7  # of the log odds of catching, noticing and rereading

    def __post_init__(self) -> None:
        if self.language not in get_args(Language):
            raise InputError(
                f"language={self.language!r} has no rules of misspelling; give one of {', '.join(get_args(Language))}."
            )
        of_type("touch", self.touch, TouchModel)
        for name in NUMBERS:
            value = getattr(self, name)
            of_type(name, value, int, float)
            if name in TIMES or name in SPREADS:
                if not 0 <= value < math.inf:
                    raise InputError(f"{name}={value:g} must be a finite number, 0 or more.")
            elif not 0 <= value <= 1:
                raise InputError(f"{name}={value:g} must be a probability, 0 to 1.")
        if self.interval == 0:
            raise InputError("interval=0 types everything at once; give the seconds from a key press to the next.")

    def person(self, seed: int, user: str) -> Self:
        """One of these typists: the same one for a seed and a name, whatever they type and on whichever keyboard."""
        draws = generator(key_of(seed, user), PERSON, 0).standard_normal(4).tolist()
        pace, precision = math.exp(self.spread_interval * draws[0]), math.exp(self.spread_precision * draws[1])
        touch = self.touch
        if precision != 1:
            touch = replace(touch, deviation_x=touch.deviation_x * precision, deviation_y=touch.deviation_y * precision)
        changed: dict[str, Any] = dict.fromkeys(SPREADS, 0.0)
        for names, spread, drawn in (
            (LOOKING, self.spread_looking, draws[2]),
            (NOTICING, self.spread_noticing, draws[3]),
        ):
            changed |= {name: shifted(getattr(self, name), spread * drawn) for name in names}
        return replace(self, touch=touch, interval=self.interval * pace, **changed)


NUMBERS = tuple(each.name for each in fields(Typist) if each.name not in ("touch", "language"))
TIMES = ("interval", "look", "reach")
SPREADS = tuple(name for name in NUMBERS if name.startswith("spread_"))
LOOKING = ("look_before", "look_while", "read_composed")
NOTICING = ("catch", "notice", "reread")
LAPSES = ("forgotten_letter", "doubled_letter", "forgotten_space", "misspelling")

POPULATION = Typist()


def flawless(touch: TouchModel, *, interval: float = POPULATION.interval) -> Typist:
    """Who hits the middle of every key of this touch model's layout, never forgets, and never looks up."""
    exact = replace(touch, deviation_x=1e-3, deviation_y=1e-3, omission=0.0, transposition=0.0, doubling=0.0, stray=0.0)
    never: dict[str, Any] = dict.fromkeys((*LAPSES, *LOOKING, *SPREADS), 0.0)
    return Typist(touch=exact, interval=interval, **never)


def shifted(probability: float, log_odds: float) -> float:
    """The probability whose log odds are this much higher; 0 and 1 stay."""
    if probability in (0, 1) or not log_odds:
        return probability
    return 1 / (1 + math.exp(-log_odds) * (1 - probability) / probability)


# -- random numbers ------------------------------------------------------------------------------------------------


def key_of(seed: int, user: str) -> NDArray[np.uint64]:
    """(2,) of one user in one test: BLAKE2 of both."""
    of_type("seed", seed, int)
    digest = hashlib.blake2b(f"{seed}\n{user}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.frombuffer(digest, np.uint64)


def generator(key: NDArray[np.uint64], sentence: int, word: int) -> np.random.Generator:
    """The random numbers of one word, by its place alone: nothing that was drawn before it moves them.

    Philox counts (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011): the place is the upper half
    of its counter, so that a word has 2^130 numbers to itself.
    """
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, word, sentence], np.uint64)))
