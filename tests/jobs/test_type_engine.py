"""`tacit.type_engine`: an engine beside tacit's own keyboard, on the same questions and with the same typists."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import TextsOf, VocabularyChoice
from tacit.data.typed_sentences import Share
from tacit.errors import InputError
from tacit.evaluation.type_ab.engine_keyboard import Answered, answered
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.jobs.dictionary_files import write_dictionary
from tacit.jobs.phone_models import phone_model
from tacit.keyboard.dictionaries.from_model import dictionary_of
from tacit.keyboard.exported import Promise
from tacit.reports.text import to_text

SAID = ("see you at the station tomorrow", "we will be there all morning", "see all of them at the station")
PEOPLE = {f"person {n}": [f"{SAID[n % 3]}. {SAID[(n // 3) % 3]}!"] for n in range(30)}
REFERENCE = f"{sys.executable} -m tacit.keyboard.dictionaries.reference_engine"
SETTINGS = TypingSettings(share=Share(split="train", users=8))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, and dictionaries of both formats, made of the trigram that the other keyboard has."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "words.txt").write_text("\n".join(sorted({word for line in SAID for word in line.split()})))
    texts = folder / "people"
    for name, lines in PEOPLE.items():
        (texts / name).mkdir(parents=True)
        (texts / name / "said.txt").write_text("\n".join(lines))
    words = VocabularyChoice(word_list=str(folder / "words.txt"))
    tacit.import_data(TextsOf(PEOPLE), folder / "cache", vocabulary=words)
    model = phone_model("model", f"trigram:{folder / 'cache'}")
    public = Promise(kind="public text", says="", public_text="three lines")
    made = dictionary_of(model, public, date=0, pairs=True)
    write_dictionary(made, folder / "en.dict", trigrams=False)
    write_dictionary(made, folder / "en", trigrams=True)
    return folder


def compared(world: Path, dictionary: str, **changed: Any) -> Any:
    asked: dict[str, Any] = {"engine": REFERENCE, "data": world / "cache", "settings": SETTINGS, **changed}
    return tacit.type_engine(f"trigram:{world / 'cache'}", dictionary=world / dictionary, **asked)


def test_the_engine_is_asked_and_typed_with(world: Path) -> None:
    """With what follows two words the engine knows nearly what the trigram does; with one word less."""
    one, two = (compared(world, name).record for name in ("en.dict", "en"))
    for record in (one, two):
        assert record["users"] == 8 and record["places"] > 80 and record["words"] > 80
        assert record["engine"].startswith("tacit ") and "SIMULATION ONLY" in record["what"]
        assert record["next_words"]["nothing shown"]["b"] == 0 == record["next_words"]["nothing shown"]["a"]
        assert record["typing"]["keystrokes saved"]["a"] != 0 and record["corrected"]["a"] >= 0
    same = ("top-1", "top-3")
    assert [one["next_words"][name]["a"] for name in same] == [two["next_words"][name]["a"] for name in same]
    assert two["next_words"]["top-3"]["b"] >= one["next_words"]["top-3"]["b"] > 0.5
    assert abs(two["next_words"]["top-1"]["difference"].value) < 0.1
    assert two["typing"]["accuracy"]["b"] > 0.5  # the strip of next words that the simulated typist sees
    again = compared(world, "en").record
    assert again["next_words"] == two["next_words"] and again["typing"] == two["typing"]


def test_an_engine_that_shows_nothing_is_seen_to(world: Path, tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    kind, *fields = line.rstrip('\\n').split('\\t')\n"
        "    said = {'hello': 'hello\\t1\\tmute', 'dictionary': 'ok', 'keys': 'ok', 'next': 'words'}\n"
        "    print(said.get(kind, 'typed\\t' + 'x' * len(fields[0].split() if fields else '')), flush=True)\n"
    )
    result = compared(world, "en.dict", engine=f"{sys.executable} {tmp_path / 'engine.py'}")
    next_words, typing = result.record["next_words"], result.record["typing"]
    assert next_words["nothing shown"]["b"] == 1 and next_words["top-3"]["b"] == 0
    assert typing["picked rate"]["b"] == 0 and typing["accuracy"]["b"] == 0
    assert typing["keystrokes saved"]["b"] < typing["keystrokes saved"]["a"]
    assert "The engine is mute with en.dict" in to_text(result.blocks())


def test_places_are_counted_by_hand() -> None:
    shown = {(): ["See"], ("see",): [], ("see", "<unspelled>"): ["the", "at", "now", "you"]}
    found = answered(lambda before: shown[tuple(before)], [["see", None, "you"], ["see", "you"]], "<unspelled>")
    assert found == Answered(places=4, first=2, shown=2, nothing=1)  # "you" is the fourth


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a condition": ({"settings": TypingSettings(condition="rescore")}, "leave out --condition"),
    "phrases": ({"settings": TypingSettings(compose=0.5)}, "neither a search, nor phrases"),
    "a seed": ({"seed": -1}, "seed=-1 must be 0 or more"),
    "a time": ({"timeout": 0}, "timeout=0 seconds above 0"),
    "an engine": ({"engine": "/nowhere/engine"}, "cannot be run"),
    "a failing engine": ({"engine": f"{sys.executable} -c 'raise SystemExit(4)'"}, "it ended with status 4"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(world: Path, what: str) -> None:
    changed, sentence = REFUSED[what]
    with pytest.raises(InputError, match=sentence):
        compared(world, "en.dict", **changed)


def test_a_dictionary_that_is_none(world: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        compared(world, "missing")
    shutil.copy(world / "words.txt", world / "wrong.dict")
    with pytest.raises(InputError, match=r"it refuses: .* is no binary dictionary of Android"):
        compared(world, "wrong.dict")


# -- the command ---------------------------------------------------------------------------------------------------


def invoke(world: Path, *words: str) -> Any:
    cache = str(world / "cache")
    return CliRunner().invoke(app, ["type", f"trigram:{cache}", "--data", cache, "--split-name", "train", *words])


def test_the_command(world: Path) -> None:
    engine = ["--engine", REFERENCE, "--dictionary", str(world / "en.dict"), "--users", "3"]
    result = invoke(world, *engine)
    assert result.exit_code == 0, result.output
    assert "top-3" in result.stdout and "nothing shown" in result.stdout and "keystrokes saved" in result.stdout
    record = json.loads(invoke(world, *engine, "--json").stdout)
    assert record["schema"] == "tacit.engine" and record["users"] == 3 and "SIMULATION ONLY" in record["what"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--engine", "x"], "the engine has no dictionary"),
        (["--engine", "x", "--dictionary", "d", "--out", "o"], "no B, no --out and no release"),
        (["b", "--engine", "x", "--dictionary", "d"], "no B, no --out and no release"),
        (["b", "--out", "o", "--dictionary", "d"], "give A, B and --out, or A, --engine and --dictionary"),
        ([], "give A, B and --out, or A, --engine and --dictionary"),
    ],
)
def test_options_that_do_not_go_together(world: Path, words: list[str], sentence: str) -> None:
    result = invoke(world, *words)
    assert result.exit_code == 2 and sentence in result.stderr
