"""An n-gram model of public text: the strongest predictor that costs no privacy, in a few megabytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.result import JobResult
from tacit.networks.models import ORIGIN, SETTINGS, WEIGHTS, WORDS
from tacit.progress import Progress, silent
from tacit.records import json_ready

if TYPE_CHECKING:  # NumPy and a cache would come with them
    from tacit.data import Cache
    from tacit.reports.blocks import Block

FILES = (WEIGHTS, SETTINGS, WORDS, ORIGIN)
ORDER = 4
CUTOFFS = (1, 2, 3)  # for the lengths from 2 on; the last one for longer ones, too


@dataclass(frozen=True, kw_only=True)
class NGramModel(JobResult):
    """A counted model, and how it does on public text that it did not count."""

    folder: Path
    source: str  # the public text
    words: int  # tokens that were counted: words, unknown words and ends of sentences
    ngrams: tuple[int, ...]  # that were kept, of 2, 3, ... words
    cutoffs: tuple[int, ...]
    pair_weight: float
    held_out: float | None  # nats a token of public text that was not counted; None: there was none
    bytes: int  # of all files

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit ngram --json` prints."""
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.ngram",
                "version": 1,
                "folder": str(self.folder),
                "source": self.source,
                "words": self.words,
                "ngrams": list(self.ngrams),
                "cutoffs": list(self.cutoffs),
                "pair_weight": self.pair_weight,
                "held_out": self.held_out,
                "bytes": self.bytes,
            }
        )
        return record

    def blocks(self) -> "list[Block]":
        """What people read of it: how large it is, how it does, and how to ask it for words."""
        from tacit.reports.blocks import Paragraph, Table

        rows = tuple(
            (str(length), f"{count:,}", str(cutoff))
            for length, (count, cutoff) in enumerate(zip(self.ngrams, self.cutoffs, strict=True), start=2)
        )
        held_out = "none was left out" if self.held_out is None else f"{self.held_out:.3f} nats a token"
        return [
            Table(rows, ("words", "n-grams", "seen at least")),
            Paragraph(f"Counted: {self.words:,} tokens of {self.source}. Public text that was left out: {held_out}."),
            Paragraph(f"{self.folder}: {self.bytes / 1e6:.1f} MB. Nothing is promised to anybody: the text is public."),
            Paragraph(f"Ask it for next words: tacit suggest {self.folder} 'I will'"),
        ]


def ngram(
    data: "Cache | PathLike",
    out: PathLike,
    *,
    order: int = ORDER,
    cutoffs: Sequence[int] | None = None,
    declared_public: bool = False,
    progress: Progress = silent,
) -> NGramModel:
    """Count a Kneser-Ney model of the training part of a cache of public text, into the folder `out`.

    data: a cache of public text. out: the folder to write. order: the words of the longest n-grams. cutoffs: for each
    length from 2 on, how often an n-gram has to be seen to be kept; left out, 1, 2, then 3. A mixture with plain pairs
    is weighted by the validation part. declared_public: as in `pretrain`. A counted model that is at `out` is replaced.
    Raises: InputError where the text is clients' and not declared public, where nothing can be counted, and where `out`
    is something else.
    """
    import numpy as np

    from tacit.evaluation.trigram import text_of
    from tacit.jobs.counted_folder import check_place, written_whole
    from tacit.jobs.run_start import public_cache, public_source
    from tacit.networks.model_files import write_origin
    from tacit.networks.ngram.kneser_ney import check_cutoffs, kneser_ney, likeliest_weight
    from tacit.networks.ngram.reader import write_ngram
    from tacit.networks.ngram.tables import NGramTables
    from tacit.text.vocabulary import BOS

    of_type("order", order, int)
    chosen = tuple(CUTOFFS[min(at, len(CUTOFFS) - 1)] for at in range(order - 1)) if cutoffs is None else tuple(cutoffs)
    of_type("cutoffs", chosen, tuple)
    for each in chosen:
        of_type("cutoffs", each, int)
    check_cutoffs(order, chosen)
    folder = as_path("out", out)
    check_place(folder, FILES)
    cache = public_cache(data, declared_public=declared_public, progress=progress)
    if not len(cache.clients("train")):
        raise InputError(f"the cache '{cache.path}' has no training part to count; import more text.")
    text = text_of(cache, cache.clients("train"))
    model = kneser_ney(text, vocabulary=cache.manifest.vocabulary.size, order=order, cutoffs=chosen)
    weight, held_out = 0.0, None
    if len(others := cache.clients("validation")):
        levels, pairs = model.probabilities(text_of(cache, others))
        weight = likeliest_weight(levels, pairs)
        held_out = float(-np.mean(np.log((1 - weight) * levels + weight * pairs)))
    tables = NGramTables.packed(model, weight)
    with written_whole(folder, FILES) as draft:
        write_ngram(draft, tables, chosen, cache.vocabulary_json.encode())
        write_origin(draft, public_source(cache))
    return NGramModel(
        folder=folder,
        source=public_source(cache),
        words=int((text != BOS).sum()),
        ngrams=tuple(len(level.words) for level in tables.levels),
        cutoffs=chosen,
        pair_weight=weight,
        held_out=held_out,
        bytes=sum((folder / name).stat().st_size for name in FILES),
    )
