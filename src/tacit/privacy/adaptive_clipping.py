"""What adapting the clip norm costs: beside the model updates, a count of the clipped ones is released.

Each client sends, besides its update, one bit: whether its update was shorter than the current estimate. The
noised counts steer the estimate, which becomes the clip norm of the updates when their strategy restarts, and only
then (arXiv:2305.18465, Algorithm 1). Both sequences together are one Gaussian mechanism; `Ledger.composition`
accounts the two as they were released, and the functions here say how to divide one budget between them.
"""

import math

from tacit.errors import AccountingError, InputError

# A bit minus 1/2 is 1/2 in size whatever it says, and moves the count by 1/2 where a client is zeroed out.
BIT_NORM = 0.5


def bit_noise_multiplier(bit_stddev: float) -> float:
    """The noise multiplier of counts with noise of standard deviation `bit_stddev` (in clients): 2 `bit_stddev`."""
    _check("bit_stddev", bit_stddev)
    return bit_stddev / BIT_NORM


def update_noise_multiplier(noise_multiplier: float, bit_stddev: float) -> float:
    """The noise multiplier of the updates with which they and the counts together cost what `noise_multiplier`
    alone would.

    `z_delta = (z^-2 - (2 sigma_b)^-2)^(-1/2)`, exact for two sequences of one strategy (arXiv:2305.18465,
    Theorem 1). AccountingError where the counts alone cost that much.
    """
    _check("noise_multiplier", noise_multiplier)
    bits = bit_noise_multiplier(bit_stddev)
    if bits <= noise_multiplier:
        raise AccountingError(
            f"counts with noise {bit_stddev:g} cost what a noise multiplier of {bits:g} costs, and nothing is left of "
            f"noise_multiplier={noise_multiplier:g} for the updates; give a bit_stddev above {noise_multiplier / 2:g}."
        )
    # z^-2 - y^-2 = (y - z) (y + z) / (z y)^2: no difference of nearly equal squares.
    return noise_multiplier * bits / math.sqrt((bits - noise_multiplier) * (bits + noise_multiplier))


def joint_noise_multiplier(update_noise_multiplier: float, bit_stddev: float) -> float:
    """The noise multiplier that alone costs what the updates and the counts together do.

    `z = (z_delta^-2 + (2 sigma_b)^-2)^(-1/2)`, the inverse of the function `update_noise_multiplier`.
    """
    _check("update_noise_multiplier", update_noise_multiplier)
    return 1 / math.hypot(1 / update_noise_multiplier, 1 / bit_noise_multiplier(bit_stddev))


def _check(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name}={value} is not a finite number above 0; give one.")
