"""BandMF: the column-normalised banded matrix of least error (arXiv:2306.08153), found in seconds.

With p bands, p at most the separation, the columns of C that one client meets share no round, and with columns of
norm 1 the squared sensitivity is the number of participations, exactly: what is left is the error. All n p entries
are free, so unlike a Toeplitz matrix it spends less on the last rounds; it is made for n rounds and says nothing after.
"""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tacit.design.bands import most_bands
from tacit.design.objective import POWERS, Objective, checked_objective
from tacit.design.toeplitz import root_coefficients
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Banded
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

if TYPE_CHECKING:
    from tacit.design.banded_error import BandedErrors

Array = NDArray[np.float64]

STEPS = 200  # of each power; the stopping rule comes first
MEMORY = 8  # pairs of vectors that L-BFGS keeps; with 30 the designs took as many steps as with 10
STAGE = "designing a banded matrix"
LATELY, ENOUGH = 5, 1e-5  # stop when so many steps together gain less than this share of the squared error


def design_banded(
    participation: Participation,
    *,
    bands: int,
    objective: Objective = "rms",
    workload: Workload = PREFIX,
    progress: Progress = silent,
) -> Banded:
    """The banded matrix with columns of norm 1 and least rms (or nearly least max) error of the workload.

    A local minimum over all n p entries, from the workload's banded square root, by L-BFGS; the problem is convex in
    C^T C, so for the rms error it is the global one up to the stopping rule. A step costs O(rounds x bands^2).
    The max error, which has no gradient, is the limit of power means. `progress` is told the steps, with the loss
    so far.
    InputError where bands exceed the separation or the rounds: clients' columns would overlap.
    """
    powers = POWERS[checked_objective(objective)]
    limits = participation.effective
    reach = most_bands(participation)
    if not 1 <= bands <= reach:
        raise InputError(
            f"bands={bands} leave 1..{reach}: a client's columns must not overlap, so bands may reach the separation "
            f"of {limits.min_separation} (with one participation the rounds); give at most {reach}."
        )
    from tacit.design.banded_error import BandedErrors  # with scipy.linalg, which takes a while to load

    errors = BandedErrors(limits.rounds, bands, workload)
    columns = _normalised(np.where(errors.inside, root_coefficients(bands, workload), 0.0))[0]
    if objective == "rms":
        # Norms do not change the matrix but scale its steps: late columns stand in few models, so their slopes are
        # small, and short columns let them move as fast as the early ones.
        arriving = workload.arriving(limits.rounds)
        columns = columns * np.sqrt(arriving / arriving[0])[:, None]
    done = itertools.count(1)
    progress(StageBegan(STAGE))
    with threadpool_limits(1, user_api="blas"):  # two threads on blocks of this size wait more than they compute
        for power in powers:
            columns = _lowest(errors, columns, power, limits.max_participations, done, progress)
    progress(StageEnded(STAGE))
    return Banded(_with_positive_diagonal(columns))


def _with_positive_diagonal(columns: Array) -> Array:
    """The same noise and sensitivity, with rows of C negated where a step has led across a singular matrix."""
    rounds, bands = columns.shape
    signs = np.append(np.sign(columns[:, 0]), np.ones(bands))
    turned: Array = columns * signs[np.arange(rounds)[:, None] + np.arange(bands)]
    return turned


def _lowest(
    errors: "BandedErrors",
    columns: Array,
    power: float,
    participations: int,
    done: "itertools.count[int]",
    progress: Progress,
) -> Array:
    """The columns to which the power mean descends."""
    from scipy.optimize import minimize

    shape = columns.shape

    def function(flat: Array) -> tuple[float, Array]:
        unit, norms = _normalised(flat.reshape(shape))
        value, slope = errors.mean(unit, power)
        along = np.einsum("ij,ij->i", unit, slope)[:, None]
        return value, ((slope - along * unit) / norms).ravel()

    recent: list[float] = []

    def stepped(intermediate_result: Any) -> None:
        """Stop where the last steps together gained next to nothing."""
        value = float(intermediate_result.fun)
        progress(Advanced(STAGE, next(done), {"loss": float(np.sqrt(np.exp(value) * participations))}))
        recent.append(value)
        if len(recent) > LATELY and recent[-1 - LATELY] - value < ENOUGH:
            raise StopIteration

    found = minimize(
        function,
        columns.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stepped,
        options={"maxcor": MEMORY, "maxiter": STEPS, "ftol": 0.0, "gtol": 0.0},
    )
    return _normalised(found.x.reshape(shape))[0]


def _normalised(columns: Array) -> tuple[Array, Array]:
    """Columns of norm 1, and the norms (n, 1) they had."""
    norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))[:, None]
    return columns / norms, norms
