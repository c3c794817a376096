"""What a page hands back: the name of its template, the values it needs, and the same for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # which it comes with
    from tacit.view.changes import Changes
    from tacit.view.checks import Checks
    from tacit.view.folders import Folders
    from tacit.view.keyboards import Keyboards
    from tacit.view.looks import Looks
    from tacit.view.metrics import Metrics
    from tacit.view.rows import Rows


@dataclass(frozen=True, kw_only=True)
class View:
    """What pages are made from."""

    folders: "Folders"
    looks: "Looks"
    rows: "Rows"
    checks: "Checks"
    changes: "Changes"
    keyboards: "Keyboards"
    metrics: "Metrics"

    @property
    def simulation(self) -> bool:
        """Whether exact numbers are shown."""
        return self.looks.simulation


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A page."""

    template: str
    title: str
    values: Mapping[str, Any]
    record: Mapping[str, Any]
    status: int = 200
