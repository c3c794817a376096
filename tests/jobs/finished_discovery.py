"""A run folder of a discovery that ended, made by hand."""

import json
from pathlib import Path
from typing import Any

from tests.support.discovery.typed_words import KNOWN

from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.jobs.discover.job import RESULT, settings_toml
from tacit.runs import Run
from tacit.runs.metadata import DiscoveryMetadata

FOUND = [
    {"word": "selfie", "votes": 50, "count": 40.0},
    {"word": "ab;", "votes": 90, "count": 80.0},
    {"word": "don't", "votes": 60, "count": 70.0},
    {"word": "of", "votes": 10, "count": 9.0},
    {"word": "<url>", "votes": 10, "count": 9.0},
    {"word": "brunch", "votes": 99, "count": 20.0},
]


def finished(folder: Path, found: list[dict[str, Any]] | None = FOUND, **simulated: Any) -> Path:
    """A finished run of real users, or an unfinished one where nothing is `found`, beside its vocabulary."""
    KNOWN.save(folder / "vocabulary.json")
    settings = DiscoverySettings(
        reports=LocalReportSettings(local_epsilon=8.0, contributions=2), users_per_layer=10, **simulated
    )
    metadata = DiscoveryMetadata(
        versions={},
        created=0.0,
        key_source="operating system",
        assignment=1,
        delta=1e-10,
        population=0,
        data=None,
        vocabulary=None,
        vocabulary_kind="public",
        vocabulary_description="two words",
    )
    settings_text = settings_toml(settings, vocabulary_sha256=KNOWN.sha256, population_sha256="0")
    with Run.create(folder / "run", settings_text, metadata, b"") as run:
        if found is not None:
            (run.path / RESULT).write_text(json.dumps({"found": found}))
            run.keep_files(RESULT)
    return folder / "run"
