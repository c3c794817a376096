"""A stream's noise as integers in a basis that changes every round: what a keeper adds to a secure sum.

Secure sums are of integers, of vectors that a public orthogonal matrix R of the round has turned. So the noise of the
round, N = w Z + rest, is turned and rounded too. Its freshest seed is drawn in the round's basis, Z' = R Z, which is as
normal as Z: the integer is then that nearest to the real number a Z' + b with b known before Z' is drawn, which is
decided exactly (`grid.nearest`), as for noise that a server adds. docs/secure-aggregation.md has the proof.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError
from tacit.mechanisms.keys import fresh_key
from tacit.mechanisms.seeds import SeedVector, standard_normal_seeds
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import released
from tacit.mechanisms.stream import NoiseState, NoiseStream

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]

PURPOSE = "noise of a keeper"


class Basis(NamedTuple):
    """An orthonormal basis that everybody knows: vectors (d,) float64 are turned into it, and back."""

    turn: Callable[[Reals], Reals]
    back: Callable[[Reals], Reals]


def whole_noise(
    stream: NoiseStream, state: NoiseState, *, stddev: float, key: bytes, bound_to: bytes, basis: Basis
) -> tuple[Integers, NoiseState]:
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


@dataclass(frozen=True, kw_only=True)
class KeeperStream:
    """One keeper's noise for vectors of `dimension` integers, seeds having deviation `stddev`; its key is in its state.

    What it carries is a mapping of arrays, secret, which whoever holds it keeps on disk.
    """

    stream: NoiseStream
    stddev: float
    dimension: int

    def begin(self) -> Arrays:
        """The state before round 0, with a key from the operating system."""
        return {**self.stream.init(self.dimension)._asdict(), "key": np.frombuffer(fresh_key(), np.uint8)}

    def draw(
        self, carried: Arrays, about: bytes, turn: Callable[[Reals], Reals], back: Callable[[Reals], Reals]
    ) -> tuple[Integers, Arrays]:
        """The next round's integers (dimension,), in the basis of `turn`, and what is carried on. See `whole_noise`."""
        buffers = np.array(carried["buffers"])  # a copy: what was carried stays as it is
        state = NoiseState(round=carried["round"], buffers=buffers, keys=carried["keys"])
        integers, after = whole_noise(
            self.stream,
            state,
            stddev=self.stddev,
            key=carried["key"].tobytes(),
            bound_to=about,
            basis=Basis(turn, back),
        )
        return integers, {**after._asdict(), "key": carried["key"]}
