"""Several predictors of the next word, measured on the same held-out clients in one pass.

`reader_accuracy.evaluate_reader` is the slow reference: one step of one reader a token. Here each predictor writes the
probabilities of all words in the place of every target of some sentences, and whatever is asked is taken from these
rows while they are in memory: accuracies, nats, and those of mixtures, whose rows are weighted sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.held_out import HeldOut
from tacit.files import PathLike, as_path
from tacit.networks.language_model import LanguageModel, Parameters, kinds_of
from tacit.networks.metrics import END, KNOWN, METRICS, UNKNOWN, Counts, Words
from tacit.networks.ngram.bend import Bend
from tacit.networks.ngram.rows import NGramRows, bend_rows, contexts_of, mix, taken, targets_of
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

Rows = NDArray[np.float32]
Sentences = NDArray[np.int32]
Weights = Mapping[str, float]  # of predictors by name, in a mixture; they sum to 1
AT_ONCE = 16  # sentences: their rows of a few predictors are a few megabytes
STEP = 4  # to which the words of a batch's longest sentence are rounded up: so few programs are compiled


class Predictor(Protocol):
    """Whatever gives a distribution over all words in the place of each target."""

    @property
    def vocabulary(self) -> int:
        """V, the four specials included."""
        ...

    def fill(self, sentences: Sentences, rows: Rows) -> None:
        """Write the probabilities (T, V) in the place of each target of padded sentences (S, L+1), in their order.

        A target is every token after the first but padding; each row sums to 1 and has 0 for padding and the beginning.
        """
        ...

    def likelihoods(self, sentences: Sentences) -> Rows:
        """(T,) of each target itself, as its row has it."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkRows:
    """A network: the probabilities of what may come next, which padding and the beginning never do."""

    network: LanguageModel
    parameters: Parameters
    bend: Bend | None = None  # private counts beside it, as a mixture's folder has them

    @property
    def vocabulary(self) -> int:
        """See Predictor."""
        return self.network.vocabulary

    def fill(self, sentences: Sentences, rows: Rows) -> None:
        """See Predictor."""
        # XLA scores whole batches, padding too; the softmax is of the targets alone.
        padded = np.zeros((AT_ONCE if len(sentences) <= AT_ONCE else len(sentences), sentences.shape[1]), np.int32)
        padded[: len(sentences)] = sentences
        found = np.asarray(_scores(self.network)(self.parameters, padded))
        there = np.flatnonzero(padded[:, 1:] != PAD)
        np.take(found.reshape(-1, self.vocabulary), there, axis=0, out=rows, mode="clip")  # or NumPy copies twice
        rows[:, [PAD, BOS]] = -np.inf
        rows -= rows.max(axis=1, keepdims=True)
        np.exp(rows, out=rows)
        rows /= rows.sum(axis=1, keepdims=True)
        if self.bend is not None:
            bend_rows(self.bend, contexts_of(sentences, 2), rows)

    def likelihoods(self, sentences: Sentences) -> Rows:
        """See Predictor."""
        return taken(self, sentences)


@lru_cache(maxsize=8)
def _scores(network: LanguageModel) -> Any:
    """Compiled: (parameters, sentences (B, L+1)) -> scores (B, L, V)."""
    import jax
    import jax.numpy as jnp

    def of(parameters: Parameters, sentences: Any) -> Any:
        return network.logits(parameters, sentences[:, :-1]).astype(jnp.float32)

    return jax.jit(of)


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted:
    """A mixture of predictors with fixed weights, as one of them."""

    parts: tuple[tuple[Predictor, float], ...]

    @property
    def vocabulary(self) -> int:
        """See Predictor."""
        return self.parts[0][0].vocabulary

    def fill(self, sentences: Sentences, rows: Rows) -> None:
        """See Predictor."""
        (first, weight), *others = self.parts
        first.fill(sentences, rows)
        own, scratch = np.float32(weight), np.empty_like(rows)
        for predictor, share in others:
            predictor.fill(sentences, scratch)
            mix(rows, own, scratch, np.float32(share))
            own = np.float32(1)

    def likelihoods(self, sentences: Sentences) -> Rows:
        """See Predictor."""
        each = np.stack([np.float32(weight) * part.likelihoods(sentences) for part, weight in self.parts])
        found: Rows = each.sum(axis=0)
        return found


