"""One model of counts and a network: a public n-gram bent by private counts, a network beside it, one promise."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, RunError, of_type
from tacit.files import PathLike, as_path, write_whole
from tacit.jobs.result import JobResult
from tacit.networks.models import ORIGIN, PROMISE, SETTINGS, WEIGHTS, WORDS
from tacit.progress import Progress, silent
from tacit.records import json_ready, to_plain

if TYPE_CHECKING:  # NumPy, and a cache, would come with them
    import numpy as np
    from numpy.typing import NDArray

    from tacit.data import Cache
    from tacit.evaluation.held_out import HeldOut
    from tacit.keyboard.mixture import MixtureSettings
    from tacit.networks.model_files import ModelFiles
    from tacit.networks.ngram.bend import Observed
    from tacit.networks.ngram.reader import NGramReader
    from tacit.networks.ngram.tables import NGramTables
    from tacit.reports.blocks import Block
    from tacit.statements.composed import ComposedPromise
    from tacit.text.vocabulary import Vocabulary

FILES = (WEIGHTS, SETTINGS, WORDS, ORIGIN, PROMISE)
COUNTED = "counts"
MEGABYTES = 8.0  # of n-grams; beside them a network of 10,000 words has room in 12
LEAST_SHARE = 0.01  # of a text that is counted at all
PASSAGES = 48  # of held-out public text, evenly spread over it
# The weight of a network that was trained on clients, beside n-grams of public text that counts bend and beside others.
# Of five clients' texts, near to public text or far, 0.3 to 0.9 is best for three suggestions beside counts; 0.6 is
# 0.27 points behind at most, 0.75 0.70 (docs/results/people.md). Without counts 0.4 to 0.9 is best and 0.75 is 0.72
# behind at most. Public text, held out, says too little, even where each word counts as often as private counts say.
BESIDE_COUNTS, BESIDE_NGRAMS = 0.6, 0.75
SENTENCES, LENGTH = 16, 20  # of each held-out passage of public text, and their words, by which the weight is set


@dataclass(frozen=True, kw_only=True)
class Mixture(JobResult):
    """A model folder, what is in it, and what it promises."""

    folder: Path
    promise: "ComposedPromise" = field(repr=False)
    shares: dict[str, float]  # of each counted model's text among all tokens
    pairs: int  # that private counts bend by themselves, beside the words
    network_weight: float
    bytes: int  # of all files
    private_bytes: int  # of what private counts add

    @property
    def epsilon(self) -> float:
        """Of everything together; 0 where nothing was released."""
        return self.promise.epsilon

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit mix --json` prints."""
        promise = {name: each for name, each in self.promise.to_record().items() if name not in ("schema", "version")}
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.mixture",
                "version": 1,
                "folder": str(self.folder),
                "shares": self.shares,
                "pairs": self.pairs,
                "network_weight": self.network_weight,
                "bytes": self.bytes,
                "private_bytes": self.private_bytes,
                "promise": promise,
            }
        )
        return record

    def blocks(self) -> "list[Block]":
        """What people read of it."""
        from tacit.reports.blocks import Paragraph

        size = (
            f"{self.folder}: {self.bytes / 1e6:.1f} MB, of which private counts are {self.private_bytes / 1e6:.2f} MB."
        )
        parts = f"{self.pairs:,} pairs are bent by themselves; the network has the weight {self.network_weight:g}."
        weighted = ", ".join(f"{name} {share:.3f}" for name, share in self.shares.items())
        return [
            Paragraph(f"Privacy: {self.promise.says()}."),
            Paragraph(f"{size} {parts}"),
            *([Paragraph(f"Shares of the texts: {weighted}.")] if len(self.shares) > 1 else []),
            Paragraph(f"Ask it for next words: tacit suggest {self.folder} 'I will'"),
        ]


