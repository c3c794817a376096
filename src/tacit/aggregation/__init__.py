"""From one client's update to a sum: each contribution is bounded before anything is added."""

from tacit.aggregation.clipping import Clipped, clip

__all__ = ["Clipped", "clip"]
