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

from tacit.audit.mechanism.case import Case, Runs
from tacit.audit.mechanism.patterns import worst_pattern
from tacit.audit.mechanism.rounds import OTHERS, case_of_rounds, plan_of
from tacit.audit.mechanism.streams import key_of, matrix_of
from tacit.federation.report_shape import encoded_shape
from tacit.mechanisms.all_rounds import with_noise_of
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.shared_noise import of_one
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.decoding import basis
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
    """The noise of so many decryptors, of whom `honest` keep theirs; each run is a coordinate of one secure sum.

    The clients of all runs are in one sum: what they add is turned, scaled and rounded as one update is.
    """
    limits = guarantee.participation
    pattern = frozenset(worst_pattern(matrix_of(guarantee), limits))

    def play(present: Runs, seed: int) -> NDArray[Any]:
        return _decrypted(guarantee, present, pattern, seed, decryptors=decryptors, honest=honest)

    return Case(
        subject=subject,
        claim=guarantee.mu,
        rows=limits.rounds,
        play=play,
        threat_model=DECRYPTORS.format(honest=honest),
        figures={"pattern": sorted(pattern)},
    )


def _decrypted(
    guarantee: Guarantee, present: Runs, pattern: frozenset[int], seed: int, *, decryptors: int, honest: int
) -> NDArray[Any]:
    """The sums (rounds, runs) less what dishonest decryptors know of them: the noise of their own."""
    assert guarantee.strategy is not None
    key, runs = key_of(seed), len(present)
    encoding = encoding_within(runs, guarantee.clip_norm, runs)
    encoding = with_noise_of(decryptors, encoding, guarantee, honest=honest)
    one, states = of_one(guarantee, honest), first_states(decryptors, guarantee.strategy, encoding.dimension)
    model, rows = jnp.zeros(runs), []
    for round in range(guarantee.participation.rounds):
        how = RoundEncoding(encoding=encoding, signs=round_signs(key, round))
        words, states = noise_words(states, one, how, model=model, key=key)
        sent = present * guarantee.clip_norm * guarantee.clip_inflation if round in pattern else np.zeros(runs)
        padded = np.zeros(encoding.dimension)
        padded[:runs] = sent
        turn, _ = basis(encoding, how.signs)
        whole = np.rint(encoding.scale * turn(padded)).astype(np.int64)
        total = ((whole + runs * encoding.largest) & (encoding.modulus - 1)).astype(np.uint32)  # each report's shift
        # Who adds noise of its own can take it off again: what is left to see is that of the honest ones.
        for noise in words[:honest]:
            total += noise
        total &= np.uint32(encoding.modulus - 1)
        rows.append(decode(total, encoding, signs=how.signs, reports=runs))
    return np.array(rows)