def mix(
    ngram: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    counts: PathLike | None = None,
    network: PathLike | None = None,
    weight: float | None = None,
    public: "Cache | PathLike | None" = None,
    megabytes: float = MEGABYTES,
    progress: Progress = silent,
) -> Mixture:
    """Make one model of counted ones, private counts and a network, into the folder `out`, whole or not at all.

    out: the folder to write. weight: the network's share. public: a cache of public text, by whose validation part
    weights are chosen. ngram: what `tacit ngram` wrote, of one text or of several, which become one model: each has the
    weight that fits the counts best, or without any the one under which the validation part of the cache `public` is
    likeliest. megabytes: what n-grams may take; those worth least are left out. counts: a finished run of `tacit count`
    with the sum word_counts, and word_pairs if it has them, or of a list of cells: each probability is multiplied by
    what they say it should be. network: a finished run or a pre-training, whose weight in the mixture is `weight`; left
    out, of a pre-training the one under which that validation part is likeliest, and of a run BESIDE_COUNTS or
    BESIDE_NGRAMS. A network of public text is bent by the counts, too. A counted model that is at `out` is replaced.
    Raises: InputError where the parts have different words, nothing is known of what one promises, or nothing would be
    mixed; RunError where a run's files are not what it wrote.
    """
    from tacit.jobs.counted_folder import check_place
    from tacit.keyboard.mixture import BEND, NETWORK, NGRAM, MixtureSettings
    from tacit.networks.model_files import read_files
    from tacit.networks.ngram.bend import Bend, Observed
    from tacit.statements.composed import ComposedPromise

    folder = as_path("out", out)
    check_place(folder, FILES)
    counted = [as_path("ngram", each) for each in (ngram if isinstance(ngram, list | tuple) else [ngram])]
    _check_parts(counted, counts=counts, network=network, weight=weight, public=public, megabytes=megabytes)
    models, readers, text = _counted_models(counted)
    files, vocabulary = models[0], models[0].vocabulary
    texts, stated = {"n-grams": text}, dict[str, dict[str, Any]]()
    bend, observed, held_out = None, Observed(), _held_out(files, public, progress)
    if counts is not None:
        observed, stated[COUNTED] = _counts_of(as_path("counts", counts), vocabulary)
    tables, shares = _merged(readers, observed, held_out, megabytes)
    if counts is not None:
        bend = Bend.fitted(tables, observed)
    arrays = {NGRAM + name: each for name, each in tables.arrays().items()}
    arrays |= {} if bend is None else {BEND + name: each for name, each in bend.arrays().items()}
    share, settings = 0.0, None
    if network is not None:
        other = read_files(as_path("network", network))
        usual = BESIDE_NGRAMS if counts is None else BESIDE_COUNTS
        share = _weight(files, tables, other, weight, usual, held_out, dict(zip(readers, shares, strict=True)))
        settings = {"kind": other.kind, **other.settings}
        arrays |= {NETWORK + name: _half(each) for name, each in other.weights.items()}
        if other.public_text is None:
            stated["network"] = _statement_of_model(as_path("network", network))
        else:
            texts["network"] = other.public_text
    promise = ComposedPromise(statements=stated, public=texts)
    written = MixtureSettings(
        vocabulary=vocabulary.size,
        order=tables.order,
        pair_weight=tables.pair_weight,
        bent=bend is not None,
        network=settings,
        network_weight=share,
        network_bent=bend is not None and "network" in texts,
    )
    _write(folder, arrays, written, (files.folder / WORDS).read_bytes(), promise)
    return Mixture(
        folder=folder,
        promise=promise,
        shares={str(each.folder): share for each, share in zip(models, shares, strict=True)},
        pairs=0 if bend is None else len(bend.after_one.words),
        network_weight=share,
        bytes=sum((folder / name).stat().st_size for name in FILES if (folder / name).exists()),
        private_bytes=0 if bend is None else sum(each.nbytes for each in bend.arrays().values()),
    )


