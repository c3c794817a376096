"""Uniform random subsets, drawn one for each device: compiled loops over 32-bit random numbers.

A loop that runs out of numbers keeps its place and goes on with the next batch. Beginning the device again instead
would prefer the answers that need fewer draws, and so tilt the probabilities that privacy rests on.
"""

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.randomizers.device_randomness import random_words

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

BATCH = 1 << 20  # words of randomness at a time, 8 MiB


def subsets_as_numbers(
    own: Numbers, included: npt.NDArray[np.bool_], size: int, domain: int, generator: np.random.Generator
) -> npt.NDArray[np.uint32]:
    """One subset of {0..domain-1} for each device, (devices, size), each row ascending.

    Uniform among the subsets of that size that hold `own` where `included`, and among those without it elsewhere.
    """
    out = np.empty((own.size, size), np.uint32)
    marks = np.zeros(-(-domain // 64), np.uint64)
    place = np.zeros(2, np.int64)
    while place[0] < own.size:
        _draw_numbers(own, included, domain, _halves(generator, own.size * size), place, marks, out)
    out.sort(axis=1)  # the order of drawing would tell which one is the device's own
    return out


def subsets_as_bitmaps(
    own: Numbers, included: npt.NDArray[np.bool_], size: int, domain: int, generator: np.random.Generator
) -> Words:
    """The same as bits: (devices, ceil(domain / 64)), item y in bit y % 64 of word y // 64."""
    out = np.zeros((own.size, -(-domain // 64)), np.uint64)
    place = np.zeros(2, np.int64)
    while place[0] < own.size:
        _draw_bitmaps(own, included, size, domain, _halves(generator, own.size * size), place, out)
    return out


def _halves(generator: np.random.Generator, needed: int) -> npt.NDArray[np.uint32]:
    return random_words(generator, min(BATCH, needed // 2 + 64)).view(np.uint32)


@compiled
def _draw_numbers(
    own: Numbers,
    included: npt.NDArray[np.bool_],
    domain: int,
    halves: npt.NDArray[np.uint32],
    place: Numbers,
    marks: Words,
    out: npt.NDArray[np.uint32],
) -> None:
    """Goes on at `place` (device, how many it has) until the devices or the random numbers end."""
    size, many, one = out.shape[1], np.uint64(domain), np.uint64(1)
    refused = np.uint64((2**32 - domain) % domain)  # Lemire 2019: what makes a number below `domain` exactly uniform
    used = 0
    for device in range(place[0], own.size):
        mine = own[device]
        marks[mine >> 6] |= one << np.uint64(mine & 63)
        chosen = place[1]
        if chosen == 0 and included[device]:
            out[device, 0] = mine
            chosen = 1
        while chosen < size:
            if used == halves.size:
                place[0], place[1] = device, chosen
                return
            product = np.uint64(halves[used]) * many
            used += 1
            if product & np.uint64(0xFFFFFFFF) < refused:
                continue
            item = product >> np.uint64(32)
            word, bit = item >> np.uint64(6), one << (item & np.uint64(63))
            if marks[word] & bit:
                continue
            marks[word] |= bit
            out[device, chosen] = item
            chosen += 1
        for index in range(size):
            marks[out[device, index] >> 6] = 0
        marks[mine >> 6] = 0
        place[1] = 0
    place[0] = own.size


@compiled
def _draw_bitmaps(
    own: Numbers,
    included: npt.NDArray[np.bool_],
    size: int,
    domain: int,
    halves: npt.NDArray[np.uint32],
    place: Numbers,
    out: Words,
) -> None:
    """As `_draw_numbers`, straight into the rows."""
    many, one = np.uint64(domain), np.uint64(1)
    refused = np.uint64((2**32 - domain) % domain)
    used = 0
    for device in range(place[0], own.size):
        mine = own[device]
        row = out[device]
        row[mine >> 6] |= one << np.uint64(mine & 63)
        chosen = place[1]
        if chosen == 0 and included[device]:
            chosen = 1
        while chosen < size:
            if used == halves.size:
                place[0], place[1] = device, chosen
                return
            product = np.uint64(halves[used]) * many
            used += 1
            if product & np.uint64(0xFFFFFFFF) < refused:
                continue
            item = product >> np.uint64(32)
            word, bit = item >> np.uint64(6), one << (item & np.uint64(63))
            if row[word] & bit:
                continue
            row[word] |= bit
            chosen += 1
        if not included[device]:
            row[mine >> 6] ^= one << np.uint64(mine & 63)
        place[1] = 0
    place[0] = own.size


@compiled
def count_bits(bitmaps: Words, votes: Numbers) -> None:
    """votes[y] += how many rows have bit y."""
    for device in range(bitmaps.shape[0]):
        for word in range(bitmaps.shape[1]):
            bits = bitmaps[device, word]
            start = 64 * word
            for bit in range(min(64, votes.size - start)):
                votes[start + bit] += np.int64((bits >> np.uint64(bit)) & np.uint64(1))
