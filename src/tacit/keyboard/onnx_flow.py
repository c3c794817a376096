"""What of a graph may run longer than it is: the operations that hold other graphs, found without loading it.

Ours have `Scan`, which runs once for each item that is there. `Loop` runs as often as a number says, 2^62 times
perhaps, and graphs within graphs multiply. The file is walked as a protocol buffer, its weights stepped over: a phone's
first words come with little memory. Source of the numbers: onnx/onnx.proto.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE = 1
NODE_KIND, NODE_ATTRIBUTE = 4, 5
ATTRIBUTE_GRAPHS = (6, 11)
MAY_HOLD_A_GRAPH = "Scan"
FIXED = {1: 8, 5: 4}  # wire types of fixed width, in bytes
MOST_SHIFT = 63  # of a number, which has ten bytes

Span = tuple[int, int]  # where a message begins and ends


def flow_refused(path: Path) -> str | None:
    """Which operation of a graph's file may run for ever, as part of a sentence; None where none may.

    Raises: ValueError where the file is no protocol buffer.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        whole = (0, len(content))
        if next(_messages(content, whole, MODEL_FUNCTIONS), None) is not None:
            return "has functions of its own"
        return next(filter(None, (_of_graph(content, each) for each in _messages(content, whole, MODEL_GRAPH))), None)


def _of_graph(content: mmap.mmap, graph: Span, inside: bool = False) -> str | None:
    for node in _messages(content, graph, GRAPH_NODE):
        held = [
            held
            for attribute in _messages(content, node, NODE_ATTRIBUTE)
            for number in ATTRIBUTE_GRAPHS
            for held in _messages(content, attribute, number)
        ]
        if not held:
            continue
        kinds = [bytes(content[begin:end]) for begin, end in _messages(content, node, NODE_KIND)]
        kind = kinds[-1].decode("ascii", "replace")[:40] if kinds else ""
        if kind != MAY_HOLD_A_GRAPH:
            return f"has the operation {kind!r}, which runs other graphs as often as numbers in the file say"
        if inside:
            return f"has the operation {kind!r} within another"
        if refused := next(filter(None, (_of_graph(content, each, inside=True) for each in held)), None):
            return refused
    return None


def _messages(content: mmap.mmap, span: Span, number: int) -> Iterator[Span]:
    """The messages of one field; any other field is stepped over."""
    at, end = span
    while at < end:
        tag, at = _varint(content, at, end)
        wire = tag & 7
        if wire == 0:
            _, at = _varint(content, at, end)
        elif wire in FIXED:
            at += FIXED[wire]
        elif wire == 2:
            length, at = _varint(content, at, end)
            if at + length > end:
                raise ValueError("it is cut off")
            if tag >> 3 == number:
                yield at, at + length
            at += length
        else:
            raise ValueError(f"wire type {wire}")
    if at > end:
        raise ValueError("it is cut off")


def _varint(content: mmap.mmap, at: int, end: int) -> Span:
    """(the number, where it ends)."""
    value = shift = 0
    while at < end and shift <= MOST_SHIFT:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a number is cut off")
