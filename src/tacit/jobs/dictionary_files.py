"""A dictionary as the files that keyboards read, and what people give to one: shortcuts, and words that may offend."""

from collections.abc import Iterator
from pathlib import Path

from tacit.data import Source
from tacit.errors import InputError
from tacit.files import PathLike, as_path, check_file, check_folder, read_bounded, write_whole
from tacit.folders import folder_beside, replace_folder
from tacit.keyboard.dictionaries.bigram_steps import sayable
from tacit.keyboard.dictionaries.combined_list import combined
from tacit.keyboard.dictionaries.entries import LONGEST, WHITELIST, Dictionary, Shortcut, has_room
from tacit.keyboard.dictionaries.format_202 import static_dictionary
from tacit.keyboard.dictionaries.format_403 import BODY, HEADER, dynamic_dictionary
from tacit.keyboard.dictionaries.from_model import Given
from tacit.keyboard.dictionaries.more_words import MOST, MoreWords
from tacit.progress import Advanced, Progress, StageBegan, StageEnded
from tacit.text.vocabulary import Vocabulary

COMBINED = ".combined"  # the end of the name of a list for makedict
READING = "counting more words"  # a step a passage


def read_given(offensive: PathLike | None, shortcuts: PathLike | None) -> Given:
    """What two files say.

    offensive: a word in each line. shortcuts: in each line a word, a tab and what stands in its place, perhaps another
    tab and how strongly, 0 to WHITELIST, which always replaces it and is meant where nothing is said. Raises:
    InputError where a file cannot be read or a line says something else.
    """
    words = [line for _, line in _lines("--offensive", offensive)]
    found: dict[str, tuple[Shortcut, ...]] = {}
    for number, line in _lines("--shortcuts", shortcuts):
        word, _, rest = line.partition("\t")
        target, _, strength = rest.partition("\t")
        known = strength.isascii() and (strength or str(WHITELIST)).isdecimal()
        if not (has_room(word) and has_room(target) and known and int(strength or WHITELIST) <= WHITELIST):
            raise InputError(
                f"line {number} of '{shortcuts}' is {line!r}, and a shortcut is a word, a tab and what stands in its "
                f"place, each of 1 to {LONGEST} characters, perhaps another tab and 0 to {WHITELIST}."
            )
        found[word] = (*found.get(word, ()), Shortcut(target, int(strength or WHITELIST)))
    return Given(offensive=frozenset(words), shortcuts=found)


def read_more_words(text: Source, vocabulary: Vocabulary, most: int | None, progress: Progress) -> MoreWords:
    """The most frequent words of a public text that the vocabulary lacks; most: left out, MOST."""

    def texts() -> Iterator[str]:
        progress(StageBegan(READING, text.expected_clients))
        for number, passage in enumerate(text.clients(), 1):
            yield from passage.texts
            progress(Advanced(READING, number))
        progress(StageEnded(READING))

    return MoreWords.counted(texts(), vocabulary, source=text.description, most=MOST if most is None else most)


def check_dictionary_place(path: Path, *, trigrams: bool) -> None:
    """Raises: InputError where no dictionary can be put there, or something else would be replaced."""
    if not trigrams:
        check_file("--dictionary", path)
        return
    check_folder("--dictionary", path)
    own = {f"{path.name}{ending}" for ending in (HEADER, BODY)}
    strange = sorted(each.name for each in path.iterdir() if each.name not in own) if path.is_dir() else []
    if strange:
        raise InputError(f"'{path}' has {strange[0]!r} in it and is not replaced; give another --dictionary.")


def write_dictionary(dictionary: Dictionary, path: Path, *, trigrams: bool) -> int:
    """Write one file of format 202, or a list where it is called so, or with trigrams a folder of format 403, whole or
    not at all; its bytes.

    Raises: InputError as `check_dictionary_place`, or where it is larger than the format allows.
    """
    check_dictionary_place(path, trigrams=trigrams)
    if not trigrams:
        listed = path.suffix == COMBINED
        content = combined(dictionary).encode() if listed else static_dictionary(sayable(dictionary))
        write_whole(path, content)
        return len(content)
    files = dynamic_dictionary(dictionary).named(path.name)
    with folder_beside(path) as draft:
        for name, each in files.items():
            write_whole(draft / name, each)
        replace_folder(path, draft)
    return sum(map(len, files.values()))


def _lines(option: str, path: PathLike | None) -> list[tuple[int, str]]:
    """Lines with something in them, and their numbers."""
    if path is None:
        return []
    try:
        text = read_bounded(as_path(option, path)).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{option} '{path}' cannot be read as text ({error}); give a file of lines.") from error
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
