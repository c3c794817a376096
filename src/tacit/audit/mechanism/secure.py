"""Secure sums as an auditor plays them: updates as integers, and noise that decryptors add so that no server does.

Of an encoding the canary is the longest vector of integers that a server's own check lets pass, whatever an honest
device would round its update to. Of decryptors the auditor is the server and all of them but the honest ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.audit.mechanism.case import Case, Sums
from tacit.audit.mechanism.rounds import OTHERS, case_of_rounds, plan_of
from tacit.audit.mechanism.streams import Released, case_of_sums, key_of
from tacit.federation.report_shape import encoded_shape
from tacit.mechanisms.all_rounds import with_noise_of
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.shared_noise import of_one
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.decoding import basis
from tacit.secure_aggregation.noise import residues
from tacit.training.collect import TrainQuestion
from tacit.training.decryptors import first_states, noise_words
from tacit.training.secure_updates import Residues, RoundEncoding, round_signs

DECRYPTORS = "is the server and every decryptor but {honest}; sees each sum and their noise; chooses what clients send"
ENCODED = "sees the model after every round; sends any integers that the server's check lets pass"
COORDINATES = 4  # of an encoded update
PUBLIC = b"tacit audit"  # of which the rounds' signs follow


def longest_words(how: RoundEncoding) -> Residues:
    """The words (length,) of a report as long as `check_encoded` allows, in the direction of the first coordinate.

    In every round the same direction, whatever the round's basis: or the noise that later rounds take back would not
    be that which hid the earlier. Raises: InputError, by that check, where such a report would not be taken.
    """
    encoding = how.encoding
    turn, _ = basis(encoding, how.signs)
    along = turn(np.eye(encoding.dimension)[0])
    whole = np.trunc(along * encoding.longest_squared**0.5).astype(np.int64)
    whole = np.clip(whole, -encoding.largest, encoding.largest)
    for at in np.argsort(-np.abs(along), kind="stable"):
        longer = whole.copy()
        longer[at] += 1 if along[at] > 0 else -1
        if abs(longer[at]) <= encoding.largest and longer @ longer <= encoding.longest_squared:
            whole = longer
    words = np.concatenate([whole + encoding.largest, [1]]).astype(np.uint32)
    shape = encoded_shape(how.length, encoding, clip_norm=encoding.clip_norm, clip_estimate=None)
    shape.check(words)
    return words


@dataclass(frozen=True)
class EncodedSum:
    """A cohort's encoded reports, added modulo 2^b and opened as a server does (`rounds.Summed`).

    The others' updates are encoded as a device does it; the canary's stands for the longest words of all.
    """

    encoding: Encoding

    def __call__(self, updates: Sequence[Any], question: TrainQuestion) -> NDArray[np.float32]:
        how = RoundEncoding(encoding=self.encoding, signs=round_signs(PUBLIC, question.round))
        honest = np.full(self.encoding.parameters, self.encoding.clip_norm, np.float32)
        of_others = [
            how.encoded(honest, norm=np.float32(1), loss=np.float32(0), seed=PUBLIC, client=client)
            for client in range(OTHERS)
        ]
        reports = [*of_others, *[longest_words(how)] * (len(updates) - OTHERS)]
        total = reduce(how.sums.merge, reports, how.sums.zero())
        return how.opened(total, len(reports)).total


def case_of_encoding(subject: str, guarantee: Guarantee, *, inflation: float) -> Case:
    """Updates as integers that lengthen them by at most `inflation`, under a guarantee without any: its noise is kept,
    and the claim is that with the inflation.
    """
    encoding = encoding_within(COORDINATES, guarantee.clip_norm, OTHERS + 1, inflation=inflation)
    lengthened = Guarantee(
        participation=guarantee.participation,
        strategy=guarantee.strategy,
        clip_norm=guarantee.clip_norm,
        noise_multiplier=guarantee.noise_multiplier,
        clip_inflation=encoding.inflation,
    )
    return case_of_rounds(
        subject, plan_of(lengthened), summed=EncodedSum(encoding), width=COORDINATES, threat_model=ENCODED
    )


def case_of_decryptors(subject: str, guarantee: Guarantee, *, decryptors: int, honest: int) -> Case:
    """The noise of so many decryptors, of whom `honest` keep theirs."""
    play = DecryptedSums(guarantee, decryptors, honest)
    return case_of_sums(subject, guarantee, play, threat_model=DECRYPTORS.format(honest=honest))


@dataclass(frozen=True)
class DecryptedSums:
    """Secure sums less what dishonest decryptors know of them, the noise of their own.

    Each run is a coordinate of one sum, and its client one of those who are summed: what all of them add is turned,
    scaled and rounded as one update is.
    """

    guarantee: Guarantee
    decryptors: int
    honest: int

    def __call__(self, contributions: Sums, seed: int) -> Released:
        """See `Release`."""
        guarantee, runs, key = self.guarantee, contributions.shape[1], key_of(seed)
        assert guarantee.strategy is not None
        encoding = encoding_within(runs, guarantee.clip_norm, runs)
        encoding = with_noise_of(self.decryptors, encoding, guarantee, honest=self.honest)
        one = of_one(guarantee, self.honest)
        states = first_states(self.decryptors, guarantee.strategy, encoding.dimension)
        model, released = jnp.zeros(runs), np.empty_like(contributions)
        for round, sent in enumerate(contributions):
            how = RoundEncoding(encoding=encoding, signs=round_signs(key, round))
            words, states = noise_words(states, one, how, model=model, key=key)
            turn, _ = basis(encoding, how.signs)
            whole = np.rint(encoding.scale * turn(np.pad(sent, (0, encoding.dimension - runs)))).astype(np.int64)
            shifted = whole + runs * encoding.largest  # by each client's shift
            # Who adds noise of its own can take it off again: what is left to see is that of the honest ones.
            total = reduce(how.sums.merge, words[: self.honest], residues(shifted, encoding))
            released[round] = decode(how.sums.finish(total), encoding, signs=how.signs, reports=runs)
        return released
