"""What a device does when it is asked for new words: from what was typed on it to K answers that anybody may see.

This is the whole of the device's part (paper 2, Algorithm 2, lines 9 to 18) and it is pure: words typed and the
server's question in, reports out. A real device runs `reports`; `collect.py` computes the same for a
whole population at once.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.discovery.question import NOTHING, Question, WordQuestion, question_from
from tacit.randomizers.device_randomness import random_words
from tacit.randomizers.local_reports import LocalReportSettings

__all__ = ["Question", "WordQuestion", "answers", "choose", "question_from", "reports", "uniforms_from"]


def choose(
    counts: NDArray[np.int64], settings: LocalReportSettings, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Which of the things held are reported: at most K different indices into `counts` (held,).

    greedy: the K largest counts, ties to the earlier; random: K of them uniformly, by the first K steps of a
    Fisher-Yates shuffle with `uniforms` (K,) in [0, 1). Everything where no more than K are held. In both cases
    changing one word typed changes at most one thing reported, which item-level privacy rests on.
    """
    held, wanted = len(counts), settings.contributions
    if held <= wanted:
        return np.arange(held)
    if settings.sampler == "greedy":
        return np.argsort(-counts, kind="stable")[:wanted]
    order = np.arange(held)
    for step in range(wanted):
        other = step + int(uniforms[step] * (held - step))
        order[step], order[other] = order[other], order[step]
    return order[:wanted]


def answers(
    typed: Mapping[str, int], question: Question, settings: LocalReportSettings, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The K answers of one device before they are hidden, padded with null: (contributions,).

    `typed` has the words that the device's vocabulary lacks, and their counts; ties go by code point.
    """
    held: list[tuple[int, int]] = []
    place: dict[int, int] = {}
    for word in sorted(typed):
        answer = question.answer_of(word)
        if answer == NOTHING:
            continue
        if question.merges and answer in place:
            held[place[answer]] = (answer, held[place[answer]][1] + typed[word])
        else:
            place[answer] = len(held)
            held.append((answer, typed[word]))
    counts = np.array([count for _, count in held], np.int64)
    given = np.full(settings.contributions, question.domain - 1, np.int64)
    for position, index in enumerate(choose(counts, settings, uniforms)):
        given[position] = held[index][0]
    return given


def reports(
    typed: Mapping[str, int], question: Question, settings: LocalReportSettings, generator: np.random.Generator
) -> NDArray[np.generic]:
    """What one device sends: K randomized reports, in an order that tells nothing.

    Each report is `local_epsilon`-LDP; swapping one word typed changes one of them (Theorem 1 of paper 2). The order
    is random because K answers in a fixed order could all move when one of them changes.
    """
    own = answers(typed, question, settings, uniforms_from(generator, settings.contributions))
    order = np.argsort(random_words(generator, settings.contributions), kind="stable")
    return settings.randomizer_for(question.domain).encode(own[order], generator)


def uniforms_from(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Numbers in [0, 1), (count,), as NumPy makes them of 64 random bits; quick from the operating system too."""
    return np.asarray((random_words(generator, count) >> np.uint64(11)) * 2.0**-53, np.float64)
