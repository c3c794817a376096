"""A round on the host's cores: block by block, so that seeds and noise never leave the cache.

What limits a round is the memory that carries the buffers, each read once and written once, then the generator. A piece
of every vector is drawn, added up, kept and released before the next piece is begun. Every coordinate is computed alone
and in a fixed order, each operation rounded by itself, so the bits depend neither on the threads nor on the pieces.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.grid import grid_for, nearest, release
from tacit.mechanisms.loops import add_rows, add_scaled, decay_on
from tacit.mechanisms.seeds import BLOCK, PIECE, SeedVector, each_block
from tacit.mechanisms.step import Decay, Keep, NoiseStep

FloatArray = npt.NDArray[np.float64]
Carried = npt.NDArray[Any]  # float64 or float32

LINE = 64  # bytes: arrays that begin on a cache line go to JAX without a copy


def noise_of(step: NoiseStep, own: int, buffers: Carried, seeds: Sequence[FloatArray]) -> FloatArray:
    """The noise of a round (d,), from seeds (d,) of which the first `own` are the round's; buffers change in place."""
    result, fresh = np.empty(buffers.shape[1], np.float64), step.fresh(own)

    def run(block: int) -> None:
        scratch = np.empty((3, PIECE))
        for piece in _pieces(block, result.size):
            rows = [seed[piece] for seed in seeds]
            rest = _carry_on(step, fresh, buffers, rows, piece, scratch)
            _whole(step.seeds[fresh], rows[fresh], rest, result[piece])

    each_block(run, result.size)
    return result


def released(
    step: NoiseStep,
    own: int,
    buffers: Carried,
    seeds: Sequence[SeedVector],
    summed: Carried,
    stddev: float,
    *,
    grid: float | None = None,
) -> Carried:
    """summed + stddev * noise (d,) to the nearest multiple of the grid; buffers change in place.

    summed and the result: float32 or float64, exact either way.
    seeds: the first `own` are the round's, the others are drawn again. stddev: of a seed; with the weight of the
    round's heaviest own seed it determines the grid, unless another power of two is given.
    """
    result, fresh = empty_vector(summed), step.fresh(own)
    of_fresh = stddev * step.seeds[fresh]
    grid = grid_for(abs(of_fresh)) if grid is None else grid
    needed = step.seeds_needed()

    def run(block: int) -> None:
        drawing = {which: seeds[which].block(block) for which in needed}
        room, scratch = np.empty((len(seeds), PIECE)), np.empty((3, PIECE))
        doubtful = np.empty(PIECE, np.intp)
        for piece in _pieces(block, summed.size):
            for which, one in drawing.items():
                one.fill(room[which])
            rows = list(room[:, : piece.stop - piece.start])
            rest = _carry_on(step, fresh, buffers, rows, piece, scratch)
            count = release(summed[piece], rows[fresh], rest, of_fresh, stddev, grid, result[piece], doubtful)
            for place in doubtful[:count].tolist():
                fixed = Fraction(float(summed[piece][place])) + Fraction(stddev * float(rest[place]))
                more = seeds[fresh].further(piece.start + place)
                result[piece.start + place] = nearest(fixed, of_fresh, drawing[fresh].interval(place), more, grid)

    each_block(run, summed.size)
    return result


def _pieces(block: int, dimension: int) -> Iterator[slice]:
    end = min((block + 1) * BLOCK, dimension)
    for start in range(block * BLOCK, end, PIECE):
        yield slice(start, min(start + PIECE, end))


def _carry_on(
    step: NoiseStep, fresh: int, buffers: Carried, rows: Sequence[FloatArray], piece: slice, scratch: FloatArray
) -> FloatArray:
    """The noise of a piece but for its `fresh` seed; the buffers move on."""
    size = piece.stop - piece.start
    rest, noise, kept = scratch[0, :size], scratch[1, :size], scratch[2, :size]
    rest.fill(0.0)
    _add_seeds(rest, rows, [0.0 if place == fresh else weight for place, weight in enumerate(step.seeds)])
    weights, weight = np.array(step.buffers, np.float64), step.seeds[fresh]
    match step.then:
        case Decay(rates):
            decay_on(rows[fresh], weight, rest, buffers, piece.start, weights, np.array(rates, np.float64), noise)
        case Keep(slot, of_noise, of_seeds, of_buffers):
            add_rows(rest, buffers, piece.start, weights)
            kept.fill(0.0)
            _add_seeds(kept, rows, of_seeds)
            add_rows(kept, buffers, piece.start, np.array(of_buffers, np.float64))
            if of_noise:
                _whole(weight, rows[fresh], rest, noise)
                add_scaled(kept, noise, of_noise)
            np.copyto(buffers[slot, piece], kept, casting="same_kind")
        case None:
            add_rows(rest, buffers, piece.start, weights)
    return rest


def _add_seeds(total: FloatArray, rows: Sequence[FloatArray], weights: Sequence[float]) -> None:
    for row, weight in zip(rows, weights, strict=False):  # weights left out are zero
        if weight:
            add_scaled(total, row, weight)


def _whole(weight: float, fresh: FloatArray, rest: FloatArray, out: FloatArray) -> None:
    """out = weight * fresh + rest."""
    np.add(np.multiply(fresh, weight, out=out), rest, out=out)


def empty_vector(like: Carried) -> Carried:
    """A vector of the same size and type, not yet written, beginning on a cache line."""
    in_line = LINE // like.itemsize
    numbers = np.empty(like.size + in_line, like.dtype)
    skip = -(numbers.ctypes.data // like.itemsize) % in_line
    return numbers[skip : skip + like.size]
