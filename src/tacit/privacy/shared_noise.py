"""Noise that several parties add to one sum, of whom only some are relied on: how much each adds.

Of K parties at least h are honest, and nobody knows which. Each adds 1/h of the variance, so the honest ones' parts
have the whole and all K parts sqrt(K/h) of the deviation. docs/secure-aggregation.md proves that integers lose nothing
by it: the honest parties' rounded parts add up to one rounded normal number.
"""

import math
from dataclasses import replace

from tacit.errors import InputError, of_type
from tacit.privacy.encoding_choice import UNSENT
from tacit.privacy.guarantee import Guarantee

UNLIKE = 2.0**-80  # how far the law of a whole run's sums may be from that of one rounded normal number each
MOST_HONEST = 100


def of_one(whole: Guarantee, honest: int) -> Guarantee:
    """The noise that one party adds where so many honest ones together add that of the guarantee: a deviation, no
    promise.
    """
    return replace(whole, noise_multiplier=whole.noise_multiplier / math.sqrt(honest))


def check_honest(parties: int, honest: int, *, corrupt: int = 0, name: str = "honest_decryptors") -> None:
    """Raises: InputError where of so many parties, of whom `corrupt` may work with the server, no `honest` are left."""
    of_type(name, honest, int)
    if not 1 <= honest <= min(parties - corrupt, MOST_HONEST):
        beside = f", of whom {corrupt} may work with the server," if corrupt else ""
        raise InputError(
            f"{name}={honest} of {parties} decryptors{beside} cannot be relied on; give 1 to {parties - corrupt}"
            f"{', or fewer corrupt ones' if corrupt > 1 else ''}."
        )


def distance_in_shares(deviation: float, honest: int) -> float:
    """The total variation distance, at most, of a sum of `honest` rounded normal numbers from one rounded number.

    deviation: of each normal number, in integers, at least sqrt(honest). The other number is normal plus `honest` - 1
    uniform numbers of [-1/2, 1/2]; both have the same mean and variance. 0 for one party, whose number is itself.
    Source: docs/secure-aggregation.md, "If several are honest"; the Fourier coefficients of the residues are at most
    exp(-2 pi^2 deviation^2 (honest - 1) / honest).
    """
    if honest == 1:
        return 0.0
    if deviation**2 < honest:
        return 1.0
    return math.exp(-(math.pi**2) * deviation**2 * (honest - 1) / honest)


def margin_of(deviation: float, *, draws: int) -> int:
    """The magnitude beyond which none of so many rounded normal numbers is, but with probability UNSENT."""
    from scipy.special import ndtri  # who adds no noise needs none of it

    return math.ceil(-float(ndtri(UNSENT / (2 * draws))) * deviation + 0.5)


def check_shared(deviation: float, *, honest: int, draws: int) -> None:
    """That so many integers, each with `deviation` of fresh noise of each party, can be told from one party's with at
    most UNLIKE.

    Raises: InputError where integers are too coarse for it.
    """
    found = draws * distance_in_shares(deviation, honest)
    if not found <= UNLIKE:
        raise InputError(
            f"honest_decryptors={honest} leave each decryptor fresh noise of {deviation:.3g} integers, too little to "
            f"be like that of one in {draws:,} draws (distance {found:.2g}, allowed {UNLIKE:.2g}); give "
            "honest_decryptors = 1, a smaller aggregation.inflation, or more noise."
        )
