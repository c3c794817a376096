"""The ladder of baselines: what a trained model has to be better than, each tuned as well and counted as fairly.

PUBLIC_NGRAM     n-grams of public text, of the best order
PUBLIC_NETWORK   the network that a run begins from
FREE             both, mixed: the best model that costs no privacy
CLIENTS          n-grams of the very sentences that a run may read of its clients; without privacy
BOTH             those and public text's; without privacy
BOTH + network   those and the public network; without privacy
a model          what is judged, alone
model + public   the same, mixed with public n-grams

Everything that is chosen (orders, weights, how two texts become one model) is chosen on validation clients by nats. The
test clients are looked at once, at the end, by all rungs in one pass (`predictors.measured`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.comparison_models import (
    BOTH,
    BOTH_AND_NETWORK,
    CLIENTS,
    FREE,
    PUBLIC_NETWORK,
    PUBLIC_NGRAM,
    WITH_NGRAM,
    WITHOUT_PRIVACY,
    said_mixture,
)
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.predictors import Predictor, Weights, measured, probabilities, weighted_nats
from tacit.networks.metrics import TOP1
from tacit.networks.ngram.kneser_ney import Ids, KneserNey, kneser_ney, likeliest_weight
from tacit.networks.ngram.merge import likeliest_shares, merged
from tacit.networks.ngram.rows import NGramRows
from tacit.networks.ngram.tables import NGramTables
from tacit.text.vocabulary import PAD

if TYPE_CHECKING:  # SciPy would come with it
    from tacit.evaluation.intervals import Estimate

Floats = NDArray[np.float64]
ORDERS = (3, 4, 5)
CUTOFFS = (1, 1, 1, 1)  # of 2, 3, ... words, how often an n-gram has to be seen to be kept: every one is
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)  # of the second text, where counts of two are added up; tried from FIRST on
FIRST = 0.7
TOP3 = "top3_accuracy"


# -- what is counted -----------------------------------------------------------------------------------------------


def training_text(
    cache: Cache, clients: Ids, *, sentences: int, words: int, visits: int = 1, seed: int = 1
) -> NDArray[np.int64]:
    """(n,) ids of what a run may read of its clients: of each at most `sentences` a visit, each of at most `words`.

    A device that takes part trains on a random subset of its sentences (`training.client.gather`), a fresh one each
    time, cut after `words` targets. Of a client with no more sentences than that, these are all; of another, the union
    of `visits` subsets drawn by the same rule, by a seed of this function's own. An end that is cut off is not counted.
    Raises: InputError where that is none.
    """
    parts = []
    for client in clients.tolist():
        there = cache.sentence_count(client)
        chosen = np.arange(there)
        if there > sentences:
            generator = np.random.default_rng([seed, client])
            drawn = [generator.permutation(there)[:sentences] for _ in range(visits)]
            chosen = np.unique(np.concatenate(drawn))
        padded = cache.padded(client, chosen, words + 1)
        parts.append(padded[padded != PAD])
    text = np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)
    if not len(text):
        raise InputError(f"{len(clients)} clients leave no sentence to count; give some that typed.")
    return text


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedText:
    """The n-grams of one text, of the order under which validation clients' text is likeliest."""

    text: Ids
    model: KneserNey
    pair_weight: float
    nats: float  # a token of the validation clients

    @property
    def order(self) -> int:
        """Words of the longest n-grams."""
        return len(self.model.levels) + 1

    @property
    def rows(self) -> NGramRows:
        """The same as a predictor."""
        return NGramRows.of_model(self.model, self.pair_weight)


def counted(
    text: Ids,
    validation: HeldOut,
    *,
    vocabulary: int,
    orders: Sequence[int] = ORDERS,
    cutoffs: Sequence[int] = CUTOFFS,
) -> CountedText:
    """Kneser-Ney models of a text of all these orders, of which the one is kept that validation clients find likeliest.

    text: sentences one after another, as `training_text` and `trigram.text_of` give them.
    """
    judge = text_in(validation)
    best: CountedText | None = None
    for order in orders:
        found = _counted(text, judge, vocabulary=vocabulary, order=order, cutoffs=tuple(cutoffs[: order - 1]))
        best = found if best is None or found.nats < best.nats else best
    if best is None:
        raise InputError("orders=() leaves no n-gram to count; give some of 2 or more.")
    return best


def _counted(text: Ids, judge: Ids, *, vocabulary: int, order: int, cutoffs: tuple[int, ...]) -> CountedText:
    model = kneser_ney(text, vocabulary=vocabulary, order=order, cutoffs=cutoffs)
    levels, pairs = model.probabilities(judge)
    weight = likeliest_weight(levels, pairs)
    nats = weighted_nats([levels, pairs], [1 - weight, weight])
    return CountedText(text=text, model=model, pair_weight=weight, nats=nats)


