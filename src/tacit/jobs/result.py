"""What all results of jobs have in common: people read the same of them in a terminal, a notebook and a program."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an account needs no pages
    from tacit.reports.blocks import Block


class JobResult(ABC):
    """A result that `print` and a notebook show as the command does; `repr` is what it is made of."""

    @abstractmethod
    def to_record(self) -> Mapping[str, Any]:
        """What `--json` prints, as plain values: first its `schema` and `version`."""

    @abstractmethod
    def blocks(self) -> "Sequence[Block]":
        """What people read of it."""

    def __str__(self) -> str:
        """Its blocks as plain text, in lines of a terminal."""
        from tacit.reports.text import to_text  # only where it is read: an account needs no pages

        return to_text(self.blocks())

    def _repr_html_(self) -> str:
        """The same as a notebook shows it."""
        from tacit.reports.page import to_html_fragment

        return to_html_fragment(self.blocks())
