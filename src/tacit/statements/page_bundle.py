"""The bundle of a page for browsers: `bundle.json` names each of its files by SHA-256, and its digest names them all.

The digest is what stands in a transparency log. A stranger computes it with `sha256sum`, as that of its lines
`sha256  name`, in the order of the names.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.parsing import parsed_json
from tacit.statements.verify import CheckedLine

BUNDLE = "bundle.json"  # in the folder that the page was built into
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(/[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*)*")
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class PageBundle:
    """What a `bundle.json` says."""

    folder: Path
    digest: str
    files: Mapping[str, str]  # SHA-256, by name
    publisher: str | None  # the public key of the log without whose word the page takes no other bundle

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Raises: InputError where it has none, or one that names no files by their digests."""
        path = folder / BUNDLE
        try:
            said = parsed_json(read_bounded(path))
        except OSError as error:
            raise InputError(
                f"'{path}' cannot be read ({error.strerror}); give the folder that `npm run build` wrote."
            ) from None
        if not isinstance(said, Mapping) or not _is_bundle(said):
            raise InputError(f"'{path}' names no files of a page by their SHA-256; `npm run build` writes one.")
        return cls(
            folder=folder, digest=str(said["digest"]), files=dict(said["files"]), publisher=said.get("publisher")
        )

    def lines(self) -> tuple[CheckedLine, ...]:
        """Whether each file is the one that is named, and the digest theirs."""
        found = digest_of(self.files)
        own = None if found == self.digest else f"the files that it names have the digest {found}"
        files = (CheckedLine(name=f"bundle {name}", complaint=self._complaint(name)) for name in sorted(self.files))
        return (CheckedLine(name="bundle digest", complaint=own), *files)

    def _complaint(self, name: str) -> str | None:
        try:
            found = hashlib.sha256(read_bounded(self.folder / name)).hexdigest()
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        return None if found == self.files[name] else f"it is another file, with the digest {found}"


def digest_of(files: Mapping[str, str]) -> str:
    """The digest of a bundle. files: the SHA-256 of each, by name."""
    return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()


def _is_bundle(said: Mapping[str, Any]) -> bool:
    files, publisher = said.get("files"), said.get("publisher")
    return (
        isinstance(files, Mapping)
        and bool(files)
        and all(NAME.fullmatch(name) and _is_digest(digest) for name, digest in files.items())
        and _is_digest(said.get("digest"))
        and (publisher is None or _is_digest(publisher))
    )


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None
