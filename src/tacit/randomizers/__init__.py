"""Local randomizers: what a device says at random instead of the truth, and what the sum of many answers estimates."""

from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizers import KaryRandomizedResponse, Randomizer, SubsetSelection, device_generator

__all__ = ["KaryRandomizedResponse", "ProjectiveGeometryResponse", "Randomizer", "SubsetSelection", "device_generator"]
