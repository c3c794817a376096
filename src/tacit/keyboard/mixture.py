"""Counts and a network as one model, read word by word: each bent by private counts where there are some.

P(w | h) = (1 - weight) * bent n-gram + weight * network, which is bent, too, where it is of public text alone.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.keyboard.phone_model import numpy_reader
from tacit.keyboard.suggest import HasReader, Reader, Scores
from tacit.networks.model_files import ModelFiles
from tacit.networks.models import SETTINGS
from tacit.networks.ngram.bend import Bend
from tacit.networks.ngram.reader import Context, NGramReader
from tacit.networks.ngram.tables import NGramTables
from tacit.records import from_plain
from tacit.text.vocabulary import BOS, PAD

KIND = "mixture"
NGRAM, BEND, NETWORK = "ngram.", "bend.", "network."  # before the names of each part's arrays


@dataclass(frozen=True, kw_only=True)
class MixtureSettings:
    """What is written of a mixture beside its arrays."""

    vocabulary: int  # ids, the four specials included
    order: int  # of the n-grams
    pair_weight: float
    bent: bool  # whether there are private counts
    network: dict[str, Any] | None = None  # its kind and its settings; None: there is none
    network_weight: float = 0.0
    network_bent: bool = False


class State(NamedTuple):
    """Of the reader of each part."""

    context: Context
    network: Any


class MixtureReader:
    """See `suggest.Reader`: the scores are natural logarithms of probabilities that sum to 1."""

    def __init__(
        self,
        tables: NGramTables,
        bend: Bend | None = None,
        network: Reader | None = None,
        *,
        weight: float = 0.0,
        network_bent: bool = False,
    ) -> None:
        """weight: of the network."""
        self._ngram, self._bend, self._network = NGramReader(tables), bend, network
        self._weight, self._network_bent = np.float32(weight), network_bent

    @property
    def counted(self) -> tuple[NGramTables, Bend | None, float]:
        """The n-grams, what bends them, and the weight of the network beside them."""
        return self._ngram.tables, self._bend, float(self._weight)

    def begin(self) -> State:
        """See Reader."""
        return State(self._ngram.begin(), None if self._network is None else self._network.begin())

    def step(self, state: State, token: int) -> tuple[State, Scores]:
        """See Reader."""
        context, after = self._ngram.following(state.context, token), state.network
        found = self._ngram.tables.after(context)
        if self._bend is not None:
            found = self._bend.bent(found, context)
        if self._network is not None:
            after, scores = self._network.step(state.network, token)
            found *= 1 - self._weight
            found += self._weight * self._of_network(scores, context)
        with np.errstate(divide="ignore"):
            return State(context, after), np.log(found)

    def of_network(self, state: State, token: int) -> NDArray[np.float32]:
        """(V,) the probabilities after this token by the network alone, bent where it is."""
        assert self._network is not None  # whoever asks knows its weight
        _, scores = self._network.step(state.network, token)
        return self._of_network(scores, self._ngram.following(state.context, token))

    def _of_network(self, scores: Scores, context: Context) -> NDArray[np.float32]:
        """Its probabilities of what may come next: all but padding and the beginning."""
        found = np.exp(scores - scores.max())
        found[[PAD, BOS]] = 0
        found /= found.sum(dtype=np.float64).astype(np.float32)
        return self._bend.bent(found, context) if self._network_bent and self._bend is not None else found


def mixture_reader(files: ModelFiles, network: Reader | None = None) -> MixtureReader:
    """Of a model folder. network: what reads it in place of the weights there. Raises: InputError where the files are
    damaged, or not of one model.
    """
    settings = from_plain(MixtureSettings, files.settings, where=f"{files.folder / SETTINGS}")
    try:
        tables = NGramTables.from_arrays(
            arrays_of(files, NGRAM), order=settings.order, pair_weight=settings.pair_weight
        )
        bend = Bend.from_arrays(arrays_of(files, BEND), settings.vocabulary) if settings.bent else None
        if not 0 <= settings.network_weight <= 1:
            raise ValueError(f"network_weight={settings.network_weight} is no share")
    except ValueError as error:
        raise InputError(f"the model in '{files.folder}' is damaged ({error}); restore it from a copy.") from error
    if not tables.vocabulary == settings.vocabulary == files.vocabulary.size:
        raise files.apart()
    if network is None and settings.network is not None:
        network = network_reader(network_files(files, settings.network), settings.vocabulary)
    return MixtureReader(
        tables,
        bend,
        network,
        weight=settings.network_weight,
        network_bent=settings.network_bent,
    )


def arrays_of(files: ModelFiles, part: str) -> dict[str, NDArray[Any]]:
    """The arrays of one part of a mixture, by their own names."""
    return {name.removeprefix(part): each for name, each in files.weights.items() if name.startswith(part)}


def network_files(files: ModelFiles, settings: dict[str, Any]) -> ModelFiles:
    """The network of a mixture as files of its own. settings: its kind and its settings."""
    own = dict(settings)
    weights = {name: each.astype(np.float32, copy=False) for name, each in arrays_of(files, NETWORK).items()}
    return ModelFiles(folder=files.folder, kind=str(own.pop("kind", "")), settings=own, weights=weights)


def network_reader(files: ModelFiles, vocabulary: int) -> Reader:
    """How a network is read beside counts. Raises: InputError for one that no phone reads without JAX, or whose weights
    are another's.
    """
    network = files.network()
    if not isinstance(network, HasReader):
        raise InputError(
            f"a network of the kind {files.kind!r} is read by JAX alone, so no mixture is made of it; give one with a "
            "`reader` (docs/extending.md)."
        )
    return numpy_reader(files, network, vocabulary)
