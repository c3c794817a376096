"""What a device asks of the transparency log before it believes a plan: that everybody else can see the plan too."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from tacit.errors import ServerError, TaskRefused
from tacit.protocol.log_entries import leaf_of
from tacit.protocol.merkle import is_consistent, is_included
from tacit.protocol.messages import ConsistencyProof, InclusionProof, TreeHead
from tacit.protocol.signing import is_signed

T = TypeVar("T")


class ReadableLog(Protocol):
    """The server's answers; raises ServerError where there is none."""

    def log_proof(self, leaf: str) -> InclusionProof:
        """GET /v1/log/proof/{leaf}."""
        ...

    def log_consistency(self, first: int, second: int) -> ConsistencyProof:
        """GET /v1/log/consistency."""
        ...


def logged(entry: str, server: ReadableLog, *, operator: str, seen: TreeHead | None) -> TreeHead:
    """The head under which the entry is in the log, which begins with what was `seen` of it last.

    operator: the pinned key. Raises: TaskRefused where that is not shown; ServerError where no answer came.
    """
    leaf = leaf_of(entry)
    proof = _asked(lambda: server.log_proof(leaf.hex()), f"the operator's log does not have '{entry[:21]}...'")
    head = proof.head.head
    if not is_signed(proof.head, operator):
        raise TaskRefused("the head of the log is not signed by the operator whose key is pinned.")
    if not is_included(leaf, proof.index, head.size, _bytes(proof.path), bytes.fromhex(head.root)):
        raise TaskRefused(f"the operator's log does not have '{entry[:21]}...': the proof that it has does not hold.")
    if seen is None or seen == head:
        return head
    if head.size <= seen.size:
        raise TaskRefused(
            f"the operator's log has {head.size} entries, and it had {seen.size} when it was seen last: it was written "
            "anew, or this is another one. This device believes it no more."
        )
    joined = _asked(
        lambda: server.log_consistency(seen.size, head.size), "nothing shows that the log only grew since it was seen"
    )
    roots = bytes.fromhex(seen.root), bytes.fromhex(head.root)
    if not is_consistent(seen.size, head.size, _bytes(joined.path), *roots):
        raise TaskRefused(
            f"the operator's log of {head.size} entries does not begin with the {seen.size} that were seen last: it "
            "was written anew. This device believes it no more."
        )
    return head


def _asked(ask: Callable[[], T], why: str) -> T:
    """Raises: TaskRefused with why for an answer that is a refusal; ServerError for none."""
    try:
        return ask()
    except ServerError as error:
        if not error.final:
            raise
        raise TaskRefused(f"{why} ({error})") from error


def _bytes(path: tuple[str, ...]) -> list[bytes]:
    return [bytes.fromhex(each) for each in path]
