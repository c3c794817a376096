"""An exported model word by word, by ONNX Runtime: what a phone does, and no JAX."""

from collections.abc import Mapping
from pickle import PicklingError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.files import PathLike
from tacit.keyboard.exported import COUNTS, SCORE, STEP, Exported, load_exported
from tacit.keyboard.mixture import mixture_reader
from tacit.keyboard.onnx_session import NO_ENTRIES, one_line, refusals, session_of
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Reader, Scores
from tacit.networks.model_files import ModelFiles, mapped
from tacit.networks.models import SETTINGS
from tacit.networks.ngram.reader import KIND as NGRAM_KIND
from tacit.networks.ngram.reader import ngram_reader
from tacit.parsing import strict_json
from tacit.text.vocabulary import SPECIALS

State = tuple[NDArray[np.float32], ...]
GIVEN = ("word", "k")  # the inputs of a step that are no state
# Weights arranged anew for products of matrices: a second copy of them, which a single word gains nothing by where they
# are float32. Products of integers need it: without, a word of int4 takes thirty times as long.
PACKING = "session.disable_prepacking"


class Likeliest(NamedTuple):
    """The k words that may come next, the likeliest first."""

    ids: NDArray[np.int64]  # (k,)
    probabilities: NDArray[np.float32]  # (k,) by the softmax over the whole vocabulary


class OnnxReader:
    """`step.onnx` as a `suggest.Reader`; the scores are natural logarithms of probabilities."""

    def __init__(self, session: Any, opened: "tuple[Exported, int] | None" = None) -> None:
        """session: of the graph that `onnx.step.step_graph` describes. opened: of which files, by how many threads."""
        self._session, self._opened = session, opened
        self.widths = {each.name: each.shape[1] for each in session.get_inputs() if each.name not in GIVEN}
        self._after = [f"{name}_after" for name in self.widths]
        shapes = {each.name: each.shape for each in session.get_outputs()}
        self.vocabulary: int = shapes["log_probabilities"][1]  # V, the ids that it knows

    @classmethod
    def from_export(cls, exported: Exported, *, threads: int = 1) -> "OnnxReader":
        """The reader of an exported model.

        threads: of ONNX Runtime; a word is too little work for several. Raises: InputError where a file is not the one
        that was exported, the runtime cannot run it, or onnxruntime is not installed.
        """
        entries = NO_ENTRIES if exported.manifest.quantization else {PACKING: "1"}
        session = session_of(exported, STEP, threads=threads, entries=entries)
        if not _is_step(session):
            raise InputError(
                f"'{exported.folder / STEP}' is a graph, but not one of a word and a state; export the model again."
            )
        return cls(session, (exported, threads))

    def __reduce__(self) -> Any:
        """Another process opens the same files."""
        if self._opened is None:
            raise PicklingError(
                "a session without its files is of one process; make the reader by OnnxReader.from_export."
            )
        return _opened, self._opened

    def begin(self) -> State:
        """See Reader: zeros, (1, width) each."""
        return tuple(np.zeros((1, width), np.float32) for width in self.widths.values())

    def step(self, state: State, token: int) -> tuple[State, Scores]:
        """See Reader."""
        scores, *after = self._run(["log_probabilities", *self._after], state, token, 1)
        return tuple(after), scores[0]

    def likeliest(self, state: State, token: int, k: int) -> tuple[State, Likeliest]:
        """The state after this token and the k likeliest words, of which the graph itself makes the choice.

        Raises: InputError where the vocabulary has not so many words.
        """
        words = self.vocabulary - SPECIALS
        if not 1 <= k <= words:
            raise InputError(f"k={k} suggestions cannot be shown; ask for 1 to {words:,}, all words there are.")
        ids, probabilities, *after = self._run(["ids", "probabilities", *self._after], state, token, k)
        return tuple(after), Likeliest(ids[0], probabilities[0])

    def _run(self, outputs: list[str], state: State, token: int, k: int) -> list[Any]:
        given = {"word": np.array([token]), "k": np.array([k]), **dict(zip(self.widths, state, strict=True))}
        return computed(self._session, outputs, given)


def _opened(exported: Exported, threads: int) -> OnnxReader:
    return OnnxReader.from_export(exported, threads=threads)


