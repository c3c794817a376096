"""A round on a CPU: block by block, so that seeds and noise never leave the cache.

What limits a round is the generator, then the memory that carries the buffers: each is read once and written once.
A piece of every vector is drawn, added up and kept before the next piece is begun. Every coordinate is computed alone
and in a fixed order, each operation rounded by itself, so the bits depend neither on the threads nor on the pieces.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.loops import add_scaled, decay_on
from tacit.mechanisms.seeds import BLOCK, PIECE, SeedSource, each_block
from tacit.mechanisms.step import Decay, Keep, NoiseStep
from tacit.mechanisms.ziggurat import Ziggurat

Vector = npt.NDArray[np.float32]
Terms = list[tuple[int, float]]  # (place among seeds, then buffers, then the noise; weight)

LINE = 64  # bytes: arrays that begin on a cache line go to JAX without a copy


def empty_vector(dimension: int) -> Vector:
    """(dimension,) not yet written, beginning on a cache line."""
    numbers = np.empty(dimension + LINE // 4, np.float32)
    skip = -(numbers.ctypes.data // 4) % (LINE // 4)
    return numbers[skip : skip + dimension]


def run_step(
    step: NoiseStep,
    buffers: npt.NDArray[np.float32],
    seeds: Sequence[Vector | SeedSource],
    onto: Vector | None,
    scale: float,
) -> Vector:
    """onto + scale * noise, (d,); the buffers (rows, d) are changed in place.

    seeds: vectors (d,), or sources that are drawn from as they are needed. Without `onto`, the noise alone.
    """
    decay = step.then if isinstance(step.then, Decay) else None
    # The loop in which buffers fade adds them up itself.
    noise_terms = _terms(step.seeds, () if decay is not None else step.buffers, len(seeds))
    weights = np.array(step.buffers, np.float32)
    kept_terms: Terms = []
    if isinstance(step.then, Keep):
        kept_terms = _terms(step.then.seeds, step.then.buffers, len(seeds))
        kept_terms += [(len(seeds) + len(buffers), step.then.noise)] if step.then.noise else []
    rates = np.array(decay.rates if decay is not None else (), np.float32)
    dimension = buffers.shape[1]
    result = empty_vector(dimension)

    def run(block: int) -> None:
        sources = [seed.block(block) if isinstance(seed, SeedSource) else seed for seed in seeds]
        *drawn, first, second = np.empty((len(seeds) + 2, PIECE), np.float32)
        ziggurat = Ziggurat(PIECE)
        for start in range(block * BLOCK, min((block + 1) * BLOCK, dimension), PIECE):
            piece = slice(start, min(start + PIECE, (block + 1) * BLOCK, dimension))
            total, kept = (row[: piece.stop - start] for row in (first, second))
            rows: list[Vector] = []
            for source, room in zip(sources, drawn, strict=True):
                if isinstance(source, np.ndarray):
                    rows.append(source[piece])
                else:
                    ziggurat.fill(source, room)
                    rows.append(room[: piece.stop - start])
            rows.extend(buffers[:, piece])
            if step.cancelling:
                noise = _add_up_in_float64(rows, noise_terms, total)
            else:
                noise = _add_up(rows, noise_terms, total)
            if decay is not None:
                decay_on(noise, buffers, start, weights, rates, total)
                noise = total
            if isinstance(step.then, Keep):
                slot = buffers[step.then.slot, piece]
                np.copyto(slot, _add_up([*rows, noise], kept_terms, kept))
            if onto is None:
                np.multiply(noise, scale, out=result[piece])
            else:
                add_scaled(onto[piece], noise, np.float32(scale), result[piece])

    each_block(run, dimension)
    return result


def _terms(seeds: Sequence[float], buffers: Sequence[float], count: int) -> Terms:
    """What is added up, in order, the buffers being found after `count` seeds."""
    places = [*range(len(seeds)), *range(count, count + len(buffers))]
    return [(place, weight) for place, weight in zip(places, (*seeds, *buffers), strict=True) if weight]


def _add_up(rows: Sequence[Vector], terms: Terms, total: Vector) -> Vector:
    """The weighted sum of rows, in `total`; or the row itself where nothing was to be done to it."""
    so_far: Vector | None = None
    for place, weight in terms:
        if so_far is None:
            so_far = rows[place] if weight == 1.0 else np.multiply(rows[place], weight, out=total)
        else:
            add_scaled(so_far, rows[place], np.float32(weight), total)
            so_far = total
    if so_far is None:
        total.fill(0.0)
        return total
    return so_far


def _add_up_in_float64(rows: Sequence[Vector], terms: Terms, total: Vector) -> Vector:
    """The weighted sum of rows, in `total`, rounded once."""
    so_far, spare = np.zeros(len(total)), np.empty(len(total))
    for place, weight in terms:
        np.add(so_far, np.multiply(rows[place], weight, out=spare, dtype=np.float64), out=so_far)
    np.copyto(total, so_far, casting="same_kind")
    return total