def mix_with(
    ngram: Sequence[PathLike], out: PathLike, sets: Sequence[str], *, progress: Progress = silent, **given: Any
) -> Mixture:
    """What `tacit mix --set KEY=VALUE` does: the options of `mix`, changed by their names. Raises: as it, and as
    `changed_options`.
    """
    from tacit.jobs.changed_recipe import changed_options

    return mix(ngram, out, **changed_options(given, sets, "tacit mix"), progress=progress)


def _write(
    folder: Path,
    arrays: Mapping[str, Any],
    settings: "MixtureSettings",
    words: bytes,
    promise: "ComposedPromise",
) -> None:
    """All files of a mixture, whole or not at all. words: the content of its vocabulary's file."""
    from safetensors.numpy import save

    from tacit.jobs.counted_folder import written_whole
    from tacit.keyboard.mixture import KIND
    from tacit.networks.model_files import write_origin

    with written_whole(folder, FILES) as draft:
        write_whole(draft / WEIGHTS, save({name: _packed(each) for name, each in arrays.items()}))
        write_whole(draft / SETTINGS, (json.dumps({"kind": KIND, **to_plain(settings)}, indent=1) + "\n").encode())
        write_whole(draft / WORDS, words)
        write_whole(draft / PROMISE, (json.dumps(json_ready(promise.to_record()), indent=1) + "\n").encode())
        if not promise.statements:
            write_origin(draft, "; ".join(dict.fromkeys(promise.public.values())))


def _half(weights: Any) -> Any:
    """In 16 bits, as which a network predicts the same to three digits; as they are where one is too large for that."""
    import numpy as np

    with np.errstate(over="ignore"):
        found = weights.astype(np.float16)
    return found if np.isfinite(found).all() else weights


