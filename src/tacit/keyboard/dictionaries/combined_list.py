"""A dictionary as text: the `.combined` list of the Android Open Source Project, which its makedict makes binary.

The format is that of `dictionaries/sample.combined` in its LatinIME, as makedict reads it (`CombinedInputOutput.java`
and `FusionDictionary.java`): a header line, then ` word=the,f=222` for each word, and below it `  shortcut=` and
`  bigram=same,f=240`. Fields end at commas, and nothing escapes one; attributes that a reader does not know are passed
over. It has no line for what begins a sentence or follows two words: those are left out.
"""

import re

from tacit.errors import InputError
from tacit.keyboard.dictionaries.bigram_steps import sayable
from tacit.keyboard.dictionaries.entries import LEAST, WHITELIST, Dictionary, Entry, whole
from tacit.keyboard.dictionaries.from_model import only

DICTIONARY = "words.combined"
LONGEST = 47  # characters: makedict drops a word of 48, and then stops at its bigrams
_HEADER = re.compile(r"dictionary=[^:]+(:[^=]+=[^:]+)*")  # what makedict knows the format by


def combined(dictionary: Dictionary) -> str:
    """The text of the list, its words by falling f; those that it cannot hold are left out, which the header says.

    Raises: InputError where no word is left, or makedict would not know the header.
    """
    dictionary = sayable(only(dictionary, can_be_written))
    header = ",".join(f"{key}={value}" for key, value in dictionary.attributes.items())
    if not _HEADER.fullmatch(header) or "\n" in header:
        raise InputError(f"the header {header!r} is none that makedict knows; leave out colons and line ends.")
    lines = [header]
    for entry in sorted(dictionary.entries, key=lambda entry: (-_f(entry.f), entry.word)):
        lines.append(f" word={entry.word},f={_f(entry.f)}" + _flags(entry))
        for target, strength in entry.shortcuts:
            if can_be_written(target):
                lines.append(f"  shortcut={target},f={'whitelist' if strength == WHITELIST else strength}")
        lines += [f"  bigram={word},f={_f(f)}" for word, f in dictionary.followers.get((entry.word,), ())]
    return "\n".join(lines) + "\n"


def can_be_written(word: str) -> bool:
    """Whether makedict reads the word back: no comma or line end in it, no blank around it, LONGEST characters."""
    return 0 < len(word) <= LONGEST and word == word.strip() and not re.search(r"[,\r\n]", word)


def _f(f: float) -> int:
    return max(LEAST, whole(f))


def _flags(entry: Entry) -> str:
    named = {
        "not_a_word": entry.not_a_word,
        "possibly_offensive": entry.offensive,
        "discovered": entry.discovered,
    }
    return "".join(f",{name}=true" for name, there in named.items() if there)
