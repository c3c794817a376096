"""Local randomizers: what a device says at random instead of the truth, and what the sum of many answers estimates."""

from tacit.randomizers.device_randomness import device_generator
from tacit.randomizers.estimates import Estimate
from tacit.randomizers.k_ary import KaryRandomizedResponse
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.subset_selection import SubsetSelection

__all__ = [
    "Estimate",
    "KaryRandomizedResponse",
    "ProjectiveGeometryResponse",
    "Randomizer",
    "SubsetSelection",
    "device_generator",
]
