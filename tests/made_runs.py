"""Metadata of runs that tests write by hand, as `tacit train` would have."""

from typing import Any

from tacit.runs import TrainingMetadata
from tacit.runs.metadata import CacheUsed


def training_metadata(**changed: Any) -> TrainingMetadata:
    """Of a run of 4 rounds of 5 clients among 10, non-private, with whatever is given in place of that."""
    values: dict[str, Any] = {
        "versions": {"tacit": "0.1.0"},
        "created": 1_789_990_000.0,
        "key_source": "operating system",
        "asked": 'name = "made by hand"\n',
        "recipe": 'name = "made by hand"\n',
        "data": CacheUsed(
            cache="caches/made",
            source="folder:made",
            vocabulary_sha256="ab" * 32,
            vocabulary_size=100,
            cache_digest="cd" * 32,
        ),
        "vocabulary": {"kind": "public", "description": "100 words"},
        "population": 10,
        "report_goal": 5,
        "participation": {"rounds": 4, "min_separation": 2, "max_participations": 2},
        "guarantee": {"strategy": None, "clip_norm": 1.0, "noise_multiplier": 0.0},
        "also_released": {},
        "delta": 1e-10,
        "parameters": 1234,
        "first_model": None,
        "stands_in_for": None,
        "simulated": None,
        "evaluation": {"every": 2, "clients": 10, "test_clients": 20, "sentences": 64},
    }
    return TrainingMetadata(**{**values, **changed})
