"""The rules of words.py one character at a time: slow and obvious, for tests only."""

import unicodedata

TITLES = {"Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "Lt", "Col", "Gen", "Rev", "vs"}
CLOSERS = "\"'”)]»"
PLACEHOLDER = set("abcdefghijklmnopqrstuvwxyz_")
ADDRESSES = ("http://", "https://", "www.")


def slow_sentences(text: str, *, lowercase: bool) -> list[list[str]]:
    """Sentences as lists of words, those without a word left out."""
    text = unicodedata.normalize("NFC", text).replace("’", "'")
    lines, at, line = [], 0, ""
    while at < len(text):
        end, ends = stop_at(text, at)
        if end == at:
            line += text[at]
            at += 1
            continue
        at = end
        if ends:
            lines.append(line)
            line = ""
        else:
            line += " "
    whole = "\n".join([*lines, line])
    whole = whole.lower() if lowercase else whole
    cut = [words_in(line) for line in whole.split("\n")]
    return [words for words in cut if words]


def stop_at(text: str, at: int) -> tuple[int, bool]:
    """Where the marks and closers beginning at `at` end (`at` if there are none), and if a sentence ends."""
    marks = at
    while marks < len(text) and text[marks] in ".!?…":
        marks += 1
    if marks == at:
        return at, False
    end = marks
    while end < len(text) and text[end] in CLOSERS:
        end += 1
    if end < len(text) and not text[end].isspace():
        return at, False
    what = text[at:marks]
    if "!" in what or "?" in what:
        return end, True
    if what == ".":
        before = at
        while before > 0 and (text[before - 1].isalnum() or text[before - 1] == "_"):
            before -= 1
        word = text[before:at]
        return end, not (word in TITLES or (len(word) == 1 and word.isalpha()))
    rest = text[end:].lstrip()
    return end, not (rest and rest[0].islower())


def words_in(line: str) -> list[str]:
    """Words of one line."""
    words, at = [], 0
    while at < len(line):
        end = word_end(line, at)
        if end > at:
            words.append(line[at:end])
        at = max(end, at + 1)
    return words


def word_end(line: str, at: int) -> int:
    """Where the word that begins at `at` ends; `at` if none does."""
    if line[at] == "<":
        close = line.find(">", at)
        if close > at + 1 and set(line[at + 1 : close]) <= PLACEHOLDER:
            return close + 1
    for scheme in ADDRESSES:
        if line.startswith(scheme, at):
            end = at + len(scheme)
            while end < len(line) and not line[end].isspace() and line[end] not in "<>":
                end += 1
            if end > at + len(scheme):
                return end
    end = at
    while end < len(line):
        joins = line[end] == "'" or (
            line[end] in ".,:" and is_digit(line[end - 1 : end]) and is_digit(line[end + 1 : end + 2])
        )
        if is_letter(line[end]) or (end > at and joins and is_letter(line[end + 1 : end + 2])):
            end += 1
        else:
            break
    return end


def is_letter(character: str) -> bool:
    """Letters, marks and numbers."""
    return character != "" and unicodedata.category(character)[0] in "LMN"


def is_digit(character: str) -> bool:
    """Numbers of any script."""
    return character != "" and unicodedata.category(character)[0] == "N"
