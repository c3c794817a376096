"""What a clip norm that adapts would cost a plan: the count of clipped updates, and a tree that begins afresh."""

from dataclasses import dataclass

from tacit.design.mechanism import Mechanism
from tacit.planning.scenario import Scenario
from tacit.privacy.composition import update_noise_multiplier
from tacit.privacy.gaussian import noise_multiplier_for
from tacit.privacy.strategy import Tree

BITS_PER_REPORT = 20  # the noise on the count of clipped updates is m/20 (arXiv:2305.18465, Algorithm 1)
WITHOUT_DECRYPTORS = (
    "Decryptors add noise to updates, and a clip norm that adapts needs a count with noise of its own, which they do "
    "not "
    "give: find the norm without them, in trials whose noise the server adds (`tacit tune`)."
)
FIRST_RESTART, RESTART_EVERY = 128, 1024  # rounds at which the clip norm is renewed there


@dataclass(frozen=True, kw_only=True)
class AdaptiveClippingCost:
    """What adapting the clip norm takes with a tree that begins afresh, at one zCDP (arXiv:2305.18465, Algorithm 1).

    `noise_multiplier` is that of updates and counts together; of it `update_noise_multiplier` remains on the updates
    (Theorem 1), None where a count with noise `bit_stddev` clients costs all there is. `noisier` is the noise of the
    mean over what the utility bears.
    """

    restarts: tuple[int, ...]
    bit_stddev: float
    noise_multiplier: float
    update_noise_multiplier: float | None
    noisier: float | None

    @classmethod
    def from_scenario(cls, scenario: Scenario, report_goal: int, zcdp: float) -> "AdaptiveClippingCost":
        """With the restarts and the noise on the count that the paper uses, and its estimate of the prefix sums."""
        restarts = tuple(range(FIRST_RESTART, scenario.rounds, RESTART_EVERY))
        afresh = Mechanism.fixed("tree-variance-reduced", Tree(restarts=restarts, variance_reduced=True))
        plan = scenario.plan(afresh, report_goal)
        noise, bits = noise_multiplier_for(zcdp, plan.guarantee.sensitivity), report_goal / BITS_PER_REPORT
        updates = update_noise_multiplier(noise, bits) if 2 * bits > noise else None
        return cls(
            restarts=restarts,
            bit_stddev=bits,
            noise_multiplier=noise,
            update_noise_multiplier=updates,
            noisier=None if updates is None else updates / plan.guarantee.noise_multiplier,
        )
