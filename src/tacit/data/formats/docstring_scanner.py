"""Docstrings found without parsing: a file's strings are cut out, and where each stands says whether it is one.

Ten times as fast as a syntax tree, its slow reference (tests/data/formats/test_docstring_scanner.py). Nothing is
imported.
"""

import ast
import inspect
import re
from collections.abc import Iterator

# A comment, a whole string, or the quotes of one that never ends.
_TOKEN = re.compile(
    r"\#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r"""|\"\"\"|'''"""
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_OWNER = re.compile(r"[ \t]*(?:async[ \t]+def|def|class)\b")
_PREFIX = re.compile(r"[rRuU]?$")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[#;\n]|$)")


def docstrings_of(source: str) -> Iterator[str]:
    """The docstrings of a module, its classes and its functions, as `ast.get_docstring` cleans them, in their order.

    Strings in the same places under an `if` count too. Raises: SyntaxError where a string has no end, ValueError where
    there is a null character; what else is not Python goes unnoticed.
    """
    if "\0" in source:
        raise ValueError("source code cannot contain null bytes")
    code_ends = 0  # where the last string before this one ended
    comments: list[tuple[int, int]] = []  # since then
    for token in _TOKEN.finditer(source):
        begin, end = token.span()
        if source[begin] == "#":
            comments.append((begin, end))
            continue
        if end - begin == 3 and source[begin] == source[begin + 1]:
            raise SyntaxError("a string has no end")
        if _is_docstring(source, begin, end, code_ends, comments):
            literal = _PREFIX.search(source, max(begin - 1, 0), begin)
            text = _value((literal.group() if literal else "") + source[begin:end])
            if cleaned := inspect.cleandoc(text):
                yield cleaned
        code_ends, comments = end, []


def _is_docstring(source: str, begin: int, end: int, code_ends: int, comments: list[tuple[int, int]]) -> bool:
    """Whether the string is a statement, the first of a module or of a block that belongs to a class or function."""
    line = source.rfind("\n", 0, begin) + 1
    before = _PREFIX.sub("", source[line:begin])
    if not _REST_OF_LINE.match(source, end):
        return False
    if before.strip():  # after its owner, on one line
        owned = _OWNER.match(before) is not None and before.rstrip().endswith(":")
        return owned and before.count("(") == before.count(")") and before.count("[") == before.count("]")
    for at, until in reversed(comments):
        if at >= line:
            return False
        line = at if not source[until:line].strip() else line
    code = source[code_ends:line].rstrip("\ufeff \t\r\n\f")
    if not code:
        return code_ends == 0 and not before
    return code.endswith(":") and _owner_above(source, code_ends + len(code), len(before.expandtabs()))


def _owner_above(source: str, colon: int, indent: int) -> bool:
    """Whether the block that this colon opens is a class's or a function's: the first line above with less indent."""
    at = colon
    while at > 0:
        line = source.rfind("\n", 0, at) + 1
        text = source[line:at].rstrip()
        content = text.lstrip()
        if content and content[0] not in ")]}#" and len(text.expandtabs()) - len(content) < indent:
            return _OWNER.match(text) is not None
        at = line - 1
    return False


def _value(literal: str) -> str:
    """What a literal says; what Python would refuse in it stays as it is written."""
    if "\\" in literal:
        try:
            return str(ast.literal_eval(literal))
        except (SyntaxError, ValueError):
            pass
    body = literal.lstrip("rRuU")
    return body[3:-3] if body[:3] in ('"""', "'" * 3) and len(body) >= 6 else body[1:-1]
