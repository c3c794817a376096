"""The best free model of a public text, measured on passages of it: what every private model is judged over."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import InputError, TacitError
from tacit.jobs.opened_cache import open_cache
from tacit.planning.judgement import FreeModel
from tacit.progress import Progress, StageBegan, StageEnded, silent

if TYPE_CHECKING:
    from tacit.data import Cache
    from tacit.files import PathLike

STAGE = "measuring what is free"
WORDS = 2_000_000  # that n-grams count: some seconds
PASSAGES = 200  # that choose, and as many that measure
SENTENCES, LONGEST = 16, 20  # of each, and words of a sentence, as in a training's evaluations
IN_ALL = PASSAGES * SENTENCES  # of fewer passages more of each: 64 sentences of four novels say little
ORDERS = (3, 4)


def free_model(
    public: "Cache | PathLike | None", network: Path | None = None, *, progress: Progress = silent
) -> FreeModel | None:
    """N-grams of a public text, a network of it, and both mixed: the likeliest of them. None where no text is known.

    public: a cache of public text; left out, that which `network` was made of, where it is at hand. network: a model
    of `tacit pretrain`. Half of the text's held-out passages choose, the other half measure: once in a process, however
    often it is asked. Raises: InputError for clients' text, for parts of different words and for a text without
    passages that are held out.
    """
    from tacit.networks.model_files import read_files

    cache = open_cache(public) if public is not None else None if network is None else _text_of(network)
    if cache is None:
        return None
    if not cache.manifest.public:
        raise InputError(
            f"the text in '{cache.path}' is clients' ({cache.manifest.source}), and a model of it is not free; name a "
            "cache of public text (`tacit data import public:FILE.parquet`)."
        )
    files = None if network is None else read_files(network)
    if files is not None and files.vocabulary.sha256 != cache.manifest.vocabulary.sha256:
        raise InputError(f"the model in '{network}' knows other words than the public text in '{cache.path}'.")
    if len(_held_out(cache)) < 2 or not len(cache.clients("train")):
        raise InputError(f"the public text in '{cache.path}' has no passages held out to measure on; import more.")
    progress(StageBegan(STAGE))
    found = _measured(cache.path, cache.manifest.digest, network, "" if files is None else files.digest)
    progress(StageEnded(STAGE))
    return found


def _held_out(cache: "Cache") -> list[int]:
    return [client for split in ("validation", "test") for client in cache.clients(split).tolist()]


@lru_cache(maxsize=8)
def _measured(public: Path, digest: str, network: Path | None, network_digest: str) -> FreeModel:
    """digest, network_digest: of what is in these folders, so that it is measured anew where that changes."""
    import numpy as np

    from tacit.data import Cache
    from tacit.evaluation.comparison_models import PUBLIC_NETWORK
    from tacit.evaluation.held_out import HeldOut
    from tacit.evaluation.ladder import counted, ladder
    from tacit.evaluation.predictors import predictor_at
    from tacit.evaluation.trigram import text_of
    from tacit.networks.metrics import TOP1
    from tacit.text.vocabulary import PAD

    cache = Cache.open(public)
    held_out = _held_out(cache)
    choosing, measuring = (
        HeldOut.read(cache, np.array(each), sentences=max(SENTENCES, -(-IN_ALL // len(each))), words=LONGEST)
        for each in (held_out[::2][:PASSAGES], held_out[1::2][:PASSAGES])
    )
    ngrams = counted(
        text_of(cache, cache.clients("train"), WORDS),
        choosing,
        vocabulary=cache.manifest.vocabulary.size,
        orders=ORDERS,
    )
    found = ladder(
        measuring,
        choosing,
        public=[ngrams],
        public_network=None if network is None else predictor_at(network),
    )
    best = found.free
    assert best is not None  # the n-grams are free
    alone = found.rungs.get(PUBLIC_NETWORK)
    return FreeModel(
        weights=dict(found.weights_of(best)),
        text=cache.manifest.source,
        top1=found.rungs[best].total.value(TOP1),
        network=None if alone is None else alone.total.value(TOP1),
        sentences=int((measuring.sentences != PAD).any(axis=2).sum()),
    )


def free_model_for(
    network: Path | None, public: "Cache | PathLike | None" = None, *, progress: Progress = silent
) -> FreeModel | None:
    """The same of `public`, or else of the network's own text; None where that is not at hand, or no text to measure
    on. Raises: as that, for `public` alone.
    """
    if public is not None:
        return free_model(public, network, progress=progress)
    try:
        return free_model(None, network, progress=progress)
    except TacitError:
        return None


def _text_of(network: Path) -> "Cache | None":
    from tacit.jobs.ladder import public_text_of

    try:
        return public_text_of(network)
    except TacitError:
        return None
