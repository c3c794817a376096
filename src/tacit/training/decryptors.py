"""Decryptors of a simulation: parties of which each adds noise of its own to every sum of updates, so that no server
does.

What one adds in a round is a round of its own stream of the run's mechanism, turned, scaled and rounded as an update is
(`mechanisms.whole`; docs/secure-aggregation.md, "Noise that no server knows"). In a simulation their keys follow from
the run's key, as all that is drawn, and what their streams carry stands in the run's checkpoints: a run that is resumed
has the same noise.
"""

import hashlib

import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.mechanisms import NoiseState
from tacit.mechanisms.all_rounds import (
    Basis,
    all_rounds_replayed,
    carrying_stream,
    noise_of_all_rounds,
)
from tacit.mechanisms.keys import KEY_BYTES
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding
from tacit.privacy.strategy import Strategy
from tacit.secure_aggregation.decoding import basis
from tacit.secure_aggregation.noise import residues
from tacit.training.randomness import seed_for
from tacit.training.secure_updates import Residues, RoundEncoding, round_signs

States = tuple[NoiseState, ...]  # of each decryptor


def first_states(decryptors: int, strategy: Strategy, dimension: int) -> States:
    """What each of so many carries before round 0, for sums of `dimension` integers."""
    return tuple(carrying_stream(strategy).init(dimension) for _ in range(decryptors))


def noise_words(
    states: States, one: Guarantee, how: RoundEncoding, *, model: Array, key: bytes
) -> tuple[tuple[Residues, ...], States]:
    """The words (dimension,) modulo 2^bits that each decryptor adds in its next round, and what it carries after it.

    one: the noise of each of them, `privacy.shared_noise.of_one`. one, how: with the clip norm in force; scale times
    clip norm stays, so the deviation in integers does, too. model: what is broadcast. key: the run's. Equal
    arguments, equal bits; the old states are spent.
    """
    assert one.strategy is not None  # a recipe without noise has no decryptors
    stream, turned = carrying_stream(one.strategy), Basis(*basis(how.encoding, how.signs))
    name = _round_name(int(states[0].round), how, model)
    drawn = [
        noise_of_all_rounds(
            stream,
            state,
            stddev=how.encoding.scale * one.seed_stddev,
            key=seed_for(key, f"noise of keeper {decryptor}")[:KEY_BYTES],
            bound_to=name + how.signs,
            basis=turned,
        )
        for decryptor, state in enumerate(states)
    ]
    return tuple(residues(noise, how.encoding) for noise, _ in drawn), tuple(after for _, after in drawn)


def state_replayed(
    strategy: Strategy, encoding: Encoding, state: NoiseState, keys: NDArray[np.uint8], *, key: bytes
) -> NoiseState:
    """What a decryptor carries after rounds that it gave noise in from `state` on, to the bit; see
    `all_rounds_replayed`.
    """
    first = int(state.round)
    bases = [Basis(*basis(encoding, round_signs(key, round))) for round in range(first, first + len(keys))]
    return all_rounds_replayed(carrying_stream(strategy), state, keys, bases)


def _round_name(round: int, how: RoundEncoding, model: Array) -> bytes:
    """32 bytes: a hash of all that is public of a round before its devices answer.

    What was released until then is in the model. So a round that is played again after a kill has the same name, and
    one that is played on from anything else has another, and with it other noise from then on.
    """
    public = f"round {round} of keepers' noise: {how.encoding}".encode()
    return hashlib.sha256(public + how.signs + np.asarray(model).tobytes()).digest()
