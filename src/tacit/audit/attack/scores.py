"""How good guesses are: of words, of rare words and of sentences, beside guessing, with intervals over people.

Intervals are Student's over people (`evaluation.intervals`): the attacked ones are a sample of the clients, all else is
as it was drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tacit.audit.attack.sentences import Sentence
from tacit.evaluation.intervals import Estimate, mean_of
from tacit.evaluation.type_ab.replay import distance

Ids = NDArray[np.int64]
RARE = 1_000  # words of public text that are not rare, the most frequent ones


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Of some people: which words they typed, which ones an attacker named, and which ones somebody who saw nothing."""

    typed: Sequence[Ids]
    attacked: Sequence[Ids]
    guessed: Sequence[Ids]
    outside: Sequence[Ids]  # what others typed who took no part, one for each


@dataclass(frozen=True, kw_only=True)
class WordScores:
    """Averages over people; those who typed no such word are left out.

    advantage: recall less that of as many guesses by public text. individual: recall less that of the same guesses
    about somebody who took no part: what was seen says so much of the one, and not of everybody. exhausted: of how many
    people every word was named.
    """

    people: int
    named: float
    f1: Estimate
    precision: Estimate
    recall: Estimate
    guess_precision: Estimate
    guess_recall: Estimate
    advantage: Estimate
    individual: Estimate
    exhausted: int

    @property
    def better(self) -> bool:
        """Whether it is better than guessing: the interval of the advantage is above 0."""
        return self.advantage.low > 0


def word_scores(of: Guesses, among: NDArray[np.bool_]) -> WordScores:
    """Of the words `among` (V,). Raises: InputError where fewer than two people typed one."""
    kept = [[ids[among[ids]] for ids in column] for column in (of.typed, of.attacked, of.guessed, of.outside)]
    rows = [row for row in zip(*kept, strict=True) if len(row[0])]
    recall, guess = (np.array([_share(row[0], row[of]) for row in rows]) for of in (1, 2))
    outside = [_share(row[3], row[1]) for row in rows if len(row[3])]
    about = np.array([_share(row[0], row[1]) for row in rows if len(row[3])]) - np.array(outside)
    f1 = np.array([2 * np.isin(row[0], row[1]).sum() / (len(row[0]) + len(row[1])) for row in rows])
    named = [(_share(row[1], row[0]), _share(row[2], row[0])) for row in rows if len(row[1])]
    precisions = [mean_of(column) for column in zip(*named, strict=True)] if len(named) > 1 else [NOBODY, NOBODY]
    return WordScores(
        people=len(rows),
        named=float(np.mean([len(row[1]) for row in rows])),
        f1=mean_of(f1),
        precision=precisions[0],
        recall=mean_of(recall),
        guess_precision=precisions[1],
        guess_recall=mean_of(guess),
        advantage=mean_of(recall - guess),
        individual=mean_of(about),
        exhausted=int((recall == 1).sum()),
    )


NOBODY = Estimate(0.0, 0.0, 1.0)  # the precision of no guesses


def _share(whole: Ids, part: Ids) -> float:
    return float(np.isin(whole, part).mean())


@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """Averages over people, each of whose sentences is paired with one guess at most.

    exact: share of sentences that are word for word right. similarity: 1 - edits of words / words of the longer one, 0
    without a guess. likely: the same of as many of the likeliest sentences by the public network.
    """

    people: int
    exact: Estimate
    similarity: Estimate
    likely_exact: Estimate
    likely_similarity: Estimate
    advantage: Estimate  # of similarity


def sentence_scores(
    typed: Sequence[Sequence[Sentence]], read: Sequence[Sequence[Sentence]], likely: Sequence[Sentence]
) -> SentenceScores:
    """Of people's sentences, and of those that were read or guessed."""
    found = np.array([_paired(true, guess) for true, guess in zip(typed, read, strict=True)])
    blind = np.array([_paired(true, likely[: len(guess)]) for true, guess in zip(typed, read, strict=True)])
    return SentenceScores(
        people=len(typed),
        exact=mean_of(found[:, 0]),
        similarity=mean_of(found[:, 1]),
        likely_exact=mean_of(blind[:, 0]),
        likely_similarity=mean_of(blind[:, 1]),
        advantage=mean_of(found[:, 1] - blind[:, 1]),
    )


def _paired(true: Sequence[Sentence], guesses: Sequence[Sentence]) -> tuple[float, float]:
    """(share that is exact, mean similarity) of the pairing that makes the latter largest."""
    alike = np.array([[similarity(one, other) for other in guesses] for one in true]).reshape(len(true), len(guesses))
    rows, columns = linear_sum_assignment(-alike)
    paired = alike[rows, columns]
    return float((paired == 1).sum() / len(true)), float(paired.sum() / len(true))


def similarity(one: Sentence, other: Sentence) -> float:
    """1 - Levenshtein distance of words / length of the longer."""
    return 1 - distance(one, other) / max(len(one), len(other), 1)
