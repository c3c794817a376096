"""One parser for TOML and JSON of others: bounded before memory is spent, and of everything else as Python's own."""

import ast
import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

from tacit import parsing
from tacit.device.policy import Policy
from tacit.errors import InputError, RecipeError
from tacit.files import read_bounded
from tacit.parsing import MOST_DEPTH, MOST_DIGITS, MOST_PARTS, _has_long_number, parsed_json, parsed_toml, strict_json
from tacit.population.settings import SimulationSettings
from tacit.recipe import Recipe
from tacit.server.jobs import job_of
from tacit.text.vocabulary import Vocabulary

SOURCE = REPOSITORY / "src" / "tacit"
DIGITS = "9" * 5_000
TOO_MUCH = {  # what a bound is on: a text in TOML
    "digits": f"a = {DIGITS}",
    "hexadecimal digits": f"a = 0x{'f' * 5_000}",
    "parts of a key": f"{'a.' * 30_000}a = 1",
    "parts of a key in quotes": '"a" . ' * 30_000 + "a = 1",
    "parts of a header": f"[{'a.' * 30_000}a]",
    "depth of lists": f"a = {'[' * 10_000}{']' * 10_000}",
    "depth of tables": f"a = {'{b=' * 10_000}1{'}' * 10_000}",
    "keys": "\n".join(f"a{at} = 1" for at in range(200_000)),
    "bytes": f"a = '{'x' * parsing.MOST_TOML}'",
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_too_much_toml_is_refused_before_it_is_parsed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("this would cost gigabytes"))
    with pytest.raises(ValueError, match=r"; (give|write)|is meant") as refusal:
        parsed_toml(TOO_MUCH[what])
    assert len(str(refusal.value)) < 200


JSON_TOO_MUCH = [f'{{"a": {DIGITS}}}', f'{{"a": -{DIGITS}}}', "[" * 10_000 + "]" * 10_000, "[" * 100 + "]" * 100]


@pytest.mark.parametrize("text", JSON_TOO_MUCH)
@pytest.mark.parametrize("read", [parsed_json, strict_json])
def test_too_much_json_is_refused(read, text: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deep|none of more than"):
        read(text)


def test_json_with_too_many_keys_or_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MOST_KEYS_OF_JSON", 3)
    assert parsed_json('[{"a": 1, "b": ":::"}, {"a": 1}]') == [{"a": 1, "b": ":::"}, {"a": 1}]
    with pytest.raises(ValueError, match="4 keys, more than 3"):
        parsed_json('[{"a": 1, "b": {"d": 1}}, {"a": 1}]')
    monkeypatch.setattr(parsing, "MOST_JSON", 10)
    with pytest.raises(ValueError, match="11 bytes, more than the 10"):
        parsed_json(b"[1, 2, 3, 4]"[:10] + b"]")


def test_as_much_as_is_allowed_is_read() -> None:
    lists = "[" * (MOST_DEPTH - 1) + "]" * (MOST_DEPTH - 1)
    assert parsed_json(f"[{lists}, {lists}]")
    assert parsed_json("9" * MOST_DIGITS) == int("9" * MOST_DIGITS)
    assert parsed_toml(f"{'a.' * (MOST_PARTS - 1)}a = {'9' * MOST_DIGITS}")
    strings = f'a = "{DIGITS} {"[" * 200}{"." * 200}" # {DIGITS}\nb = """\n{DIGITS} "" \\""" {"." * 99}"""\n'
    literal = f"c = '{DIGITS}'\nd = '''{DIGITS}''{'[' * 99}'''\n"
    for text in (strings, literal):
        assert parsed_toml(text) == tomllib.loads(text)


values = st.recursive(
    st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values, max_size=5))
def test_what_is_meant_is_read_as_python_reads_it(record: dict) -> None:
    import tomli_w

    text = json.dumps(record)
    assert parsed_json(text) == parsed_json(text.encode()) == json.loads(text)
    toml = tomli_w.dumps(record)
    assert parsed_toml(toml) == tomllib.loads(toml)


@given(before=st.text("0a-", max_size=700), digits=st.integers(0, 2 * MOST_DIGITS), after=st.text("0a-", max_size=700))
def test_a_run_of_digits_is_found_wherever_it_stands(before: str, digits: int, after: str) -> None:
    text = before + "7" * digits + after
    assert _has_long_number(text) == (re.search(rf"[0-9]{{{MOST_DIGITS + 1}}}", text) is not None)


@pytest.mark.parametrize("what", ["digits", "parts of a key", "depth of lists"])
def test_every_reader_of_toml_says_what_is_too_much(what: str, tmp_path: Path) -> None:
    text = TOO_MUCH[what]
    (tmp_path / "given.toml").write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"given.toml is not TOML: .*(meant|write)"):
        Recipe.load(tmp_path / "given.toml")
    with pytest.raises(InputError, match=r"the policy '.*given.toml' is not TOML: .*(meant|write)"):
        Policy.load(tmp_path / "given.toml")
    with pytest.raises(InputError, match=r"given.toml' is not TOML in UTF-8: .*(meant|write)"):
        SimulationSettings.read(tmp_path / "given.toml")
    with pytest.raises(InputError, match=r"given.toml is not TOML: .*(meant|write)"):
        job_of(text, where="given.toml")
    for kind in ("discover", "evaluate"):
        with pytest.raises(InputError, match=r"given.toml is no(t| )TOML: .*(meant|write)|given.toml is not TOML"):
            job_of(f'kind = "{kind}"\n{text}', where="given.toml")


@pytest.mark.parametrize("text", JSON_TOO_MUCH)
def test_a_vocabulary_says_what_is_too_much(text: str) -> None:
    with pytest.raises(InputError, match="this is not a vocabulary: "):
        Vocabulary.from_json(text)


def test_nothing_else_parses_toml_or_json() -> None:
    """What Python's own parsers take costs gigabytes, or raises what nobody catches."""
    calling = set()
    # A peer's script is run by another interpreter, which has no tacit, and reads what the court has written for it.
    peers = SOURCE / "audit" / "court" / "peers"
    for path in sorted(path for path in SOURCE.rglob("*.py") if path.parent != peers):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("load", "loads") and isinstance(node.value, ast.Name):
                calling |= {path.name} if node.value.id in ("json", "tomllib") else set()
    assert calling == {"parsing.py"}


def test_files_without_an_end_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for endless in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="is a pipe or a device, whose end nobody knows; give a file"):
            read_bounded(endless, 1000)
    (tmp_path / "file").write_bytes(bytes(1001))
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        read_bounded(tmp_path / "file", 1000)
    assert read_bounded(tmp_path / "file", 1001) == bytes(1001)
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 1000)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "none", 1000)


@given(st.integers(1, 700), st.integers(1, 700), st.booleans())
def test_digits_count_in_numbers_and_not_in_strings(digits: int, in_string: int, strict: bool) -> None:
    """A run of digits anywhere has each number looked at; a text without one has none."""
    read, number = strict_json if strict else parsed_json, "7" * digits
    text = f'{{"a": "{"0" * in_string}", "b": [{number}, {number[:300]}.5]}}'
    if digits > MOST_DIGITS:
        with pytest.raises(ValueError, match=f"a number of {digits} digits"):
            read(text)
    else:
        assert read(text)["b"][0] == int(number)
