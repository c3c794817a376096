"""The models that a job is asked to type with: files of a model, one in memory, or a trigram counted on a cache."""

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.keyboard.phone_model import PhoneModel, load_phone_model, phone_model_of
from tacit.progress import Progress, silent

if TYPE_CHECKING:  # JAX comes with it
    from tacit.keyboard.model_folder import TrainedModel

TRIGRAM = "trigram:"  # before the path of a cache
_KIND = re.compile(r"([A-Za-z][A-Za-z-]*):")


def phone_model(name: str, model: "PhoneModel | TrainedModel | PathLike", *, progress: Progress = silent) -> PhoneModel:
    """The model that an argument called `name` says, as a phone holds it.

    model: a finished run, a pre-training, a model folder, what `tacit export` wrote, "trigram:CACHE" for the backed-off
    trigram of a cache's training clients, or what `load_model` gave. Raises: InputError.
    """
    if isinstance(model, PhoneModel):
        return model
    if not isinstance(model, str | os.PathLike) and hasattr(
        model, "reader"
    ):  # asked of the model, so that JAX is not loaded to ask its class
        return phone_model_of(model)
    path = as_path(name, model)
    if (cache := counted_cache(path)) is not None:
        return trigram_model(cache, progress=progress)
    return load_phone_model(path)


def counted_cache(model: Path) -> Path | None:
    """The cache of "trigram:CACHE"; None of the path of a model. Raises: InputError for another kind than that."""
    kind = _KIND.match(str(model))
    if kind is None or model.exists():
        return None
    if kind[0] != TRIGRAM:
        raise InputError(
            f"'{model}' is no folder, and '{kind[1]}' is no kind of model that is counted here; give trigram:CACHE, or "
            "the folder of a model (`tacit ngram` counts longer n-grams into one)."
        )
    if str(model) == TRIGRAM:
        raise InputError(f"{TRIGRAM} names no cache; give {TRIGRAM}CACHE.")
    return Path(str(model).removeprefix(TRIGRAM))


def trigram_model(cache: Path, *, progress: Progress = silent) -> PhoneModel:
    """The backed-off trigram of the text of a cache's training clients, all of it.

    It promises nothing to them: who has it can read counts of their words. Raises: InputError where there is no cache,
    or nobody trains.
    """
    from tacit.evaluation.trigram import BackedOffTrigram
    from tacit.evaluation.trigram_reader import TrigramReader
    from tacit.jobs.run_start import checked_cache
    from tacit.text.vocabulary import Vocabulary

    checked = checked_cache(cache, progress=progress)
    vocabulary = Vocabulary.from_json(checked.vocabulary_json)
    clients = checked.clients("train")
    if not len(clients):
        raise InputError(f"the cache '{cache}' has no training clients for a trigram to count; name another.")
    trigram = BackedOffTrigram.train(checked, clients, vocabulary=vocabulary.size)
    return PhoneModel(
        name=f"{TRIGRAM}{cache}",
        reader=TrigramReader(trigram),
        vocabulary=vocabulary,
        digest=hashlib.sha256(f"{TRIGRAM}{checked.manifest.digest}".encode()).hexdigest(),
    )
