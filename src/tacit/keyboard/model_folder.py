"""A model on disk: the weights by name, the settings of the network and the vocabulary, in one folder.

One that was made from public text alone says so in `origin.json`, and only such a model may be a private run's first:
a model that has seen clients' text has a price of its own, which the later run's ledger does not know.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

from tacit.errors import InputError
from tacit.files import PathLike, as_path, sweep_drafts, write_whole
from tacit.networks.language_model import LanguageModel, Parameters, leaves, settings_of
from tacit.networks.metrics import SHOWN
from tacit.networks.model_files import ModelFiles, read_files
from tacit.networks.models import ORIGIN, SETTINGS, WEIGHTS, WORDS
from tacit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tacit.keyboard.suggest import Reader, Suggestion, TypingSession


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A network with its parameters and its words, and where it came from."""

    network: LanguageModel
    parameters: Parameters
    vocabulary: Vocabulary
    path: Path  # as it was named: a run, a pre-training or a model folder
    digest: str  # SHA-256 over all files of its folder: weights, settings, words, origin
    public_text: str | None  # the public text it was made from, and from nothing else; None where that is not known

    def __str__(self) -> str:
        """As tables name it: the path it was loaded from."""
        return str(self.path)

    def __repr__(self) -> str:
        return f"TrainedModel({str(self)!r}: {self.network})"

    @cached_property
    def reader(self) -> "Reader":
        """What a typing session asks for probabilities."""
        from tacit.keyboard.suggest import reader_of

        return reader_of(self.network, self.parameters)

    def typing(self) -> "TypingSession":
        """A session that suggests next words while somebody types; each has a state of its own."""
        from tacit.keyboard.suggest import TypingSession

        return TypingSession(self.reader, self.vocabulary)

    def next_words(self, prompt: str, k: int = SHOWN) -> "tuple[Suggestion, ...]":
        """See PhoneModel."""
        session = self.typing()
        session.commit(prompt)
        return session.next_words(k)


def write_model(folder: Path, network: LanguageModel, parameters: Parameters, vocabulary: bytes) -> None:
    """Write a model; each file is there whole or not. vocabulary: the content of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep_drafts(folder)
    weights = {name: np.ascontiguousarray(array) for name, array in leaves(parameters).items()}
    write_whole(folder / WEIGHTS, save(weights))
    write_whole(folder / SETTINGS, (json.dumps(settings_of(network), indent=1) + "\n").encode())
    write_whole(folder / WORDS, vocabulary)


def load_model(path: PathLike) -> TrainedModel:
    """The model of a folder that `write_model` wrote, or of the run or pre-training whose `model/` it is.

    path: that folder.

    Raises: InputError when there is none, or its files do not belong together.
    """
    path = as_path("path", path)
    files = read_files(path)
    network, vocabulary = files.network(), files.vocabulary
    return TrainedModel(
        network=network,
        parameters=parameters_of(files, network, vocabulary),
        vocabulary=vocabulary,
        path=path,
        digest=files.digest,
        public_text=files.public_text,
    )


def load_first_model(path: Path, network: LanguageModel, vocabulary: Vocabulary) -> TrainedModel:
    """The model to begin from, which must be of this network and these words.

    Raises: InputError when there is none, it is of another network or other words, or not known to be of public text.
    """
    found = load_model(path)
    if found.vocabulary.sha256 != vocabulary.sha256:
        raise InputError(
            f"the model in '{path}' knows other words than the cache, or words of another origin (vocabulary "
            f"{found.vocabulary.sha256[:12]} against {vocabulary.sha256[:12]}); import both texts with one vocabulary "
            "(--vocabulary vocabulary.json)."
        )
    if found.network != network:
        now, wanted = settings_of(found.network), settings_of(network)
        different = [
            f"{name}={now.get(name)} (the recipe: {wanted.get(name)})"
            for name in {**now, **wanted}
            if now.get(name) != wanted.get(name)
        ]
        raise InputError(f"the model in '{path}' has {', '.join(different)}; give the recipe's [model] the same size.")
    if found.public_text is None:
        raise InputError(
            f"the model in '{path}' is not known to be of public text only (no {ORIGIN}), and what it cost the users "
            "whose text it saw would be missing from this run's statement; begin from a model of `tacit pretrain`."
        )
    return found


def parameters_of(files: ModelFiles, network: LanguageModel, vocabulary: Vocabulary) -> Parameters:
    """The weights as the network has them. Raises: InputError where they are another network's."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    wanted = {name: (leaf.shape, leaf.dtype.name) for name, leaf in leaves(shapes).items()}
    if files.shapes() != wanted or vocabulary.size != network.vocabulary:
        raise files.apart()
    return jax.tree.unflatten(jax.tree.structure(shapes), [jnp.asarray(files.weights[name]) for name in wanted])
