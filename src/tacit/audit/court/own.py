"""Three faults that this repository found in itself in November 2026, planted again."""

import numpy as np

from tacit.audit.court.correlated import release
from tacit.audit.court.exhibit import Exhibit, Scores, Version

LOSS_BOUND, LOSS = 10.0, 40.0
PUBLISHED_SEED = 7


def _loss(bound: float) -> Version:
    """A sum of training losses, noised for LOSS_BOUND each, to which a device sends its LOSS clipped at `bound`."""
    return Version(1.0, release(np.array([min(LOSS, bound)]), LOSS_BOUND * np.eye(1)))


def _released(times: int) -> Version:
    """One round, counted once in the ledger, and released so often, with new noise each time."""
    return Version(1.0, release(np.ones(times), np.eye(times)))


def _seeded(*, published: bool) -> Version:
    """One sum at noise of mu = 1; whoever reads the seed in the statement draws the noise again and takes it away."""

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        seed = [PUBLISHED_SEED] if published else generator.integers(1 << 32, size=4)
        released = present + np.random.default_rng(seed).standard_normal(runs)
        return released - np.random.default_rng([PUBLISHED_SEED]).standard_normal(runs) * published

    return Version(1.0, draw)


OWN = (
    Exhibit(
        number=12,
        name="tacit: a training loss is not clipped at its plan's bound",
        source="commit 2edc427c of this repository",
        threat_model="the noisy sum of losses of a round is seen; an operator asks for another bound than the plan's",
        measure="mu",
        law="normal",
        broken=_loss(LOSS),
        mended=_loss(LOSS_BOUND),
    ),
    Exhibit(
        number=12,
        name="tacit: a restored copy releases a round again",
        source="commit a468172f of this repository",
        threat_model="both releases of a round are seen, and the statement counts one",
        measure="mu",
        law="normal",
        broken=_released(2),
        mended=_released(1),
    ),
    Exhibit(
        number=12,
        name="tacit: a statement names the seed of the noise",
        source="commit 0e971a45 of this repository",
        threat_model="a release and its statement are seen",
        measure="mu",
        law="any",
        broken=_seeded(published=True),
        mended=_seeded(published=False),
    ),
)