def predictor_at(path: PathLike) -> Predictor:
    """Of a model folder, or of a run or pre-training: a network, an n-gram, or a mixture. Raises: InputError."""
    from tacit.keyboard.mixture import KIND, mixture_reader, network_files
    from tacit.keyboard.model_folder import parameters_of
    from tacit.networks.model_files import read_files
    from tacit.networks.ngram.reader import KIND as COUNTED
    from tacit.networks.ngram.reader import ngram_reader

    files = read_files(as_path("path", path))
    if files.kind == COUNTED:
        return NGramRows.of_tables(ngram_reader(files).tables)
    if files.kind != KIND:
        network, vocabulary = files.network(), files.vocabulary
        return NetworkRows(network=network, parameters=parameters_of(files, network, vocabulary))
    tables, bend, weight = mixture_reader(files).counted
    counted = NGramRows.of_tables(tables, bend)
    said = files.settings["network"]
    if said is None:
        return counted
    part = network_files(files, said)
    network = part.network()
    parameters = parameters_of(part, network, files.vocabulary)
    bent = bend if files.settings["network_bent"] else None
    return Weighted(
        parts=((counted, 1 - weight), (NetworkRows(network=network, parameters=parameters, bend=bent), weight))
    )


# -- measuring -----------------------------------------------------------------------------------------------------


class Tokens(NamedTuple):
    """The targets of held-out clients and what is known of each, (N,); in the order of the clients' sentences."""

    targets: NDArray[np.int64]
    client: NDArray[np.int64]


def tokens_of(held_out: HeldOut) -> Tokens:
    """All targets: words, unknown words and ends."""
    after = held_out.sentences[:, :, 1:]
    client, _, _ = np.nonzero(after != PAD)
    return Tokens(after[after != PAD].astype(np.int64), client)


def measured(
    predictors: Mapping[str, Predictor], held_out: HeldOut, *, mixtures: Mapping[str, Weights] | None = None
) -> dict[str, Evaluation]:
    """How each predictor does, and each mixture of some of them, client by client, as `accuracy.evaluate` counts.

    mixtures: by a name of its own, the weights of the predictors in it. Raises: InputError for predictors of different
    words, and mixtures of what there is not.
    """
    mixed = mixtures or {}
    check_predictors(predictors, mixed)
    tokens = tokens_of(held_out)
    found = {name: _unmeasured(len(tokens.targets)) for name in (*predictors, *mixed)}
    longest = max(AT_ONCE * (held_out.sentences.shape[2] - 1), 1)
    size = next(iter(predictors.values())).vocabulary
    memory = {name: np.empty((longest, size), np.float32) for name in predictors}
    for places, sentences in _chunks(held_out):
        targets, rows = targets_of(sentences), {name: each[: len(places)] for name, each in memory.items()}
        for name, own in rows.items():
            predictors[name].fill(sentences, own)
            _rank(own, targets, places, *found[name])
        for name, weights in mixed.items():
            _rank(_mixed(rows, weights), targets, places, *found[name])
    kind = kinds_of(tokens.targets, np)
    clients = len(held_out.sentences)
    return {
        name: evaluation_of(Words(rank=rank, nats=nats, kind=kind, first=first), tokens.client, clients)
        for name, (rank, nats, first) in found.items()
    }


def probabilities(predictors: Mapping[str, Predictor], held_out: HeldOut) -> dict[str, NDArray[np.float64]]:
    """(N,) of every target of held-out clients by each predictor, ends and unknown words too: to tune weights by."""
    check_predictors(predictors, {})
    tokens = tokens_of(held_out)
    found = {name: np.empty(len(tokens.targets)) for name in predictors}
    for places, sentences in _chunks(held_out):
        for name, predictor in predictors.items():
            found[name][places] = predictor.likelihoods(sentences)
    return found


