"""The operator's key is the one that devices have pinned: seen before another is made or anything is signed."""

from collections.abc import Iterable
from pathlib import Path

from tacit.errors import InputError
from tacit.protocol.key_rotation import PREVIOUS, previous_key
from tacit.protocol.messages import TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import is_signed
from tacit.runs import Run
from tacit.server.log.transparency import LogView
from tacit.server.store.store import Store
from tacit.statements.device_text import LOGGED


def check_key(path: Path, store: Store, runs: Iterable[Path]) -> None:
    """That the key in a file, or the one before it that hands over to it, signed the log in the store, and that these
    runs began with it; where there is no file, that nothing was signed yet, or by the one before. Nothing is written.

    Raises: InputError; StoreError; RunError for a damaged run.
    """
    key, before = OperatorKey.in_file(path).public if path.exists() else None, previous_key(path)
    here = f"there is no operator's key at '{path}'" if key is None else f"the key in '{path}' is {key[:16]}..."
    if before is not None and before.public == key:
        raise InputError(f"{here}, and so is the one before it, '{path.with_suffix(PREVIOUS)}'; remove that file.")
    head, known = LogView(store).head(), [key, None if before is None else before.public]
    if head is not None and not any(each is not None and is_signed(TreeHead, head, each) for each in known):
        raise InputError(
            f"{here}, and the log in the store, which devices have seen, is signed by another; put the file of that "
            "key back (--operator-key). No key was made."
        )
    for run in runs:
        began = _began_with(run)
        if began not in (None, key):
            raise InputError(
                f"{here}, and the run '{run}' began with the operator's key {began[:16]}..., which its devices have "
                "pinned; put the file of that key back (--operator-key). No key was made."
            )


def _began_with(path: Path) -> str | None:
    """The operator's public key of a run; None where none was noted."""
    if not (path / "run.db").is_file():
        return None
    with Run.open(path) as run:
        return None if LOGGED not in run.notes else str(run.notes[LOGGED]["operator"])