def text_in(held_out: HeldOut) -> Ids:
    """(n,) ids of held-out sentences, one after another."""
    text: Ids = held_out.sentences[held_out.sentences != PAD].astype(np.int64)
    return text


# -- what is tuned -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Blend:
    """Several texts as one model, in the way that validation clients find likeliest."""

    # Of counts that were added up; None: the texts' models are mixed by `weights`.
    predictor: Predictor | None = field(repr=False)
    weights: tuple[float, ...]
    nats: float


def blended(texts: Sequence[CountedText], validation: HeldOut) -> Blend:
    """Interpolated with one weight each, or with their counts added up by weighted shares: what validation likes.

    Counts of two texts are tried with SHARES of the second; those of more with the shares of the interpolation. They
    are rounded to bytes first, as a keyboard's file has them.
    """
    if len(texts) == 1:
        return Blend(predictor=None, weights=(1.0,), nats=texts[0].nats)
    found = probabilities({str(at): each.rows for at, each in enumerate(texts)}, validation)
    weights, nats = tuned(list(found.values()))
    best = Blend(predictor=None, weights=weights, nats=nats)
    tables = _of_one_order(texts)
    summed = _best_share(tables, validation) if len(texts) == 2 else _summed(tables, _above_zero(weights), validation)
    return summed if summed.nats < best.nats else best


def _best_share(tables: Sequence[NGramTables], validation: HeldOut) -> Blend:
    """Of two texts: from FIRST on along SHARES, in the direction in which validation clients' text gets likelier."""
    at = SHARES.index(FIRST)
    best = _summed(tables, (1 - FIRST, FIRST), validation)
    for others in (SHARES[at + 1 :], SHARES[:at][::-1]):
        before = best
        for share in others:
            found = _summed(tables, (1 - share, share), validation)
            if found.nats >= best.nats:
                break
            best = found
        if best is not before:
            break
    return best


def _summed(tables: Sequence[NGramTables], shares: tuple[float, ...], validation: HeldOut) -> Blend:
    rows = NGramRows.of_tables(merged(tables, shares))
    nats = weighted_nats(list(probabilities({BOTH: rows}, validation).values()), [1.0])
    return Blend(predictor=rows, weights=shares, nats=nats)


def _of_one_order(texts: Sequence[CountedText]) -> list[NGramTables]:
    """Their tables; those of shorter n-grams are counted again, as long as the longest."""
    order = max(each.order for each in texts)
    found = []
    for each in texts:
        model = each.model
        if each.order < order:
            size = each.model.vocabulary
            model = kneser_ney(each.text, vocabulary=size, order=order, cutoffs=CUTOFFS[: order - 1])
        found.append(NGramTables.packed(model, each.pair_weight))
    return found


def _above_zero(shares: Sequence[float]) -> tuple[float, ...]:
    raised = np.maximum(shares, 1e-6)
    return tuple((raised / raised.sum()).tolist())


def tuned(found: Sequence[Floats]) -> tuple[tuple[float, ...], float]:
    """(the weights under which validation clients' tokens are likeliest, nats a token). found: their probabilities."""
    shares = likeliest_shares(np.stack(found), np.ones(len(found[0]))) if len(found) > 1 else np.ones(1)
    weights = tuple(shares.tolist())
    return weights, weighted_nats(found, weights)


# -- the ladder ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Ladder:
    """How each rung does on the same test clients, client by client, and what was chosen for it on validation ones."""

    rungs: Mapping[str, Evaluation]
    weights: Mapping[str, Weights]  # of the rungs that are mixtures
    validation: Mapping[str, float]  # nats a token of validation clients, ends and unknown words too
    parts: Mapping[str, Predictor] = field(repr=False)

    @property
    def free(self) -> str | None:
        """The rung that is the best free model: of those there are, the one that validation clients find likeliest.

        None where no rung is of public text alone.
        """
        there = [name for name in (PUBLIC_NGRAM, PUBLIC_NETWORK, FREE) if name in self.rungs]
        return min(there, key=lambda name: self.validation[name], default=None)

    def on(self, others: HeldOut, rung: str) -> Evaluation:
        """How a rung does on other clients."""
        weights = self.weights_of(rung)
        parts = {name: self.parts[name] for name in weights}
        return measured(parts, others, mixtures={} if rung in parts else {rung: weights})[rung]

    def weights_of(self, rung: str) -> Weights:
        """Of the parts that a rung is made of."""
        return self.weights.get(rung, {rung: 1.0})

    def said(self, rung: str) -> str:
        """What a rung is made of, with the weights that validation clients chose."""
        return said_mixture(self.weights_of(rung))

    def sums(self, rung: str) -> dict[str, Floats]:
        """(clients,) each: `words` typed, `predicted` of them in the vocabulary, `top1` and `top3` hits, and `nats` of
        the predicted ones. An accuracy over all typed words is hits over words: an unknown one is missed.
        """
        each = self.rungs[rung].clients
        columns = {
            "words": [client.words for client in each],
            "predicted": [client.predicted for client in each],
            "top1": [client.sums[TOP1] for client in each],
            "top3": [client.sums[TOP3] for client in each],
            "nats": [client.sums["cross_entropy"] for client in each],
        }
        return {name: np.array(column, np.float64) for name, column in columns.items()}

    def gain(self, rung: str, over: str | None = None, what: str = "top3", of: str = "words") -> "Estimate":
        """The rung's accuracy less the other's, the best free model's by default, with its 95% interval over clients.

        what, of: two of `sums`. Raises: InputError where no other is given and none is free.
        """
        from tacit.evaluation.intervals import ratio_of_means  # SciPy comes with it

        other = self.free if over is None else over
        if other is None:
            raise InputError("no rung is of public text alone, so there is no free model; give public text, too.")
        ours, theirs = self.sums(rung), self.sums(other)
        return ratio_of_means(ours[what] - theirs[what], ours[of])


