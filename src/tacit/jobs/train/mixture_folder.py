"""The folder of a run that makes a mixture: begun whole, with its public parts in it, after all was rehearsed.

RUN/recipe.toml     what was asked for
RUN/begun.json      where the texts are, their digests, and what follows from public text alone
RUN/ngram/01/, ...  the public n-gram models        RUN/network/   the public network, where there is one
RUN/cells.txt       the list of cells, where the recipe names one
RUN/counts/         a run of `tacit count`          RUN/training/  a run of `tacit train`, where there are rounds
RUN/model/          the mixture                     RUN/report/, RUN/simulation/   its pages
"""

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.added_parts import Arm, arms_of
from tacit.evaluation.baselines import comparison_models_of
from tacit.evaluation.comparison_models import MODEL as WHOLE_MODEL
from tacit.evaluation.counts.cell_list import CellList
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.files import check_folder, read_bounded, write_whole
from tacit.folders import folder_beside, place_of, replace_folder
from tacit.jobs.account.budget import BudgetRequest, check_left
from tacit.jobs.count.job import count
from tacit.jobs.mix import mix
from tacit.jobs.ngram import ngram
from tacit.jobs.plan.free_model import free_model
from tacit.jobs.rehearsal import MODEL, REHEARSING, RELEASE, TEST, refused
from tacit.jobs.run_start import checked_cache
from tacit.jobs.train.mixture_run import BEGUN, is_mixture_run
from tacit.jobs.train.refusals import check_splits
from tacit.keyboard.mixture import mixture_reader
from tacit.keyboard.suggest import Reader
from tacit.networks.model_files import ModelFiles, read_files
from tacit.networks.models import ORIGIN, SETTINGS, WEIGHTS, WORDS
from tacit.networks.ngram.reader import ngram_reader
from tacit.parsing import parsed_json
from tacit.planning.judgement import Judgement, judged_counts
from tacit.privacy.gaussian import epsilon as epsilon_of
from tacit.progress import Noted, Progress, StageBegan, StageEnded, Warned, silent
from tacit.recipe.mixture import MixtureRecipe
from tacit.records import from_plain, to_plain
from tacit.runs.budget_book import Cost

RECIPE, CELLS = "recipe.toml", "cells.txt"
NGRAM, NETWORK, COUNTS, TRAINING, MIXED = "ngram", "network", "counts", "training", "model"
FILES = (WEIGHTS, SETTINGS, WORDS, ORIGIN)
WORDS_OF_A_SENTENCE = 20  # that are predicted, as in a training's evaluations
FEW = 16  # passages of public text that stand in for clients in the rehearsal
BASE, COUNTED, WHOLE = "public n-gram", "+ private counts", "+ network"


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What a run knew when it began: whatever becomes of the paths of its recipe, it goes on with these."""

    cache: str
    cache_digest: str
    public: str
    public_digest: str
    network: str | None
    population: str | None  # the folder of its budget
    clients: int  # that are counted, and trained on
    delta: float
    weight: float | None  # of the network; None: there is none, or it follows from what is released

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises: RunError where it is not what was written."""
        try:
            record = parsed_json(read_bounded(folder / BEGUN))
        except (OSError, ValueError) as error:
            raise RunError(f"'{folder / BEGUN}' cannot be read ({error}); restore a copy.") from error
        return from_plain(cls, record, error=RunError, where=str(folder / BEGUN))

    def settled(self, recipe: MixtureRecipe) -> MixtureRecipe:
        """The recipe with its paths and its delta as they were."""
        mixture = {"public": Path(self.public), "network": None if self.network is None else Path(self.network)}
        population = None if self.population is None else Path(self.population)
        return recipe.model_copy(
            update={
                "data": recipe.data.model_copy(update={"cache": Path(self.cache)}),
                "mixture": recipe.mixture.model_copy(update=mixture),
                "privacy": recipe.privacy.model_copy(update={"delta": self.delta, "population": population}),
            }
        )

    def opened(self, name: str) -> Cache:
        """The cache `cache` or `public`. Raises: RunError where it is another one now; CacheError."""
        found = Cache.open(Path(getattr(self, name)))
        if found.manifest.digest != getattr(self, f"{name}_digest"):
            raise RunError(
                f"the text in '{found.path}' is not what this run began with; put the old cache back, or start a new "
                "run."
            )
        return found


