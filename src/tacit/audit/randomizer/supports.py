"""Which of many reports support a value: what `votes` counts, report by report."""

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.randomizers.k_ary import KaryRandomizedResponse
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.subset_selection import SubsetSelection

Bools = NDArray[np.bool_]


@singledispatch
def supports(randomizer: Randomizer, reports: NDArray[Any], value: int) -> Bools:
    """(devices,): of any randomizer, by counting the votes of each report alone."""
    return np.array([bool(randomizer.votes(reports[at : at + 1])[value]) for at in range(len(reports))], bool)


@supports.register
def _(randomizer: KaryRandomizedResponse, reports: NDArray[Any], value: int) -> Bools:
    """The report is the value."""
    return np.asarray(reports == value)


@supports.register
def _(randomizer: SubsetSelection, reports: NDArray[Any], value: int) -> Bools:
    """The set names the value."""
    if randomizer.as_bitmap:
        return np.asarray((reports[:, value // 64] >> np.uint64(value % 64)) & np.uint64(1), bool)
    return np.asarray((reports == value).any(axis=1))


@supports.register
def _(randomizer: ProjectiveGeometryResponse, reports: NDArray[Any], value: int) -> Bools:
    """The point is orthogonal to the value's."""
    space = randomizer.geometry
    own = space.vectors(np.array([value]))[0]
    return np.asarray(space.vectors(reports.astype(np.int64)) @ own % space.order == 0)
