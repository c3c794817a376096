"""The run folder: the only format in which a run is written, and all that those who look at it may read."""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.runs.entries import MetricEntry, StepEntry
    from tacit.runs.folder import Run
    from tacit.runs.metadata import Metadata, TrainingMetadata
else:
    __getattr__ = late(
        __name__,
        {
            "Metadata": "metadata",
            "MetricEntry": "entries",
            "Run": "folder",
            "StepEntry": "entries",
            "TrainingMetadata": "metadata",
        },
    )

__all__ = ["Metadata", "MetricEntry", "Run", "StepEntry", "TrainingMetadata"]
