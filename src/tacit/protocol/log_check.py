"""What a device asks of the transparency log before it believes a plan or another key: that all can see it too."""

from typing import TypeVar

from tacit.errors import InputError, ServerError, TaskRefused
from tacit.protocol.fields import Document
from tacit.protocol.log_proofs import is_consistent, is_included, key_rotation_entry, leaf_of
from tacit.protocol.messages import KeyRotation, TreeHead
from tacit.protocol.requests import Conversation, key_rotation, log_consistency, log_proof
from tacit.protocol.signing import digest, is_signature, is_signed

D = TypeVar("D", bound=Document)
T = TypeVar("T")


def logged(entry: str, *, operator: str, seen: TreeHead | None) -> Conversation[TreeHead]:
    """The head under which the entry is in the log, which begins with what was `seen` of it last.

    operator: the pinned key. Raises: TaskRefused where that is not shown; ServerError where no answer came.
    """
    leaf = leaf_of(entry)
    proof = yield from _required(log_proof(leaf.hex()), f"the operator's log does not have '{entry[:21]}...'")
    if not is_signed(TreeHead, proof.head, operator):
        raise TaskRefused("the head of the log is not signed by the operator whose key is pinned.")
    head = read_or_refuse(TreeHead, proof.head.document, "the head of the log")
    if not is_included(leaf, proof.index, head.size, _bytes(proof.path), bytes.fromhex(head.root)):
        raise TaskRefused(f"the operator's log does not have '{entry[:21]}...': the proof that it has does not hold.")
    if seen is None or seen == head:
        return head
    if head.size <= seen.size:
        raise TaskRefused(
            f"the operator's log has {head.size} entries, and it had {seen.size} when it was seen last: it was written "
            "anew, or this is another one. This device believes it no more."
        )
    joined = yield from _required(
        log_consistency(seen.size, head.size), "nothing shows that the log only grew since it was seen"
    )
    roots = bytes.fromhex(seen.root), bytes.fromhex(head.root)
    if not is_consistent(seen.size, head.size, _bytes(joined.path), *roots):
        raise TaskRefused(
            f"the operator's log of {head.size} entries does not begin with the {seen.size} that were seen last: it "
            "was written anew. This device believes it no more."
        )
    return head


def followed(pinned: str, *, seen: TreeHead | None) -> Conversation[tuple[str, TreeHead]]:
    """(the key that the pinned one handed over to, the head of the log under which that stands).

    Raises: TaskRefused where it did not, or the log does not show it; ServerError.
    """
    signed = yield from key_rotation()
    said = read_or_refuse(KeyRotation, signed.document, "the hand-over of the operator's key")
    if said.old != pinned or said.new == pinned:
        raise TaskRefused(f"the operator whose key is pinned ({pinned[:16]}...) handed over to no other key.")
    for key, signature in ((said.old, signed.by_old), (said.new, signed.by_new)):
        if not is_signature("hand-over", signed.document, signature, key):
            raise TaskRefused(f"a hand-over of the operator's key is not signed by {key[:16]}...")
    return said.new, (yield from logged(key_rotation_entry(digest(signed.document)), operator=said.new, seen=seen))


def read_or_refuse(kind: type[D], text: str, what: str) -> D:
    """What the operator signed. what: in a sentence. Raises: TaskRefused where this version cannot follow it."""
    try:
        return kind.from_json(text)
    except InputError as error:
        raise TaskRefused(f"{what} cannot be followed: {error}") from None


def _required(request: Conversation[T], why: str) -> Conversation[T]:
    """Raises: TaskRefused with why for an answer that is a refusal; ServerError for none."""
    try:
        return (yield from request)
    except ServerError as error:
        if not error.final:
            raise
        raise TaskRefused(f"{why} ({error})") from error


def _bytes(path: tuple[str, ...]) -> list[bytes]:
    return [bytes.fromhex(each) for each in path]
