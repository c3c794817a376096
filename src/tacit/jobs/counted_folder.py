"""The folder of a counted model: written whole or not at all, and nothing but an older such model is replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import InputError
from tacit.files import check_folder
from tacit.folders import folder_beside, replace_folder
from tacit.networks.model_files import is_counted


def check_place(out: Path, files: tuple[str, ...]) -> None:
    """Raises: InputError where `out` is there and more than a counted model with these files."""
    check_folder("--out", out)
    if out.is_symlink():
        raise InputError(
            f"'{out}' is a link, and the folder is written whole in its own place; give '{out.resolve()}'."
        )
    there = sorted(each.name for each in out.iterdir()) if out.exists() else []
    if not there:
        return
    if not is_counted(out):
        raise InputError(
            f"'{out}' exists and is no counted model, so it is not replaced; give another --out, or remove it."
        )
    if strange := [name for name in there if name not in files]:
        raise InputError(
            f"'{out}' has {strange[0]!r} beside a counted model, and would lose it; move it away, or give another "
            "--out."
        )


@contextmanager
def written_whole(out: Path, files: tuple[str, ...]) -> Iterator[Path]:
    """A folder to write these files into, which then takes the place of `out`. Raises: as `check_place`."""
    check_place(out, files)
    with folder_beside(out) as draft:
        yield draft
        replace_folder(out, draft)
