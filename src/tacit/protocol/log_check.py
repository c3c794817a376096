"""What a device asks of the transparency log before it believes a plan or another key: that all can see it too.

It asks for all of the log, whatever it has seen of it, and goes on or not by what is shown alone; what it kept only
tells a list that was written anew. So whoever shows it a longer list, or a shorter one, learns nothing of it later.
"""

from collections.abc import Sequence
from typing import TypeVar

from tacit.errors import InputError, ServerError, TaskRefused
from tacit.protocol.fields import Document
from tacit.protocol.log_proofs import key_rotation_entry, leaf_of, root_of
from tacit.protocol.messages import KeyRotation, ShownLog, TreeHead
from tacit.protocol.requests import Conversation, key_rotation, whole_log
from tacit.protocol.signing import digest, is_signature, is_signed

D = TypeVar("D", bound=Document)


class AnotherLog(TaskRefused):
    """The operator signed a log that does not begin like the kept one: both together convict it."""

    def __init__(self, says: str, shown: ShownLog) -> None:
        super().__init__(says)
        self.shown = shown


def logged(entry: str, *, operator: str, kept: Sequence[str]) -> Conversation[ShownLog]:
    """The log that is shown, which has the entry, and begins with what was `kept` of it, or is the beginning of that.

    operator: the pinned key. Raises: TaskRefused where it is not so, AnotherLog where it begins otherwise; ServerError
    where no answer came.
    """
    try:
        shown = yield from whole_log()
    except ServerError as error:
        if not error.final:
            raise
        raise TaskRefused(f"the operator shows no log ({error})") from error
    if not is_signed(TreeHead, shown.head, operator):
        raise TaskRefused("the head of the log is not signed by the operator whose key is pinned.")
    head, entries = read_or_refuse(TreeHead, shown.head.document, "the head of the log"), shown.entries
    if (head.size, head.root) != (len(entries), root_of(map(leaf_of, entries)).hex()):
        raise TaskRefused("the log that was shown is not the one whose head the operator signed.")
    if entry not in entries:
        raise TaskRefused(f"the operator's log does not have '{entry[:21]}...'.")
    if any(one != other for one, other in zip(kept, entries, strict=False)):
        raise AnotherLog(
            f"the operator's log of {len(entries)} entries and the {len(kept)} that were kept of it do not begin "
            "alike: it was written anew, or this is another one. This device believes it no more.",
            shown,
        )
    return shown


def followed(pinned: str, *, kept: Sequence[str]) -> Conversation[tuple[str, ShownLog]]:
    """(the key that the pinned one handed over to, the log that shows it).

    Raises: TaskRefused where it did not, or the log does not show it; ServerError.
    """
    signed = yield from key_rotation()
    said = read_or_refuse(KeyRotation, signed.document, "the hand-over of the operator's key")
    shown = yield from logged(key_rotation_entry(digest(signed.document)), operator=said.new, kept=kept)
    if said.old != pinned or said.new == pinned:
        raise TaskRefused(f"the operator whose key is pinned ({pinned[:16]}...) handed over to no other key.")
    for key, signature in ((said.old, signed.by_old), (said.new, signed.by_new)):
        if not is_signature("hand-over", signed.document, signature, key):
            raise TaskRefused(f"a hand-over of the operator's key is not signed by {key[:16]}...")
    return said.new, shown


def read_or_refuse(kind: type[D], text: str, what: str) -> D:
    """What the operator signed. what: in a sentence. Raises: TaskRefused where this version cannot follow it."""
    try:
        return kind.from_json(text)
    except InputError as error:
        raise TaskRefused(f"{what} cannot be followed: {error}") from None
