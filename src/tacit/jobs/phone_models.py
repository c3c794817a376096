"""The models that a job is asked to type with: files of a model, one in memory, or a trigram counted on a cache."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.keyboard.phone_model import PhoneModel, load_phone_model, phone_model_of
from tacit.progress import Progress, silent

if TYPE_CHECKING:  # JAX comes with it
    from tacit.keyboard.model_folder import TrainedModel

TRIGRAM = "trigram:"  # before the path of a cache


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
    if str(path).startswith(TRIGRAM):
        return trigram_model(Path(str(path).removeprefix(TRIGRAM)), progress=progress)
    return load_phone_model(path)


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