class OnnxScorer:
    """`score.onnx`: the loss and the counts of sentences, by name as the graph gives them."""

    def __init__(self, session: Any) -> None:
        """session: of the graph that `onnx.step.score_graph` describes."""
        self._session = session
        self._names = [each.name for each in session.get_outputs()]

    @classmethod
    def from_export(cls, exported: Exported, *, threads: int = 1) -> "OnnxScorer":
        """The scorer of an exported model. Raises: as `OnnxReader.from_export`."""
        return cls(session_of(exported, SCORE, threads=threads))

    def __call__(self, sentences: NDArray[np.integer[Any]]) -> dict[str, float | int]:
        """Of padded sentences (B, L+1), each BOS, words, EOS, then PAD. Raises: InputError for an id below 0, which
        ONNX would count from the end, and as `computed`.
        """
        ids = np.asarray(sentences, np.int64)
        if (ids < 0).any():
            raise InputError(f"the id {ids.min()} is of no word; ids begin at 0.")
        found = computed(self._session, self._names, {"sentences": ids})
        return {name: each.item() for name, each in zip(self._names, found, strict=True)}


def _is_step(session: Any) -> bool:
    """Whether a graph has the inputs and outputs that `onnx.step.step_graph` describes."""
    given = {each.name: (each.type, each.shape) for each in session.get_inputs()}
    made = {each.name: (each.type, each.shape) for each in session.get_outputs()}
    rows = {name: given.pop(name, None) for name in GIVEN} | {name: made.pop(name, None) for name in ("ids",)}
    if any(found is None or found[0] != "tensor(int64)" for found in rows.values()):
        return False
    tables = [*given.values(), *(made.get(f"{name}_after", ("", [])) for name in given)]
    tables += [made.get("log_probabilities", ("", []))]
    wide = all(kind == "tensor(float)" and len(shape) == 2 and isinstance(shape[1], int) for kind, shape in tables)
    return wide and "probabilities" in made


def exported_phone_model(path: PathLike) -> PhoneModel:
    """What `tacit export` wrote, as a phone holds it. Raises: InputError, as `load_exported` and `from_export`."""
    exported = load_exported(path)
    if exported.counted:
        return counted_phone_model(exported)
    reader, vocabulary = OnnxReader.from_export(exported), exported.vocabulary()
    if reader.vocabulary != vocabulary.size:
        raise InputError(
            f"the files of '{exported.folder}' do not belong together: the graph knows {reader.vocabulary:,} ids, and "
            f"the vocabulary has {vocabulary.size:,}; export the model again."
        )
    return PhoneModel(name=str(path), reader=reader, vocabulary=vocabulary, digest=exported.digest)


def counted_phone_model(exported: Exported) -> PhoneModel:
    """A counted model or a mixture as `tacit export` wrote it: n-grams in NumPy, and the network, where there is one,
    by ONNX Runtime.

    Raises: InputError, as `load_exported` and `OnnxReader.from_export`, and where the files are not of one model.
    """
    for name in (SETTINGS, COUNTS):
        exported.file(name)
    settings = strict_json(exported.read(SETTINGS).decode())
    kind, vocabulary = str(settings.pop("kind", "")), exported.vocabulary()
    try:
        weights = mapped(exported.folder / COUNTS)
    except (SafetensorError, ValueError, KeyError) as error:
        raise InputError(f"'{exported.folder / COUNTS}' is damaged ({error}); export the model again.") from error
    files = ModelFiles(folder=exported.folder, kind=kind, settings=settings, weights=weights)
    network = OnnxReader.from_export(exported) if settings.get("network") else None
    if network is not None and network.vocabulary != vocabulary.size:
        raise files.apart()
    reader: Reader = ngram_reader(files) if kind == NGRAM_KIND else mixture_reader(files, network)
    return PhoneModel(name=str(exported.folder), reader=reader, vocabulary=vocabulary, digest=exported.digest)


def computed(session: Any, outputs: list[str], given: Mapping[str, Any]) -> list[Any]:
    """The outputs of a graph. Raises: InputError where it cannot be computed: ids of another vocabulary, say, or a
    graph that wants more memory than there is.
    """
    try:
        found: list[Any] = session.run(outputs, given)
    except refusals(of_extra("export")) as error:
        raise InputError(
            f"ONNX Runtime cannot compute the graph ({one_line(error)}); give ids of its own vocabulary, or export "
            "the model again."
        ) from error
    return found
