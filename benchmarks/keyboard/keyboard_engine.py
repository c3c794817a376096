"""A model's dictionaries in a keyboard's own engine show more right words than what that keyboard ships.

Both formats are written from one model and asked in the engine, beside a dictionary that it ships and beside the model
itself: every next word of the same users' text, by the lines of docs/dictionary.md. One JSON line for each text and
dictionary; percent of places, with intervals over users for what the dictionary changes against the shipped one.

    python benchmarks/keyboard/keyboard_engine.py MODEL TEXT.parquet ... --engine COMMAND --shipped main_en-US.dict
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tacit.data import open_source
from tacit.data.typed_sentences import Share, TypingUser, read_typed_sentences
from tacit.evaluation.type_ab.engine_keyboard import QUESTIONS, Answered, answered
from tacit.evaluation.type_ab.paired_bootstrap import changes_of
from tacit.evaluation.type_ab.replay import UNSPELLED
from tacit.jobs.dictionary_files import write_dictionary
from tacit.jobs.phone_models import phone_model
from tacit.keyboard.dictionaries.engine_lines import Engine
from tacit.keyboard.dictionaries.from_model import dictionary_of
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.text.words import sentences

PUBLIC = Promise(kind="public text", says="of a benchmark", public_text="the text of a benchmark")
SHARE = Share(users=100, sentences=16, words=20)
NextWords = Callable[[Sequence[str]], Sequence[str]]


def by_engine(engine: Engine) -> NextWords:
    """What the engine shows."""
    return lambda before: [each.word for each in engine.next_words(before)]


def by_model(model: PhoneModel) -> NextWords:
    """What the model itself would show."""

    def shown(before: Sequence[str]) -> Sequence[str]:
        session = model.typing()
        session.commit(" ".join(before))
        return [each.word for each in session.next_words()]

    return shown


def of_users(users: Sequence[TypingUser], next_words: NextWords) -> list[Answered]:
    """The same questions for each user."""
    return [answered(next_words, user.sentences, UNSPELLED) for user in users]


def row(text: str, name: str, found: list[Answered], shipped: list[Answered], **more: Any) -> dict[str, Any]:
    """One line."""
    changes = changes_of(shipped, found, measures=QUESTIONS)
    figures = {
        each: {"is": round(100 * change.b, 2), "change": [round(100 * end, 2) for end in change.difference]}
        for each, change in changes.items()
    }
    places = int(sum(each.places for each in found))
    return {"text": text, "dictionary": name, "users": len(found), "places": places, **figures, **more}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="made of public text alone")
    parser.add_argument("text", nargs="+", help="Parquet with client_id and text; its test split is asked")
    parser.add_argument("--engine", required=True)
    parser.add_argument("--shipped", required=True, type=Path)
    asked = parser.parse_args()
    model = phone_model("model", asked.model)
    made = dictionary_of(model, PUBLIC, date=0, pairs=True)
    with tempfile.TemporaryDirectory() as folder:
        places = {"format 202": Path(folder) / "en.dict", "format 403": Path(folder) / "en"}
        size = {name: write_dictionary(made, place, trigrams=place.suffix == "") for name, place in places.items()}
        for text in asked.text:
            users = read_typed_sentences(open_source(text), sentences, SHARE).users
            found: dict[str, list[Answered]] = {}
            for name, place in {"shipped": asked.shipped, **places}.items():
                with Engine.started(asked.engine) as engine:
                    engine.open_dictionary(place)
                    found[name], said = of_users(users, by_engine(engine)), engine.name
                more = {"engine": said, "bytes": size.get(name, asked.shipped.stat().st_size)}
                print(json.dumps(row(Path(text).name, name, found[name], found["shipped"], **more)), flush=True)
            own = of_users(users, by_model(model))
            print(json.dumps(row(Path(text).name, "the model itself", own, found["shipped"])), flush=True)


if __name__ == "__main__":
    main()
