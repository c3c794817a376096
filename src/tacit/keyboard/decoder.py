"""From taps to words: a beam search over the trie of a lexicon, with the moves of `touch.py`.

    score(word) = spatial + language_weight * language
    spatial     = ln of the density of the taps and of the moves, for the best way to type the word so
    language    = ln p(word | what was committed)

Source of the form: Ouyang et al., "Mobile Keyboard Input Decoding with Finite-State Transducers", arXiv:1704.03987; a
trie and an array of log probabilities stand for its transducers. Tap by tap, a hypothesis is a node of the trie. The
best `beam` are kept, by their score so far plus what the likeliest word below the node adds: so the language is part of
the search, and no second opinion. Conditions, as the papers compare them:

- an n-gram in the search: `decode(points, ln p of the n-gram)`;
- a network as its rescorer: the same, then `rescored(candidates, ln p of the network)`;
- the network in the search: `decode(points, ln p of the network)`, as in arXiv:2410.15575.
"""

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import InputError, of_type
from tacit.keyboard.decoder_loops import NOTHING, FloatArray, Ids, best_words, look_ahead
from tacit.keyboard.lexicon import LONGEST, Lexicon
from tacit.keyboard.touch import Points, TouchModel

BEAM, MARGIN = 50, 14.0
LANGUAGE_WEIGHT = 1.0


class WordCandidate(NamedTuple):
    """A word that may have been meant."""

    word: str
    id: int
    spatial: float
    language: float
    score: float


class Context(NamedTuple):
    """What comes next by some model; `Decoder.context` makes it."""

    log_probabilities: FloatArray  # (V,)
    ahead: FloatArray  # (nodes of the trie,) the weighted ln p of the likeliest word that a prefix leads to


class Taps(NamedTuple):
    """What the touch model says of some taps; `Decoder.taps` makes it."""

    points: Points  # (m, 2)
    densities: FloatArray  # (m, K) ln of the density of each, if it was meant for each key
    letters: str  # whose keys were hit

    def first(self, count: int) -> "Taps":
        """The same of the first taps alone."""
        return Taps(self.points[:count], self.densities[:count], self.letters[:count])


