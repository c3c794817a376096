"""A page's bundle in a transparency log: entered by whoever publishes the page, and looked for by whoever doubts it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError
from tacit.files import PathLike, as_path, write_whole
from tacit.protocol.log_proofs import bundle_entry, leaf_of, root_of
from tacit.protocol.messages import ShownLog, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import is_signed
from tacit.server.log.pinned_key import check_key
from tacit.server.log.transparency import LogView, TransparencyLog
from tacit.server.store.store import Store
from tacit.statements.page_bundle import PageBundle
from tacit.statements.verify import CheckedLine

LOG = "log.json"  # beside the page's files, for its service worker; no part of the bundle
STORE = "store.db"  # beside the key, as `tacit serve` has it


@dataclass(frozen=True, kw_only=True)
class PublishedBundle:
    """A bundle that stands in a log."""

    digest: str
    index: int  # of its entry
    size: int  # of the log
    publisher: str  # the public key that signs the log
    log: Path  # as the page's service worker reads it

    def __str__(self) -> str:
        """As people read it."""
        return (
            f"bundle {self.digest}\nis entry {self.index} of {self.size} of the log of {self.publisher}\n"
            f"{self.log} shows it: serve it beside the page's files"
        )

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit publish --json` prints."""
        said = {"digest": self.digest, "index": self.index, "size": self.size, "publisher": self.publisher}
        return {"schema": "tacit.published-bundle", "version": 1, **said, "log": str(self.log)}


def publish(bundle: PathLike, operator_key: PathLike, *, store: str | None = None) -> PublishedBundle:
    """Enter the bundle of a built page into a transparency log, once, and write the log beside it as `log.json`.

    A page that was built for this log takes no other bundle than one that stands in it.
    bundle: the folder that the page was built into. operator_key: the file of the secret key that signs the log, made
    where there is none; the one of a server, or one of whoever publishes the page. store: the address of the database
    with the log; left out, `store.db` beside the key, as `tacit serve` has it.

    Raises: InputError for a folder whose files are not those of its bundle, for a key that the page was not built for,
    and where the log is another's; StoreError.
    """
    folder, key_file = as_path("bundle", bundle), as_path("operator_key", operator_key).absolute()
    found = PageBundle.in_folder(folder)
    if wrong := next((each for each in found.lines() if not each.holds), None):
        raise InputError(f"'{folder}' is not what was built: {wrong.name}: {wrong.complaint}; build it again.")
    known = OperatorKey.in_file(key_file).public if key_file.exists() else None
    if found.publisher not in (None, known):
        raise InputError(
            f"the page in '{folder}' was built for the log of {found.publisher}, and the key in '{key_file}' is "
            f"{known or 'not there'}; give the key's file, or build the page with --publisher."
        )
    with closing(Store.open(store or f"sqlite:///{key_file.parent / STORE}")) as opened:
        check_key(key_file, opened, ())
        key = OperatorKey.in_file(key_file)
        proof = TransparencyLog.beside(opened, key, key_file).append(bundle_entry(found.digest))
        shown = LogView(opened).shown()
    assert shown is not None  # it has an entry
    write_whole(folder / LOG, shown)
    size = proof.head.read(TreeHead).size
    return PublishedBundle(digest=found.digest, index=proof.index, size=size, publisher=key.public, log=folder / LOG)


def bundle_lines(bundle: PageBundle, entries: list[str], shown: ShownLog | None) -> tuple[CheckedLine, ...]:
    """Whether a log has a bundle. shown: with its head, where that is at hand."""
    missing = None if bundle_entry(bundle.digest) in entries else f"no entry of the log is of bundle {bundle.digest}"
    lines = (CheckedLine(name="log.entries", complaint=missing),)
    if shown is None:
        return lines
    return (*lines, CheckedLine(name="log.head", complaint=next(_wrong(bundle, shown), None)))


def _wrong(bundle: PageBundle, shown: ShownLog) -> Iterator[str]:
    if bundle.publisher is not None and not is_signed(TreeHead, shown.head, bundle.publisher):
        yield "the head of the log is not signed by the publisher that the bundle names"
    head = shown.head.read(TreeHead)
    if (head.size, head.root) != (len(shown.entries), root_of(map(leaf_of, shown.entries)).hex()):
        yield "the head is not that of the entries"