def begin(recipe: MixtureRecipe, out: Path, progress: Progress) -> Begun:
    """A new folder, rehearsed, or the one at `out` where that has the same recipe. Raises: InputError, CacheError,
    BudgetError, RecipeError, before there is a folder; RunError where `out` is another one.
    """
    check_folder("--out", out)
    if is_mixture_run(out):
        if changed := MixtureRecipe.load(out / RECIPE).differences(recipe):
            raise RunError(
                f"'{out}' exists already and was begun with another recipe ({'; '.join(changed)}); choose another "
                f"--out, or continue what was begun with `tacit resume {out}`."
            )
        return Begun.read(out)
    if out.is_dir() and any(out.iterdir()):
        raise RunError(f"'{out}' exists and is no run of a mixture, so it is left alone; give another --out.")
    cache, public = (checked_cache(path, progress=progress) for path in (recipe.data.cache, recipe.mixture.public))
    clients = len(cache.clients("train"))
    check_splits(cache, clients)
    _same_words(cache, public)
    begun = Begun(
        cache=str(cache.path.resolve()),
        cache_digest=cache.manifest.digest,
        public=str(public.path.resolve()),
        public_digest=public.manifest.digest,
        network=None if recipe.mixture.network is None else str(recipe.mixture.network.resolve()),
        population=None if recipe.privacy.population is None else str(recipe.privacy.population.resolve()),
        clients=clients,
        delta=recipe.privacy.delta_for(clients),
        weight=recipe.mixture.weight,
    )
    recipe.rounds(clients)  # refuses what cannot be trained
    check_budget(recipe, clients)
    _tell(recipe, public, clients, progress)
    place = place_of(out)
    with folder_beside(place) as draft:
        _public_parts(recipe, public, draft, progress)
        begun = replace(begun, weight=_rehearsed(begun.settled(recipe), cache, public, draft, clients, progress))
        write_whole(draft / RECIPE, recipe.to_toml().encode())
        write_whole(draft / BEGUN, (json.dumps(to_plain(begun), indent=1) + "\n").encode())
        replace_folder(place, draft)
    return begun


def judgement_of(recipe: MixtureRecipe, public: Cache, clients: int, *, progress: Progress = silent) -> Judgement:
    """Whether it is worth it for so many clients, over what is free of the same text."""
    epsilon = epsilon_of(recipe.privacy.rho(clients), recipe.privacy.delta_for(clients))
    return judged_counts(clients, epsilon, free_model(public, recipe.mixture.network, progress=progress))


def _tell(recipe: MixtureRecipe, public: Cache, clients: int, progress: Progress) -> None:
    """Say that first."""
    found = judgement_of(recipe, public, clients, progress=progress)
    kind = Warned if found.verdict == "no gain expected" else Noted
    progress(kind("judgement", found.says()))


def check_budget(recipe: MixtureRecipe, clients: int) -> None:
    """BudgetError where the population's budget has less left than counts and rounds need together."""
    planned = Cost(zcdp=recipe.privacy.rho(clients))
    check_left(BudgetRequest.from_options(recipe.privacy.population, clients, planned))


def settings_of(recipe: MixtureRecipe, folder: Path, *, split: str = "train", clients: int = 0) -> CountSettings:
    """What is counted, of whom. folder: of the run, which has the list of cells."""
    cells = None if recipe.mixture.cells is None else CellList.load(folder.resolve() / CELLS)
    return CountSettings(sums=recipe.mixture.parsed_sums(), cells=cells, split_name=split, clients=clients)


def price_of(recipe: MixtureRecipe, clients: int) -> ReleaseCost:
    """What the counts cost."""
    return ReleaseCost(zcdp=recipe.counts_rho(clients), delta=recipe.privacy.delta_for(clients))


def counted_models(folder: Path) -> list[Path]:
    """The public n-gram models of a run."""
    return sorted((folder / NGRAM).iterdir())


def added(
    folder: Path, recipe: MixtureRecipe, cache: Cache, public: Cache, *, clients: int | None = None
) -> dict[str, Any]:
    """What each part of the mixture in `folder` adds on the first test clients; exact.

    Several n-gram models are one, weighted by public text, before anything was counted. clients: how many;
    left out, as many as the recipe says. `tested` has the sums of each client, by which the mixture is laid beside
    other runs: as of a training, with what it is compared with.
    """
    asked = recipe.evaluation.test_clients if clients is None else clients
    chosen = cache.clients("test")[:asked]
    held_out = HeldOut.read(cache, chosen, sentences=recipe.evaluation.sentences, words=WORDS_OF_A_SENTENCE)
    files = read_files(folder / MIXED)
    readers: dict[str, Reader] = {BASE: _base(folder, public), COUNTED: mixture_reader(_without_network(files))}
    if files.settings["network"] is not None:
        readers[WHOLE] = mixture_reader(files)
    found = {name: evaluate_reader(each, held_out) for name, each in readers.items()}
    arms: tuple[Arm, ...] = arms_of(found)
    last = next(reversed(found))
    named = {WHOLE_MODEL if name == last else name: each for name, each in found.items()}
    tested = comparison_models_of(held_out, named, first_words=False)
    return {
        "clients": len(chosen),
        "words": int(sum(tested.predicted)),
        "arms": [to_plain(each) for each in arms],
        "tested": to_plain(tested),
    }


