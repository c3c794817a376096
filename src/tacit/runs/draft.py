"""A run folder before it has its name: what is in it when a run begins, and what of that is remembered."""

import hashlib
import os
import secrets
from pathlib import Path

from tacit.files import sync_folder
from tacit.records import to_plain
from tacit.runs.entries import RunBegunEntry
from tacit.runs.journal import Journal
from tacit.runs.metadata import Metadata

SETTINGS, STRATEGY, NOISE_KEY, STEPS = "settings.toml", "strategy.json", "noise.key", "steps"


def commitment_to(key: bytes) -> str:
    """What a run remembers of its noise key: 128 bits from the operating system cannot be guessed from it. Those of a
    fixed seed can, and are no secret.
    """
    return hashlib.sha256(b"tacit noise key commitment 1\n" + key).hexdigest()


def write_draft(draft: Path, settings: str, metadata: Metadata, key: bytes, strategy: str | None) -> None:
    """All of a new run folder, on disk when this returns."""
    for folder in (STEPS, "model", "report"):
        (draft / folder).mkdir()
    files = [(SETTINGS, settings.encode(), 0o666), *([(NOISE_KEY, key, 0o600)] if key else [])]
    kept = [] if strategy is None else [(STRATEGY, strategy.encode(), 0o666)]
    for name, content, mode in files + kept:
        descriptor = os.open(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    begun = RunBegunEntry(
        metadata=to_plain(metadata),
        settings=settings,
        strategy=None if strategy is None else hashlib.sha256(strategy.encode()).hexdigest(),
        noise_key=commitment_to(key) if key else None,
        salt=secrets.token_hex(16),
    )
    Journal.create(draft, begun).close()
    sync_folder(draft)


def first_change(before: str, now: str) -> str:
    """The first line in which two texts differ, as `line N was X and is now Y`."""
    lines, others = before.splitlines(), now.splitlines()
    pairs = zip([*lines, None], [*others, None], strict=False)
    number, (was, found) = next(
        ((at, pair) for at, pair in enumerate(pairs, start=1) if pair[0] != pair[1]), (0, (None, None))
    )
    if not number:
        return "in its line ends"
    shown = ["nothing" if each is None else repr(each[:80]) for each in (was, found)]
    return f"line {number} was {shown[0]} and is now {shown[1]}"
