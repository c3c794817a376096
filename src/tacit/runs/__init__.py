"""The run folder: the only format in which a run is written, and all that those who look at it may read."""

from tacit.runs.folder import Metric, RoundRow, Run

__all__ = ["Metric", "RoundRow", "Run"]
