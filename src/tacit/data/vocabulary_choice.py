"""Where the words of a new vocabulary come from; the words themselves are counted by `tacit.import_data`."""

import os
from dataclasses import dataclass

from tacit.errors import InputError

MANUALS = "manuals"  # the public text that every machine with Python has
NOVELS = "novels"  # the public text that tacit ships


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """Where a vocabulary comes from: exactly one of the four.

    `public`: Parquet files with a `text` column, "manuals" or "novels", all of the same weight; `word_list`: a file of
    one word a line, most frequent first; `file`: a vocabulary that was saved; `private`: the training clients' own
    text, for which nothing is promised.
    """

    public: tuple[str, ...] = ()
    word_list: str | os.PathLike[str] | None = None
    file: str | os.PathLike[str] | None = None
    private: bool = False

    def __post_init__(self) -> None:
        given = [bool(self.public), self.word_list is not None, self.file is not None, self.private]
        if sum(given) != 1:
            raise InputError(
                f"a vocabulary comes from exactly one place, and {sum(given) or 'none'} of these was given: "
                "--vocabulary-from (a public Parquet file, `manuals` or `novels`), --word-list, --vocabulary "
                "or --vocabulary-from-private."
            )
