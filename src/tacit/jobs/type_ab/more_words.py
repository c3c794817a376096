"""Words of a discovery run that a keyboard knows beside its model's, by the shares that reports gave them."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import InputError
from tacit.files import as_path
from tacit.jobs.discover.job import vocabulary_digest
from tacit.jobs.vocabulary import found_by, how_discovered
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.user_words import UserWords
from tacit.runs import Run


@dataclass(frozen=True, kw_only=True)
class MoreWords:
    """What a discovery run found, for a keyboard whose model began from the same vocabulary."""

    name: str  # the path of the run, as it was given
    sha256: str  # of the words and their shares
    origin: str  # how they were found, and where nothing is promised, that
    words: UserWords

    @property
    def path(self) -> str:
        """Of the run, from any folder."""
        return str(Path(self.name).resolve())


def read_more_words(path: str, model: PhoneModel) -> MoreWords:
    """The words of the finished discovery run at `path` that text can be cut into and that reports counted above 0.

    The share of a word is its estimated count of all counting reports; where noise makes them more than the whole, they
    are divided by their sum. Raises: InputError where it is no discovery run, started from another vocabulary than the
    model's, counted nothing or leaves no word; RunError where it is not finished.
    """
    folder = as_path("more_words", path)
    if not (folder / "run.db").is_file():
        raise InputError(
            f"'{path}' is no run of `tacit discover`; give the folder of one, whose reports say how often each word is "
            "typed, as a vocabulary or a list of words does not."
        )
    with Run.open(folder) as run:
        started_from, found, origin = vocabulary_digest(run), found_by(run), how_discovered(run)
    if started_from != model.vocabulary.sha256:
        raise InputError(
            f"the run '{path}' sought words that another vocabulary than that of {model.name} lacks, so its shares are "
            "not of the words that this model lacks; give a discovery run with the model's own vocabulary."
        )
    if found and "count" not in found[0]:
        raise InputError(
            f"nobody counted how often the words of '{path}' are typed, and a keyboard needs their shares; discover "
            "them with --counting-users."
        )
    shares = {
        str(row["word"]): row["count"] / row["of_reports"]
        for row in found
        if row["count"] > 0 and model.vocabulary.cuts(row["word"])
    }
    whole = max(1.0, sum(shares.values()))
    words = UserWords.by_share({word: share / whole for word, share in shares.items()}, model.vocabulary)
    if not words.words:
        raise InputError(
            f"the run '{path}' found no word that {model.name} lacks; ask more users, or a larger epsilon."
        )
    digest = hashlib.sha256(json.dumps([words.words, words.log_shares.tolist()]).encode()).hexdigest()
    return MoreWords(name=path, sha256=digest, origin=origin, words=words)
