"""New words without seeing anyone's text: each device answers once, at random, and only sums are looked at.

`randomizers.py` is what a device runs and what the sum of its answers estimates.
"""

from tacit.analytics.projective_geometry import ProjectiveGeometryResponse
from tacit.analytics.randomizers import KaryRandomizedResponse, Randomizer, SubsetSelection, device_generator

__all__ = [
    "KaryRandomizedResponse",
    "ProjectiveGeometryResponse",
    "Randomizer",
    "SubsetSelection",
    "device_generator",
]
