"""A model's dictionaries in a keyboard's own engine show more right words than what that keyboard ships.

Both formats are written from each model and asked in the engine, beside a dictionary that it ships and beside the model
itself: every next word of the same users' text, by the lines of docs/dictionary.md. One JSON line for each text and
dictionary; percent of places, with intervals over users for what the dictionary changes against the shipped one, and
against that of the first model in the same format. Folders of one model between commas are noise seeds: a user's
answers are their means.

    python benchmarks/keyboard/keyboard_engine.py TEXT.parquet ... --engine COMMAND --shipped main_en-US.dict \\
        --model public=pb --model "epsilon 1=mix-1,mix-2,mix-3" --words-from public:FILE.parquet
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import open_source
from tacit.data.typed_sentences import Share, TypingUser, read_typed_sentences
from tacit.evaluation.type_ab.engine_keyboard import QUESTIONS, Answered, answered
from tacit.evaluation.type_ab.paired_bootstrap import changes_of
from tacit.evaluation.type_ab.replay import UNSPELLED
from tacit.jobs.dictionary_files import read_more_words, write_dictionary
from tacit.jobs.phone_models import phone_model
from tacit.keyboard.dictionaries.engine_lines import Engine
from tacit.keyboard.dictionaries.from_model import Given, dictionary_of
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.progress import silent
from tacit.text.words import sentences

PUBLIC = Promise(kind="public text", says="of a benchmark", public_text="the text of a benchmark")
FORMATS = {"format 202": "en.dict", "format 403": "en"}
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


def mean(seeds: Sequence[list[Answered]]) -> list[Answered]:
    """Of each user over the seeds."""
    return [Answered(*np.mean(each, axis=0).tolist()) for each in zip(*seeds, strict=True)]


def row(text: str, name: str, found: list[Answered], bases: dict[str, list[Answered]], **more: Any) -> dict[str, Any]:
    """One line. bases: what it is held against, by name."""
    figures: dict[str, Any] = {"users": len(found), "places": int(sum(each.places for each in found))}
    for base, others in bases.items():
        for measure, change in changes_of(others, found, measures=QUESTIONS).items():
            figures.setdefault(measure, {"is": round(100 * change.b, 2)})
            figures[measure][f"less {base}"] = [round(100 * end, 2) for end in change.difference]
    return {"text": text, "dictionary": name, **figures, **more}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="Parquet with client_id and text; its test split is asked")
    parser.add_argument("--model", action="append", required=True, help="NAME=FOLDER[,FOLDER]; the first is the base")
    parser.add_argument("--engine", required=True)
    parser.add_argument("--shipped", required=True, type=Path)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--split", default="test", help="validation, to choose by; a simulation alone has that text")
    parser.add_argument("--words-from", help="public:FILE[,FILE], whose words the dictionaries have, too")
    parser.add_argument("--most-words", type=int)
    parser.add_argument("--itself", action="store_true", help="ask the models themselves, too")
    asked = parser.parse_args()
    share = Share(split=asked.split, users=asked.users, sentences=16, words=20)
    texts = {Path(text).name: read_typed_sentences(open_source(text), sentences, share).users for text in asked.text}
    models = {name: folders.split(",") for name, _, folders in (each.partition("=") for each in asked.model)}
    given, answers, facts = Given(), dict[tuple[str, str], list[list[Answered]]](), dict[str, dict[str, Any]]()

    def ask(name: str, place: Path) -> None:
        for text, users in texts.items():
            with Engine.started(asked.engine) as engine:
                engine.open_dictionary(place)
                answers.setdefault((text, name), []).append(of_users(users, by_engine(engine)))
                facts.setdefault(name, {"engine": engine.name})

    ask("shipped", asked.shipped)
    facts["shipped"]["bytes"] = asked.shipped.stat().st_size
    for name, folders in models.items():
        for folder in folders:
            model = phone_model("model", folder)
            if asked.words_from and given.more is None:
                more = read_more_words(open_source(asked.words_from), model.vocabulary, asked.most_words, silent)
                given = Given(more=more)
            made = dictionary_of(model, PUBLIC, date=0, pairs=True, given=given)
            with tempfile.TemporaryDirectory() as scratch:
                for kind, file in FORMATS.items():
                    size = write_dictionary(made, Path(scratch) / file, trigrams=kind == "format 403")
                    ask(f"{name}, {kind}", Path(scratch) / file)
                    facts[f"{name}, {kind}"]["bytes"] = size
            if asked.itself:
                for text, users in texts.items():
                    answers.setdefault((text, f"{name}, itself"), []).append(of_users(users, by_model(model)))
    for (text, name), seeds in answers.items():
        first = f"{next(iter(models))}, {name.rpartition(', ')[2]}"
        bases = {"shipped": mean(answers[text, "shipped"]), "public": mean(answers.get((text, first), seeds))}
        print(json.dumps(row(text, name, mean(seeds), bases, seeds=len(seeds), **facts.get(name, {}))), flush=True)


if __name__ == "__main__":
    main()
