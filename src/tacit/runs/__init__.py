"""The run folder: the only format in which a run is written, and all that those who look at it may read."""

from tacit.runs.entries import MetricEntry, StepEntry
from tacit.runs.folder import Run
from tacit.runs.metadata import Metadata, TrainingMetadata

__all__ = ["Metadata", "MetricEntry", "Run", "StepEntry", "TrainingMetadata"]
