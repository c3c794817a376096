"""Reads the `.combined` format a line at a time, by the rules of makedict (CombinedInputOutput, FusionDictionary)."""

import re
from typing import NamedTuple


class Read(NamedTuple):
    header: dict[str, str]
    words: dict[str, int]  # f of each
    attributes: dict[str, dict[str, str]]  # those of a word that makedict passes over
    bigrams: dict[str, dict[str, int]]
    shortcuts: dict[str, dict[str, int]]


def read(text: str) -> Read:
    """Raises ValueError where makedict stops, drops a word, or would add one by itself."""
    first, *lines = re.split(r"\r\n|\r|\n", text.removesuffix("\n"))
    if not re.fullmatch(r"dictionary=[^:]+(:[^=]+=[^:]+)*", first):
        raise ValueError(first)
    header = {}
    for item in first.split(","):
        key, value = item.split("=")
        if not value:
            raise ValueError(first)
        header[key] = value
    found = Read(header, {}, {}, {}, {})
    word = ""
    for line in lines:
        fields = dict(field.split("=", 1) for field in line.strip().split(","))
        if "word" in fields:
            word, f = fields.pop("word"), int(fields.pop("f"))
            if not word or len(word) >= 48 or not 0 <= f <= 255 or word in found.words:
                raise ValueError(line)
            found.words[word], found.attributes[word], found.bigrams[word] = f, fields, {}
            found.shortcuts[word] = {}
        elif "bigram" in fields:
            found.bigrams[word][fields["bigram"]] = int(fields["f"])
        elif "shortcut" in fields:
            found.shortcuts[word][fields["shortcut"]] = 15 if fields["f"] == "whitelist" else int(fields["f"])
        else:
            raise ValueError(line)
    if any(other not in found.words for others in found.bigrams.values() for other in others):
        raise ValueError("a bigram's second word is no word")
    return found


def probability(f: int) -> float:
    """255 is 1, and each step down divides by 1.15."""
    chance = 1.0
    for _ in range(255 - f):
        chance /= 1.15
    return chance
