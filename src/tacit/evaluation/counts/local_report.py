"""A device's locally randomised report of histograms: a random subset of the cells of one."""

import numpy as np
from numpy.typing import ArrayLike

from tacit.federation.report_layout import ReportLayout, Words
from tacit.randomizers import SubsetSelection


def randomized(layout: ReportLayout, chosen: ArrayLike, generator: np.random.Generator) -> Words:
    """The report (length,) of a device in these cells (H,): its answer to one histogram, randomised.

    generator: of the device; the operating system's but in tests. `local_epsilon`-locally private, whatever the other
    H - 1 cells are: they are not looked at. Raises: InputError for a cell that its histogram does not have.
    """
    assert layout.local_epsilon is not None  # the caller's to know
    own = layout.checked(chosen)
    number = int(generator.integers(len(layout.sizes)))
    randomizer = SubsetSelection(domain=layout.sizes[number], epsilon=layout.local_epsilon)
    vector = np.zeros(layout.length, np.uint32)
    votes = randomizer.votes(randomizer.encode(own[number : number + 1], generator))
    vector[layout.starts[number] : layout.starts[number + 1]] = votes
    vector[layout.cells + number] = 1
    return vector
