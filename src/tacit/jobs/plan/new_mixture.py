"""`tacit.new_mixture`: a recipe of a whole predictor, with reasons; and which one `recipe new` writes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tacit.data import Cache
from tacit.errors import InputError, TacitError, conceivable, of_type
from tacit.files import PathLike, as_path, check_file
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.plan.free_model import free_model
from tacit.jobs.plan.new_recipe import NewRecipe, check_asked, first_section, new_recipe, write_recipe
from tacit.jobs.result import JobResult
from tacit.progress import Progress, silent

if TYPE_CHECKING:  # JAX comes with them
    from tacit.planning.new_mixture import MixtureProposal
    from tacit.recipe.mixture import MixtureRecipe
    from tacit.reports.blocks import Block


@dataclass(frozen=True, kw_only=True)
class NewMixture(JobResult):
    """A recipe of a mixture that was made for a cache, and what is expected of it."""

    proposal: "MixtureProposal"
    path: Path | None  # where it was written

    def __repr__(self) -> str:
        where = "" if self.path is None else f", {str(self.path)!r}"
        return f"NewMixture({self.recipe.name!r}{where})"

    @property
    def recipe(self) -> "MixtureRecipe":
        """What `tacit.train_mixture` takes."""
        return self.proposal.recipe

    def to_toml(self) -> str:
        """The recipe as a file, a reason beside each value."""
        return self.proposal.to_toml()

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit recipe new --json` prints of a mixture."""
        made = self.proposal
        return {
            "schema": "tacit.recipe.mixture",
            "version": 1,
            "path": None if self.path is None else str(self.path),
            "recipe": self.recipe.model_dump(mode="json"),
            "reasons": dict(made.reasons),
            "clients": made.clients,
            "epsilon": made.epsilon,
            "delta": made.delta,
            "believed": dict(made.counted.believed),
            "stddev": dict(made.counted.stddev),
            **made.judgement.to_record(),
        }

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines."""
        from tacit.reports.blocks import Paragraph

        made, mixture = self.proposal, self.recipe.mixture
        given = ", ".join(f"'{each}'" for each in mixture.ngram)
        counted = given or f"of '{mixture.public}', counted by the run"
        network = "none" if mixture.network is None else f"'{mixture.network}'"
        trained = "of public text alone" if made.rounds is None else f"trained in {made.rounds.shape.rounds} rounds"
        lines = [
            made.judgement.says(),
            f"{made.clients:,} training clients, epsilon {made.epsilon:g} at delta {made.delta:g}:",
            f"  left       {made.expectation()}",
            f"  n-grams    {counted}",
            f"  counts     {', '.join(mixture.sums)}; {mixture.counts_share:.0%} of the zCDP",
            f"  network    {network}" + ("" if mixture.network is None else f", {trained}"),
        ]
        if self.path is not None:
            lines.append(f"{self.path} says why each value is what it is; next: tacit train {self.path} --out RUN")
        return [Paragraph(line) for line in lines]


def new_mixture(
    data: Cache | PathLike,
    *,
    epsilon: float,
    public: Cache | PathLike,
    delta: float | None = None,
    ngram: PathLike | Sequence[PathLike] | None = None,
    init: PathLike | None = None,
    training_share: float = 0.0,
    out: PathLike | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> NewMixture:
    """A recipe of a whole predictor for the training clients of a cache; nothing they typed is looked at.

    data: the clients' cache. epsilon: of the whole predictor, at `delta`. public: a cache of public text over the same
    vocabulary. ngram: a model of `tacit.ngram`, or several; left out, the run counts `public`. init: a network of
    `tacit.pretrain`. training_share: of the zCDP, that of rounds which train it; 0: none. delta, out, name: as for
    `new_recipe`. Raises: InputError where noise would hide every word, a part has other words, or `out` is there and is
    something else; CacheError.
    """
    check_asked(epsilon, delta, name)
    of_type("training_share", training_share, Real)
    conceivable("training_share =", training_share)
    if not 0 <= training_share < 1:
        raise InputError(
            f"training_share={training_share:g} must be 0 (no rounds) or more and below 1: the counts need the rest."
        )
    from tacit.networks.language_model import parameter_count
    from tacit.planning.new_mixture import PublicParts, propose_mixture
    from tacit.planning.new_recipe import Corpus

    cache, text = open_cache(data), open_cache(public)
    path = None if out is None else as_path("out", out)
    if path is not None:
        check_file("--out", path)
    if text.manifest.vocabulary.sha256 != cache.manifest.vocabulary.sha256:
        raise InputError(
            f"public: the cache '{text.path}' knows other words than '{cache.path}'; import both with one vocabulary "
            "(--vocabulary vocabulary.json)."
        )
    network = None if init is None else as_path("init", init)
    parts = PublicParts(
        text=text,
        ngrams=tuple(_ngram(as_path("ngram", each), cache) for each in _several(ngram)),
        network=network,
        section=None if network is None else first_section(network, cache),
    )
    splits, words = cache.manifest.splits, cache.manifest.vocabulary.size
    made = propose_mixture(
        Corpus(cache=cache.path, **{split: splits.get(split, 0) for split in ("train", "validation", "test")}),
        parts,
        name=f"{cache.path.name}-epsilon-{epsilon:g}" if name is None else name,
        epsilon=float(epsilon),
        size=lambda section: parameter_count(section.settings(words)),
        delta=delta,
        training_share=float(training_share),
    )
    made = replace(made, free=free_model(text, network, progress=progress))
    if path is not None:
        write_recipe(path, made.to_toml())
    return NewMixture(proposal=made, path=path)


def new_recipe_for(
    data: Cache | PathLike,
    *,
    epsilon: float,
    delta: float | None = None,
    public: PathLike | None = None,
    ngram: PathLike | Sequence[PathLike] | None = None,
    init: PathLike | None = None,
    training_share: float | None = None,
    network_alone: bool = False,
    out: PathLike | None = None,
    name: str | None = None,
    anyway: bool = False,
    progress: Progress = silent,
) -> NewRecipe | NewMixture:
    """What `tacit recipe new` writes: a mixture wherever public text is known, which `init` may tell; else a network.

    network_alone: a network, whatever is known; `public` is then what it is judged over. Raises: as the two.
    """
    of_the_mixture = {"ngram": ngram, "training_share": training_share}
    if network_alone and (named := [name for name, each in of_the_mixture.items() if each is not None]):
        raise InputError(f"{named[0]} is of a mixture, and network_alone wants none; drop one of the two.")
    text = None if network_alone else public
    if text is None and not network_alone and init is not None:
        text = _text_of(as_path("init", init), data)
    if text is not None:
        return new_mixture(
            data,
            epsilon=epsilon,
            public=text,
            delta=delta,
            ngram=ngram,
            init=init,
            training_share=training_share or 0.0,
            out=out,
            name=name,
            progress=progress,
        )
    if not network_alone and (ngram is not None or training_share is not None):
        raise InputError(
            "a mixture needs public text over the clients' words, from which its sums and its weight follow; give "
            "--public CACHE (`tacit data import public:FILE.parquet --vocabulary VOCABULARY.json`)."
        )
    return new_recipe(
        data,
        epsilon=epsilon,
        delta=delta,
        init=init,
        public=public,
        out=out,
        name=name,
        anyway=anyway,
        progress=progress,
    )


def _text_of(init: Path, data: Cache | PathLike) -> Path | None:
    """The cache that a pre-training was made of, where it is at hand and knows the clients' words; else None."""
    from tacit.runs import Run
    from tacit.runs.metadata import PretrainingMetadata

    try:
        with Run.open(init) as run:
            used = run.of_kind(PretrainingMetadata, "only that knows its text").data
            cache = Cache.open(Path(used.cache))
    except TacitError:
        return None
    same = open_cache(data).manifest.vocabulary.sha256 == cache.manifest.vocabulary.sha256
    return cache.path if same and cache.manifest.public and cache.manifest.digest == used.cache_digest else None


def _several(ngram: PathLike | Sequence[PathLike] | None) -> Sequence[PathLike]:
    if ngram is None:
        return ()
    return ngram if isinstance(ngram, list | tuple) else [cast(PathLike, ngram)]


def _ngram(path: Path, cache: Cache) -> Path:
    """The path of an n-gram model. Raises: InputError where it is none, or knows other words."""
    from tacit.networks.model_files import read_files
    from tacit.networks.ngram.reader import ngram_reader

    files = read_files(path)
    if files.kind != "ngram":
        raise InputError(f"ngram: '{path}' is a model of the kind {files.kind!r}; give one of `tacit ngram`.")
    ngram_reader(files)
    if files.vocabulary.sha256 != cache.manifest.vocabulary.sha256:
        raise InputError(f"ngram: the model in '{path}' knows other words than '{cache.path}'; make it of --public.")
    return path
