"""`tacit.import_data`: clients' text, tokenised once into a cache with a vocabulary whose origin is said."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Unpack

from tacit.data import (
    Cache,
    CacheManifest,
    Source,
    VocabularyChoice,
    VocabularyRecord,
    build_cache,
)
from tacit.data.clients import SaysHow, checked_clients, split_of
from tacit.data.formats.manuals import manuals
from tacit.data.formats.parquet import owner_column, read_texts
from tacit.data.formats.tables import Columns
from tacit.data.manifest import SPLITS
from tacit.data.sources import SOURCES, HowToRead
from tacit.data.vocabulary_choice import MANUALS
from tacit.errors import CacheError, InputError, SourceError, of_type
from tacit.files import PathLike, as_path, read_bounded
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.opened_source import columns_called, source_of
from tacit.jobs.run_start import checked_cache
from tacit.progress import Progress, StageBegan, StageEnded, Warned, silent
from tacit.reports import summary_lines
from tacit.reports.blocks import Block
from tacit.text.counted_words import balanced, count_words, most_frequent
from tacit.text.scripts import UncutScripts
from tacit.text.tokens import Encoded, Tokenizer
from tacit.text.vocabulary import OOV, SPECIALS, Provenance, Vocabulary
from tacit.text.words import Writing, canonical, lowered

FINDING = "looking for clients"  # the stage; what is installed on a machine is large
COUNTING = "making the vocabulary"  # the stage; public text is read for it
DEFAULT_SIZE = 10_000  # the papers' smallest keyboard
FEW = 3  # clients: below it one of the three splits is empty
SPLITTING = 50  # clients: from there on a split that holds 10% of all is not empty by chance (0.9^50 is 0.5%)
MANY_UNKNOWN = 1 / 3  # of the words: of blogs, 10,000 words of a forum leave 11%, the manuals' 2,000 leave 41%


def import_data(
    source: str | Source | Any,
    out: PathLike,
    *,
    vocabulary: VocabularyChoice | None = None,
    vocabulary_size: int | None = None,
    lowercase: bool = False,
    language: str = "",
    emoji: bool = False,
    client_id: str | None = None,
    text: str | None = None,
    timestamp: str | None = None,
    progress: Progress = silent,
    **how: Unpack[HowToRead],
) -> Cache:
    """Tokenise the clients of a source with the chosen vocabulary, into a cache at `out`.

    source: a Source (`tacit.data.TextsOf`, `TableOf`, or your own), the line of text that names one, as
    `tacit.data.open_source` reads it, or what `TableOf` takes, with columns client_id, text and perhaps timestamp: a
    table of pandas, Arrow or polars, a data set of Hugging Face, a list of rows. An old cache at `out` is replaced once
    the new one is whole, with a warning where it held something else.
    out: the folder of the cache.
    vocabulary: None means the words of the manuals on this machine, which are public and in English.
    vocabulary_size: ids, the four special ones included; None means 10,000, or what there is. Warns where every third
    word is unknown, and of fewer than three clients.
    lowercase: write every word in lower case.
    language, emoji: how words are written, as `tacit.text.words.Writing` has them; of a saved vocabulary its own.
    client_id, text, timestamp: what these columns are called in a file or a table; None: just so.
    how: what else a named source takes (encoding, delimiter, lines ...), as `tacit.data.sources.HowToRead` lists it.
    `tacit.preview_data` shows what would be read.

    Raises: SourceError, InputError (the vocabulary), CacheError (`out` is something else than a cache).
    """
    of_type("vocabulary", vocabulary, VocabularyChoice, NoneType)
    called = columns_called(client_id, text, timestamp)
    progress(StageBegan(FINDING, opening=source if isinstance(source, str) and source in SOURCES else ""))
    clients = source_of(source, called, **how)
    progress(StageEnded(FINDING))
    choice = VocabularyChoice(public=(MANUALS,)) if vocabulary is None else vocabulary
    progress(StageBegan(COUNTING, opening=_counted_on(choice)))
    writing = Writing(lowercase=lowercase, language=language, emoji=emoji)
    words = make_vocabulary(choice, clients, size=vocabulary_size, writing=writing, called=called)
    progress(StageEnded(COUNTING))
    tokenizer = Tokenizer(words)
    record = VocabularyRecord(
        size=words.size,
        sha256=words.sha256,
        **vars(words.writing),
        kind=words.provenance.kind,
        description=words.provenance.description,
        oov_id=OOV,
    )
    place = as_path("out", out)
    before = _there(place)
    scripts = UncutScripts(clients.description)

    def encode(texts: Sequence[str]) -> Encoded:
        scripts.check(texts)
        return tokenizer.encode(texts)

    cache = build_cache(
        clients,
        encode,
        place,
        vocabulary=record,
        vocabulary_json=words.to_json(),
        tokenizer=tokenizer.version,
        progress=progress,
    )
    for warning in _warnings(place, before, cache.manifest):
        progress(warning)
    for doubt in clients.doubts if isinstance(clients, SaysHow) else ():
        progress(Warned("doubtful reading", doubt))
    return cache


def _warnings(place: Path, before: CacheManifest | None, made: CacheManifest) -> Iterator[Warned]:
    """What the new cache replaced, whether it has clients to learn from, and whether its words are theirs."""
    if before is not None and before.files != made.files:
        yield Warned(
            "cache replaced",
            f"'{place}' held another cache ({before.clients:,} clients of {before.source}), which this one "
            "replaces; runs that were begun on it go on only after the same import again.",
        )
    empty = ", ".join(split for split in SPLITS if not made.splits.get(split))
    if made.clients < FEW:
        those = "client is" if made.clients == 1 else "clients are"
        yield Warned(
            "few clients",
            f"{made.clients} {those} too few to train a private model on, and none is in these splits: "
            f"{empty}; if more people than that typed, client_id must tell who.",
        )
    elif empty and made.clients >= SPLITTING:
        yield Warned(
            "empty split",
            f"none of the {made.clients:,} clients is in these splits: {empty}; a run trains on train, looks on its "
            "way at validation and at its end at test. The source fixes whose split is which, as a Parquet file called "
            "NAME.test.parquet does: give the prefix of all its files (NAME), or call it otherwise.",
        )
    if made.oov_rate > MANY_UNKNOWN:
        yield Warned(
            "many unknown words",
            f"{made.oov_rate:.0%} of the clients' words are not in the vocabulary, so no model will ever suggest them; "
            "give public text that is like the clients' (--vocabulary-from FILE.parquet, in their language), or more "
            "words (--vocabulary-size).",
        )


def _there(place: Path) -> CacheManifest | None:
    """What the cache at the place says of itself; None where there is none, or one that is damaged."""
    try:
        return Cache.open(place).manifest
    except CacheError:
        return None


def _counted_on(choice: VocabularyChoice) -> str:
    """What takes long before there is a vocabulary; empty where it is read from a file."""
    if choice.file or choice.word_list:
        return ""
    return "counting the clients' words" if choice.private else "counting the words of public text"


def described(cache: Cache) -> list[Block]:
    """What people read of a cache in a few lines."""
    return summary_lines.of_data(cache.to_record())


def open_data(path: PathLike, *, verify: bool = False, progress: Progress = silent) -> Cache:
    """The cache that `import_data` made at a path; CacheError when there is none, or it is not whole.

    path: the folder of the cache. verify: read all of it, as every job does before it trains or asks; CacheError when a
    bit differs.
    """
    if verify:
        return checked_cache(as_path("path", path), progress=progress)
    return open_cache(as_path("path", path))


def make_vocabulary(
    choice: VocabularyChoice, source: Source, *, size: int | None, writing: Writing, called: Columns
) -> Vocabulary:
    """The vocabulary that was chosen.

    `size` counts the four special ids; None means DEFAULT_SIZE, or fewer where the text has fewer words. Several public
    texts weigh the same, however long they are, so that two languages share one vocabulary.
    called: the columns of clients' text, so that it is known where it is given as public.
    Raises: InputError when there are too few words; SourceError when text given as public has clients, or words that
    no blank separates.
    """
    if choice.file:
        return _from_file(Path(choice.file), size=size, writing=writing)
    if choice.word_list:
        return _from_list(Path(choice.word_list), size=size, writing=writing)
    if choice.private:
        texts = {source.description: _training_texts(source)}
        provenance = Provenance(kind="private", description=f"training clients of {source.description}")
    else:
        texts = {origin: _public_texts(origin, called.client_id) for origin in choice.public}
        named = [_PRINTED.get(origin, Path(origin).name) for origin in choice.public]
        provenance = Provenance(kind="public", description="most frequent words of " + ", ".join(named))
    counts = balanced([count_words(UncutScripts(name).checked(each), writing) for name, each in texts.items()])
    size = size or min(DEFAULT_SIZE, len(counts) + SPECIALS)
    return most_frequent(counts, size=size, provenance=provenance, writing=writing)


_PRINTED = {MANUALS: "what this Python and its packages ship (manuals, headers, test suites)"}


def _public_texts(origin: str, client_id: str) -> Iterator[str]:
    if origin == MANUALS:
        yield from manuals()
        return
    path = Path(origin).expanduser()
    if not path.is_file():
        raise SourceError(f"there is no public text at {origin}; give a Parquet file or `{MANUALS}`.")
    if (owner := owner_column(path, client_id)) is not None:
        raise SourceError(
            f"{origin} has a column {owner}, so it is clients' text and not public; give other text, "
            "or say --vocabulary-from-private, which the privacy statement will repeat."
        )
    yield from read_texts(path)


def _training_texts(source: Source) -> Iterator[str]:
    for client in checked_clients(source):
        if (client.split or split_of(client.client_id)) == "train":
            yield from client.texts


def _from_list(path: Path, *, size: int | None, writing: Writing) -> Vocabulary:
    try:
        lines = read_bounded(path).decode("utf-8").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"there is no word list at {path}; check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the word list {path} is not UTF-8 ({error.reason}); convert it first.") from error
    written = filter(None, (canonical(line, writing).strip() for line in lines))
    spelled = (lowered(word, writing.language) for word in written) if writing.lowercase else written
    words = list(dict.fromkeys(spelled))
    if size is not None and len(words) + SPECIALS < size:
        raise InputError(
            f"the word list {path} has {len(words)} words, a vocabulary of {size} needs {size - SPECIALS}; "
            f"ask for at most {len(words) + SPECIALS}."
        )
    kept = words if size is None else words[: size - SPECIALS]
    provenance = Provenance(kind="word list", description=f"word list {path.name}")
    return Vocabulary(words=tuple(kept), provenance=provenance, **vars(writing))


def _from_file(path: Path, *, size: int | None, writing: Writing) -> Vocabulary:
    vocabulary = Vocabulary.load(path)
    if size not in (None, vocabulary.size):
        raise InputError(f"{path} has {vocabulary.size} ids, not {size}; leave --vocabulary-size out.")
    if writing.lowercase and not vocabulary.lowercase:
        raise InputError(f"{path} keeps capitals, so --lowercase contradicts it; leave --lowercase out.")
    if writing.language not in ("", vocabulary.language):
        raise InputError(
            f"{path} is written in {vocabulary.language or 'no declared language'}, not in {writing.language}; leave "
            "--language out."
        )
    if writing.emoji and not vocabulary.emoji:
        raise InputError(f"{path} has no emoji as words, so --emoji contradicts it; leave --emoji out.")
    return vocabulary
