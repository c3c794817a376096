"""The sixteen steps in which format 202 keeps how likely a word follows another, and which of them to take.

A step b of a word with the frequency u is read as u + floor((b + 1) (255 - u) / 16.5) (`ProbabilityUtils` in the native
code of LatinIME, in float32). Frequent words have fine steps, and none of them below their own u.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tacit.keyboard.dictionaries.entries import CERTAIN, Context, Dictionary, Followers, by_f, whole
from tacit.networks.metrics import SHOWN

STEPS = 16
TIED, INVERTED = 8.0, 1_000.0  # what two followers cost that are read as equally likely, or in the wrong order, in f


@lru_cache(maxsize=CERTAIN + 1)
def _grid(u: int) -> tuple[int, ...]:
    step = np.float32(CERTAIN - u) / np.float32(STEPS + 0.5)
    return tuple(u + int(np.float32(b + 1) * step) for b in range(STEPS))


def follower_f(u: int, step: int) -> int:
    """f of a follower whose own f is u, as every reader has it."""
    return _grid(u)[step]


def steps_of(wanted: Sequence[float], own: Sequence[int]) -> list[int]:
    """A step for each follower, so that they are read in their order and as near to what is wanted as that allows.

    wanted: f of each, falling; own: its f as a word. The least sum of distances, by dynamic programming over pairs of
    neighbours; the distance of a pair in the wrong order counts INVERTED on top.
    """
    if not wanted:
        return []
    read = np.array([_grid(u) for u in own], np.float64)  # (n, STEPS)
    far = np.abs(read - np.asarray(wanted, np.float64)[:, None])
    costs, came = far[0], np.zeros((len(wanted), STEPS), np.int64)
    for number in range(1, len(wanted)):
        before, here = read[number - 1][:, None], read[number][None]
        tied = TIED * (wanted[number - 1] > wanted[number])
        pairs = costs[:, None] + tied * (before == here) + INVERTED * (before < here)
        came[number] = pairs.argmin(axis=0)
        costs = pairs.min(axis=0) + far[number]
    steps = [int(costs.argmin())]
    for number in range(len(wanted) - 1, 0, -1):
        steps.append(int(came[number][steps[-1]]))
    return steps[::-1]


def sayable(dictionary: Dictionary) -> Dictionary:
    """What follows one word, as far as steps can say it.

    Kept are the SHOWN likeliest after each word, however they must be raised, since a keyboard shows nothing else; and
    of the others those that are not read as likelier than they are: without them a reader takes their own f as words.
    """
    own = {entry.word: whole(entry.f) for entry in dictionary.entries}

    def said(followers: Followers) -> Followers:
        ordered = by_f(followers)
        return ordered[:SHOWN] + tuple((word, f) for word, f in ordered[SHOWN:] if follower_f(own[word], 0) <= whole(f))

    one: dict[Context, Followers] = {key: said(found) for key, found in dictionary.followers.items() if len(key) == 1}
    return replace(dictionary, followers=one)
