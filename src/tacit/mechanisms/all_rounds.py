"""A stream's noise as integers in a basis that changes every round: what a decryptor adds to a secure sum.

Secure sums are of integers, of vectors that a public orthogonal matrix R of the round has turned. So the noise of the
round, N = w Z + rest, is turned and rounded too. Its freshest seed is drawn in the round's basis, Z' = R Z, which is as
normal as Z: the integer is then that nearest to the real number a Z' + b with b known before Z' is drawn, which is
decided exactly (`grid.nearest`), as for noise that a server adds. docs/secure-aggregation.md has the proof.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError
from tacit.mechanisms.banded_inverse import BandedInverseStream
from tacit.mechanisms.keys import RoundKey, fresh_key
from tacit.mechanisms.seeds import SeedVector, standard_normal_seeds
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import released
from tacit.mechanisms.stream import NoiseState, NoiseStream
from tacit.mechanisms.streams import stream_for
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_with_noise
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.shared_noise import check_shared, of_one
from tacit.privacy.strategy import BandedInverse, Strategy

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]

PURPOSE = "noise of a keeper"


def with_noise_of(decryptors: int, encoding: Encoding, updates: Guarantee, *, honest: int = 1) -> Encoding:
    """The same for sums that hold the noise of so many decryptors, too, in every round of these updates.

    honest: how many of them are relied on, so that each adds 1/honest of the variance that is accounted. Raises:
    InputError where words are too short for both, or integers too coarse for noise in so many parts.
    """
    if updates.strategy is None:
        return encoding
    rounds, one = updates.participation.rounds, of_one(updates, honest)
    widest = encoding_with_noise(
        encoding, one.seed_stddev * _largest_deviation(updates.strategy, rounds), decryptors=decryptors, rounds=rounds
    )
    if honest > 1:
        freshest = widest.scale * one.seed_stddev * _least_fresh_deviation(updates.strategy, rounds)
        check_shared(freshest, honest=honest, draws=widest.dimension * rounds)
    return widest


@lru_cache(maxsize=64)
def _largest_deviation(strategy: Strategy, rounds: int) -> float:
    return largest_deviation(carrying_stream(strategy), rounds)


@lru_cache(maxsize=64)
def _least_fresh_deviation(strategy: Strategy, rounds: int) -> float:
    return least_fresh_deviation(carrying_stream(strategy), rounds)


class Basis(NamedTuple):
    """An orthonormal basis that everybody knows: vectors (d,) float64 are turned into it, and back."""

    turn: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]


def carrying_stream(strategy: Strategy) -> NoiseStream:
    """The stream of a strategy that draws no seeds again, as decryptors need it: what it would draw again it
    carries.
    """
    if isinstance(strategy, BandedInverse):
        return BandedInverseStream(strategy, draws_again=False)
    return stream_for(strategy)


def noise_of_all_rounds(
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
            "basis: take carrying_stream(strategy), or BandedInverseStream(strategy, draws_again=False)."
        )
    round, dimension = int(state.round), state.buffers.shape[1]
    about = np.frombuffer(bound_to, np.uint8)
    of_round = stream.round_keys(state, about, stddev=stddev, key=key, purpose=PURPOSE)[0]
    step, own = stream.step(round), stream.seeds_in(round)
    seeds, fresh = _seeds(stream, state, of_round, basis), step.fresh(own)
    rest = basis.turn(_but_for(fresh, step, seeds, state.buffers))  # before `next`, which spends the state
    _, after = stream.next(state, seeds)
    integers = released(
        NoiseStep(seeds=(step.seeds[fresh],), buffers=(1.0,)),
        1,
        rest[np.newaxis],
        [SeedVector(of_round.seeds, fresh)],
        np.zeros(dimension),
        stddev,
        grid=1.0,
    )
    return integers.astype(np.int64), after._replace(keys=_kept(of_round))


def all_rounds_replayed(
    stream: NoiseStream, state: NoiseState, keys: npt.NDArray[np.uint8], bases: Sequence[Basis]
) -> NoiseState:
    """The state after rounds that were played from `state` on: what `noise_of_all_rounds` gave back after them, to the
    bit.

    keys: (rounds, 32), those rounds' keys, the last first; bases: theirs, in their order. See `NoiseStream.again`.
    """
    for row, basis in zip(np.asarray(keys, np.uint8)[::-1], bases, strict=True):
        of_round = RoundKey(bytes(row))
        _, state = stream.next(state, _seeds(stream, state, of_round, basis))
        state = state._replace(keys=_kept(of_round))
    return state


def _seeds(stream: NoiseStream, state: NoiseState, of_round: RoundKey, basis: Basis) -> list[FloatArray]:
    """The seeds of round `state.round` in the model's own basis: drawn in the round's, and turned back."""
    own, dimension = stream.seeds_in(int(state.round)), state.buffers.shape[1]
    return [basis.back(turned) for turned in standard_normal_seeds(of_round.seeds, own, dimension)]


def _but_for(fresh: int, step: NoiseStep, seeds: Sequence[FloatArray], buffers: npt.NDArray[Any]) -> FloatArray:
    """The noise of a step with its fresh seed zero (d,): the same number to the last bit whatever that seed is.

    Taking the seed's share off the whole noise would not be: what that was rounded to depends on the seed.
    """
    rest = np.zeros(buffers.shape[1])
    for place, weight in enumerate(step.seeds):
        if weight and place != fresh:
            rest += weight * seeds[place]
    for row, weight in zip(buffers, step.buffers, strict=False):  # weights left out are zero
        rest += weight * row.astype(np.float64, copy=False)
    return rest


def _kept(of_round: RoundKey) -> npt.NDArray[np.uint8]:
    return np.array([list(of_round.whole)], np.uint8)


def largest_deviation(stream: NoiseStream, rounds: int) -> float:
    """The largest standard deviation of the noise of one of so many rounds, in seeds: the longest row of C^{-1}.

    The stream itself is played, each seed a coordinate of its own, so that no matrix of all rounds is made.
    """
    first = np.cumsum([0, *map(stream.seeds_in, range(rounds))])
    state, longest = stream.init(int(first[-1])), 0.0
    for round in range(rounds):
        drawn = [seed for each in stream.rounds_drawn(round) for seed in range(first[each], first[each + 1])]
        noise, state = stream.next(state, _unit(drawn, int(first[-1])))
        longest = max(longest, float(np.linalg.norm(noise)))
    return longest


def least_fresh_deviation(stream: NoiseStream, rounds: int) -> float:
    """The smallest standard deviation, in seeds, of what the freshest seed of one of so many rounds adds to it."""

    def of_round(round: int) -> float:
        step = stream.step(round)
        return abs(step.seeds[step.fresh(stream.seeds_in(round))])

    return min(map(of_round, range(rounds)))


def _unit(ones: Sequence[int], size: int) -> FloatArray:
    """Unit vectors (len(ones), size)."""
    vectors = np.zeros((len(ones), size))
    vectors[np.arange(len(ones)), list(ones)] = 1.0
    return vectors


@dataclass(frozen=True, kw_only=True)
class DecryptorNoiseStream:
    """One decryptor's noise for vectors of `dimension` integers, seeds having deviation `stddev`; its key is in its
    state.

    What it carries is a mapping of arrays, secret, which whoever holds it keeps on disk.
    """

    stream: NoiseStream
    stddev: float
    dimension: int

    def begin(self) -> Arrays:
        """The state before round 0, with a key from the operating system."""
        return {**self.stream.init(self.dimension)._asdict(), "key": np.frombuffer(fresh_key(), np.uint8)}

    def draw(
        self,
        carried: Arrays,
        about: bytes,
        turn: Callable[[FloatArray], FloatArray],
        back: Callable[[FloatArray], FloatArray],
    ) -> tuple[Integers, Arrays]:
        """The next round's integers (dimension,), in the basis of `turn`, and what is carried on. See
        `noise_of_all_rounds`.
        """
        buffers = np.array(carried["buffers"])  # a copy: what was carried stays as it is
        state = NoiseState(round=carried["round"], buffers=buffers, keys=carried["keys"])
        integers, after = noise_of_all_rounds(
            self.stream,
            state,
            stddev=self.stddev,
            key=carried["key"].tobytes(),
            bound_to=about,
            basis=Basis(turn, back),
        )
        return integers, {**after._asdict(), "key": carried["key"]}
