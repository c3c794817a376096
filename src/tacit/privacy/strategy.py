"""Strategy matrices C: what correlates the noise. The noise of a run is C^{-1} Z for independent seeds Z.

A strategy here is a plain value, small enough to be written in a ledger; what streams its noise lives in
`mechanisms`, and what its sensitivity is in `sensitivity`. C is taken as given, never normalised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import AccountingError, InputError, UnknownRelease

Record: TypeAlias = dict[str, Any]


def _numbers(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not numbers or not np.isfinite(numbers).all():
        raise InputError(f"{name}={numbers} must be finite numbers, at least one; give real values.")
    return numbers


def _lower_toeplitz(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) -> (n, n) with column[i - j] at row i, column j <= i."""
    lag = np.subtract.outer(np.arange(column.size), np.arange(column.size))
    return np.where(lag >= 0, column[lag], 0.0)


@dataclass(frozen=True)
class Independent:
    """Fresh noise every round: C is the identity (DP-FedAvg)."""

    kind: ClassVar[str] = "independent"

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return np.eye(rounds)

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {"kind": self.kind}


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Binary-tree aggregation: one seed per complete node (arXiv:2103.00039, Appendix D).

    A new tree begins at round 0 and at each of `restarts` (rounds counted from 0, increasing, 0 left out);
    restarts beyond the end of a run are not reached. `variance_reduced` chooses Honaker's estimate from the
    same noisy nodes: post-processing, so the guarantee is the same.
    """

    restarts: tuple[int, ...] = ()
    variance_reduced: bool = False
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        restarts = tuple(int(at) for at in self.restarts)
        if restarts != tuple(self.restarts) or any(
            later <= earlier for earlier, later in zip((0, *restarts), restarts, strict=False)
        ):
            raise InputError(
                f"restarts={tuple(self.restarts)} are not increasing whole rounds after round 0; give for "
                "example "
                "restarts=(128, 1152)."
            )
        object.__setattr__(self, "restarts", restarts)

    def blocks(self, rounds: int) -> tuple[tuple[int, int], ...]:
        """The complete trees of the forest over `rounds` rounds: (first round, height), in the order of the
        rounds.

        Each stretch between restarts is cut into the binary digits of its length, largest first.
        """
        begins = [0, *(at for at in self.restarts if at < rounds)]
        forest = []
        for begin, end in zip(begins, [*begins[1:], rounds], strict=True):
            while begin < end:
                height = (end - begin).bit_length() - 1
                forest.append((begin, height))
                begin += 1 << height
        return tuple(forest)

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """The node matrix (nodes, rounds): row = the rounds below one complete node.

        Nodes are in the order in which they are completed, smaller before larger within a round.
        """
        nodes = sorted(
            (first + ((index + 1) << level), level, first + (index << level))
            for first, height in self.blocks(rounds)
            for level in range(height + 1)
            for index in range(1 << (height - level))
        )
        matrix = np.zeros((len(nodes), rounds))
        for row, (end, _, begin) in enumerate(nodes):
            matrix[row, begin:end] = 1.0
        return matrix

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "restarts": list(self.restarts),
            "variance_reduced": self.variance_reduced,
        }


@dataclass(frozen=True, kw_only=True)
class Toeplitz:
    """A lower-triangular Toeplitz matrix by its first column; it defines as many rounds as it has
    coefficients.

    A banded matrix writes its zeros: coefficients left out because they were thought not to matter understate
    the sensitivity by a factor of about the number of participations, so they are never filled in silently.
    """

    coefficients: tuple[float, ...]
    kind: ClassVar[str] = "toeplitz"

    def __post_init__(self) -> None:
        coefficients = _numbers("coefficients", self.coefficients)
        if coefficients[0] <= 0:
            raise InputError(
                f"coefficients begin with {coefficients[0]}, and C must be invertible; let the first be positive."
            )
        object.__setattr__(self, "coefficients", coefficients)

    def column(self, rounds: int) -> NDArray[np.float64]:
        """The first `rounds` coefficients; AccountingError where there are fewer."""
        if rounds > len(self.coefficients):
            raise AccountingError(
                f"{len(self.coefficients)} coefficients do not say what round {rounds} does; give {rounds} "
                "coefficients (zeros included, for a banded matrix)."
            )
        return np.array(self.coefficients[:rounds], dtype=np.float64)

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return _lower_toeplitz(self.column(rounds))

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {"kind": self.kind, "coefficients": list(self.coefficients)}


@dataclass(frozen=True, kw_only=True)
class Blt:
    """A buffered linear Toeplitz matrix: c_0 = 1, c_t = sum_j omega_j theta_j^(t-1) (arXiv:2408.08868,
    Section 3).

    `theta` (d,) in (0, 1] are the decays of the d buffers, `omega` (d,) > 0 their weights. InputError
    otherwise.
    """

    theta: tuple[float, ...]
    omega: tuple[float, ...]
    kind: ClassVar[str] = "blt"

    def __post_init__(self) -> None:
        theta, omega = _numbers("theta", self.theta), _numbers("omega", self.omega)
        if len(theta) != len(omega):
            raise InputError(f"{len(theta)} theta and {len(omega)} omega were given; each buffer has one of both.")
        if not all(0 < value <= 1 for value in theta):
            raise InputError(f"theta={theta} leave (0, 1]; a buffer's decay must lie above 0 and at most at 1.")
        if not all(value > 0 for value in omega):
            raise InputError(f"omega={omega} are not all positive; drop a buffer whose weight is zero or less.")
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "omega", omega)

    def column(self, rounds: int) -> NDArray[np.float64]:
        """The first `rounds` coefficients of C; after the first they never rise."""
        powers = np.array(self.theta)[:, None] ** np.arange(max(rounds - 1, 0))
        # The order of a sum may differ from column to column: its last bit must not make a flat tail rise.
        falling = np.minimum.accumulate(np.array(self.omega) @ powers)
        return np.concatenate(([1.0], falling))[:rounds]

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return _lower_toeplitz(self.column(rounds))

    def inverse(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(theta_hat (d,) decreasing, omega_hat (d,) <= 0) of C^{-1}, itself of BLT form.

        C^{-1} runs the state matrix diag(theta) - 1 omega^T; scaled by sqrt(omega) on both sides that is
        symmetric, so its eigenvalues are theta_hat and the squared projections of sqrt(omega) are -omega_hat.
        Unlike the product formula of arXiv:2408.08868, Algorithm 5, this stays accurate where thetas are
        (nearly) equal.
        """
        root = np.sqrt(np.array(self.omega))
        values, vectors = np.linalg.eigh(np.diag(self.theta) - np.outer(root, root))
        return values[::-1].copy(), -((root @ vectors) ** 2)[::-1]

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {"kind": self.kind, "theta": list(self.theta), "omega": list(self.omega)}


