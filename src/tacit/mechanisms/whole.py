"""A stream's noise as integers in a basis that changes every round: what a keeper adds to a secure sum.

Secure sums are of integers, of vectors that a public orthogonal matrix R of the round has turned. So the noise of the
round, N = w Z + rest, is turned and rounded too. Its freshest seed is drawn in the round's basis, Z' = R Z, which is as
normal as Z: the integer is then that nearest to the real number a Z' + b with b known before Z' is drawn, which is
decided exactly (`grid.nearest`), as for noise that a server adds. docs/secure-aggregation.md has the proof.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError
from tacit.mechanisms.seeds import SeedVector, standard_normal_seeds
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import released
from tacit.mechanisms.stream import NoiseState, NoiseStream

Reals = npt.NDArray[np.float64]

PURPOSE = "noise of a keeper"


class Basis(NamedTuple):
    """An orthonormal basis that everybody knows: vectors (d,) float64 are turned into it, and back."""

    turn: Callable[[Reals], Reals]
    back: Callable[[Reals], Reals]


def whole_noise(
    stream: NoiseStream, state: NoiseState, *, stddev: float, key: bytes, bound_to: bytes, basis: Basis
) -> tuple[npt.NDArray[np.int64], NoiseState]:
    """stddev * the noise of round `state.round`, turned and rounded to integers (d,), and the state after it.

    stddev: of a seed, in integers. bound_to: what the round is, by which its seeds and all later ones are other ones;
    equal arguments, equal bits. The old state is spent. Raises: InputError as `NoiseStream.next` does, and for a stream
    that draws seeds again, since earlier rounds had another basis.
    """
    if stream.draws_back:
        raise InputError(
            f"the {stream.strategy.kind} stream draws seeds of earlier rounds again, and those were drawn in another "
            "basis: take BandedInverseStream(strategy, draws_again=False)."
        )
    round, dimension = int(state.round), state.buffers.shape[1]
    about = np.frombuffer(bound_to, np.uint8)
    of_round = stream.round_keys(state, about, stddev=stddev, key=key, purpose=PURPOSE)[0]
    step, own = stream.step(round), stream.seeds_in(round)
    seeds = [basis.back(turned) for turned in standard_normal_seeds(of_round.seeds, own, dimension)]
    noise, after = stream.next(state, seeds)
    fresh = step.fresh(own)
    rest = basis.turn(noise - step.seeds[fresh] * seeds[fresh])
    integers = released(
        NoiseStep(seeds=(step.seeds[fresh],), buffers=(1.0,)),
        1,
        rest[np.newaxis],
        [SeedVector(of_round.seeds, fresh)],
        np.zeros(dimension),
        stddev,
        grid=1.0,
    )
    kept = np.array([list(of_round.whole)], np.uint8)
    return integers.astype(np.int64), after._replace(keys=kept)


def largest_deviation(stream: NoiseStream, rounds: int) -> float:
    """The largest standard deviation of the noise of one of so many rounds, in seeds: the longest row of C^{-1}."""
    return float(np.linalg.norm(stream.dense(rounds), axis=1).max())