def check_predictors(predictors: Mapping[str, Predictor], mixtures: Mapping[str, Weights]) -> None:
    """Raises: InputError for no predictor, ones of different words, and mixtures that are none of these."""
    sizes = {name: each.vocabulary for name, each in predictors.items()}
    if not sizes or len(set(sizes.values())) > 1:
        raise InputError(f"predictors of {sizes} words are not measured side by side; give some of the same words.")
    for name, weights in mixtures.items():
        whole = sum(weights.values())
        if name in predictors or not weights or set(weights) - set(predictors) or abs(whole - 1) > 1e-6:
            raise InputError(
                f"the mixture {name!r} has the weights {dict(weights)}; they are of {', '.join(predictors)}, and their "
                "sum is 1."
            )


def evaluation_of(words: Words, client: NDArray[np.int64], clients: int) -> Evaluation:
    """The sums over each client's targets. words: (N,) each. client: (N,) whose each target is."""
    typed, known = (words.kind == KNOWN) | (words.kind == UNKNOWN), words.kind == KNOWN
    over = {"predicted": known, "words": typed, "tokens": typed | (words.kind == END)}

    def of_each(which: Any, weights: Any = None) -> list[float]:
        return np.bincount(client[which], weights, minlength=clients).tolist()  # type: ignore[no-any-return]

    sums = {}
    for name, metric in METRICS.items():
        added, which = metric.of(words), over[metric.over]
        sums[name] = of_each(which & added) if added.dtype == bool else of_each(which, added[which])
    columns = (of_each(typed), of_each(words.kind == END), of_each(known))
    each = tuple(
        Counts(*row, sums={name: column[at] for name, column in sums.items()}).host()
        for at, row in enumerate(zip(*columns, strict=True))
    )
    return Evaluation(total=sum(each, Counts()), clients=each)


def _chunks(held_out: HeldOut) -> Iterator[tuple[NDArray[np.int64], Sentences]]:
    """(the places of their targets, sentences of about one length), until all were there."""
    flat = held_out.sentences.reshape(-1, held_out.sentences.shape[2])
    lengths = (flat[:, 1:] != PAD).sum(axis=1)
    begins = np.cumsum(lengths) - lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    for start in range(0, len(order), AT_ONCE):
        here = order[start : start + AT_ONCE]
        length = min(-(-int(lengths[here].max()) // STEP) * STEP, flat.shape[1] - 1)
        places = np.concatenate([np.arange(begins[at], begins[at] + lengths[at]) for at in here])
        yield places, np.ascontiguousarray(flat[here, : length + 1])


def _mixed(rows: Mapping[str, Rows], weights: Weights) -> Rows:
    (name, weight), *others = weights.items()
    found = rows[name].copy()
    own = np.float32(weight)
    for other, share in others:
        mix(found, own, rows[other], np.float32(share))
        own = np.float32(1)
    return found


def _unmeasured(tokens: int) -> tuple[Any, Any, Any]:
    return np.zeros(tokens, np.int64), np.zeros(tokens), np.zeros(tokens, np.bool_)


@compiled
def _rank(rows: Any, targets: Any, places: Any, rank: Any, nats: Any, first: Any) -> None:
    """Of each target, as `reader_accuracy` says of one: suggestions before it, -log of its probability, whether no
    token is before it.
    """
    # A loop that compares and one that adds are vectorised; one that does both is not.
    beats = np.empty(rows.shape[1], np.int8)
    for t in range(len(targets)):
        target = targets[t]
        own = rows[t, target]
        for w in range(rows.shape[1]):
            beats[w] = rows[t, w] > own
        for w in range(target):
            beats[w] = rows[t, w] >= own
        before = np.int32(0)
        for w in range(SPECIALS, rows.shape[1]):
            before += beats[w]
        rank[places[t]] = before
        nats[places[t]] = -np.log(np.float64(own))
        likelier = False
        for special in (EOS, OOV):
            likelier |= rows[t, special] > own or (rows[t, special] == own and special < target)
        first[places[t]] = before == 0 and not likelier


def weighted_nats(found: Sequence[NDArray[np.float64]], weights: Sequence[float]) -> float:
    """Mean -log of a mixture's probabilities: by what weights are chosen."""
    return float(-np.log(sum(w * p for w, p in zip(weights, found, strict=True))).mean())
