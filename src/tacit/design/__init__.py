"""Choosing a strategy: what a mechanism costs for given participations, and the parameters that cost least.

A loss is the error of the prefix sums times the sensitivity: what decides between mechanisms at equal privacy.
NumPy and SciPy in double precision, no accelerator.
"""

from tacit.design.blt import design_blt, design_robust_blt
from tacit.design.losses import Losses, Objective, losses

__all__ = ["Losses", "Objective", "design_blt", "design_robust_blt", "losses"]