class Decoder:
    """Finds the words of a lexicon that somebody who taps like this may have meant; `decode` is pure."""

    def __init__(
        self,
        lexicon: Lexicon,
        touch: TouchModel,
        *,
        language_weight: float = LANGUAGE_WEIGHT,
        beam: int = BEAM,
        margin: float = MARGIN,
    ) -> None:
        """After each tap at most about `beam` hypotheses stay, none more than `margin` (in ln) below the best.

        Raises: InputError where layouts differ, the weight is negative, or nothing would stay.
        """
        of_type("beam", beam, int)
        for name, number in (("language_weight", language_weight), ("margin", margin)):
            of_type(name, number, float, int)
        if lexicon.layout != touch.layout:
            raise InputError(
                f"the lexicon is for the layout {lexicon.layout.name!r} and the touch model for {touch.layout.name!r}; "
                "make both for the same one."
            )
        if not 0 <= language_weight < math.inf:
            raise InputError(f"language_weight={language_weight} must be 0 or more.")
        if beam < 1 or not margin > 0:
            raise InputError(f"beam={beam} and margin={margin} keep no hypothesis; give 1 or more, and more than 0.")
        self.lexicon, self.touch, self.language_weight = lexicon, touch, float(language_weight)
        self.beam, self.margin = beam, float(margin)
        self._trie = (lexicon.keys, lexicon.children, lexicon.endings, lexicon.ids)

    def context(self, log_probabilities: ArrayLike) -> Context:
        """What is asked more than once with the same log probabilities (V,), made once: a tenth of a millisecond.

        Raises: InputError where they are too few for the lexicon, or not all of them are 0 or less.
        """
        language = np.asarray(log_probabilities, np.float32)
        if language.ndim != 1 or len(language) < self.lexicon.size:
            raise InputError(
                f"log probabilities of the shape {language.shape} do not cover the lexicon's ids; give "
                f"({self.lexicon.size},), one for each id."
            )
        lexicon = self.lexicon
        ahead = look_ahead(language, self.language_weight, lexicon.ids, lexicon.ends, lexicon.parents)
        if not len(ahead):
            raise InputError("log probabilities must be 0 or less; give natural logarithms of probabilities.")
        return Context(language, ahead)

    def taps(self, points: ArrayLike) -> Taps:
        """What is asked more than once with the same taps (m, 2), made once. Raises: InputError for what is no tap."""
        checked = _checked(points)
        return Taps(checked, self.touch.log_densities(checked), self.literal(checked))

    def prepare(self) -> None:
        """Compiles the loops, or loads what was compiled by an earlier process: before anybody waits for a word."""
        self.decode(self.touch.means[:1], np.zeros(self.lexicon.size, np.float32), 1)

    def decode(self, points: ArrayLike | Taps, language: ArrayLike | Context, k: int = 3) -> tuple[WordCandidate, ...]:
        """The k best whole words for the taps (m, 2), best first; fewer where fewer are in reach, none for no taps.

        points: the taps, or the `taps` made of them.
        language: (V,) ln p of each id as the next word, float32, where V is at least the lexicon's size; or the
        `context` made of it. Raises: InputError as `context` does, and for more than LONGEST taps.
        """
        return self._found(points, language, k, whole=True)

    def completions(
        self, points: ArrayLike | Taps, language: ArrayLike | Context, k: int = 3
    ) -> tuple[WordCandidate, ...]:
        """The k best words that begin with these taps (m, 2), whole ones among them; for no taps the likeliest words.

        Otherwise as `decode`.
        """
        return self._found(points, language, k, whole=False)

    def literal(self, points: ArrayLike) -> str:
        """The letters whose keys were hit: what a keyboard without a decoder writes."""
        keys = self.lexicon.layout.keys
        return "".join([keys[key] for key in self.lexicon.layout.nearest(points).tolist()])

    def rescored(
        self, candidates: Sequence[WordCandidate], log_probabilities: Sequence[float]
    ) -> tuple[WordCandidate, ...]:
        """The same candidates by another model's ln p of each, best first."""
        again = [
            each._replace(language=language, score=each.spatial + self._weighted(language))
            for each, language in zip(candidates, log_probabilities, strict=True)
        ]
        return tuple(sorted(again, key=lambda each: -each.score))

    def _found(
        self, points: ArrayLike | Taps, given: ArrayLike | Context, k: int, *, whole: bool
    ) -> tuple[WordCandidate, ...]:
        of_type("k", k, int)
        if k < 1:
            raise InputError(f"k={k} candidates cannot be shown; ask for 1 or more.")
        densities = points.densities if isinstance(points, Taps) else self.touch.log_densities(_checked(points))
        language, ahead = given if isinstance(given, Context) else self.context(given)
        ids, spatial = best_words(
            densities,
            ahead,
            language,
            self.language_weight,
            self._trie,
            self.touch.moves,
            (self.beam, self.margin, k, whole),
            *_ROOM.arrays(len(ahead)),
        )
        return tuple(self._candidate(*each, language) for each in zip(ids.tolist(), spatial.tolist(), strict=True))

    def _candidate(self, id: int, spatial: float, language: FloatArray) -> WordCandidate:
        lnp = float(language[id])
        return WordCandidate(self.lexicon.word_of(id), id, spatial, lnp, spatial + self._weighted(lnp))

    def _weighted(self, lnp: float) -> float:
        return self.language_weight * lnp if self.language_weight else 0.0  # impossible words too


def _checked(points: ArrayLike) -> Points:
    """The taps (m, 2). Raises: InputError."""
    taps = np.asarray(points, np.float64)
    if taps.size == 0:
        taps = taps.reshape(0, 2)
    if taps.ndim != 2 or taps.shape[1] != 2 or not np.isfinite(taps).all():
        raise InputError(f"points of the shape {taps.shape} are no taps; give finite x and y of each, (m, 2).")
    if len(taps) > LONGEST:
        raise InputError(f"{len(taps)} taps are more than a word has; decode at most {LONGEST} at once.")
    return taps


class _Room(threading.local):
    """The arrays that a search works in, one pair for each thread: making them anew costs as much as a search."""

    scores: FloatArray = np.zeros((3, 0), np.float32)
    reached: Ids = np.zeros((3, 0), np.int32)

    def arrays(self, nodes: int) -> tuple[FloatArray, Ids]:
        if self.scores.shape[1] < nodes:
            self.scores = np.full((3, nodes), NOTHING, np.float32)
            self.reached = np.zeros((3, nodes), np.int32)
        return self.scores, self.reached


_ROOM = _Room()
