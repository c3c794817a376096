"""What a trained model has to be better than, for any cache and run: every rung of the ladder on the same clients."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.result import JobResult
from tacit.privacy.rounding import rounded_up
from tacit.progress import Progress, StageBegan, StageEnded, silent
from tacit.progress import counted as one_by_one
from tacit.records import json_ready

if TYPE_CHECKING:  # JAX comes with them
    from tacit.data import Cache
    from tacit.evaluation.intervals import Estimate
    from tacit.evaluation.ladder import Ladder
    from tacit.evaluation.predictors import Predictor
    from tacit.networks.ngram.kneser_ney import Ids
    from tacit.recipe import Recipe
    from tacit.reports.blocks import Block
    from tacit.runs import Run


EXACT = "SIMULATION ONLY: exact numbers of clients' text; no server would have them, and nothing is promised for them"


@dataclass(frozen=True, kw_only=True)
class LadderSettings:
    """Who is read, and how much of each."""

    sentences: Annotated[int, "Sentences of each training client a visit."] = 64
    words: Annotated[int, "Words of a sentence; the rest of a longer one is not used."] = 20
    visits: Annotated[int, "How often a training client comes, each time with sentences drawn anew."] = 1
    judged: Annotated[int, "Sentences of each validation and test client, evenly spread over its text."] = 16
    validation: Annotated[int, "Clients by whom all is chosen, in a public random order; 0 is all of the split."] = 300
    test: Annotated[int, "Clients who judge, in a public random order; 0 is all of the split."] = 0
    orders: Annotated[tuple[int, ...], "Words of the longest n-grams, among which is chosen.", "3,4,5"] = (3, 4)

    def __post_init__(self) -> None:
        least = {"sentences": 1, "words": 1, "visits": 1, "judged": 1, "validation": 0, "test": 0}
        for name, at_least in least.items():
            value = getattr(self, name)
            of_type(name, value, int)
            if value < at_least:
                raise InputError(f"{name}={value} must be {at_least} or more.")
        if not self.orders or min(self.orders) < 2:
            raise InputError(f"orders={self.orders} must be some of 2 or more.")


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a client is promised of a model: epsilon at delta. 0: no client's text is in it; infinite: no promise."""

    epsilon: float
    delta: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether anything is promised, or nothing has to be."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        return rounded_up(self.epsilon) + (f" at delta {self.delta:.3g}" if self.delta and self.finite else "")


