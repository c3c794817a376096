"""What several sequences of releases promise together, all made from the same clients' data.

Why their costs add: write the sequences below each other, each divided by its clip norm and its noise multiplier.
That is one Gaussian mechanism with unit noise, whose strategy matrix is block-diagonal; a client's contributions
to one sequence lie in one block. Its squared sensitivity for a pattern of participation is therefore the sum of
the blocks', and at most the sum of their worst cases. The updates may depend on everything released before,
in whichever sequence (arXiv:2202.08312, Theorem 2.1). Neighbours are those of zero-out: one client's
contributions to every sequence become zero.
"""

import math
from dataclasses import dataclass, replace

from tacit.errors import AccountingError
from tacit.privacy import gaussian
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation


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
        return math.sqrt(2 * self.zcdp)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at `delta` of a Gaussian mechanism of this rho."""
        return gaussian.epsilon(self.zcdp, delta)

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
