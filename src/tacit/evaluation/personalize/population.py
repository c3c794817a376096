"""What every strategy does to a population: each client as its device would compute it (`outcomes`), on all workers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.errors import InputError
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.personalize.outcomes import WORDS, ClientOutcome, SkippedClient, personalize_client
from tacit.keyboard.held_reader import HeldReader
from tacit.keyboard.suggest import Reader
from tacit.networks.language_model import LanguageModel, Parameters
from tacit.networks.on_device import HeldModel, SgdStep, held

Report = Callable[[ClientOutcome | SkippedClient], None]


@dataclass(frozen=True, kw_only=True)
class PersonalizationOutcome:
    """What the server would have of a population, in the order of the clients that were asked for."""

    strategies: tuple[FineTuning, ...]
    split: TemporalSplit
    outcomes: tuple[ClientOutcome, ...]
    skipped: tuple[SkippedClient, ...]

    def skipped_by_reason(self) -> dict[str, int]:
        """How many clients were left out, by why."""
        return dict(Counter(client.reason for client in self.skipped))


def personalize_clients(
    network: LanguageModel,
    parameters: Parameters,
    cache: Cache,
    clients: Sequence[int] | NDArray[np.int64],
    strategies: Sequence[FineTuning],
    split: TemporalSplit,
    *,
    cores: Cores,
    words: int = WORDS,
    progress: Report | None = None,
) -> PersonalizationOutcome:
    """Every strategy on every client, side by side with the global model.

    A client is one worker's, all strategies of it, so an outcome depends on the client alone, to the bit. `progress`
    gets each outcome in the order of the clients, in the caller's thread, so that a run can be saved and resumed.
    Memory: per worker the model twice and the scores of one batch (batch size x words x V floats at most).

    Raises: InputError when model and cache have vocabularies of different sizes, the model is not finite, or there is
    nothing to do.
    """
    grid = [(how, how.step(network)) for how in strategies]
    start = held(network, parameters)
    return personalize_held(start, cache, clients, grid, split, cores=cores, words=words, progress=progress)


def personalize_reader(
    reader: Reader,
    cache: Cache,
    clients: Sequence[int] | NDArray[np.int64],
    strategies: Sequence[FineTuning],
    split: TemporalSplit,
    *,
    cores: Cores,
    words: int = WORDS,
    progress: Report | None = None,
) -> PersonalizationOutcome:
    """The same of a counted model, whose strategies are caches alone. The cache has its vocabulary.

    Raises: InputError where a strategy has SGD, or there is nothing to do.
    """
    check_caches_alone(strategies)
    grid = [(how, SgdStep(frozenset(), how.learning_rate)) for how in strategies]  # of which no step is taken
    start = HeldReader(reader, cache.manifest.vocabulary.size)
    return personalize_held(start, cache, clients, grid, split, cores=cores, words=words, progress=progress)


def check_caches_alone(strategies: Sequence[FineTuning]) -> None:
    """Raises: InputError where a strategy fine-tunes, which no counted model can."""
    if trains := [how for how in strategies if how.epochs]:
        raise InputError(
            f"strategy {trains[0]} moves parameters by SGD, and a counted model has none; give caches alone "
            "(--fitted, --bigram 0.1; from Python FineTuning(epochs=0, fitted=True))."
        )


def personalize_held(
    start: HeldModel,
    cache: Cache,
    clients: Sequence[int] | NDArray[np.int64],
    grid: Sequence[tuple[FineTuning, SgdStep]],
    split: TemporalSplit,
    *,
    cores: Cores,
    words: int,
    progress: Report | None,
) -> PersonalizationOutcome:
    """See `personalize_clients`. grid: each strategy, and how its steps are taken."""
    if start.vocabulary != cache.manifest.vocabulary.size:
        raise InputError(
            f"the model knows {start.vocabulary} words and the cache {cache.manifest.vocabulary.size}: import the "
            "text with the model's own vocabulary."
        )
    if not start.finite:
        raise InputError("the global model has parameters that are not finite numbers; nothing can be made of it.")
    if not grid or words < 1:
        raise InputError(f"{len(grid)} strategies on {words} words a sentence: give at least one of each.")

    def one(device: Any, client: int) -> ClientOutcome | SkippedClient:
        with jax.default_device(device):
            return personalize_client(start, cache, client, grid, split, words)

    import scipy.linalg.cython_blas  # noqa: F401  the library behind compiled products: loaded, so that the limit holds
    from threadpoolctl import threadpool_limits

    found = []
    with threadpool_limits(1, user_api="blas"):  # a worker is one thread
        for outcome in cores.stream(one, [int(client) for client in clients]):
            if progress is not None:
                progress(outcome)
            found.append(outcome)
    return PersonalizationOutcome(
        strategies=tuple(how for how, _ in grid),
        split=split,
        outcomes=tuple(each for each in found if isinstance(each, ClientOutcome)),
        skipped=tuple(each for each in found if isinstance(each, SkippedClient)),
    )
