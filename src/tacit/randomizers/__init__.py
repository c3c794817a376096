"""Local randomizers: what a device says at random instead of the truth, and what the sum of many answers estimates.

`encode` and `votes` are a device's; `simulated_votes.py` has those of many simulated ones at once.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.randomizers.device_randomness import device_generator
    from tacit.randomizers.estimates import Estimate
    from tacit.randomizers.k_ary import KaryRandomizedResponse
    from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
    from tacit.randomizers.randomizer import Randomizer
    from tacit.randomizers.simulated_votes import sample_votes
    from tacit.randomizers.subset_selection import SubsetSelection
else:
    __getattr__ = late(
        __name__,
        {
            "Estimate": "estimates",
            "KaryRandomizedResponse": "k_ary",
            "ProjectiveGeometryResponse": "projective_geometry",
            "Randomizer": "randomizer",
            "SubsetSelection": "subset_selection",
            "device_generator": "device_randomness",
            "sample_votes": "simulated_votes",
        },
    )

__all__ = [
    "Estimate",
    "KaryRandomizedResponse",
    "ProjectiveGeometryResponse",
    "Randomizer",
    "SubsetSelection",
    "device_generator",
    "sample_votes",
]
