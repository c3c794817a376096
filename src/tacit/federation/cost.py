"""What a plan costs a device, and the refusal of a plan that claims less.

Device and server compute the same cost from the plan's own numbers, so nobody has to be believed for it. A policy reads
the numbers that a kind has, and knows no kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import TaskRefused

ROUNDING = 1e-9  # relative: figures that two machines computed from the same numbers
ASK = "ask the operator for a plan in order"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one plan. A number that its kind does not have is None."""

    zcdp: float  # rho of a whole run
    epsilon: float | None = None  # at `delta`, of noise that a server or decryptors add to sums
    delta: float | None = None
    local_epsilon: float | None = None  # of all that one device sends in a run, where it randomises by itself
    clip_norm: float | None = None  # of one report
    noise_multiplier: float | None = None  # standard deviation of the noise on a sum, in clip norms

    def spent(self, rounds: Sequence[int]) -> float:
        """rho of one device's participations in these different rounds; 0 for none. Never falls with a round more.

        Here each participation costs the whole, and they add up.
        """
        return self.zcdp * len(rounds)


def checked_claims(
    what: str,
    cost: Cost,
    *,
    zcdp: float | None,
    epsilon: float | None = None,
    local_epsilon: float | None = None,
    exact: float | None = None,
) -> None:
    """That a plan claims no less than it costs. Raises: TaskRefused naming the first figure that is too small.

    what: the plan, in a sentence. zcdp, epsilon, local_epsilon: as the plan claims them. exact: rho by the plan's own
    numbers, where `cost` goes by the claimed one.
    """
    gives = "its own numbers give" if exact is None else "its zCDP gives"
    found = cost.zcdp if exact is None else exact
    if cost.epsilon is not None and (epsilon is None or not cost.epsilon <= epsilon * (1 + ROUNDING)):
        _refuse(f"{what} claims epsilon {_said(epsilon)} at delta {cost.delta:g}, and {gives} {cost.epsilon:.6g}")
    local = cost.local_epsilon
    if local is not None and (local_epsilon is None or not local <= local_epsilon * (1 + ROUNDING)):
        _refuse(f"{what} claims local epsilon {_said(local_epsilon)}, and its own numbers give {local:.6g}")
    if zcdp is None or not found <= zcdp * (1 + ROUNDING):
        _refuse(f"{what} claims zCDP {_said(zcdp)}, and its own numbers give {found:.6g}")


def _refuse(why: str) -> None:
    raise TaskRefused(f"{why}; an operator who claims too much is not to be believed.")


def _said(claimed: float | None) -> str:
    return "None" if claimed is None else f"{claimed:.6g}"
