"""Local randomizers: what a device says at random instead of the truth, and what the sum of many answers estimates."""

from tacit.randomizers.device_randomness import device_generator
from tacit.randomizers.estimates import Estimate
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizers import KaryRandomizedResponse, Randomizer, SubsetSelection

__all__ = [
    "Estimate",
    "KaryRandomizedResponse",
    "ProjectiveGeometryResponse",
    "Randomizer",
    "SubsetSelection",
    "device_generator",
]
