"""How good guesses are: of words, of rare words and of sentences, beside guessing, with intervals over people.

Intervals are Student's over people (`evaluation.intervals`): the attacked ones are a sample of the clients, all else is
as it was drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import stdtrit

from tacit.audit.attack.sentences import Sentence
from tacit.evaluation.intervals import CONFIDENCE, UNKNOWN, Estimate, mean_of
from tacit.evaluation.type_ab.replay import distance

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Of some people: the words that they typed, those that an attacker named and why, and those of a mere guess."""

    typed: Sequence[Ids]
    attacked: Sequence[Ids]
    guessed: Sequence[Ids]
    evidence: Sequence[NDArray[np.float64]]  # (V,) of each word
    outside: Sequence[Ids]  # what others typed who took no part, one for each


@dataclass(frozen=True, kw_only=True)
class WordScores:
    """Averages over people; those who typed no such word are left out.

    advantage: recall less that of as many guesses by public text. rank: how often a typed word has more evidence than
    one that was not typed. individual: rank less that of the words of somebody who took no part, by the same evidence:
    it is not 0 where the one is seen, and not only everybody. exhausted: of how many people every word was named.
    """

    people: int
    named: float
    f1: Estimate
    precision: Estimate
    recall: Estimate
    guess_precision: Estimate
    guess_recall: Estimate
    advantage: Estimate
    rank: Estimate
    individual: Estimate
    exhausted: int


def shown(gain: Estimate, people: int, comparisons: int) -> bool:
    """Whether a mean gain is above 0 with 95% confidence in so many comparisons together (Bonferroni).

    gain: with Student's interval of one comparison over so many people.
    """
    one, all_of_them = (float(stdtrit(people - 1, 1 - (1 - CONFIDENCE) / 2 / each)) for each in (1, comparisons))
    return bool(gain.value - (gain.value - gain.low) * all_of_them / one > 0)


def word_scores(of: Guesses, among: NDArray[np.bool_]) -> WordScores:
    """Of the words `among` (V,). Raises: InputError where fewer than two people typed one."""
    columns = [[ids[among[ids]] for ids in column] for column in (of.typed, of.attacked, of.guessed, of.outside)]
    rows = [row for row in zip(*columns, of.evidence, strict=True) if len(row[0])]
    recall, guess = (np.array([_share(row[0], row[by]) for row in rows]) for by in (1, 2))
    f1 = np.array([2 * np.isin(row[0], row[1]).sum() / (len(row[0]) + len(row[1])) for row in rows])
    precise = np.array([(_share(row[1], row[0]), _share(row[2], row[0])) for row in rows if len(row[1])])
    both = [(_rank(row[0], row[4], among), _rank(row[3], row[4], among)) for row in rows if len(row[3])]
    ranks = np.array(both)
    return WordScores(
        people=len(rows),
        named=float(np.mean([len(row[1]) for row in rows])),
        f1=mean_of(f1),
        precision=mean_of(precise[:, 0]) if len(precise) > 1 else UNKNOWN,
        recall=mean_of(recall),
        guess_precision=mean_of(precise[:, 1]) if len(precise) > 1 else UNKNOWN,
        guess_recall=mean_of(guess),
        advantage=mean_of(recall - guess),
        rank=mean_of(ranks[:, 0]),
        individual=mean_of(ranks[:, 0] - ranks[:, 1]),
        exhausted=int((recall == 1).sum()),
    )


def _share(whole: Ids, part: Ids) -> float:
    return float(np.isin(whole, part).mean())


def _rank(typed: Ids, evidence: NDArray[np.float64], among: NDArray[np.bool_]) -> float:
    """The area under the curve of both rates: how often a typed word is above another, equal ones counted by half."""
    others = among.copy()
    others[typed] = False
    below = np.sort(evidence[others])
    ends = [np.searchsorted(below, evidence[typed], side=side) for side in ("left", "right")]
    return float(np.mean(ends) / len(below))


@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """Averages over people, each of whose sentences is paired with one guess at most.

    exact: share of sentences that are word for word right. similarity: 1 - edits of words / words of the longer one, 0
    without a guess. guess: the same of what the search makes of noise
    alone and the most frequent words: likely sentences by the public network.
    """

    people: int
    exact: Estimate
    similarity: Estimate
    guess_exact: Estimate
    guess_similarity: Estimate
    advantage: Estimate  # of similarity


def sentence_scores(
    typed: Sequence[Sequence[Sentence]], read: Sequence[Sequence[Sentence]], blind: Sequence[Sequence[Sentence]]
) -> SentenceScores:
    """Of people's sentences, and of those that were read or guessed."""
    found, guess = (
        np.array([_paired(true, said) for true, said in zip(typed, by, strict=True)]) for by in (read, blind)
    )
    return SentenceScores(
        people=len(typed),
        exact=mean_of(found[:, 0]),
        similarity=mean_of(found[:, 1]),
        guess_exact=mean_of(guess[:, 0]),
        guess_similarity=mean_of(guess[:, 1]),
        advantage=mean_of(found[:, 1] - guess[:, 1]),
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