def ladder(
    held_out: HeldOut,
    validation: HeldOut,
    *,
    public: Sequence[CountedText] = (),
    public_network: Predictor | None = None,
    clients: CountedText | None = None,
    models: Mapping[str, Predictor] | None = None,
) -> Ladder:
    """Every rung that these parts make. held_out: of test clients. validation: of others, by whom all is chosen.

    public: texts that are nobody's. clients: of `training_text`. models: what is judged, by names of its own. Raises:
    InputError where nothing is given, for a model with the name of a rung, and where the test clients are the
    validation clients.
    """
    check_apart(held_out, validation)
    if taken := {PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, *WITHOUT_PRIVACY} & set(models or {}):
        raise InputError(f"a model is called {min(taken)!r}, as a rung of the ladder is; give it another name.")
    parts: dict[str, Predictor] = {}
    rungs: dict[str, tuple[str, ...]] = {}  # by name, the parts that are mixed
    open_texts = _add_blend(parts, PUBLIC_NGRAM, public, validation)
    if public_network is not None:
        parts[PUBLIC_NETWORK] = public_network
    network = (PUBLIC_NETWORK,) if public_network is not None else ()
    if open_texts and network:
        rungs[FREE] = (*open_texts, *network)
    if clients is not None:
        parts[CLIENTS] = clients.rows
        if public:
            both = _add_blend(parts, BOTH, (*public, clients), validation, known={id(clients): CLIENTS})
            rungs |= {BOTH: both} if len(both) > 1 else {}
            rungs |= {BOTH_AND_NETWORK: (*both, *network)} if network else {}
    for name, model in (models or {}).items():
        parts[name] = model
        if open_texts:
            rungs[name + WITH_NGRAM] = (*open_texts, name)
    if len(open_texts) > 1:
        rungs[PUBLIC_NGRAM] = open_texts
    return _climbed(parts, rungs, held_out, validation)


def _add_blend(
    parts: dict[str, Predictor],
    name: str,
    texts: Sequence[CountedText],
    validation: HeldOut,
    known: Mapping[int, str] | None = None,
) -> tuple[str, ...]:
    """The parts that together are the texts' model; those that are not there yet are added."""
    if not texts:
        return ()
    blend = blended(texts, validation)
    if len(texts) == 1 or blend.predictor is not None:
        parts[name] = texts[0].rows if blend.predictor is None else blend.predictor
        return (name,)
    names = []
    for at, each in enumerate(texts, start=1):
        own = (known or {}).get(id(each)) or (
            PUBLIC_NGRAM if len(texts) - len(known or {}) == 1 else f"public text {at}"
        )
        parts.setdefault(own, each.rows)
        names.append(own)
    return tuple(names)


def _climbed(
    parts: Mapping[str, Predictor], rungs: Mapping[str, tuple[str, ...]], held_out: HeldOut, validation: HeldOut
) -> Ladder:
    found = probabilities(parts, validation)
    weights, nats = {}, {name: weighted_nats([each], [1.0]) for name, each in found.items()}
    for name, mixed in rungs.items():
        shares, nats[name] = tuned([found[each] for each in mixed])
        weights[name] = dict(zip(mixed, shares, strict=True))
    found_rungs = measured(parts, held_out, mixtures=weights)
    return Ladder(rungs=found_rungs, weights=weights, validation=nats, parts=parts)


def check_apart(held_out: HeldOut, validation: HeldOut) -> None:
    """Raises: InputError where those who judge are those by whom something is chosen: sentences of one array.

    Who is told from whom by where a text lies and never by what it says: others may have typed the same.
    """
    if np.shares_memory(held_out.sentences, validation.sentences):
        raise InputError(
            "the validation clients are among the test clients, and what is chosen by those who judge is not judged; "
            "read the cache's validation part."
        )