def _base(folder: Path, public: Cache) -> Reader:
    """What reads the public n-gram models alone."""
    models = counted_models(folder)
    if len(models) == 1:
        return ngram_reader(read_files(models[0]))
    with tempfile.TemporaryDirectory() as place:
        mix(models, Path(place) / MIXED, public=public)
        return mixture_reader(read_files(Path(place) / MIXED))  # whose arrays stay mapped


def _without_network(files: ModelFiles) -> ModelFiles:
    return replace(files, settings={**files.settings, "network": None, "network_weight": 0.0, "network_bent": False})


def _same_words(cache: Cache, public: Cache) -> None:
    if not public.manifest.public:
        raise InputError(
            f"mixture.public: the text in '{public.path}' is clients', and what is fitted to it tells of it; name a "
            "cache of public text (`tacit data import public:FILE.parquet`)."
        )
    if public.manifest.vocabulary.sha256 != cache.manifest.vocabulary.sha256:
        raise InputError(
            f"mixture.public: the cache '{public.path}' knows other words than '{cache.path}'; import both with one "
            "vocabulary (--vocabulary vocabulary.json)."
        )


def _public_parts(recipe: MixtureRecipe, public: Cache, draft: Path, progress: Progress) -> None:
    """The n-gram model and the network into the folder: what a run is made of stays with it."""
    words = public.manifest.vocabulary.sha256
    (draft / NGRAM).mkdir()
    if not recipe.mixture.ngram:
        ngram(public, draft / NGRAM / "01", progress=progress)
    for number, path in enumerate(recipe.mixture.ngram, start=1):
        files = _copied("ngram", path, draft / NGRAM / f"{number:02}", words)
        ngram_reader(files)  # refuses what is no n-gram model
    if recipe.mixture.cells is not None:
        write_whole(draft / CELLS, CellList.load(recipe.mixture.cells).text.encode())
    if recipe.mixture.network is not None:
        _copied("network", recipe.mixture.network, draft / NETWORK, words).network()


def _copied(key: str, path: Path, to: Path, words: str) -> ModelFiles:
    files = read_files(path)
    if files.vocabulary.sha256 != words:
        raise InputError(
            f"mixture.{key}: the model in '{path}' knows other words than the clients' cache; make it of the cache "
            "that mixture.public names."
        )
    if files.public_text is None:
        raise InputError(
            f"mixture.{key}: the model in '{path}' is not known to be of public text only (no {ORIGIN}), and what it "
            "cost whose text it saw would be missing from the promise; name one of `tacit ngram` or `tacit pretrain`."
        )
    to.mkdir()
    for name in FILES:
        shutil.copyfile(files.folder / name, to / name)
    return read_files(to)


def _rehearsed(
    recipe: MixtureRecipe, cache: Cache, public: Cache, draft: Path, clients: int, progress: Progress
) -> float | None:
    """Play all that follows with FEW passages of public text in place of clients; the weight of a public network.

    Raises: InputError naming what fails; nothing was released.
    """
    progress(StageBegan(REHEARSING))
    place = draft / "rehearsal"
    place.mkdir()
    with refused(RELEASE):
        few = settings_of(recipe, draft, split="validation", clients=min(FEW, len(public.clients("validation"))))
        count(public, place / COUNTS, settings=few, release=price_of(recipe, clients))
    with refused(MODEL):
        (place / NGRAM).symlink_to(draft.resolve() / NGRAM)
        network = draft / NETWORK if recipe.mixture.network is not None else None
        weighed: dict[str, Any] = {} if network is None else {"network": network}
        if network is not None:
            given = recipe.mixture.weight
            weighed |= {"public": public} if given is None else {"weight": given}
        several = counted_models(draft)
        if len(several) > 1:
            weighed |= {"public": public}
        made = mix(several, place / MIXED, counts=place / COUNTS, **weighed, progress=silent)
    with refused(TEST):
        added(place, recipe, cache, public, clients=2)
    shutil.rmtree(place)
    progress(StageEnded(REHEARSING))
    follows = recipe.training is not None or (len(several) > 1 and recipe.mixture.weight is None)  # from releases
    return None if network is None or follows else made.network_weight