def _packed(array: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(array)


def _counts_of(path: Path, vocabulary: "Vocabulary") -> "tuple[Observed, dict[str, Any]]":
    """What a run of sums released of words and pairs, in occurrences, and its statement."""
    from tacit.evaluation.counts.device_part import sums_in
    from tacit.evaluation.counts.sums import ReleasedSums
    from tacit.jobs.count.observed import observed_in
    from tacit.jobs.count.sums import FILE
    from tacit.jobs.open_run import opened
    from tacit.jobs.statement import statement
    from tacit.parsing import parsed_json
    from tacit.runs.metadata import CountMetadata
    from tacit.text.vocabulary import OOV

    with opened(path) as run:
        run.of_kind(CountMetadata, "`{command}` goes on with it")
        named = {str(each): each for each in sums_in(run.settings_table.get("sums", []))}
        if not {"word_counts", "cells"} & named.keys() or f"report/{FILE}" not in run.files:
            raise InputError(
                f"'{path}' has released no word_counts, by which words are bent; `tacit count 'word_counts:5000 norm "
                "20 unit 16' --epsilon 1` releases them."
            )
        found = ReleasedSums.from_content(run.kept(f"report/{FILE}"), tuple(named))
        record: dict[str, Any] = parsed_json(statement(run).to_json())
    if found.vocabulary != vocabulary.words[: len(found.vocabulary)] or any(
        vocabulary.id_of(word) == OOV for ngram in found.ngrams for word in ngram.split(" ")
    ):
        raise InputError(
            f"the cells of '{path}' are of other words than the n-gram model has; count with the vocabulary of its "
            "cache (--vocabulary vocabulary.json)."
        )

    return observed_in(found, tuple(named.values()), vocabulary), record


def _statement_of_model(path: Path) -> dict[str, Any]:
    """The statement of the run that trained a model. Raises: InputError where it is no run's; RunError where the model
    is not the one that the run wrote.
    """
    from tacit.jobs.open_run import opened
    from tacit.jobs.statement import statement
    from tacit.parsing import parsed_json
    from tacit.runs.journal import DATABASE

    if not (path / DATABASE).is_file():
        raise InputError(
            f"nothing is known of the text that the model in '{path}' was made from; name the run that trained it, "
            "whose statement goes with the mixture."
        )
    with opened(path) as run:
        names = run.files_at("model")
        if not run.finished or any(name not in run.files for name in names):
            raise RunError(f"'{path}' is not finished, or its model is not what it wrote; `tacit resume {path}`.")
        for name in names:
            run.kept(name)
        record: dict[str, Any] = parsed_json(statement(run).to_json())
        return record


def _check_parts(
    counted: list[Path],
    *,
    counts: PathLike | None,
    network: PathLike | None,
    weight: float | None,
    public: "Cache | PathLike | None",
    megabytes: float,
) -> None:
    """Raises: InputError where nothing would be mixed, or what is given has nothing to say."""
    of_type("megabytes", megabytes, float, int)
    if not 0 < megabytes < math.inf:
        raise InputError(f"megabytes={megabytes} of n-grams must lie above 0, and be finite.")
    if not counted or len(set(counted)) < len(counted):
        raise InputError(f"n-gram models {list(map(str, counted))} are none, or one is there twice; name each once.")
    several = len(counted) > 1
    if counts is None and network is None and not several:
        raise InputError("an n-gram model alone is no mixture; give --counts RUN, --network RUN, or both.")
    if several and counts is None and public is None:
        raise InputError("the weights of several texts follow from counts or from public text; give one of them.")
    if network is None and (weight is not None or (public is not None and not several)):
        raise InputError("a weight is a network's, and none is given; give --network RUN, too.")
    if network is not None and weight is not None and public is not None and not several:
        raise InputError("a network's weight is given, or set by public text; give one of --weight and --public.")
    if weight is not None:
        of_type("weight", weight, float, int)
        if not 0 < weight <= 1:
            raise InputError(f"weight={weight} of the network must lie above 0 and be 1 at most.")


def _counted_models(folders: list[Path]) -> "tuple[list[ModelFiles], list[NGramReader], str]":
    """Their files, what reads them, and what all of them say of their text. Raises: InputError where one is no n-gram
    model, says nothing of its text, or has other words than the first.
    """
    from tacit.networks.model_files import read_files
    from tacit.networks.ngram.reader import ngram_reader

    found = [read_files(each) for each in folders]
    readers = [ngram_reader(each) for each in found]
    orders = [each.tables.order for each in readers]
    if len(set(orders)) > 1:
        raise InputError(f"the models' longest n-grams have {orders} words; give all the same --order.")
    texts = []
    for each in found:
        if each.vocabulary.sha256 != found[0].vocabulary.sha256:
            raise InputError(f"the models in '{found[0].folder}' and '{each.folder}' know other words; make both anew.")
        if each.public_text is None:
            raise InputError(f"the model in '{each.folder}' does not say its text (no {ORIGIN}); `tacit ngram` does.")
        texts.append(each.public_text)
    return found, readers, "; ".join(dict.fromkeys(texts))


def _merged(
    readers: "list[NGramReader]", observed: "Observed", held_out: "HeldOut | None", megabytes: float
) -> "tuple[NGramTables, list[float]]":
    """One counted model of all, and the share of each text in it."""
    import numpy as np

    from tacit.evaluation.reader_accuracy import nats_of
    from tacit.networks.ngram.merge import likeliest_shares, merged, shares_by_words

    tables, most = [each.tables for each in readers], int(1e6 * megabytes)
    if len(tables) == 1:
        (one,) = tables
        size = sum(each.nbytes for each in one.arrays().values())
        return (one if size <= most else merged([one], [1.0], most_bytes=most)), [1.0]
    shares = np.array([each.counted[0] for each in tables])
    shares /= shares.sum()
    if held_out is not None:
        likelihoods = np.stack([np.exp(-nats_of(each, held_out)) for each in readers])
        shares = likeliest_shares(likelihoods, np.ones(likelihoods.shape[1]))
    if observed.words is not None:
        shares = shares_by_words(tables, observed.words, shares)
    shares = np.where(shares < LEAST_SHARE, 0.0, shares)
    shares /= shares.sum()
    kept = [(each, share) for each, share in zip(tables, shares.tolist(), strict=True) if share]
    return merged([each for each, _ in kept], [share for _, share in kept], most_bytes=most), shares.tolist()


def _held_out(ngram: "ModelFiles", public: "Cache | PathLike | None", progress: Progress) -> "HeldOut | None":
    """The validation part of a cache of public text, by which weights are set. Raises: InputError for clients' text,
    and for other words.
    """
    if public is None:
        return None
    import numpy as np

    from tacit.evaluation.held_out import HeldOut
    from tacit.jobs.run_start import checked_cache

    cache = checked_cache(public, progress=progress)
    if not cache.manifest.public:
        raise InputError(
            f"the text in '{cache.path}' is clients', and a weight fitted to it tells of it; give --weight."
        )
    if cache.manifest.vocabulary.sha256 != ngram.vocabulary.sha256:
        raise InputError(f"the cache '{cache.path}' knows other words than the n-gram model; import it with those.")
    clients = cache.clients("validation")
    chosen = clients[np.unique(np.linspace(0, len(clients) - 1, min(PASSAGES, len(clients))).astype(np.int64))]
    return HeldOut.read(cache, chosen, sentences=SENTENCES, words=LENGTH)


def _weight(
    ngram: "ModelFiles",
    tables: "NGramTables",
    network: "ModelFiles",
    weight: float | None,
    usual: float,
    held_out: "HeldOut | None",
    shares: "dict[NGramReader, float]",
) -> float:
    """The network's: the given one; the usual one where it was trained on clients; or that of the public text, in which
    the texts have their shares of the n-grams.
    """
    from tacit.keyboard.mixture import network_reader

    if network.vocabulary.sha256 != ngram.vocabulary.sha256:
        raise InputError(
            f"the network in '{network.folder}' knows other words than the n-gram model (vocabulary "
            f"{network.vocabulary.sha256[:12]} against {ngram.vocabulary.sha256[:12]}); make both with one vocabulary."
        )
    reader = network_reader(network, ngram.vocabulary.size)
    if weight is not None or network.public_text is None:
        return usual if weight is None else float(weight)
    import numpy as np

    from tacit.evaluation.reader_accuracy import nats_of
    from tacit.networks.ngram.kneser_ney import likeliest_weight
    from tacit.networks.ngram.reader import NGramReader

    if held_out is None:
        raise InputError(
            "a public network's weight is given, or set by public text; give one of --weight and --public."
        )
    first, second = (np.exp(-nats_of(each, held_out)) for each in (NGramReader(tables), reader))
    return likeliest_weight(first, second, None if len(shares) == 1 else _by_shares(shares, held_out))


def _by_shares(shares: "dict[NGramReader, float]", held_out: "HeldOut") -> "NDArray[np.float64]":
    """(n,) how often each token of held-out public text counts, so that each text has its share.

    What a passage was taken from is told by the model under which it is likeliest.
    """
    import numpy as np

    from tacit.evaluation.held_out import HeldOut
    from tacit.evaluation.reader_accuracy import nats_of

    passages = [HeldOut(sentences=each[None]) for each in held_out.sentences]
    nats = [[nats_of(reader, each) for each in passages] for reader in shares]
    tokens = np.array([len(each) for each in nats[0]])
    sums = np.array([[each.sum() for each in of_reader] for of_reader in nats])
    like = np.exp(sums.min(axis=0) - sums)
    like /= like.sum(axis=0)
    there = np.maximum(like @ tokens / tokens.sum(), 1e-9)
    return np.repeat((np.array(list(shares.values())) / there) @ like, tokens)
