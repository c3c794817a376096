"""An n-gram model as a keyboard reads it, and the folder that it is kept in: that of a network, with other arrays."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from safetensors.numpy import save

from tacit.errors import InputError
from tacit.files import write_whole
from tacit.networks.model_files import ModelFiles
from tacit.networks.models import SETTINGS, WEIGHTS, WORDS
from tacit.networks.ngram.tables import FloatArray, NGramTables
from tacit.records import from_plain, to_plain
from tacit.text.vocabulary import BOS

KIND = "ngram"
Context: TypeAlias = tuple[int, ...]  # the last tokens of the sentence, its beginning one of them


class NGramReader:
    """See `suggest.Reader`: the scores are natural logarithms of probabilities that sum to 1.

    Padding and the beginning have -infinity.
    """

    def __init__(self, tables: NGramTables) -> None:
        self.tables = tables

    def begin(self) -> Context:
        """See Reader."""
        return ()

    def step(self, state: Context, token: int) -> tuple[Context, FloatArray]:
        """See Reader."""
        context = self.following(state, token)
        with np.errstate(divide="ignore"):
            return context, np.log(self.tables.after(context))

    def following(self, state: Context, token: int) -> Context:
        """What is looked up after this token: two tokens at least, which a bend looks at."""
        return (BOS,) if token == BOS else (*state, token)[-max(self.tables.order - 1, 2) :]


@dataclass(frozen=True, kw_only=True)
class NGramSettings:
    """What is written of an n-gram model beside its arrays."""

    vocabulary: int  # ids, the four specials included
    order: int  # words of the longest n-grams
    cutoffs: tuple[int, ...]  # of 2, 3, ... words, how often an n-gram was seen to be kept
    pair_weight: float  # of the pairs by how often they were seen


def write_ngram(folder: Path, tables: NGramTables, cutoffs: tuple[int, ...], vocabulary: bytes) -> None:
    """Write a model into an empty folder. vocabulary: the content of its file."""
    settings = NGramSettings(
        vocabulary=tables.vocabulary, order=tables.order, cutoffs=cutoffs, pair_weight=tables.pair_weight
    )
    written: dict[str, Any] = {"kind": KIND, **to_plain(settings)}
    write_whole(folder / WEIGHTS, save({name: np.ascontiguousarray(each) for name, each in tables.arrays().items()}))
    write_whole(folder / SETTINGS, (json.dumps(written, indent=1) + "\n").encode())
    write_whole(folder / WORDS, vocabulary)


def ngram_reader(files: ModelFiles) -> NGramReader:
    """Of a model folder. Raises: InputError where its files are damaged, or not of one model, or of another kind."""
    if files.kind != KIND:
        raise InputError(f"the model in '{files.folder}' is of the kind {files.kind!r}; name what `tacit ngram` wrote.")
    settings = from_plain(NGramSettings, files.settings, where=f"{files.folder / SETTINGS}")
    try:
        tables = NGramTables.from_arrays(files.weights, order=settings.order, pair_weight=settings.pair_weight)
    except ValueError as error:
        raise InputError(f"the model in '{files.folder}' is damaged ({error}); restore it from a copy.") from error
    if not tables.vocabulary == settings.vocabulary == files.vocabulary.size:
        raise files.apart()
    return NGramReader(tables)
