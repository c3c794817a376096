"""A training loss that may be published: each client's, bounded, summed, noised and accounted as the updates are.

A device sends, besides its update, the mean loss of its training clipped to [0, bound], minus half the bound: a number
of at most half the bound in size, which is zero where the device is zeroed out. The noised sums of all rounds are one
more sequence under the strategy of the updates, and together they cost what the run may spend
(`privacy.composition`). Divided by the constant report goal they estimate the cohort's mean loss, drawn towards half
the bound where fewer reports came.
"""

import math
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from tacit.errors import InputError
from tacit.mechanisms import NoiseState, NoiseStream, stream_for
from tacit.privacy import Guarantee
from tacit.privacy.composition import remaining_noise_multiplier
from tacit.statements import NoisedSum
from tacit.statements.ledger import TRAINING_LOSS, ledger_record


@dataclass(frozen=True, kw_only=True)
class PrivateLoss:
    """Which loss is released, and with how much noise."""

    bound: float = 10.0  # nats a word that a client's loss may reach; a model that knows nothing has log(vocabulary)
    stddev: float | None = None  # of a seed of the noise, on a round's mean, in nats; None: bound / 20

    def __post_init__(self) -> None:
        for name in ("bound", "stddev"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"training_loss.{name}={value} must be a positive number of nats.")

    @property
    def norm(self) -> float:
        """What a device's number is at most in size."""
        return self.bound / 2

    def guarantees(self, planned: Guarantee, report_goal: int) -> tuple[Guarantee, Guarantee]:
        """(of all else that is released, of the losses): together they cost what `planned` says.

        Of an inflation that encoding causes, losses have none: their integers are exact.

        Raises: AccountingError where the losses alone cost as much.
        """
        if planned.strategy is None:
            return planned, replace(planned, clip_norm=self.norm, clip_inflation=1.0)
        stddev = self.bound / 20 if self.stddev is None else self.stddev
        noise = stddev * report_goal / self.norm
        inflation = planned.clip_inflation
        rest = remaining_noise_multiplier(planned.noise_multiplier / inflation, noise)
        return (
            replace(planned, noise_multiplier=rest * inflation),
            replace(planned, clip_norm=self.norm, noise_multiplier=noise, clip_inflation=1.0),
        )


def first_noise(losses: Guarantee) -> NoiseState | None:
    """The noise's state before round 0; None where there is none."""
    stream = _stream(losses)
    return None if stream is None else stream.init(1)


def release(
    losses: float,
    noise: NoiseState | None,
    *,
    settings: PrivateLoss,
    guarantee: Guarantee,
    report_goal: int,
    reports: int,
    dropped: int,
    round: int,
    key: bytes,
) -> tuple[float, NoiseState | None, NoisedSum]:
    """(the round's mean loss in nats as released, the noise's state after it, the release for the ledger).

    losses: the `bounded_sum` of the reports.
    """
    total, stream = np.float32(losses), _stream(guarantee)
    if stream is not None and noise is not None:
        noised, noise = stream.add_noise(
            noise, jnp.asarray([total]), stddev=guarantee.seed_stddev, key=key, purpose=TRAINING_LOSS
        )
        total = np.float32(noised[0])
    row = NoisedSum(
        round=round,
        what=TRAINING_LOSS,
        strategy_record=ledger_record(guarantee.strategy),
        clip_norm=guarantee.clip_norm,
        noise_multiplier=guarantee.noise_multiplier,
        reports=reports,
        dropped=dropped,
    )
    return settings.norm + float(total) / report_goal, noise, row


def _stream(losses: Guarantee) -> NoiseStream | None:
    return None if losses.strategy is None else stream_for(losses.strategy)
