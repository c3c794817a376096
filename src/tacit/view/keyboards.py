"""Models to type with, of the named folders, as a phone holds them. What is typed is kept nowhere.

Each request has the whole text; the answer is made from it, and both are forgotten.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.jobs.train.mixture_run import is_mixture_run
from tacit.networks.models import PROMISE
from tacit.runs.glance import mark_of
from tacit.runs.journal import DATABASE
from tacit.view.folders import Folders
from tacit.view.looks import opened_to_read

if TYPE_CHECKING:  # numba comes with it
    from tacit.keyboard.decoder import Decoder
    from tacit.keyboard.phone_model import PhoneModel

KEPT = 3  # models in memory
LONGEST = 400  # characters of a text: older words change little
LAYOUT = "qwerty"
SECRET = "'{name}' may not be typed with here: {why}. `tacit view --simulation` lets you, and you alone."


@dataclass(frozen=True, kw_only=True)
class Suggested:
    """What a keyboard shows after a text."""

    strip: tuple[str, ...]
    correction: str | None
    phrase: str
    corrects: bool

    def to_record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "strip": list(self.strip),
            "correction": self.correction,
            "phrase": self.phrase,
            "corrects": self.corrects,
        }


class Keyboards:
    """The models that were typed with last."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._kept: OrderedDict[Any, tuple[PhoneModel, Future[Decoder]]] = OrderedDict()
        self._lock = threading.Lock()
        self._alone = ThreadPoolExecutor(1, thread_name_prefix="decoder")

    def models(self) -> list[str]:
        """Places of runs that have a model, mixtures first."""
        places = [*self._folders.mixtures(), *self._folders.runs()]
        return [place for place in places if has_model(self._folders.folder(place))]

    def suggested(self, place: str, text: str, *, simulation: bool) -> Suggested:
        """What the model at a place offers after a text. Raises: InputError, RunError where there is no model, or it is
        not released and exact numbers may not be shown.
        """
        path = self._folders.folder(place)
        if (path / "model").is_symlink():
            raise InputError(f"the model of '{place}' is behind a link, and links are not followed; name its folder.")
        if not simulation:
            check_released(path)
        phone, decoder = self._of(path)
        from tacit.keyboard.live_keyboard import LiveKeyboard

        live = LiveKeyboard(phone, decoder, learns=False)
        before, word = _cut(text[-LONGEST:])
        if before:
            live.paste(before)
        for sign in word:
            live.press(sign)
        offered = live.offered
        return Suggested(
            strip=offered.strip, correction=offered.correction, phrase=offered.phrase, corrects=offered.corrects
        )

    def _of(self, path: Path) -> "tuple[PhoneModel, Future[Decoder]]":
        key = (path, mark_of(path))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        from tacit.keyboard.decoder import Decoder
        from tacit.keyboard.lexicon import Lexicon
        from tacit.keyboard.phone_model import load_phone_model
        from tacit.keyboard.touch import LAYOUTS, TouchModel

        phone = load_phone_model(path)
        # Here and not behind: what a thread raised would keep the frames, and with them the texts, of who heard it.
        lexicon = Lexicon.from_words(phone.vocabulary.words, LAYOUTS[LAYOUT])
        decoder = Decoder(lexicon, TouchModel(layout=LAYOUTS[LAYOUT], offset_x=0.0, offset_y=0.0))
        found = phone, self._alone.submit(_prepared, decoder)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def has_model(path: Path) -> bool:
    """Whether a run has weights to type with."""
    return any((path / "model").glob("*.safetensors"))


def check_released(path: Path) -> None:
    """Raises: InputError where what the model suggests may not be published: it had no noise, or its words are some
    client's.
    """
    from tacit.runs import TrainingMetadata  # NumPy comes with it
    from tacit.statements.composed import read

    if is_mixture_run(path) and (path / "model" / PROMISE).is_file():
        read(path / "model" / PROMISE)  # refuses what does not follow from its parts' statements
        return
    if not (path / DATABASE).is_file():
        raise InputError(SECRET.format(name=path.name, why="it is of no run, so nothing says what it was made from"))
    with opened_to_read(path) as run:
        metadata = run.metadata
        if not isinstance(metadata, TrainingMetadata):
            return  # a pre-training's text is public, and other kinds have no model
        if metadata.guarantee["strategy"] is None:
            raise InputError(SECRET.format(name=path.name, why="it was trained without noise"))
        if metadata.vocabulary["kind"] == "private":
            raise InputError(SECRET.format(name=path.name, why="its words were counted in clients' text"))


def _prepared(decoder: "Decoder") -> "Decoder":
    decoder.prepare()
    return decoder


def _cut(text: str) -> tuple[str, str]:
    """(whole words with what follows them, the word under the cursor)."""
    end = 1 + max((at for at, sign in enumerate(text) if sign.isspace()), default=-1)
    return text[:end], text[end:]
