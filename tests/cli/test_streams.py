"""Standard streams that cannot fail: signs that an encoding lacks, streams that are closed, readers that left."""

import ast
import io
import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

from tacit.cli import console as talk
from tacit.cli.blocks import print_table
from tacit.cli.console import Terminal, print_json, print_toml
from tacit.cli.streams import LIKE, LIKENESS, in_encoding
from tacit.records import visible

ENCODINGS = ("ascii", "latin-1", "cp1252", "cp437", "koi8-r", "shift_jis", "gb18030", "utf-8", "utf-16")
PRINTING = ("cli", "jobs", "reports", "statements")


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(st.text(max_size=20))
def test_whatever_is_printed_can_be_written(encoding: str, text: str) -> None:
    """And stays what it was wherever the encoding has it all."""
    written = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=LIKE)
    Terminal(file=written).print(text, soft_wrap=True)
    written.write(text)
    written.flush()
    said = in_encoding(visible(text), encoding)
    assert in_encoding(said, encoding) == said
    said.encode(encoding)
    assert said == visible(text) or not encoding.startswith("utf")


def test_signs_are_written_by_their_likeness_and_letters_as_json_writes_them() -> None:
    assert in_encoding("≤ 3 … → “la niña” ☕😀", "latin-1") == '<= 3 ... -> "la niña" \\u2615\\ud83d\\ude00'
    assert in_encoding("niño ±2", "ascii") == "ni\\u00f1o +/-2"


def printed_signs() -> set[str]:
    """What is no ASCII in the text that the printing rooms write, docstrings aside."""
    found: set[str] = set()
    for room in PRINTING:
        for path in (REPOSITORY / "src" / "tacit" / room).rglob("*.py"):
            if path.name == "streams.py":
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {
                id(node.body[0].value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    found |= {sign for sign in node.value if not sign.isascii()}
    return found


def test_every_sign_that_is_printed_has_a_likeness() -> None:
    signs = {sign for sign in printed_signs() if not sign.isalpha()}
    assert {"≤", "→", "█", "±"} <= signs <= LIKENESS.keys()
    assert all(alike.isascii() for alike in LIKENESS.values())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_json_and_toml_say_the_same_in_any_encoding(encoding: str, values: dict[str, str]) -> None:
    """The latter is read as UTF-8, whatever the stream's encoding was."""
    for show, read in ((print_json, json.loads), (lambda each: print_toml(tomli_w.dumps(each)), tomllib.loads)):
        content = io.BytesIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding=encoding, newline="", errors=LIKE))
            show(values)
            sys.stdout.flush()
            assert read(content.getvalue().decode("utf-8")) == values


def test_columns_stand_below_each_other_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(
        "tacit.cli.blocks.console", Terminal(file=io.TextIOWrapper(content, encoding="ascii"), width=80)
    )
    print_table(("noise", "of"), [("≤3", "1"), ("…4", "22"), ("5", "333")])
    talk.console.file.flush()
    lines = content.getvalue().decode().splitlines()
    assert [len(line.rstrip()) for line in lines[1:]] == [len(lines[1].rstrip())] * 3, lines


# -- of a process ------------------------------------------------------------------------------------------------------

BEGIN = "from tacit.cli.streams import open_streams; open_streams(); import os, sys\n"


def ran(code: str, redirection: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["bash", "-c", f'exec "$@" {redirection}', "bash", sys.executable, "-c", BEGIN + code]
    return subprocess.run(command, cwd=cwd, capture_output=True, timeout=60, check=False)


def test_a_reader_that_left_changes_nothing(tmp_path: Path) -> None:
    code = "for line in range(20_000): print(line)\nopen('done', 'w').write('all')\nos.write(1, b'library')"
    for redirection in ("> >(head -1 >/dev/null)", "2>&1 | head -1; exit ${PIPESTATUS[0]}"):
        done = ran(code, redirection, tmp_path)
        assert (done.returncode, done.stderr) == (0, b"") and (tmp_path / "done").read_text() == "all"
        (tmp_path / "done").unlink()


def test_a_full_disk_is_refused_on_standard_output_alone() -> None:
    code = "from tacit.cli.console import print_json, refusing_in_one_line\nimport typer\n"
    code += "try: refusing_in_one_line(lambda: print_json({}))()\nexcept typer.Exit as end: sys.exit(end.exit_code)"
    done = ran(code, ">/dev/full")
    assert done.returncode == 2 and b"No space left on device" in done.stderr and b"Traceback" not in done.stderr
    assert ran("print('lost', file=sys.stderr); print('said')", "2>/dev/full").stdout == b"said\n"


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_stream_that_is_closed(redirection: str, tmp_path: Path) -> None:
    """Else what a library complains of is written into it; processes that are started have theirs too."""
    code = "file = open('kept', 'w'); print('a'); print('b', file=sys.stderr); os.write(2, b'c'); sys.stdin.read(0)\n"
    code += "assert file.fileno() > 2; file.close()\n"
    code += "import subprocess\n"
    code += "subprocess.run([sys.executable, '-c', 'import os; [os.fstat(n) for n in range(3)]'], check=True)"
    assert ran(code, redirection, tmp_path).returncode == 0
    assert (tmp_path / "kept").read_text() == ""


def test_a_pipe_that_does_not_wait_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    code = BEGIN + "print('a' * 1_000_000)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        with open(read, "rb") as said:
            assert said.read() == b"a" * 1_000_000 + b"\n"
        assert process.wait(60) == 0


def test_a_terminal_that_was_closed_is_a_reader_that_left(tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    code = BEGIN + "sys.stdin.read(); print('said'); print('complained', file=sys.stderr); open('done', 'w')"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=terminal, stderr=terminal, cwd=tmp_path
    ) as process:
        os.close(terminal)
        os.close(screen)
        process.communicate(timeout=60)
    assert process.returncode == 0 and (tmp_path / "done").exists()


def test_whoever_collects_output_goes_on_collecting(capsys: pytest.CaptureFixture[str]) -> None:
    from tacit.cli.streams import open_streams

    before = sys.stdout
    open_streams()
    assert sys.stdout is before
