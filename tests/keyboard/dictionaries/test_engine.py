"""Engines that speak lines: the reference engine, and those that do not speak as they should."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.keyboard.dictionaries.engine_lines import Engine, Suggested
from tacit.keyboard.dictionaries.entries import BEGINNING, Dictionary, Entry, header_attributes
from tacit.keyboard.dictionaries.format_202 import static_dictionary
from tacit.keyboard.dictionaries.format_403 import dynamic_dictionary
from tacit.keyboard.dictionaries.reference_engine import DictionaryEngine, layout_of, read_dictionary
from tacit.keyboard.touch import LAYOUTS

REFERENCE = f"{sys.executable} -m tacit.keyboard.dictionaries.reference_engine"
MADE = Dictionary(
    attributes=header_attributes(locale="en", description="for tests", date=0),
    entries=(
        Entry("thank", 150.0),
        Entry("you", 200.0),
        Entry("the", 230.0),
        Entry("that", 210.0),
        Entry("never", 0.0),
        Entry("omw", 1.0, not_a_word=True),
    ),
    followers={
        ("thank",): (("you", 250.0), ("never", 249.0), ("omw", 248.0), ("that", 220.0)),
        (BEGINNING,): (("thank", 240.0),),
        (BEGINNING, "thank"): (("the", 254.0), ("you", 200.0)),
    },
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dictionaries")
    (folder / "en.dict").write_bytes(static_dictionary(MADE))
    (folder / "en").mkdir()
    for name, content in dynamic_dictionary(MADE).named("en").items():
        (folder / "en" / name).write_bytes(content)
    return {"202": folder / "en.dict", "403": folder / "en"}


def words(suggested: tuple[Suggested, ...]) -> list[str]:
    return [each.word for each in suggested]


@pytest.mark.parametrize("kind", ["202", "403"])
def test_the_reference_engine_shows_what_is_listed(files: dict[str, Path], kind: str) -> None:
    """Of two words before, where both are listed; of one otherwise; and nothing that must never be suggested."""
    with Engine.started(REFERENCE) as engine:
        assert engine.name.startswith("tacit ")
        engine.open_dictionary(files[kind])
        assert words(engine.next_words([])) == ["thank"]
        after = engine.next_words(["I", "Thank"])  # as LatinIME: a word that is not there is sought in lower case
        assert words(after) == ["you", "that"] and after[0].score == 250
        first = words(engine.next_words(["thank"]))
        assert first == (["you", "that"] if kind == "202" else ["the", "that", "you"])
        assert engine.next_words(["unheard"]) == ()


def test_the_reference_engine_decodes_letters_and_touches(files: dict[str, Path]) -> None:
    layout = LAYOUTS["qwerty"]
    with Engine.started(REFERENCE) as engine:
        engine.open_dictionary(files["202"])
        engine.show_keys(layout)
        typed = engine.of_letters("tge", ["i"])
        assert typed.text == "the" and typed.suggested[0].word == "the"
        assert engine.of_touches(layout.centres[layout.key_ids("tge")], ["i"]) == typed
        assert engine.of_letters("qqq", ["i"]).text == "qqq"
        with pytest.raises(InputError, match="'letters € i', and it refuses: '€' has signs without a key"):
            engine.of_letters("€", ["i"])
        assert engine.of_letters("th", ["i"]).suggested  # and it goes on


def test_both_readers_are_asked_here_as_there(files: dict[str, Path]) -> None:
    """Without lines in between."""
    engine = DictionaryEngine(read_dictionary(files["403"]))
    assert words(engine.next_words(["thank"])) == ["the", "that", "you"]
    with pytest.raises(InputError, match="cannot be read"):
        read_dictionary(files["202"].with_name("none.dict"))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_follows_from_its_keys(name: str) -> None:
    layout = LAYOUTS[name]
    keys = [(key, *middle) for key, middle in zip(layout.keys, layout.centres.tolist(), strict=True)]
    found = layout_of(layout.height, keys)
    assert found.rows == layout.rows and np.allclose(found.centres, layout.centres)
    with pytest.raises(InputError, match="do not stand in rows"):
        layout_of(layout.height, [("a", 0.5, 0.5), ("b", 1.7, 0.5)])


# -- engines that do not speak as they should ----------------------------------------------------------------------

HELLO = "import sys, time, os; next(sys.stdin); print('hello\\t1\\tbad', flush=True); "


def engine_of(code: str, tmp_path: Path) -> str:
    (tmp_path / "engine.py").write_text(code)
    return f"{sys.executable} {tmp_path / 'engine.py'}"


MISBEHAVING = {
    "silent": (HELLO + "next(sys.stdin); time.sleep(60)", r"was asked 'next a', and nothing came within 0\.5 s"),
    "dying": (
        HELLO + "next(sys.stdin); sys.exit('no memory')",
        "it ended with status 1; on its error output: no memory",
    ),
    "dead before": (HELLO + "os._exit(3)", "it ended with status 3"),
    "endless": (HELLO + "next(sys.stdin)\nwhile True: sys.stdout.write('x' * 9999)", "more than 65,536 bytes came"),
    "two lines": (
        HELLO + "next(sys.stdin); print('words\\nwords', flush=True); time.sleep(9)",
        "more than one line came",
    ),
    "a wrong line": (
        HELLO + "next(sys.stdin); print('word', flush=True); time.sleep(9)",
        "'words' was expected, and 'word'",
    ),
    "no score": (HELLO + "next(sys.stdin); print('words\\ta', flush=True); time.sleep(9)", "a word has no score"),
    "no number": (HELLO + "next(sys.stdin); print('words\\ta\\tb', flush=True); time.sleep(9)", "which is no number"),
    "nan": (
        HELLO + "next(sys.stdin); print('words\\ta\\tnan', flush=True); time.sleep(9)",
        "with the score 'nan' is none",
    ),
    "no order": (
        HELLO + "next(sys.stdin); print('words\\ta\\t1\\tb\\t2', flush=True); time.sleep(9)",
        "a higher score",
    ),
    "no text": (HELLO + "next(sys.stdin); os.write(1, b'words\\t\\xff\\t1\\n'); time.sleep(9)", "no UTF-8"),
    "refusing": (
        HELLO + "next(sys.stdin); print('no\\tof course', flush=True); time.sleep(9)",
        "it refuses: of course",
    ),
    "deaf": (HELLO + "time.sleep(60)", "nothing came within"),
}


@pytest.mark.parametrize("how", MISBEHAVING)
def test_misbehaving_engines_are_told_and_ended(how: str, tmp_path: Path) -> None:
    code, sentence = MISBEHAVING[how]
    began = time.monotonic()
    with pytest.raises(InputError, match=sentence), Engine.started(engine_of(code, tmp_path), timeout=0.5) as engine:
        engine._timeout = 0.5 if how in ("silent", "deaf") else 5.0
        engine.next_words(["a"])
    assert engine._process.poll() is not None and time.monotonic() - began < 15


def test_an_engine_that_goes_on_talking_is_told(tmp_path: Path) -> None:
    code = (
        HELLO + "next(sys.stdin); print('words', flush=True); time.sleep(.3); print('words', flush=True); time.sleep(9)"
    )
    with Engine.started(engine_of(code, tmp_path)) as engine:
        assert engine.next_words(["a"]) == ()
        time.sleep(1.0)
        with pytest.raises(InputError, match="a line came that nobody had asked for"):
            engine.next_words(["a"])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/nowhere/engine", r"'/nowhere/engine' cannot be run \(No such file"),
        ("", "is empty"),
        ("'", "cannot be split into words"),
        (f"{sys.executable} -c 'input(); print(1)'", "'hello' was expected, and '1' came"),
        (f"{sys.executable} -c 'input(); print(\"hello\\t2\\tx\")'", "it speaks version '2'"),
    ],
)
def test_what_is_no_engine(command: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Engine.started(command)


def test_a_killed_engine_s_children_end_too(tmp_path: Path) -> None:
    """It runs in a group of its own, which is ended as one."""
    code = HELLO + "import subprocess; child = subprocess.Popen(['sleep', '60']); "
    code += "print(child.pid, file=open(sys.argv[1], 'w'), flush=True); next(sys.stdin); time.sleep(60)"
    with (
        pytest.raises(InputError, match="nothing came"),
        Engine.started(f"{engine_of(code, tmp_path)} {tmp_path / 'child'}", timeout=2.0) as engine,
    ):
        engine.next_words([])
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the child lives on")


@given(before=st.lists(st.text(max_size=5), max_size=3))
def test_no_word_breaks_a_line(before: list[str]) -> None:
    from tacit.keyboard.dictionaries.engine_lines import _sayable

    assert "\t".join(_sayable(before)).count("\t") == max(0, len(before) - 1)
    assert not set("\n\r") & set("".join(_sayable(before)))
