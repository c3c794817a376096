"""People and what they upload: clients of a cache, a network that learnt public text, and one step of SGD of each.

What is computed here is what devices compute: `training.client` and `aggregation`, nothing of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.aggregation import FloatSum
from tacit.audit.attack.settings import AttackSettings
from tacit.data import Cache
from tacit.errors import InputError
from tacit.networks.cifg.network import Cifg
from tacit.networks.cifg.parameters import CifgParameters
from tacit.networks.language_model import next_word_loss
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling
from tacit.text.vocabulary import SPECIALS
from tacit.training.central import CentralTraining, central_start, central_states
from tacit.training.client import ClientData, gather, one_client
from tacit.training.randomness import generator_for, key_from_seed, seed_for

Vector = NDArray[np.float32]
LEARNING, UPLOADING = "learning public text", "training people's uploads"  # the stages
LEARNING_RATE = 2e-2  # of the public text, as the demo's


class Uploads(NamedTuple):
    """What some clients typed and sent: one row for each."""

    sentences: NDArray[np.int32]  # (clients, S, L+1) padded
    updates: Vector  # (clients, d), not clipped
    norms: NDArray[np.float64]  # (clients,)

    def typed(self, client: int) -> NDArray[np.int64]:
        """The known words of a client's batch, each once, ascending."""
        found: NDArray[np.int64] = np.unique(self.sentences[client])
        return found[found >= SPECIALS]


@dataclass(frozen=True)
class Population:
    """The network that everybody had, those who are attacked, those who took no part, and the sums of all.

    clip_norm: the median norm of uploads by people who took no part, which adaptive clipping approaches [paper 1,
    target quantile 0.5].
    """

    network: Cifg
    model: CifgParameters  # NumPy arrays
    targets: Uploads
    outsiders: Uploads
    sums: Mapping[int, Vector]  # of clipped updates: of so many people, all targets among them
    clip_norm: float

    @property
    def parameters(self) -> int:
        """d."""
        return int(self.targets.updates.shape[1])

    def tree(self, flat: Vector) -> CifgParameters:
        """A vector (d,) as parameters; of `ravel_pytree`'s order, without a copy."""
        parts: list[Any] = []
        at = 0
        for shape in self.network.shapes().values():
            size = int(np.prod(shape))
            parts.append(flat[at : at + size].reshape(shape))
            at += size
        return CifgParameters(*parts)

    def clipped(self, of: Uploads, client: int) -> Vector:
        """A client's update as it may be summed."""
        return clipped(of, client, self.clip_norm)


def clipped(of: Uploads, client: int, clip_norm: float) -> Vector:
    """A client's update, as `aggregation.clipping.clip` clips it."""
    return np.asarray(of.updates[client] * np.float32(min(1.0, clip_norm / of.norms[client])))


def pretrained(network: Cifg, public: Cache, settings: AttackSettings, seed: int, progress: Progress) -> CifgParameters:
    """A network that learnt so many sentences of public text."""
    key, loss, clients = key_from_seed(seed), next_word_loss(network), public.clients("train")
    central = CentralTraining(learning_rate=LEARNING_RATE, words=settings.words)
    first = network.init(jax.random.key(int.from_bytes(key[:4], "little")))
    state = central_start(first, settings.pretraining, central)
    progress(StageBegan(LEARNING, settings.pretraining, opening=compiling("attack", network)))
    for later in central_states(
        loss, state, public, clients, sentences=settings.pretraining, settings=central, key=key
    ):
        state = later
        progress(Advanced(LEARNING, state.sentences))
    progress(StageEnded(LEARNING))
    model: CifgParameters = jax.device_get(state.model)
    return model


def checked_size(cache: Cache, settings: AttackSettings) -> int:
    """How many clients are needed. Raises: InputError where the cache has fewer."""
    needed, there = settings.cohort + settings.clients, len(cache.clients("train"))
    if there < needed:
        raise InputError(
            f"cohort={settings.cohort} and {settings.clients} who take no part need {needed:,} training clients, and "
            f"{there:,} are there; give a smaller cohort."
        )
    return needed


def population(
    cache: Cache, network: Cifg, model: CifgParameters, settings: AttackSettings, *, seed: int, progress: Progress
) -> Population:
    """Everybody's upload, and the sums of others' that `settings.sums` ask for.

    Raises: InputError where the cache has too few clients.
    """
    key, needed = key_from_seed(seed), checked_size(cache, settings)
    order = generator_for(key, "attack").permutation(cache.clients("train"))[: 2 * needed]
    data = gather(cache, order, settings.client, seed_for(key, "attack"))
    chosen = np.flatnonzero((data.sentences >= SPECIALS).any(axis=(1, 2)))[: 2 * settings.clients]
    if len(chosen) < 2 * settings.clients:
        raise InputError(f"clients={settings.clients}: only {len(chosen) // 2} pairs typed a known word; give fewer.")
    train = _training(network, model, settings)
    progress(StageBegan(UPLOADING, needed, opening=compiling("attack upload", network)))
    targets, outsiders = (_uploads(data, chosen[part::2], train, progress, part * settings.clients) for part in (0, 1))
    clip_norm = float(np.median(outsiders.norms))
    rest = np.setdiff1d(np.arange(len(order)), chosen)
    sizes = [size for size in settings.sums if size >= settings.clients]
    sums = dict(_sums(targets, data, rest, train, clip_norm, sizes, progress))
    progress(StageEnded(UPLOADING))
    return Population(network, model, targets, outsiders, sums, clip_norm)


Train = Callable[[ClientData, int, float], tuple[Vector, float]]  # (data, row, clip norm) -> (update (d,), norm)


def _training(network: Cifg, model: CifgParameters, settings: AttackSettings) -> Train:
    """What a device computes, compiled."""
    flat, unravel = ravel_pytree(model)
    program = one_client(next_word_loss(network), unravel, settings.client, None, "float32")

    def train(data: ClientData, row: int, clip_norm: float) -> tuple[Vector, float]:
        update, norm, _, _ = program(flat, data.sentences[row], data.batches[row], np.float32(clip_norm))
        return np.asarray(update), float(norm)

    return train


def _uploads(data: ClientData, rows: NDArray[np.int64], train: Train, progress: Progress, before: int) -> Uploads:
    updates, norms = [], []
    for done, row in enumerate(rows, start=before + 1):
        update, norm = train(data, int(row), np.inf)
        updates.append(update)
        norms.append(norm)
        progress(Advanced(UPLOADING, done))
    return Uploads(data.sentences[rows], np.stack(updates), np.array(norms))


def _sums(
    targets: Uploads,
    data: ClientData,
    others: NDArray[np.int64],
    train: Train,
    clip_norm: float,
    sizes: list[int],
    progress: Progress,
) -> Iterator[tuple[int, Vector]]:
    """(n, the sum of n clipped updates) for each size, ascending: of all targets, then of others."""
    number, sums = len(targets.norms), FloatSum(targets.updates.shape[1])
    total = sums.zero()
    for size in range(1, max(sizes) + 1):
        if size <= number:
            update = clipped(targets, size - 1, clip_norm)
        else:
            update, _ = train(data, int(others[size - number - 1]), clip_norm)
        total = sums.add(total, update)
        progress(Advanced(UPLOADING, number + max(number, size)))
        if size in sizes:
            yield size, total.copy()
