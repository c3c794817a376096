"""Files of a run's report to take away: those of `report/`, and of `simulation/` where exact numbers may be shown."""

import mimetypes
import os
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from tacit.reports.page import PUBLISHED, SIMULATION
from tacit.view.folders import NotThere
from tacit.view.shown import View

LARGEST = 200_000_000  # bytes


def offered(view: View, path: Path) -> list[tuple[str, int]]:
    """(path from the run folder, bytes) of each file that may be taken away."""
    found = []
    for place in _places(view):
        folder = path / place
        if folder.is_symlink() or not folder.is_dir():
            continue
        for each in sorted(folder.iterdir()):
            if each.is_file() and not each.is_symlink() and not each.name.startswith("."):
                found.append((f"{place}/{each.name}", each.stat().st_size))
    return found


def file(view: View, request: Request) -> Response:
    """`?name=` one of those, as an attachment: a browser keeps it, and runs nothing in it. Raises: NotThere."""
    place, name = request.path_params["place"], request.query_params.get("name", "")
    if name.partition("/")[0] not in _places(view):
        raise NotThere(f"'{name[:200]}' may not be taken away: files of {' and '.join(_places(view))} may.")
    path = view.folders.file(place, name)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as opened:
        content = opened.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise NotThere(f"'{name[:200]}' is larger than {LARGEST:,} bytes; copy it from the folder.")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    named = f"attachment; filename*=UTF-8''{quote(path.name)}"
    return Response(content, media_type=kind, headers={"content-disposition": named})


def _places(view: View) -> tuple[str, ...]:
    return (PUBLISHED, SIMULATION) if view.simulation else (PUBLISHED,)
