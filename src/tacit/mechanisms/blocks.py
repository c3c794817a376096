"""A round on a CPU: block by block, so that seeds and noise never leave the cache.

What limits a round is the generator, then the memory that carries the buffers: each is read once and written once.
A piece of every vector is drawn, added up and kept before the next piece is begun. Every coordinate is computed alone
and in a fixed order of NumPy's elementwise operations, so the bits depend neither on the threads nor on the pieces.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.seeds import BLOCK, SeedSource, each_block
from tacit.mechanisms.step import Decay, Keep, Step, float32_parts

Vector = npt.NDArray[np.float32]
Terms = list[tuple[int, float]]  # (place among seeds, then buffers, then the noise; weight)

PIECE = 1 << 15  # numbers at a time, 128 KiB: some ten such vectors fit into a core's second cache
LINE = 64  # bytes: arrays that begin on a cache line go to JAX without a copy


def empty_vector(dimension: int) -> Vector:
    """(dimension,) not yet written, beginning on a cache line."""
    numbers = np.empty(dimension + LINE // 4, np.float32)
    skip = -(numbers.ctypes.data // 4) % (LINE // 4)
    return numbers[skip : skip + dimension]


def run_step(
    step: Step,
    buffers: npt.NDArray[np.float32],
    seeds: Sequence[Vector | SeedSource],
    onto: Vector | None,
    scale: float,
) -> Vector:
    """onto + scale * noise, (d,); the buffers (rows, d) are changed in place.

    seeds: vectors (d,), or sources that are drawn from as they are needed. Without `onto`, the noise alone.
    """
    places = len(seeds) + len(buffers)
    noise_terms = _terms(step.seeds, step.buffers, len(seeds), step.cancelling)
    kept_terms: Terms = []
    if isinstance(step.then, Keep):
        kept_terms = _terms(step.then.seeds, step.then.buffers, len(seeds)) + _nonzero([(places, step.then.noise)])
    rates = np.asarray(step.then.rates, np.float32).tolist() if isinstance(step.then, Decay) else []
    dimension = buffers.shape[1]
    result = empty_vector(dimension)

    def run(block: int) -> None:
        sources = [seed.block(block) if isinstance(seed, SeedSource) else seed for seed in seeds]
        scratch = np.empty((len(seeds) + 3, PIECE), np.float32)
        for start in range(block * BLOCK, min((block + 1) * BLOCK, dimension), PIECE):
            piece = slice(start, min(start + PIECE, (block + 1) * BLOCK, dimension))
            *room, total, kept, spare = scratch[:, : piece.stop - piece.start]
            rows = [_read(source, piece, place) for source, place in zip(sources, room, strict=True)]
            rows += list(buffers[:, piece])
            noise = _add_up(rows, noise_terms, total, spare)
            for buffer, rate in zip(rows[len(seeds) :], rates, strict=False):
                np.multiply(buffer, rate, out=spare)
                np.subtract(noise, spare, out=spare)
                np.add(buffer, spare, out=buffer)
            if isinstance(step.then, Keep):
                slot = buffers[step.then.slot, piece]
                np.copyto(slot, _add_up([*rows, noise], kept_terms, kept, spare))
            if onto is None:
                np.multiply(noise, scale, out=result[piece])
            else:
                np.add(onto[piece], np.multiply(noise, scale, out=spare), out=result[piece])

    each_block(run, dimension)
    return result


def _terms(seeds: Sequence[float], buffers: Sequence[float], count: int, cancelling: bool = False) -> Terms:
    """What is added up, in order: the small parts of the weights first."""
    places = [*range(len(seeds)), *range(count, count + len(buffers))]
    large, small = float32_parts((*seeds, *buffers), cancelling)
    return _nonzero([*zip(places, small.tolist(), strict=True), *zip(places, large.tolist(), strict=True)])


def _nonzero(terms: Terms) -> Terms:
    return [(place, weight) for place, weight in terms if weight]


def _read(source: Vector | np.random.Generator, piece: slice, room: Vector) -> Vector:
    if isinstance(source, np.ndarray):
        return source[piece]
    return source.standard_normal(out=room, dtype=np.float32)


def _add_up(rows: Sequence[Vector], terms: Terms, total: Vector, spare: Vector) -> Vector:
    """The weighted sum of rows, in `total`; or the row itself where nothing was to be done to it."""
    so_far: Vector | None = None
    for place, weight in terms:
        row = rows[place] if weight == 1.0 else np.multiply(rows[place], weight, out=total if so_far is None else spare)
        so_far = row if so_far is None else np.add(so_far, row, out=total)
    if so_far is None:
        total.fill(0.0)
        return total
    return so_far
