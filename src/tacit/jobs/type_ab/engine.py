"""A keyboard engine beside tacit's own keyboard: the same next-word questions, and the same simulated typists."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import InputError, conceivable, of_type
from tacit.files import PathLike, as_path, read_bounded
from tacit.jobs.result import JobResult
from tacit.progress import DECODER, Advanced, Progress, StageBegan, StageEnded, silent
from tacit.records import json_ready

if TYPE_CHECKING:  # numba and JAX come with them
    from tacit.data.typed_sentences import TypingUser
    from tacit.evaluation.type_ab.engine_keyboard import Answered
    from tacit.evaluation.type_ab.measures import Tally
    from tacit.evaluation.type_ab.paired_bootstrap import Change
    from tacit.evaluation.type_ab.replay import Keyboard, TypedOn
    from tacit.evaluation.type_ab.settings import TypingSettings
    from tacit.evaluation.type_ab.typist import Typist
    from tacit.jobs.type_ab.setup import Data, Model
    from tacit.keyboard.dictionaries.engine_lines import Engine
    from tacit.reports.blocks import Block

STAGE = "asking the engine"  # a step a user
SHOWN_MEASURES = ("picked rate", "accuracy", "words modified ratio", "words a minute", "keystrokes saved")


@dataclass(frozen=True, kw_only=True)
class EngineResult(JobResult):
    """What tacit's keyboard (A) and an engine (B) show and do; each measure with its interval over users."""

    record: Mapping[str, Any]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit type --engine --json` prints."""
        return {"schema": "tacit.engine", "version": 1, **json_ready(dict(self.record))}

    def blocks(self) -> "list[Block]":
        """What people read of it: who is compared on whose text, and every measure."""
        from tacit.reports.blocks import Paragraph, Table

        record = self.record
        head = ("measure", "tacit", "engine", "engine - tacit, 95%")
        rows = [(name, *_shown(each)) for part in ("next_words", "typing") for name, each in record[part].items()]
        return [
            Paragraph(
                f"The engine is {record['engine']} with {record['dictionary']}, beside tacit's keyboard with "
                f"{record['model']}. {record['users']:,} users of the {record['split']} split of {record['source']} "
                f"typed {record['words']:,} words ({record['places']:,} questions about next words)."
            ),
            Table(tuple(rows), head),
            Paragraph(
                f"The engine changed {record['corrected']['b']:,} words at the space, and tacit's keyboard "
                f"{record['corrected']['a']:,}."
            ),
            Paragraph(record["what"]),
        ]


def type_engine(
    model: "Model",
    engine: str,
    dictionary: PathLike,
    data: "Data",
    *,
    settings: "TypingSettings | None" = None,
    timeout: float | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> EngineResult:
    """Ask a keyboard engine for next words and have simulated users type with it, beside tacit's own keyboard.

    dictionary: the file of `tacit.export_dictionary`. model: of tacit's keyboard, as in `type_ab`. engine: a command
    that speaks the lines of docs/dictionary.md; it is run as it is, and reads `dictionary`. data: a source or a cache,
    as in `type_ab`. settings: whose text, the typist and the language weight; the condition is "network". timeout:
    seconds that the engine has for an answer, left out 5. seed: of users and their slips, the same on both. Nothing is
    written and nothing released: these are exact numbers of users' own text. Raises: InputError, SourceError,
    CacheError as `type_ab`, and where the engine does not speak as it should.
    """
    from tacit.data import Cache, Source
    from tacit.evaluation.type_ab.settings import TypingSettings
    from tacit.jobs.phone_models import phone_model
    from tacit.jobs.type_ab.setup import check_typable, keyboard_of, sentences_of
    from tacit.keyboard.dictionaries.engine_lines import TIMEOUT, Engine

    settings = TypingSettings() if settings is None else settings
    of_type("settings", settings, TypingSettings)
    of_type("engine", engine, str)
    of_type("seed", seed, int)
    of_type("timeout", timeout, int, float, NoneType)
    conceivable("timeout", TIMEOUT if timeout is None else timeout)
    if seed < 0 or (timeout is not None and timeout <= 0):
        raise InputError(f"seed={seed} must be 0 or more, and timeout={timeout} seconds above 0.")
    unasked = (settings.more_words, settings.compose, settings.learns, settings.personal)
    if settings.condition != "network" or settings.sensitivity or any(each is not None for each in unasked):
        raise InputError(
            "an engine has neither a search, nor phrases, nor more words, nor a typist that is changed, and what it "
            "learns is its own; leave out --condition, --search, --more-words, --compose, --learns, --personal and "
            "--sensitivity."
        )
    if not isinstance(data, Cache | Source):
        as_path("data", data)
    place = as_path("dictionary", dictionary)
    digest = _digest(place)
    own = phone_model("model", model, progress=progress)
    typed = sentences_of(data, settings, progress)
    check_typable(typed, settings)
    keyboard = keyboard_of(own, None, settings)
    with Engine.started(engine, timeout=TIMEOUT if timeout is None else timeout) as running:
        running.open_dictionary(place)
        running.show_keys(settings.typist.touch.layout)
        users = _every_user(typed.users, keyboard, running, settings.typist, seed, progress)
    about = {
        "engine": running.name,
        "dictionary": place.name,
        "dictionary_sha256": digest,
        "model": Path(own.name).name,
        "source": typed.description,
        "split": typed.split,
        "users": len(typed.users),
        "layout": settings.typist.touch.layout.name,
        "seed": seed,
    }
    return EngineResult(record={**about, **_compared(users)})


class _Both(NamedTuple):
    """What one user was shown and did, with tacit's keyboard and with the engine."""

    answered: "tuple[Answered, Answered]"
    typed: "tuple[Tally, Tally]"


def _every_user(
    users: Sequence["TypingUser"],
    keyboard: "Keyboard",
    engine: "Engine",
    typist: "Typist",
    seed: int,
    progress: Progress,
) -> list[_Both]:
    from tacit.evaluation.type_ab.engine_keyboard import EngineKeyboard, answered
    from tacit.evaluation.type_ab.replay import UNSPELLED, type_sentences

    own = keyboard.model

    def shown(before: Sequence[str]) -> list[str]:
        session = own.typing()
        session.commit(" ".join(before))
        return [each.word for each in session.next_words(keyboard.shown)]

    def shown_there(before: Sequence[str]) -> list[str]:
        return [each.word for each in engine.next_words(before)]

    def one(user: "TypingUser") -> _Both:
        texts = user.sentences
        here, there = (answered(ask, texts, UNSPELLED) for ask in (shown, shown_there))
        boards: tuple[TypedOn, TypedOn] = (keyboard, EngineKeyboard(engine=engine, beside=keyboard))
        a, b = (type_sentences(each, typist, texts, seed=seed, user=user.name) for each in boards)
        return _Both((here, there), (a, b))

    found = []
    progress(StageBegan(STAGE, total=len(users), opening=DECODER))
    for number, user in enumerate(users, 1):
        found.append(one(user))
        progress(Advanced(STAGE, number))
    progress(StageEnded(STAGE))
    return found


def _compared(users: Sequence[_Both]) -> dict[str, Any]:
    from tacit.evaluation.type_ab.engine_keyboard import QUESTIONS
    from tacit.evaluation.type_ab.measures import MEASURES, total
    from tacit.evaluation.type_ab.paired_bootstrap import changes_of
    from tacit.jobs.type_ab.record import EXACT

    asked_a, asked_b = zip(*(each.answered for each in users), strict=True)
    typed_a, typed_b = zip(*(each.typed for each in users), strict=True)
    next_words = changes_of(asked_a, asked_b, measures=QUESTIONS)
    typing = changes_of(typed_a, typed_b, measures={name: MEASURES[name] for name in SHOWN_MEASURES})
    a, b = total(typed_a), total(typed_b)
    return {
        "what": EXACT,
        "words": int(a.words),
        "places": int(sum(each.places for each in asked_a)),
        "next_words": {name: _measured(change) for name, change in next_words.items()},
        "typing": {name: _measured(change) for name, change in typing.items()},
        "corrected": {"a": int(a.corrected), "b": int(b.corrected)},  # words that the space changed
    }


def _digest(place: Path) -> str:
    """SHA-256 of a dictionary: of the file, or of the files of a folder in the order of their names."""
    try:
        files = sorted(place.iterdir()) if place.is_dir() else [place]
        return hashlib.sha256(b"".join(map(read_bounded, files))).hexdigest()
    except OSError as error:
        raise InputError(f"--dictionary '{place}' cannot be read ({error.strerror}); give a file or folder.") from error


def _measured(change: "Change") -> dict[str, Any]:
    measure = change.measure
    said = {"unit": measure.unit, "better": measure.better, "definition": measure.definition}
    return {**said, "a": change.a, "b": change.b, "difference": change.difference}


def _shown(measured: Mapping[str, Any]) -> tuple[str, str, str]:
    scale = 100.0 if measured["unit"] == "%" else 1.0
    unit = measured["unit"] and " %"
    a, b, (value, low, high) = measured["a"], measured["b"], measured["difference"]
    return (
        f"{scale * a:.2f}{unit}",
        f"{scale * b:.2f}{unit}",
        f"{scale * value:+.2f} ({scale * low:+.2f} to {scale * high:+.2f})",
    )
