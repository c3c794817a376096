"""Docstrings found by scanning are those of the syntax tree, the slow reference."""

import ast
import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.formats.docstring_scanner import docstrings_of

OWNERS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
STDLIB = Path(sysconfig.get_path("stdlib"))


def parsed(source: str) -> list[str]:
    """The slow reference: every owner of a docstring in the order of lines."""
    owners = [node for node in ast.walk(ast.parse(source)) if isinstance(node, OWNERS)]
    owners.sort(key=lambda node: getattr(node, "lineno", 0))
    return [document for owner in owners if (document := ast.get_docstring(owner))]


def test_modules_of_the_standard_library_have_the_same() -> None:
    modules = random.Random(1).sample(sorted(path for path in STDLIB.glob("*.py") if path.stat().st_size < 40_000), 40)
    for path in modules:
        source = path.read_text(encoding="utf-8")
        assert list(docstrings_of(source)) == parsed(source), path


HEADS = (
    "class A(B):",
    "def f(x: int = 3, *, y: str = 'a: b') -> dict[str, int]:",
    "async def f():  # says :",
    'def f(\n    x,\n    y="def g():",\n) -> None:',
    "if x:",
    "with open('x') as file:",
)
LITERALS = (
    '"""Words.\n\n        Of several\n      lines."""',
    "'''It's \\\"quoted\\\".'''",
    '"One line."',
    "r'\\d raw'",
    'u"old"',
    'b"bytes"',
    'f"{x}"',
    '"".join([])',
    '"""a""" + "b"',
    '"""   """',
    '"a"; x = 1',
    "x = 'assigned'",
    "# 'a comment'",
    "# a comment\n\n    '''after a comment'''",
    '# a comment that is no end: """\n    \'after a comment\'',
)


@given(st.lists(st.tuples(st.sampled_from(HEADS), st.sampled_from(LITERALS)), max_size=5), st.sampled_from(LITERALS))
def test_blocks_of_every_kind(blocks: list[tuple[str, str]], first: str) -> None:
    bodies = [f"{head}\n    {literal}\n    pass\n" for head, literal in blocks]
    source = "#!/usr/bin/python\n" + first.replace("    ", "") + "\n" + "".join(bodies)
    assert list(docstrings_of(source)) == parsed(source)


@given(st.sampled_from(HEADS[:2]), st.sampled_from(LITERALS[:7]), st.integers(1, 3))
def test_blocks_within_blocks_and_on_one_line(head: str, literal: str, depth: int) -> None:
    source = "".join(f"{'    ' * level}{head}\n" for level in range(depth)) + "    " * depth + f"{literal}\n"
    assert list(docstrings_of(source)) == parsed(source)
    short = f"{head} {literal}\nx = {{1: 'a'}}\n"
    assert list(docstrings_of(short)) == parsed(short)


def test_what_has_no_end_is_refused() -> None:
    with pytest.raises(SyntaxError, match="no end"):
        list(docstrings_of('"""unfinished\n'))
    with pytest.raises(ValueError, match="null"):
        list(docstrings_of("'''a\0'''\n"))
