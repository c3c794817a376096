"""Which words a keyboard shall know: counted on public text, given, or (said aloud) private."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.data import Source, split_of
from tacit.data.docstrings import manuals
from tacit.data.parquet import has_clients, read_texts
from tacit.errors import InputError, SourceError
from tacit.keyboard.vocabulary import SPECIALS, Provenance, Vocabulary, count_words, most_frequent

MANUALS = "manuals"
DEFAULT_SIZE = 10_000  # the papers' smallest keyboard


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """Where a vocabulary comes from: exactly one of the four.

    `public`: Parquet files with a `text` column, or "manuals"; `word_list`: a file of one word a line, most
    frequent first; `file`: a vocabulary that was saved; `private`: the training clients' own text, for which
    nothing is promised.
    """

    public: tuple[str, ...] = ()
    word_list: Path | None = None
    file: Path | None = None
    private: bool = False

    def __post_init__(self) -> None:
        given = [bool(self.public), self.word_list is not None, self.file is not None, self.private]
        if sum(given) != 1:
            raise InputError(
                f"{sum(given)} origins were given for the vocabulary, and it needs exactly one: "
                "--vocabulary-from (a public Parquet file or `manuals`), --word-list, --vocabulary "
                "or --vocabulary-from-private."
            )


def make_vocabulary(choice: VocabularyChoice, source: Source, *, size: int | None, lowercase: bool) -> Vocabulary:
    """The vocabulary that was chosen.

    `size` counts the four special ids; None means DEFAULT_SIZE, or fewer where the text has fewer words.
    Raises: InputError when there are too few words, or when text given as public has clients.
    """
    if choice.file:
        return _from_file(choice.file, size=size, lowercase=lowercase)
    if choice.word_list:
        return _from_list(choice.word_list, size=size, lowercase=lowercase)
    if choice.private:
        texts = _training_texts(source)
        provenance = Provenance(kind="private", description=f"training clients of {source.description}")
    else:
        texts = (text for origin in choice.public for text in _public_texts(origin))
        named = [_PRINTED.get(origin, Path(origin).name) for origin in choice.public]
        provenance = Provenance(kind="public", description="most frequent words of " + ", ".join(named))
    counts = count_words(texts, lowercase=lowercase)
    size = size or min(DEFAULT_SIZE, len(counts) + SPECIALS)
    return most_frequent(counts, size=size, provenance=provenance, lowercase=lowercase)


_PRINTED = {MANUALS: "the manuals of this Python (help topics, package descriptions)"}


def _public_texts(origin: str) -> Iterator[str]:
    if origin == MANUALS:
        yield from manuals()
        return
    path = Path(origin).expanduser()
    if not path.is_file():
        raise SourceError(f"there is no public text at {origin}; give a Parquet file or `{MANUALS}`.")
    if has_clients(path):
        raise SourceError(
            f"{origin} has a column client_id, so it is clients' text and not public; give other text, "
            "or say --vocabulary-from-private, which the privacy statement will repeat."
        )
    yield from read_texts(path)


def _training_texts(source: Source) -> Iterator[str]:
    for client in source.clients():
        if (client.split or split_of(client.client_id)) == "train":
            yield from client.texts


def _from_list(path: Path, *, size: int | None, lowercase: bool) -> Vocabulary:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"there is no word list at {path}; check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the word list {path} is not UTF-8 ({error.reason}); convert it first.") from error
    words = list(dict.fromkeys(filter(None, (line.strip() for line in lines))))
    if lowercase:
        words = list(dict.fromkeys(word.lower() for word in words))
    if size is not None and len(words) + SPECIALS < size:
        raise InputError(
            f"the word list {path} has {len(words)} words, a vocabulary of {size} needs {size - SPECIALS}; "
            f"ask for at most {len(words) + SPECIALS}."
        )
    kept = words if size is None else words[: size - SPECIALS]
    provenance = Provenance(kind="word list", description=f"word list {path.name}")
    return Vocabulary(words=tuple(kept), provenance=provenance, lowercase=lowercase)


def _from_file(path: Path, *, size: int | None, lowercase: bool) -> Vocabulary:
    vocabulary = Vocabulary.load(path)
    if size not in (None, vocabulary.size):
        raise InputError(f"{path} has {vocabulary.size} ids, not {size}; leave --vocabulary-size out.")
    if lowercase and not vocabulary.lowercase:
        raise InputError(f"{path} keeps capitals, so --lowercase contradicts it; leave --lowercase out.")
    return vocabulary
