"""In which order somebody typed their words: sentences whose gradients are those that were seen.

In one step of SGD the column of word v in the output embedding moves by unit * (sum of the features before each v - sum
of all features, each times the probability of v there), with unit = learning rate / words of the batch. So whoever has
the network before the step can walk through a sentence, and asks at each word whether the features there are among
those that the word's column is a sum of. A beam search finds the sentence that explains most, takes it away, and looks
for the next: gradient matching [arXiv:1906.08935] whose only unknowns are words. The published attack ranks sentences
by how much likelier the network after the step finds them; these ratios are the same products, not set against what
else a column may be made of.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.audit.attack.public_text import Numbers, PublicText
from tacit.networks.cifg.network import Cifg
from tacit.networks.cifg.parameters import CifgParameters
from tacit.networks.recurrent.reader import NumpyArrays
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS

Sentence = tuple[int, ...]  # ids without BOS and EOS

WIDTH = 64  # of the beam; 256 found 1% more and took five times as long
ALIKE = 0.03  # variance of what should be equal, in variances of features
COMMON = 0.2  # the same for each time that a word could have been typed and was not
UNITS = np.geomspace(0.8, 1.4, 80)  # around the first guess
MOST_WORDS = 320  # that sentences are made of


class Rows(NumpyArrays):
    """See `Arrays`; of several words, (N, width)."""

    def affine(self, rows: Any, matrix: Any, bias: Any = None, *, turned: bool = False) -> Any:
        """See Arrays."""
        left = np.concatenate(rows, axis=-1) if isinstance(rows, tuple) else rows
        product = left @ (matrix.T if turned else matrix)
        return product if bias is None else product + bias

    def split(self, rows: Any, parts: int) -> tuple[Any, ...]:
        """See Arrays."""
        return tuple(np.split(rows, parts, axis=-1))


ROWS = Rows()


@dataclass
class Reading:
    """What is left to be explained: how often each word was typed, and the sum of the features before it."""

    times: NDArray[np.int64]  # (V,)
    features: Numbers  # (V, E)
    words: float  # of the batch, ends of sentences counted

    @classmethod
    def of(cls, update: CifgParameters, words: NDArray[np.int64], public: PublicText) -> "Reading":
        """From an update of one step, and the words that were typed. The unit is found by what makes counts whole."""
        bias, ids = np.asarray(update.output_bias, np.float64), np.append(words, (EOS, OOV))
        rare = words[np.argsort(public.predicted[words], kind="stable")[: (len(words) + 1) // 2]]
        likely = bias[rare][bias[rare] > 0]  # most rare words were typed once
        first = float(np.quantile(likely, 0.3)) if len(likely) else float(np.abs(bias).max())
        unit, total = min((_misfit(unit, bias, ids, public) for unit in first * UNITS), key=lambda found: found[0])[1:]
        times = np.zeros(len(bias), np.int64)
        times[ids] = np.maximum(1, np.round(bias[ids] / unit + total * public.predicted[ids]))
        return cls(times, np.asarray(update.output, np.float64).T / unit + total * public.expected, total)


def _misfit(unit: float, bias: Numbers, ids: NDArray[np.int64], public: PublicText) -> tuple[float, float, float]:
    """(how far counts are from whole numbers, the unit, the words of the batch); rare words, which are exact, weigh."""
    total = bias[bias > 0].sum() / unit
    for _ in range(4):
        counts = bias[ids] / unit + total * public.predicted[ids]
        whole = np.maximum(1, np.round(counts))
        total = float(whole.sum())
    weights = 1 / (0.02 + total * public.predicted[ids])
    return float(weights @ np.abs(counts - whole) / weights.sum()), unit, total


class Beam(NamedTuple):
    """Unfinished sentences: the words, the network's states, the score, and how often each candidate is in it."""

    words: NDArray[np.int64]  # (N, words + 1) with BOS
    states: dict[str, Any]
    scores: Numbers  # (N,)
    used: NDArray[np.int64]  # (N, C)


