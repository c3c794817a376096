"""Entries of a transparency log, and a key that signs one head of each size."""

from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import TreeHead
from tacit.protocol.operator_key import OperatorKey


def entry(number: int) -> str:
    return plan_entry(f"{number:064x}")


class SignsOnce(OperatorKey):
    """A key that remembers every head that it signed, and so finds two of one size."""

    def __init__(self) -> None:
        super().__init__(bytes(32))
        self.signed: dict[int, str] = {}

    def head(self, head: TreeHead):  # type: ignore[no-untyped-def]
        assert self.signed.setdefault(head.size, head.root) == head.root, f"two heads of size {head.size}"
        return super().head(head)