Strategy: TypeAlias = Independent | Tree | Toeplitz | Blt

# All three were designed for 2000 rounds, at (b, k) = (400, 5), (100, 10), (1000, 2). b400 is published in
# google-parfait/federated-compute, fcp/confidentialcompute/python/accounting_test.py (anchor there: 100
# rounds, b = 50, z = 1 -> zCDP 3.17226586). b100 and b1000 are believed to be those of arXiv:2408.08868,
# Appendix A: they were not found in a source that could be opened, and the last digits of b1000's second
# omega are uncertain; they reproduce its Table 4 (pt-PT and pt-BR rows).
PUBLISHED_BLT: Mapping[str, Blt] = MappingProxyType(
    {
        "b400": Blt(
            theta=(0.9999999999921251, 0.9944453083640997, 0.8985923474607591, 0.4912001418098778),
            omega=(0.0070314825502323835, 0.10613806907600574, 0.1898159060327625, 0.1966594748073734),
        ),
        "b100": Blt(
            theta=(0.989739971007307, 0.7352001759538236, 0.16776199983448145, 0.1677619998016191),
            omega=(0.20502892852480875, 0.23357939425278557, 0.03479503245420878, 0.03479509876050538),
        ),
        "b1000": Blt(
            theta=(0.9999999999983397, 0.9973412136664378, 0.9584629472313878, 0.6581796870749317),
            omega=(0.008657392263671862, 0.05890891298180951, 0.14548176930698697, 0.2770117005326523),
        ),
    }
)


def strategy_from_record(record: Mapping[str, Any]) -> Strategy:
    """The strategy that `to_record` wrote; UnknownRelease where it is none of ours, or holds anything "
    "else."""
    kinds: dict[str, Callable[..., Strategy]] = {each.kind: each for each in (Independent, Tree, Toeplitz, Blt)}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    kind = values.pop("kind", None)
    if kind not in kinds:
        raise UnknownRelease(
            f"strategy kind {kind!r} is none of {', '.join(kinds)}; account it with the version that wrote it."
        )
    try:
        return kinds[kind](**values)
    except (TypeError, ValueError) as error:
        raise UnknownRelease(f"the record of a {kind} strategy cannot be read: {error}") from error
