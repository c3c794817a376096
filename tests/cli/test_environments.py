"""The whole command where streams, locales and machines are odd: every journey ends as at home, and nothing fails for
what is printed. docs/environments.md lists these, and this file says of each what it is.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import REPOSITORY
from tests.support.training.tiny import tiny_toml

PATIENCE = 300.0
# Every command of a process, one after another as its own script would start it; what became of them goes to a file.
DRIVER = """
import json, os, sys
ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["tacit", *(os.fsdecode(word.encode()) for word in words)]
    from tacit.cli import main
    try:
        main()
    except SystemExit as end:
        ended.append(end.code or 0)
    except BaseException as error:
        ended.append(repr(error))
with open("ended.json", "w", encoding="utf-8") as file:
    json.dump(ended, file)
"""
SOURCES = REPOSITORY / "src"


def words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


SHORT: Sequence[tuple[int, tuple[str, ...]]] = (
    (0, ("--help",)),
    (0, ("discover", "--help")),  # its letters are Spanish
    (0, ("data", "import", "typed.parquet", "--word-list", "words.txt", "--out", "cache")),
    (0, ("data", "show", "cache")),
    (0, ("data", "show", "cache", "--json")),
    (2, ("data", "show", "niño…☕")),
)
OTHER = (*SHORT[2:3], (0, ("train", "other.toml", "--out", "other", "--workers", "1")))  # to compare with
WHOLE = (
    *SHORT,
    (0, ("recipe", "show", "own-data")),
    (0, words("plan run --rounds 100 --population 10000 --report-goal 500 --noise-multiplier 7")),
    (0, words("account tree --rounds 20 --min-separation 4 --noise-multiplier 7")),
    (0, ("train", "tiny.toml", "--out", "run", "--workers", "1")),
    (0, ("report", "run")),
    (0, ("compare", "run", "other")),
    (0, ("suggest", "run", "niño says ☕")),
    (0, ("export", "run", "--out", "export")),
    (0, ("verify", "run/report/statement.json")),
    (0, ("account", "run", "run", "--json")),
)
Open = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What is odd about it."""

    variables: Mapping[str, str | None] = field(default_factory=dict)  # None: not set
    before: str = ""  # shell, in front of the command
    encoding: str = "utf-8"  # of what is printed
    terminal: bool = False  # 24 rows of 40 columns; or else a pipe
    said: bool = True  # whether what standard output gets can be read
    complained: bool = True  # and standard error
    reads: bool = True  # letters that are no ASCII, on the command line
    folder: str = "a folder"

    def code(self, expected: int, words: Sequence[str]) -> int:
        """The exit code of a command that has the expected one elsewhere."""
        return expected if self.reads or "".join(words).isascii() else 2


