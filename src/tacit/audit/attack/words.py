"""Which words somebody typed, by what their upload did to the output bias and to the rows of both embeddings.

In a step of SGD on the mean of N predicted words the bias of word v changes by learning rate / N times (how often v was
typed - sum of the probabilities that the network gave it). So it rises only for words that were typed, and does for
each that is rare enough [arXiv:2210.16947, section 4]. An untied input embedding says more: its row of a word changes
where the word was read, and nowhere else.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tacit.audit.attack.population import Population
from tacit.audit.attack.public_text import Numbers, PublicText
from tacit.audit.attack.views import Seen
from tacit.networks.cifg.parameters import CifgParameters
from tacit.text.vocabulary import SPECIALS

Ids = NDArray[np.int64]

SETTLED = 0.9  # of the words that are expected to have been typed
TINY = 1e-300


def risen(update: CifgParameters) -> Ids:
    """The words whose output bias rose: the published attack."""
    return _words(np.asarray(update.output_bias) > 0)


def changed(update: CifgParameters) -> Ids:
    """The words whose bias rose or, if an embedding is the input's alone, whose row in it changed; without noise."""
    rows = (np.asarray(update.embedding) != 0).any(axis=1) if update.output.shape[1] else False
    return _words((np.asarray(update.output_bias) > 0) | rows)


def _words(found: NDArray[np.bool_]) -> Ids:
    ids = np.flatnonzero(found)
    return ids[ids >= SPECIALS]


def certainty(update: CifgParameters, named: Ids) -> Numbers:
    """How sure each word is where there is no noise, (V,): those that are named first, then by the rise of the bias."""
    bias = np.asarray(update.output_bias, np.float64)
    sure: Numbers = bias / (2 * np.abs(bias).max() + 1e-300)  # below 1/2
    sure[named] += 1
    return sure


@dataclass(frozen=True)
class Experience:
    """What an attacker has learnt from clipped updates of which it knows the words: those of people who took no part.

    words, rare: how many somebody types on average, and of rare ones. risen, spread: mean and standard deviation of how
    much a typed word's score rises where features are average (`_output`). row: mean squared length of what a typed
    word's input row changes by; 0 where it has none.
    """

    words: int
    rare: int
    risen: float
    spread: float
    row: float


def experience(people: Population, public: PublicText) -> Experience:
    """From the outsiders, clipped as the targets are."""
    words: list[int] = []
    rare: list[int] = []
    rises: list[float] = []
    rows: list[float] = []
    for client in range(len(people.outsiders.norms)):
        typed = people.outsiders.typed(client)
        update = people.tree(people.clipped(people.outsiders, client))
        words.append(len(typed))
        rare.append(int(public.rare[typed].sum()))
        rises.extend(_output(update, public)[typed])
        if update.output.shape[1]:
            rows.extend(np.square(np.asarray(update.embedding, np.float64)[typed]).sum(axis=1))
    return Experience(
        words=max(1, round(float(np.mean(words)))),
        rare=max(1, round(float(np.mean(rare)))),
        risen=float(np.mean(rises)),
        spread=float(np.std(rises)),
        row=float(np.mean(rows)) if rows else 0.0,
    )


def evidence(seen: Seen, public: PublicText, known: Experience) -> Numbers:
    """The logarithm of how much likelier what was seen is if each word was typed than if not, (V,).

    There must be noise. The output's column and bias, along the average features, are N(0, s^2) or N(risen, s^2 +
    spread^2), s^2 the noise's variance; what is below -s is taken for -s, since probabilities lower what was not typed.
    Each number of the input's row is N(0, noise^2) or N(0, noise^2 + row / E).
    """
    variance = seen.noise**2 * (float(public.centre @ public.centre) + 1)
    wide, along = variance + known.spread**2, np.maximum(_output(seen.update, public), -math.sqrt(variance))
    found = along**2 / variance / 2 - (along - known.risen) ** 2 / wide / 2 - math.log(wide / variance) / 2
    if known.row:
        rows = np.asarray(seen.update.embedding, np.float64)
        ratio, squares = (of / seen.noise**2 for of in (known.row / rows.shape[1], np.square(rows).sum(axis=1)))
        found = found + squares * ratio / (1 + ratio) / 2 - rows.shape[1] * math.log1p(ratio) / 2
    return np.asarray(found)


def _output(update: CifgParameters, public: PublicText) -> Numbers:
    """(V,) how much each word's score rises where the features are average."""
    table = np.asarray(update.output if update.output.shape[1] else update.embedding.T, np.float64)
    return np.asarray(public.centre @ table + np.asarray(update.output_bias, np.float64))


def likeliest(found: Numbers, public: PublicText, known: Experience, *, rare: bool = False) -> Ids:
    """The words that an attacker names under noise, the surest first; rare: among rare ones alone.

    Odds are those that somebody types a word, by its frequency in public text, times the evidence `found` (V,). Where
    they settle nearly all that was typed, the words above even odds are named; else as many as people type.
    """
    among, number = (public.rare, known.rare) if rare else (public.words, known.words)
    absent = known.words * np.log1p(-public.frequency)  # log of the probability not to type it
    odds = np.where(among, np.log(-np.expm1(np.minimum(absent, -TINY))) - absent + found, -np.inf)
    likely, order = expit(odds), np.argsort(-odds, kind="stable")
    sure = int((likely > 0.5).sum())
    settled = likely[likely > 0.5].sum() > SETTLED * likely.sum()
    best: Ids = order[: sure if settled else number]
    return best
