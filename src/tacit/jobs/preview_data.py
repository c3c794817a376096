"""`tacit.preview_data`: what an import would read, counted to its end, and the beginning of it, before anything is
written.

A preview shows what clients typed to whoever runs it and to nobody else: nothing is stored, and nothing here is private
in the sense of a guarantee. It is short.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

import numpy as np

from tacit.data import Source
from tacit.data.clients import SaysHow, checked_clients, split_of
from tacit.data.manifest import NO_TIME, SPLITS
from tacit.data.sources import SOURCES, HowToRead
from tacit.jobs.opened_source import columns_called, source_of
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent
from tacit.reports import summary_lines
from tacit.reports.blocks import Block

READING = "reading clients"  # the stage, a step a client
CLIENTS, TEXTS, NAME, TEXT = 5, 3, 20, 60  # shown: clients, texts of each, characters of a name and of a text
STEP = 1_000  # clients between two words of progress


@dataclass(frozen=True, kw_only=True)
class ShownClient:
    """The beginning of what one client typed, and how many texts there are."""

    client_id: str
    texts: Sequence[str]
    of: int


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What an import would read. Times are in seconds since 1970, None where no text has one."""

    source: str
    how_read: Sequence[str]
    clients: int
    texts: int
    characters: int
    splits: Mapping[str, int]
    undated_texts: int
    earliest: int | None
    latest: int | None
    left_out: Mapping[str, int]
    doubts: Sequence[str]
    first: Sequence[ShownClient]

    def to_record(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"schema": "tacit.data_preview", "version": 1, **asdict(self)}


def preview_data(
    source: str | Source | Any,
    *,
    client_id: str | None = None,
    text: str | None = None,
    timestamp: str | None = None,
    progress: Progress = silent,
    **how: Unpack[HowToRead],
) -> Preview:
    """What `import_data` would read with the same arguments: counts, columns, what is left out, the first few texts.

    source, client_id, text, timestamp, how: as of `import_data`.

    All of the source is read, and nothing is written. Raises: SourceError, InputError, as `import_data` would.
    """
    called = columns_called(client_id, text, timestamp)
    progress(StageBegan(READING, opening=source if isinstance(source, str) and source in SOURCES else ""))
    clients = source_of(source, called, **how)
    counts: Counter[str] = Counter()
    splits = dict.fromkeys(SPLITS, 0)
    first: list[ShownClient] = []
    earliest: int | None = None
    latest: int | None = None
    for client in checked_clients(clients):
        counts["clients"] += 1
        counts["texts"] += len(client.texts)
        counts["characters"] += sum(map(len, client.texts))
        splits[client.split or split_of(client.client_id)] += 1
        known = np.empty(0, np.int64) if client.timestamps is None else client.timestamps
        known = known[known != NO_TIME]
        counts["undated"] += len(client.texts) - len(known)
        if len(known):
            earliest = min(int(known.min()), int(known.min()) if earliest is None else earliest)
            latest = max(int(known.max()), int(known.max()) if latest is None else latest)
        if len(first) < CLIENTS:
            shown = tuple(_short(each, TEXT) for each in client.texts[:TEXTS])
            first.append(ShownClient(client_id=_short(client.client_id, NAME), texts=shown, of=len(client.texts)))
        if counts["clients"] % STEP == 0:
            progress(Advanced(READING, counts["clients"], {"texts": counts["texts"]}))
    progress(StageEnded(READING))
    says = clients if isinstance(clients, SaysHow) else None
    return Preview(
        source=clients.description,
        how_read=tuple(says.how_read) if says else (),
        clients=counts["clients"],
        texts=counts["texts"],
        characters=counts["characters"],
        splits=splits,
        undated_texts=counts["undated"],
        earliest=earliest,
        latest=latest,
        left_out=dict(clients.left_out),
        doubts=tuple(says.doubts) if says else (),
        first=tuple(first),
    )


def described_preview(preview: Preview) -> list[Block]:
    """What people read of a preview."""
    return summary_lines.of_preview(preview.to_record())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
