"""Models that were made of several runs: what each promises, and which runs it is made of.

A mixture is no run. Its folder is around its runs, and its promise says what all of them cost together.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.networks.models import PROMISE
from tacit.view.folders import Folders


@dataclass(frozen=True, kw_only=True)
class MixtureRow:
    """One of a list; without a model there is no promise yet."""

    place: str
    name: str
    parts: tuple[str, ...]  # places of the runs that it is made of
    epsilon: float | None = None  # of everything together, at delta
    delta: float | None = None
    says: str = "No model yet; `tacit resume` goes on with it where no process does."
    complaint: str = ""

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def mixtures(folders: Folders, runs: list[str]) -> list[MixtureRow]:
    """Those of the named folders. runs: the places of all runs."""
    return [_row(folders, place, runs) for place in folders.mixtures()]


def _row(folders: Folders, place: str, runs: list[str]) -> MixtureRow:
    known: dict[str, Any] = {
        "place": place,
        "name": folders.folder(place).name,
        "parts": tuple(each for each in runs if each.startswith(f"{place}/")),
    }
    try:
        file = folders.file(place, f"model/{PROMISE}")
    except TacitError:
        return MixtureRow(**known)
    try:
        return MixtureRow(**known, **_promised(file))
    except (TacitError, ValueError, TypeError, KeyError, OSError) as error:
        return MixtureRow(**known, complaint=f"Its promise cannot be read: {error}")


def _promised(file: Path) -> dict[str, Any]:
    """Raises: InputError where its figures do not follow from its statements."""
    from tacit.statements.composed import read  # the mathematics of promises comes with it

    record = read(file)
    return {
        "epsilon": float(record["epsilon"]),
        "delta": float(record["delta"]),
        "says": f"One model of public text and of {' and '.join(record['statements'])}, whose price is composed.",
    }