def python(**variables: str | None) -> dict[str, str | None]:
    """Locale variables that are set come alone."""
    return {**dict.fromkeys(("LANG", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8")), **variables}


ENVIRONMENTS: dict[str, Environment] = {
    "a pipe, UTF-8": Environment(variables=python(PYTHONUTF8="1")),
    "LC_ALL=C": Environment(variables=python(LC_ALL="C")),
    "LC_ALL=C without UTF-8": Environment(
        variables=python(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"), encoding="ascii", reads=False
    ),
    "a locale that is not there": Environment(variables=python(LC_ALL="no_WHERE.UTF-8")),
    "Latin-1": Environment(variables=python(PYTHONIOENCODING="latin-1"), encoding="latin-1"),
    "ASCII": Environment(variables=python(PYTHONIOENCODING="ascii:strict"), encoding="ascii"),
    "UTF-16": Environment(variables=python(PYTHONIOENCODING="utf-16-le"), encoding="utf-16-le"),
    "TERM=dumb": Environment(variables={"TERM": "dumb"}, terminal=True),
    "a terminal of 40 columns": Environment(variables={"TERM": "xterm", "NO_COLOR": "1"}, terminal=True),
    "a terminal of 40 columns, Latin-1": Environment(
        variables={"TERM": "xterm", **python(PYTHONIOENCODING="latin-1")}, terminal=True, encoding="latin-1"
    ),
    "a terminal of 0 columns": Environment(variables={"TERM": "xterm", "COLUMNS": "0", "LINES": "0"}, terminal=True),
    "COLUMNS=40": Environment(variables={"COLUMNS": "40"}),
    "standard output closed": Environment(before=">&-", said=False),
    "standard error closed": Environment(before="2>&-", complained=False),
    "all three closed": Environment(before="<&- >&- 2>&-", said=False, complained=False),
    "a reader that left": Environment(before="> >(exec true) 2>&1", said=False, complained=False),
    "standard error on a full disk": Environment(before="2>/dev/full", complained=False),
    "no HOME": Environment(variables={"HOME": None}),
    "a HOME that cannot be written": Environment(variables={"HOME": "/dev/null/home"}),
    "an odd time zone": Environment(variables={"TZ": "Antarctica/Troll"}),
    "a time zone that is none": Environment(variables={"TZ": ":no/where"}),
    "umask 077": Environment(before="umask 077;"),
    "a path with a blank, a line break and letters": Environment(folder="a ñandú\n☕ 'of' \"two\" [lines]"),
    "/proc not mounted": Environment(before="no /proc"),
}


@dataclass(frozen=True)
class Ended:
    """What became of a journey."""

    codes: list[Any]
    said: str
    complained: str


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with clients' text, a word list and recipes."""
    folder = tmp_path_factory.mktemp("clients")
    texts = ["the quick niño says ≤ “the” word again. ☕", "thank you… for the word"]
    rows = [(f"client ñ☕ {number}", text, number) for number in range(40) for text in texts]
    names, typed, times = zip(*rows, strict=True)
    pq.write_table(
        pa.table({"client_id": list(names), "text": list(typed), "timestamp": list(times)}), folder / "typed.parquet"
    )
    (folder / "words.txt").write_text("the\nquick\nniño\nsays\nword\nagain\nthank\nyou\nfor\n", encoding="utf-8")
    rounds = {"rounds": 4, "report_goal": 3, "min_separation": 2}
    evaluation = {"every": 2, "clients": 1, "test_clients": 1, "sentences": 4}
    for name, seed in (("tiny", 3), ("other", 4)):
        toml = tiny_toml(Path("cache"), rounds=rounds, evaluation=evaluation, run={"seed": seed})
        (folder / f"{name}.toml").write_text(toml.replace('"tiny"', f'"niño ≤ {name}"'), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def clients_and_run(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder with a run in it, which was trained at home."""
    place = tmp_path_factory.mktemp("home")
    assert ended_in(Environment(), clients, place, OTHER).codes == [0, 0]
    shutil.rmtree(place / Environment().folder / "cache")
    return place / Environment().folder


def command_of(environment: Environment, python: list[str]) -> list[str]:
    if environment.before == "no /proc":
        emptied = 'mount -t tmpfs none /proc && exec "$@"'
        return ["unshare", "--mount", "bash", "-c", emptied, "bash", *python]
    if environment.before.endswith(";"):
        return ["bash", "-c", f'{environment.before} exec "$@"', "bash", *python]
    return ["bash", "-c", f'exec "$@" {environment.before}', "bash", *python]


def ended_in(environment: Environment, clients: Path, place: Path, journey: Sequence[tuple[int, Any]]) -> Ended:
    folder = place / environment.folder
    shutil.copytree(clients, folder)
    asked = json.dumps([arguments for _, arguments in journey])
    command = command_of(environment, [sys.executable, "-c", DRIVER, asked])
    here = {**os.environ, "COLUMNS": None, **environment.variables, "PYTHONPATH": str(SOURCES)}
    variables = {name: value for name, value in here.items() if value is not None}
    said, complained = (in_terminal if environment.terminal else in_pipes)(command, folder, variables)
    codes = json.loads((folder / "ended.json").read_text(encoding="utf-8"))
    return Ended(codes, said.decode(environment.encoding), complained.decode(environment.encoding))


def in_pipes(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[bytes, bytes]:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, timeout=PATIENCE, check=False)
    return done.stdout, done.stderr


def in_terminal(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[bytes, bytes]:
    """Standard output and error are the same there."""
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 40))
    drawn: list[bytes] = []

    def watch() -> None:
        try:
            while read := os.read(screen, 65536):
                drawn.append(read)
        except OSError:  # nobody has it open any more
            pass

    watching = threading.Thread(target=watch)
    watching.start()
    process = subprocess.Popen(command, cwd=folder, env=variables, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    process.wait(PATIENCE)
    watching.join(PATIENCE)
    os.close(screen)
    content = b"".join(drawn).replace(b"\r\n", b"\n")
    return content, content


def check(environment: Environment, ended: Ended, journey: Sequence[tuple[int, Any]]) -> None:
    assert ended.codes == [environment.code(*each) for each in journey], ended.complained[-3000:]
    for text in (ended.said, ended.complained):
        assert "Traceback" not in text and "Error:" not in text, text[-3000:]
    refused = "there is no cache at ni" if environment.reads else "say PYTHONUTF8=1"
    if environment.said:
        lines = ended.said.splitlines()
        (shown,) = (json.loads(line) for line in lines if line.startswith('{"') and '"sentences"' in line)
        assert shown["sentences"] == 80 or environment.terminal, "JSON of any encoding says the same"
        assert "#" * 40 in ended.said or "█" * 40 in ended.said or environment.terminal
    if environment.complained:
        assert refused in " ".join(ended.complained.split()).replace("error: ", "")


def skip_where_impossible(environment: Environment) -> None:
    if environment.before == "no /proc":
        tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/proc"]
        if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True, check=False).returncode:
            pytest.skip("this user may not take /proc away from a process of its own")


@pytest.mark.parametrize("name", ["LC_ALL=C without UTF-8", "TERM=dumb", "a terminal of 40 columns"])
def test_it_prints_there(name: str, clients: Path, tmp_path: Path) -> None:
    """Of the long test below what needs no training, where most differs from home."""
    check(ENVIRONMENTS[name], ended_in(ENVIRONMENTS[name], clients, tmp_path, SHORT), SHORT)


# What differs most; the others are `make nightly`'s, for each takes a training.
AT_LENGTH = {
    "LC_ALL=C without UTF-8",
    "a HOME that cannot be written",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in AT_LENGTH else pytest.mark.nightly) for name in ENVIRONMENTS],
)
def test_the_whole_command_runs_there(name: str, clients_and_run: Path, tmp_path: Path) -> None:
    """From text to a model that suggests, its report and statement."""
    skip_where_impossible(ENVIRONMENTS[name])
    ended = ended_in(ENVIRONMENTS[name], clients_and_run, tmp_path, WHOLE)
    check(ENVIRONMENTS[name], ended, WHOLE)
    folder = tmp_path / ENVIRONMENTS[name].folder
    page = (folder / "run" / "simulation" / "report.html").read_text(encoding="utf-8")
    assert "niño ≤ tiny" in page, "files are UTF-8 wherever they are written"


def test_the_page_lists_these_environments() -> None:
    page = (REPOSITORY / "docs" / "environments.md").read_text(encoding="utf-8")
    assert (
        re.findall(r"^\| `?([^|`]+?)`? \|", page, re.MULTILINE)[1:] == list(ENVIRONMENTS)
        and set(ENVIRONMENTS) > AT_LENGTH
    )
