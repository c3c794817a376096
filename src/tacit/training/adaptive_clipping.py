"""A clip norm that follows the clients' updates, at a price the accountant knows [paper 1, Algorithm 1].

Each client says in one bit whether its update was no longer than the estimate C^t. The noised counts steer the estimate
towards the wanted quantile of the norms, geometrically:

    C^{t+1} = C^0 exp(-eta (b~_t - (t + 1) gamma)),     b~_t = PrivateSum(bits of the rounds 0..t) / report goal

Two deviations: Algorithm 1 prints t gamma after the t + 1 rounds 0..t, hence begins with a factor exp(-eta gamma) that
we leave out; and it restarts after round 128, with a first tree of 129 rounds, where restarts=(128, ...) here begin the
new tree with round 128, after 128 rounds.

The estimate becomes the clip norm of the updates only where their noise starts afresh: when a tree restarts, or every
round under independent noise. In between, the noise of the updates is correlated and belongs to one clip norm.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.mechanisms import NoiseState, NoiseStream, stream_for
from tacit.privacy import Guarantee
from tacit.privacy.composition import BIT_NORM, bit_noise_multiplier, update_noise_multiplier
from tacit.statements import NoisedSum
from tacit.statements.ledger import CLIP_ESTIMATE

FARTHEST = 50.0  # |log(C / C^0)| that the estimate may reach: beyond it float32 norms end


@dataclass(frozen=True, kw_only=True)
class AdaptiveClipping:
    """How the clip norm follows."""

    initial: float  # C^0; start low: noise in proportion to a clip norm too large destroys the first model
    quantile: float = 0.5  # gamma: the share of clients whose update shall not be clipped
    learning_rate: float = 0.2  # eta
    bit_stddev: float | None = None  # sigma_b, of the noise on a count; None: report goal / 20

    def __post_init__(self) -> None:
        for name in ("initial", "learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"clipping.{name}={getattr(self, name)} must be a positive number.")
        if not 0 < self.quantile < 1:
            raise InputError(f"clipping.quantile={self.quantile} must be between 0 and 1; paper 1 has 0.5.")
        if self.bit_stddev is not None and not 0 < self.bit_stddev < math.inf:
            raise InputError(
                f"clipping.bit_stddev={self.bit_stddev} must be a positive number; paper 1: report goal/20."
            )

    def guarantees(self, planned: Guarantee, report_goal: int) -> tuple[Guarantee, Guarantee]:
        """(of the updates, of the counts): together they cost what `planned` says [Theorem 1].

        Of an inflation that encoding causes, counts have none: their integers are exact.

        Raises: AccountingError where the counts alone cost as much; InputError for a strategy without fresh starts.
        """
        if planned.strategy is None:
            return replace(planned, clip_norm=self.initial), replace(planned, clip_norm=BIT_NORM, clip_inflation=1.0)
        if not any(map(planned.strategy.starts_afresh, range(planned.participation.rounds))):
            raise InputError(
                f"a {planned.strategy.kind} strategy that never starts afresh cannot change its clip norm; adaptive "
                "[clipping] needs the mechanism 'tree' with privacy.mechanism.restarts before the last round (paper "
                "1: 128, 1152, ...), or 'independent'."
            )
        stddev = report_goal / 20 if self.bit_stddev is None else self.bit_stddev
        inflation = planned.clip_inflation
        updates = update_noise_multiplier(planned.noise_multiplier / inflation, stddev)
        return (
            replace(planned, clip_norm=self.initial, noise_multiplier=updates * inflation),
            replace(planned, clip_norm=BIT_NORM, noise_multiplier=bit_noise_multiplier(stddev), clip_inflation=1.0),
        )


class ClipState(NamedTuple):
    """What is carried from round to round."""

    active: NDArray[np.float64]  # (): the clip norm of the updates
    estimate: NDArray[np.float64]  # (): C^t
    counted: NDArray[np.float64]  # (): sum over the rounds so far of (noised share of short updates - 1/2)
    noise: NoiseState | None  # of the counts; None: the run is not private


def first_clip(settings: AdaptiveClipping, counts: Guarantee) -> ClipState:
    """The state before round 0."""
    stream = _stream(counts)
    begin = np.array(settings.initial)
    return ClipState(begin, begin, np.array(0.0), None if stream is None else stream.init(1))


def clip_of_round(state: ClipState, counts: Guarantee, round: int) -> ClipState:
    """The state in which `round` is played: the estimate is taken over where the noise starts afresh."""
    return state._replace(active=state.estimate) if counts.starts_afresh(round) else state


def follow(
    state: ClipState,
    short: int,
    *,
    reports: int,
    settings: AdaptiveClipping,
    counts: Guarantee,
    report_goal: int,
    round: int,
    key: bytes,
) -> tuple[ClipState, NoisedSum]:
    """Add noise to the count of short updates, move the estimate; and the release for the ledger.

    short: how many of the `reports` updates that arrived were no longer than the estimate, a bit of each device.
    """
    bits = np.float32(short - BIT_NORM * reports)  # each bit minus 1/2
    noised, noise = _noised(bits, state.noise, counts, key)
    counted = float(state.counted) + noised / report_goal
    steps = settings.learning_rate * (counted + (round + 1) * (BIT_NORM - settings.quantile))
    estimate = settings.initial * math.exp(-min(max(steps, -FARTHEST), FARTHEST))
    release = NoisedSum(
        round=round,
        what=CLIP_ESTIMATE,
        strategy_record=None if counts.strategy is None else counts.strategy.to_record(),
        clip_norm=BIT_NORM,
        noise_multiplier=counts.noise_multiplier,
        reports=reports,
        dropped=0,
    )
    return ClipState(state.active, np.array(estimate), np.array(counted), noise), release


def _stream(counts: Guarantee) -> NoiseStream | None:
    return None if counts.strategy is None else stream_for(counts.strategy)


def _noised(
    bits: np.float32, noise: NoiseState | None, counts: Guarantee, key: bytes
) -> tuple[float, NoiseState | None]:
    stream = _stream(counts)
    if stream is None or noise is None:
        return float(bits), None
    total, noise = stream.add_noise(noise, jnp.asarray([bits]), stddev=counts.seed_stddev, key=key, purpose="clip norm")
    return float(total[0]), noise