class Reader:
    """An untied network and public text, by which sentences are read from updates."""

    def __init__(self, network: Cifg, model: CifgParameters, public: PublicText, words: int) -> None:
        """words: predicted ones of a sentence, at most."""
        self._network, self._public, self._longest = network, public, words
        self._p = {name: np.asarray(value, np.float32) for name, value in model._asdict().items()}

    def read(self, update: CifgParameters, words: NDArray[np.int64], *, most: int) -> list[Sentence]:
        """At most so many sentences of these words, the surest first, until every word is used up."""
        left, found = Reading.of(update, words[:MOST_WORDS], self._public), list[Sentence]()
        while len(found) < most and (not found or left.times[SPECIALS:].max() > 0):
            left.times[EOS] = max(left.times[EOS], 1)
            found.append(self._best(np.flatnonzero(left.times > 0), left))
            self._take(left, found[-1])
        return found

    def _best(self, candidates: NDArray[np.int64], left: Reading) -> Sentence:
        """The best sentence that a beam of WIDTH finishes, of ascending candidates, EOS among them."""
        end = int(np.searchsorted(candidates, EOS))
        states = {name: np.zeros((1, width), np.float32) for name, width in self._network.states().items()}
        beam = Beam(np.full((1, 1), BOS), states, np.zeros(1), np.zeros((1, len(candidates)), np.int64))
        done: list[tuple[float, Sentence]] = []
        for length in range(self._longest):
            states, features = self._step(beam.states, beam.words[:, -1])
            scores = beam.scores[:, None] + self._prior(features, candidates)
            scores += self._evidence(features, candidates, left)
            scores[beam.used >= left.times[candidates]] = -np.inf
            if length:
                best = int(scores[:, end].argmax())
                done.append((float(scores[best, end]), tuple(map(int, beam.words[best, 1:]))))
            scores[:, end] = -np.inf
            order = np.argsort(-scores, axis=None)[:WIDTH]
            order = order[scores.ravel()[order] > -np.inf]
            if not len(order):  # every word is used up
                break
            parents, chosen = np.divmod(order, len(candidates))
            used = beam.used[parents]
            used[np.arange(len(order)), chosen] += 1
            words = np.column_stack([beam.words[parents], candidates[chosen]])
            states = {name: state[parents] for name, state in states.items()}
            beam = Beam(words, states, scores.ravel()[order], used)
        else:  # a longer one is cut, and has no end
            done.append((float(beam.scores[0]), tuple(map(int, beam.words[0, 1:]))))
        return max(done)[1]

    def _step(self, states: dict[str, Any], ids: NDArray[np.int64]) -> tuple[dict[str, Any], Any]:
        after, features = self._network.step(ROWS, self._p, states, self._network.read(ROWS, self._p, ids))
        return dict(after), features

    def _prior(self, features: Any, candidates: NDArray[np.int64]) -> Numbers:
        """(N, C) log probabilities among the candidates, by the network before the step."""
        some = {"output": self._p["output"][:, candidates], "output_bias": self._p["output_bias"][candidates]}
        scores = self._network.scores(ROWS, some, features).astype(np.float64)
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))

    def _evidence(self, features: Any, candidates: NDArray[np.int64], left: Reading) -> Numbers:
        """(N, C) log likelihood ratios: the features are one of the m that a column is the sum of, or none.

        Whitened, features are about N(0, I). If they are one, the sum less them is N(0, m - 1), else it is N(0, m).
        """
        public, times = self._public, left.times[candidates].astype(np.float64)
        here = (np.asarray(features, np.float64) - public.centre) @ public.whitening
        sums = (left.features[candidates] - times[:, None] * public.centre) @ public.whitening
        unsure = ALIKE + COMMON * left.words * public.predicted[candidates]
        inside, outside = times - 1 + unsure, times + unsure
        squares = np.square(sums).sum(axis=1)
        apart = squares + np.square(here).sum(axis=1)[:, None] - 2 * here @ sums.T
        width = sums.shape[1]
        return np.asarray(squares / outside / 2 - apart / inside / 2 - width / 2 * np.log(inside / outside))

    def _take(self, left: Reading, sentence: Sentence) -> None:
        """What a sentence explains is explained."""
        states = {name: np.zeros((1, width), np.float32) for name, width in self._network.states().items()}
        for word, after in zip((BOS, *sentence), (*sentence, EOS), strict=True):
            states, features = self._step(states, np.array([word]))
            left.features[after] -= features[0]
            left.times[after] -= 1
