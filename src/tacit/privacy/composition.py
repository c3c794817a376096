"""What several sequences of releases promise together, all made from the same clients' data.

Why their costs add: write the sequences below each other, each divided by its clip norm and its noise multiplier.
That is one Gaussian mechanism with unit noise, whose strategy matrix is block-diagonal; a client's contributions
to one sequence lie in one block. Its squared sensitivity for a pattern of participation is therefore the sum of
the blocks', and at most the sum of their worst cases. The updates may depend on everything released before,
in whichever sequence (arXiv:2202.08312, Theorem 2.1). Neighbours are those of zero-out: one client's
contributions to every sequence become zero.

Adaptive clipping is such a composition: each client sends, besides its update, one bit, whether its update was
shorter than the current estimate. The noised counts steer the estimate, which becomes the clip norm of the updates when
their strategy restarts, and only then (arXiv:2305.18465, Algorithm 1). `Ledger.composition` accounts the two sequences
as they were released; the functions here say how to divide one budget between them. A training loss that is released
(`training.private_loss`) is one more sequence of the same kind.
"""

import math
from dataclasses import dataclass, replace

from tacit.errors import AccountingError, InputError
from tacit.privacy import gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation

# A bit minus 1/2 is 1/2 in size whatever it says, and moves the count by 1/2 where a client is zeroed out.
BIT_NORM = 0.5


@dataclass(frozen=True, kw_only=True)
class ReleasedSequence:
    """One sequence of releases: what it is called, and what it promises by itself.

    `guarantee` speaks of the sequence's own rounds, counted from 0, and of the clip norm in force at its end;
    `clip_norms`, where known, are all of them, as (own round from which it held, clip norm).
    """

    what: str
    guarantee: Guarantee
    clip_norms: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Composition:
    """Sequences of releases under one participation, and what they promise together.

    `zcdp` is exact where every sequence has its worst case at the same pattern (the same strategy over the same
    rounds, say) and an upper bound otherwise; `epsilon` follows from it exactly.
    """

    sequences: tuple[ReleasedSequence, ...]

    @property
    def private(self) -> bool:
        """Whether every sequence has noise."""
        return all(each.guarantee.private for each in self.sequences)

    @property
    def zcdp(self) -> float:
        """rho of everything together; infinite where one sequence has no noise, 0 where nothing was released."""
        return math.fsum(each.guarantee.zcdp for each in self.sequences)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy, sqrt(2 rho)."""
        return math.hypot(*(each.guarantee.mu for each in self.sequences))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at `delta` of a Gaussian mechanism of this mu."""
        return gaussian.epsilon_of_mu(self.mu, delta)

    def with_participation(self, participation: Participation) -> "Composition":
        """The same noise under another participation of all sequences: those of a run's first rounds, say.

        AccountingError where the sequences are not of the same rounds: one participation cannot speak of all then.
        """
        if len({each.guarantee.participation.rounds for each in self.sequences}) > 1:
            raise AccountingError(
                "the sequences were released in different rounds, and one participation cannot be that of all; "
                "account them by `Ledger.composition`."
            )
        return Composition(
            tuple(replace(each, guarantee=each.guarantee.with_participation(participation)) for each in self.sequences)
        )

    def with_noise(self, factor: float) -> "Composition":
        """The same with `factor` times the noise in every sequence."""
        return Composition(
            tuple(
                replace(
                    each,
                    guarantee=replace(each.guarantee, noise_multiplier=each.guarantee.noise_multiplier * factor),
                )
                for each in self.sequences
            )
        )


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
    return remaining_noise_multiplier(noise_multiplier, bits)


def remaining_noise_multiplier(noise_multiplier: float, beside: float) -> float:
    """The noise multiplier with which sequences cost, together with one of noise multiplier `beside`, what
    `noise_multiplier` alone would: `(z^-2 - y^-2)^(-1/2)`, exact for sequences of one strategy.

    AccountingError where the one beside costs that much by itself.
    """
    _check("noise_multiplier", noise_multiplier)
    _check("beside", beside)
    if beside <= noise_multiplier:
        raise AccountingError(
            f"a sequence with noise multiplier {beside:g} costs as much as noise_multiplier={noise_multiplier:g} "
            "allows for everything, and nothing is left for the others; give it more noise."
        )
    # z^-2 - y^-2 = (y - z) (y + z) / (z y)^2: no difference of nearly equal squares.
    return noise_multiplier * beside / math.sqrt((beside - noise_multiplier) * (beside + noise_multiplier))


def _check(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name}={value} is not a finite number above 0; give one.")