@dataclass(frozen=True, kw_only=True)
class LadderResult(JobResult):
    """How each rung does on the same test clients: exact numbers of their text, for a simulation alone."""

    ladder: "Ladder" = field(repr=False)
    orders: dict[str, int]  # of the n-grams of each text, chosen on validation clients
    clients: int  # training clients, whose text `clients' n-gram` counts
    counted: int  # tokens of it
    prices: Mapping[str, Price | None]  # of the models, as their runs and promises say; None: nothing is known

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: per rung, accuracies with their intervals over clients.

        `top1_of_all_words` and `top3_of_all_words` are of all words typed, where everybody misses an unknown one;
        `top1`, `top3` and `nats` are of known words. In each, who types more counts more.
        """
        prices = {name: self.price(name) for name in self.names}
        rungs = {
            name: {
                "top1_of_all_words": self._estimate(name, "top1", "words"),
                "top3_of_all_words": self._estimate(name, "top3", "words"),
                "top1": self._estimate(name, "top1", "predicted"),
                "top3": self._estimate(name, "top3", "predicted"),
                "nats": self._estimate(name, "nats", "predicted"),
                "private": None if price is None else price.finite,
                "epsilon": None if price is None else price.epsilon,
                "delta": None if price is None else price.delta,
                "weights": dict(self.ladder.weights.get(name, {})),
            }
            for name, price in prices.items()
        }
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.ladder",
                "version": 1,
                "what": EXACT,
                "rungs": rungs,
                "best_free_model": self.ladder.free,
                "orders": self.orders,
                "clients": self.clients,
                "counted": self.counted,
            }
        )
        return record

    @property
    def names(self) -> list[str]:
        """The rungs as one climbs: what is free, what is without privacy, then each model before its mixture."""
        from tacit.evaluation.comparison_models import FREE, PUBLIC_NETWORK, PUBLIC_NGRAM, WITH_NGRAM, WITHOUT_PRIVACY

        models = [each for name in self.prices for each in (name, name + WITH_NGRAM)]
        order = [PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, *WITHOUT_PRIVACY, *models]
        return sorted(self.ladder.rungs, key=lambda name: order.index(name) if name in order else -1)

    def price(self, rung: str) -> Price | None:
        """What the clients whose text is in a rung were promised; None where nothing is known of it."""
        from tacit.evaluation.comparison_models import WITH_NGRAM, WITHOUT_PRIVACY

        if rung in WITHOUT_PRIVACY:
            return Price(epsilon=math.inf)
        return self.prices.get(rung.removesuffix(WITH_NGRAM), Price(epsilon=0.0))

    def _estimate(self, rung: str, what: str, over: str) -> Any:
        from tacit.evaluation.intervals import ratio_of_means

        sums = self.ladder.sums(rung)
        return ratio_of_means(sums[what], sums[over])

    def blocks(self) -> "list[Block]":
        """The table that people read."""
        from tacit.networks.metrics import OF_ALL, OF_KNOWN
        from tacit.reports.blocks import Paragraph, Table

        rows = []
        for name in self.names:
            gain = "" if self.ladder.free in (None, name) else _points(self.ladder.gain(name))
            price = self.price(name)
            called = name if price is None or price.finite else f"{name}, without privacy"
            shares = [self._estimate(name, *of).value for of in (("top1", "words"), ("top3", "words"))]
            nats = self._estimate(name, "nats", "predicted").value
            cost = "unknown" if price is None else str(price)
            rows.append((called, cost, *(f"{100 * each:.2f}" for each in shares), f"{nats:.3f}", gain))
        sums = self.ladder.sums(self.names[0])
        unknown = 1 - sums["predicted"].sum() / sums["words"].sum()
        said = "no text is public" if self.ladder.free is None else self.ladder.said(self.ladder.free)
        head = (
            "on test clients",
            "epsilon",
            "top-1 of all words, %",
            "top-3 of all words, %",
            "nats of known words",
            "top-3 over what is free",
        )
        return [
            Table(tuple(rows), head),
            Paragraph(f"Top-1 and top-3 are {OF_ALL}: {unknown:.1%} are unknown, and missed. Nats are {OF_KNOWN}."),
            Paragraph(f"The best free model: {said}. Validation clients alone chose it and its weights."),
            Paragraph(f"{EXACT}."),
        ]


def _points(gain: "Estimate") -> str:
    value, low, high = (f"{100 * each:+.2f}" for each in gain)
    return f"{value} ({low} to {high})"


def ladder(
    data: "Cache | Run | PathLike",
    *,
    public: "Cache | PathLike | Sequence[Cache | PathLike]" = (),
    network: PathLike | None = None,
    models: Sequence[PathLike] = (),
    settings: LadderSettings | None = None,
    declared_public: bool = False,
    progress: Progress = silent,
) -> LadderResult:
    """Measure every baseline, and models beside them, on the same test clients of a cache, or of a training run's.

    data: a cache, or a run that trained on one or made a mixture of it. settings: whose text is read, of a cache.
    public: caches of text that is nobody's, for free n-grams. network: what `tacit pretrain` made, the free network.
    models: finished runs and model folders, mixtures too. Of a run all of these follow, and who read how much: its
    cache, its first model and the text of that, the run itself; `settings` is of a cache. Of a mixture the clients'
    n-gram reads whole texts, as counts do. A client that came to several rounds read sentences drawn anew; the n-gram
    of the clients' text counts as many draws, rounded up. declared_public: as in `pretrain`. Raises: InputError for
    caches and models of different words, a model named twice, and a run with real devices; as `checked_cache`.
    """
    from tacit.evaluation.held_out import HeldOut
    from tacit.evaluation.ladder import counted, training_text
    from tacit.evaluation.ladder import ladder as climbed
    from tacit.evaluation.trigram import text_of
    from tacit.jobs.run_start import public_cache
    from tacit.text.vocabulary import BOS

    of_type("settings", settings, LadderSettings, NoneType)
    of_type("models", models, list, tuple)
    asked = _asked(data, public, network, models, settings, progress)
    cache, how = asked.cache, asked.settings

    held_out, validation = (
        HeldOut.read(cache, clients, sentences=how.judged, words=how.words)
        for clients in (asked.test, asked.validation)
    )
    judged = {str(each): _predictor(cache, each) for each in asked.models}
    prices = {str(each): price_of(each) for each in asked.models}
    free = None if asked.network is None else _public_network(cache, asked.network)
    openly = [
        public_cache(each, declared_public=declared_public or asked.vouched, progress=progress) for each in asked.public
    ]
    for each in openly:
        _check_words(cache, each.manifest.vocabulary.sha256, each.path)
    train = cache.clients("train")
    own = (
        text_of(cache, train)
        if asked.whole
        else training_text(cache, train, sentences=how.sentences, words=how.words, visits=how.visits)
    )
    texts = [*(text_of(each, each.clients("train")) for each in openly), own]
    size = cache.manifest.vocabulary.size
    *public_texts, clients = (
        counted(text, validation, vocabulary=size, orders=how.orders)
        for text in one_by_one(texts, "counting n-grams", progress, total=len(texts))
    )
    progress(StageBegan("measuring every rung"))
    found = climbed(held_out, validation, public=public_texts, public_network=free, clients=clients, models=judged)
    progress(StageEnded("measuring every rung"))
    orders = {f"public text {at}": each.order for at, each in enumerate(public_texts, start=1)}
    return LadderResult(
        ladder=found,
        orders={**orders, "clients' text": clients.order},
        clients=len(train),
        counted=int((own != BOS).sum()),
        prices=prices,
    )


def price_of(path: PathLike) -> Price | None:
    """What the clients of a run, or of the parts of a mixture, were promised; None where nothing is known.

    Raises: InputError for no model, and a promise that does not hold; RunError for a damaged run.
    """
    from tacit.jobs.account.run import account_run
    from tacit.networks.model_files import read_files
    from tacit.networks.models import PROMISE
    from tacit.privacy.composition import Composition
    from tacit.runs.journal import DATABASE
    from tacit.statements.composed import read

    files = read_files(as_path("path", path))
    if files.public_text is not None:
        return Price(epsilon=0.0)
    if (files.folder / PROMISE).is_file():
        promise = read(files.folder / PROMISE)
        return Price(epsilon=promise["epsilon"], delta=promise["delta"])
    if not (Path(path) / DATABASE).is_file():
        return None
    account = account_run(path)
    released = account.realised
    return (
        Price(epsilon=released.epsilon(account.delta), delta=account.delta)
        if isinstance(released, Composition)
        else None
    )


def _predictor(cache: "Cache", path: Path) -> "Predictor":
    from tacit.evaluation.predictors import predictor_at
    from tacit.networks.model_files import read_files

    _check_words(cache, read_files(path).vocabulary.sha256, path)
    return predictor_at(path)


def _public_network(cache: "Cache", path: Path) -> "Predictor":
    from tacit.networks.model_files import read_files

    if read_files(path).public_text is None:
        raise InputError(
            f"nothing says that the model in '{path}' was made from public text alone, so it is not free; name what "
            "`tacit pretrain` made, and this one among the models."
        )
    return _predictor(cache, path)


def _check_words(cache: "Cache", sha256: str, other: Path) -> None:
    """Raises: InputError where what is held against a cache has other words."""
    if cache.manifest.vocabulary.sha256 != sha256:
        raise InputError(
            f"'{other}' knows other words than the cache '{cache.path}'; make both with one vocabulary (--vocabulary "
            "vocabulary.json)."
        )


class _Asked(NamedTuple):
    """All that a ladder is made of."""

    cache: "Cache"
    public: "list[Cache | PathLike]"
    network: Path | None
    models: list[Path]
    settings: LadderSettings
    validation: "Ids"  # clients
    test: "Ids"
    whole: bool = False  # clients' texts are read to their end: settings say only how much judges
    vouched: bool = False  # the public text is that of a run's first model: its statement says that it was public


def _asked(
    data: "Cache | Run | PathLike",
    public: "Cache | PathLike | Sequence[Cache | PathLike]",
    network: PathLike | None,
    models: Sequence[PathLike],
    settings: LadderSettings | None,
    progress: Progress,
) -> _Asked:
    """What was given; of a run, what it does not give follows from the run."""
    from tacit.evaluation.accuracy import first_shuffled
    from tacit.jobs.open_run import opened
    from tacit.jobs.run_start import checked_cache
    from tacit.jobs.train.mixture_run import is_mixture_run
    from tacit.runs import Run

    openly: list[Cache | PathLike] = [*public] if isinstance(public, list | tuple) else [public]  # type: ignore[list-item]
    free = None if network is None else as_path("network", network)
    judged = [as_path("models", each) for each in models]
    if twice := {str(each) for each in judged if judged.count(each) > 1}:
        raise InputError(f"the model '{min(twice)}' was named twice; name each once.")
    mixture = Path(data) if isinstance(data, str | Path) and is_mixture_run(Path(data)) else None
    if mixture is None and not isinstance(data, Run) and not _is_run(data):
        cache, how = checked_cache(data, progress=progress), settings or LadderSettings()
        chosen = (
            first_shuffled(cache.clients("validation"), how.validation),
            first_shuffled(cache.clients("test"), how.test),
        )
        return _Asked(cache, openly, free, judged, how, *chosen)
    if settings is not None:
        raise InputError(
            "settings= (--sentences to --orders) are of a cache, and a run says itself who reads how much; leave them "
            "out, or give the run's cache."
        )
    if mixture is not None:
        return _of_mixture(mixture, openly, free, judged, progress)
    with opened(data) as run:  # type: ignore[arg-type]  # it is no cache
        return _of_run(run, openly, free, judged, progress)


def _is_run(data: object) -> bool:
    """Whether it is the path of a run."""
    from tacit.runs.journal import DATABASE

    return isinstance(data, str | Path) and (Path(data) / DATABASE).is_file()


def _of_mixture(
    run: Path, openly: "list[Cache | PathLike]", free: Path | None, judged: list[Path], progress: Progress
) -> _Asked:
    """Its parts are the free rungs, and who measured them judges. Raises: InputError where it has no model yet."""
    from tacit.jobs.run_start import checked_cache
    from tacit.jobs.train.mixture_folder import MIXED, NETWORK, RECIPE, WORDS_OF_A_SENTENCE, Begun
    from tacit.recipe.mixture import MixtureRecipe

    if not (run / MIXED).is_dir():
        raise InputError(f"'{run}' has made no mixture yet; `tacit resume {run}` makes the rest.")
    if run in judged:
        raise InputError(f"the model '{run}' was named twice: a run's own is always there; leave it out.")
    begun, evaluation = Begun.read(run), MixtureRecipe.load(run / RECIPE).evaluation
    cache = checked_cache(begun.opened("cache"), progress=progress)
    clients = evaluation.test_clients
    return _Asked(
        cache=cache,
        public=openly or [begun.opened("public")],
        network=free or (run / NETWORK if (run / NETWORK).is_dir() else None),
        models=[run, *judged],
        settings=LadderSettings(judged=evaluation.sentences, words=WORDS_OF_A_SENTENCE),
        validation=cache.clients("validation")[:clients],
        test=cache.clients("test")[:clients],
        whole=True,
        vouched=not openly,
    )


def _of_run(
    run: "Run", openly: "list[Cache | PathLike]", free: Path | None, judged: list[Path], progress: Progress
) -> _Asked:
    from tacit.jobs.run_start import same_cache
    from tacit.recipe import Recipe
    from tacit.runs import TrainingMetadata

    metadata = run.of_kind(TrainingMetadata, "only that has a model to hold against others")
    if metadata.deployment is not None:
        raise InputError(
            f"the clients of '{run.path}' are real devices, whose text nobody has; a ladder stands in a simulation. "
            "`tacit account run` says what the run promises."
        )
    if run.path in judged:
        raise InputError(f"the model '{run.path}' was named twice: a run's own is always there; leave it out.")
    cache, recipe = same_cache(run, metadata.data, progress=progress), Recipe.from_toml(metadata.recipe)
    first, vouched = metadata.first_model, False
    if first is not None:
        free = free or (None if first.public_text is None else Path(first.path))
        vouched = not openly
        openly = openly or [public_text_of(Path(first.path), progress=progress)]
    evaluation = recipe.evaluation
    settings = LadderSettings(
        sentences=recipe.client.sentences,
        words=recipe.client.words,
        visits=visits_of(recipe, metadata.population),
        judged=evaluation.sentences,
    )
    validation, test = (
        cache.clients("validation")[: evaluation.clients],
        cache.clients("test")[: evaluation.test_clients],
    )
    return _Asked(cache, openly, free, [run.path, *judged], settings, validation, test, vouched)


def visits_of(recipe: "Recipe", clients: int) -> int:
    """How often a client comes on average, rounded up, so that an n-gram of its text reads no less than a network."""
    return max(math.ceil(recipe.rounds.rounds * recipe.rounds.report_goal / max(clients, 1)), 1)


def public_text_of(first: Path, *, progress: Progress = silent) -> "Cache":
    """The public text that a pre-training read, as it was. Raises: InputError where there is no such pre-training;
    CacheError, RunError where the text is gone or another.
    """
    from tacit.jobs.run_start import same_cache
    from tacit.runs import Run
    from tacit.runs.metadata import PretrainingMetadata

    with Run.open(first.parent if first.name == "model" else first) as pretraining:
        metadata = pretraining.of_kind(PretrainingMetadata, "only that knows its text")
        return same_cache(pretraining, metadata.data, progress=progress)
