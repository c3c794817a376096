"""Words as a Patricia trie, in which a node holds the characters that all words below it share."""

from collections.abc import Sequence
from itertools import groupby, takewhile
from typing import TypeAlias

from tacit.errors import InputError

Codes: TypeAlias = tuple[int, ...]  # code points
MOST_NODES = 0x7FFF  # in one array


class Node:
    """Some characters, perhaps the end of a word, and the nodes of what may follow."""

    __slots__ = ("children", "codes", "word")

    def __init__(self, codes: Codes, word: int | None, children: "list[Node]") -> None:
        self.codes, self.word, self.children = codes, word, children  # word: its place in the list


def trie(words: Sequence[Codes]) -> list[Node]:
    """The nodes that words begin with, in the order of their first characters.

    words: different ones, none empty. Raises: InputError for more than MOST_NODES nodes beside each other.
    """
    places = {codes: place for place, codes in enumerate(words)}
    return _nodes(sorted(places), 0, places)


def _nodes(words: Sequence[Codes], begin: int, places: dict[Codes, int]) -> list[Node]:
    """Of sorted words that are the same before `begin`, and longer."""
    nodes = []
    for _, group in groupby(words, key=lambda codes: codes[begin]):
        same = list(group)
        first, last = same[0], same[-1]  # what these two share, all between them do
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(first[begin:], last[begin:], strict=False))
        end = begin + sum(1 for _ in shared)
        word = places[first] if len(first) == end else None
        nodes.append(Node(first[begin:end], word, _nodes(same[word is not None :], end, places)))
    if len(nodes) > MOST_NODES:
        raise InputError(
            f"{len(nodes):,} different characters follow the same beginning; the format has {MOST_NODES:,}."
        )
    return nodes


def arrays(root: list[Node]) -> list[list[Node]]:
    """All arrays of nodes, each before those below it, and those below a node before those below the next one.

    The reader of format 202 finds a word by its address so: it descends into the last node whose children do not lie
    behind it.
    """
    found = [root]
    for node in root:
        if node.children:
            found += arrays(node.children)
    return found
