"""Entries of a transparency log, and a key that signs one head of each size."""

from tacit.protocol.fields import SignedDocument
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import Signed, TreeHead
from tacit.protocol.operator_key import OperatorKey


def entry(number: int) -> str:
    return plan_entry(f"{number:064x}")


class SignsOnce(OperatorKey):
    """A key that remembers every head that it signed, and so finds two of one size."""

    def __init__(self) -> None:
        super().__init__(bytes(32))
        self.heads: dict[int, str] = {}

    def signed(self, document: SignedDocument) -> Signed:
        if isinstance(document, TreeHead):
            size, root = document.size, document.root
            assert self.heads.setdefault(size, root) == root, f"two heads of size {size}"
        return super().signed(document)
