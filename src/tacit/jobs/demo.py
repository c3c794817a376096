"""`tacit.demo`: from nothing to private models of what people typed, what those can do and what that cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import RunError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.result import JobResult
from tacit.progress import Noted, Progress, silent
from tacit.records import json_ready

if TYPE_CHECKING:  # what these need is loaded when the demo runs
    from tacit.data import Cache
    from tacit.jobs.ladder import LadderResult
    from tacit.jobs.suggest import Suggestions
    from tacit.jobs.train.job import TrainingResult
    from tacit.jobs.train.mixture import MixtureResult
    from tacit.planning.judgement import Judgement
    from tacit.recipe import Recipe
    from tacit.recipe.mixture import MixtureRecipe
    from tacit.reports.blocks import Block
    from tacit.statements.composed import ComposedPromise

VOCABULARY = 4_000  # with the special ones, of the novels: noise grows with the models, and they with the vocabulary
PUBLIC_SENTENCES = 100_000  # about twice through the public text
LEARNING_RATE = 2e-2  # of the pre-training: the best of 0.002, 0.008 and 0.02 after so few sentences
FEW = 1_500  # people of a quick demo
JUDGES = 1_000  # test clients
PROMPTS = ("how do I", "I have a", "you need to", "what is the")  # nobody's
CODE = "demo"  # of the events that say which of the two models comes next
BESIDE = ("novels", "data", "start", "counts", "without-noise")  # what is beside `out`


@dataclass(frozen=True, kw_only=True)
class DemoResult(JobResult):
    """Two private models and all that they have to be better than, measured on people on whom none was trained."""

    counts: "MixtureResult"  # public n-gram and network, bent by private counts
    private: "TrainingResult"  # the public network, trained on in private rounds
    without_noise: "TrainingResult"  # the same rounds, cohorts drawn anew: what the noise cost; it protects nobody
    ladder: "LadderResult" = field(repr=False)  # these and the baselines on the same test clients
    forecast: "Mapping[str, Judgement]" = field(repr=False)  # of "counts" and "rounds", before anything was learnt

    @property
    def together(self) -> "ComposedPromise":
        """What is promised to somebody whose text is in both private models."""
        from tacit.jobs.statement import statement
        from tacit.parsing import parsed_json
        from tacit.statements.composed import ComposedPromise

        rounds: dict[str, Any] = parsed_json(statement(self.private.run).to_json())
        return ComposedPromise(statements={**self.counts.promise.statements, "rounds": rounds}, public={})

    def suggestions(self) -> "Mapping[str, Suggestions]":
        """What the public network and the private model suggest after a few prompts: words of the novels alone."""
        from tacit.jobs.suggest import suggest

        first = self.private.run.path.with_name(f"{self.private.run.path.name}-start")
        return {"public": suggest(first, PROMPTS), "private": suggest(self.counts.folder, PROMPTS)}

    def blocks(self) -> "list[Block]":
        """What people read of it: the models side by side, what the epsilon means, suggestions, what next."""
        from tacit.reports.demo import of_demo

        stated, report = self.private.summary().statement, self.private.report
        assert stated is not None  # every round was released
        prices = {name: self.ladder.price(name) for name in self.ladder.names}
        return of_demo(
            self.ladder.ladder,
            clients=self.ladder.clients,
            epsilons={name: math.inf if price is None else price.epsilon for name, price in prices.items()},
            counts=str(self.counts.folder),
            rounds=str(self.private.run.path),
            plain=str(self.without_noise.run.path),
            statement=stated,
            together=self.together,
            suggested={name: each.after for name, each in self.suggestions().items()},
            where=[] if report is None else report.where(),
            forecast=self.forecast,
        )

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit demo --json` prints."""
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.demo",
                "version": 2,
                "counts": self.counts.to_record(),
                "private": self.private.to_record(),
                "without_noise": {"run": str(self.without_noise.run.path), "test": dict(self.without_noise.test)},
                "ladder": self.ladder.to_record(),
                "forecast": {name: each.to_record() for name, each in self.forecast.items()},
                "together": {"epsilon": self.together.epsilon, "delta": self.together.delta},
                "suggestions": {name: each.to_record()["after"] for name, each in self.suggestions().items()},
            }
        )
        return record


def demo(out: PathLike = "runs/demo", *, quick: bool = False, progress: Progress = silent) -> DemoResult:
    """Public models of novels, private counts and private rounds of what people typed, and all baselines beside them.

    Beside `out` are the caches (`out`-novels, `out`-data), the public network (`out`-start), the model with private
    counts (`out`-counts) and the rounds without noise (`out`-without-noise). Called again it goes on, or reads what is
    finished.

    out: the folder of the run of private rounds.
    quick: a tenth of the people and of the pre-training, to see every step in a minute or two; such models have
    learned little.
    progress: gets each event in this thread; an exception that it raises stops the job.

    Raises: RunError where something else is at one of these places.
    """
    from tacit.jobs.ladder import LadderSettings, ladder
    from tacit.jobs.pretrain import pretrain
    from tacit.jobs.run_start import check_place
    from tacit.jobs.train.job import train
    from tacit.jobs.train.mixture import train_mixture
    from tacit.jobs.train.mixture_folder import judgement_of
    from tacit.jobs.train.mixture_run import is_mixture_run
    from tacit.jobs.train.noise_forecast import noise_forecast
    from tacit.training.central import CentralTraining
    from tacit.training.pretrain import Pretraining

    of_type("quick", quick, bool)
    out = as_path("out", out)
    if not out.name:
        raise RunError(f"'{out}' has no name, and others begin with it; give another --out, as runs/demo.")
    novels, typed, start, counts, plain = (out.with_name(f"{out.name}-{name}") for name in BESIDE)
    for place in (out, start, plain):
        check_place(place)
    if counts.is_dir() and any(counts.iterdir()) and not is_mixture_run(counts):
        raise RunError(f"'{counts}' is something else, so it is left alone; give another --out.")
    begun = (start / "run.db").exists()
    if not begun and (out / "run.db").exists():
        raise RunError(f"'{out}' is a run of something else, for '{start}' is missing; give another --out.")
    public, clients = _opened(novels, typed) if begun else _imported(novels, typed, quick, progress)
    recipe = shipped_rounds(clients, start, quick=quick)
    sentences = PUBLIC_SENTENCES // 10 if quick else PUBLIC_SENTENCES
    central = CentralTraining(learning_rate=LEARNING_RATE, precision="bfloat16")
    pretrain(
        public,
        start,
        model=recipe.model.settings(clients.manifest.vocabulary.size),
        settings=Pretraining(central=central, sentences=sentences, every=sentences),
        progress=progress,
    )
    recipe_of_counts = _counts(clients, public, start)
    forecast = {
        "counts": judgement_of(recipe_of_counts, public, len(clients.clients("train")), progress=progress),
        "rounds": noise_forecast(recipe, progress=progress).judged,
    }
    progress(Noted(CODE, "Private counts, and what is expected of them:"))
    counted = train_mixture(recipe_of_counts, counts, progress=progress)
    progress(Noted(CODE, "Private rounds, and what is expected of them:"))
    private = train(recipe, out, anyway=True, progress=progress)  # it shows what comes of it
    without_noise = train(_without_noise(recipe), plain, progress=progress)
    measured = ladder(
        clients,
        public=[public],
        network=start,
        models=[counted.folder, private.run.path, without_noise.run.path],
        settings=LadderSettings(test=JUDGES),
        progress=progress,
    )
    return DemoResult(counts=counted, private=private, without_noise=without_noise, ladder=measured, forecast=forecast)


def _opened(*paths: Path) -> "tuple[Cache, Cache]":
    from tacit.data import Cache

    public, clients = map(Cache.open, paths)
    return public, clients


def _imported(novels: Path, typed: Path, quick: bool, progress: Progress) -> "tuple[Cache, Cache]":
    """The public text, whose words are the vocabulary, and the people's text in these words."""
    from tacit.data import VocabularyChoice
    from tacit.data.formats.shipped import Chat, Novels
    from tacit.data.vocabulary_choice import NOVELS
    from tacit.jobs.import_data import import_data

    words = VocabularyChoice(public=(NOVELS,))
    public = import_data(Novels(), novels, vocabulary=words, vocabulary_size=VOCABULARY, progress=progress)
    same = VocabularyChoice(file=public.vocabulary_path)
    return public, import_data(Chat(FEW if quick else None), typed, vocabulary=same, progress=progress)


def _counts(clients: "Cache", public: "Cache", start: Path) -> "MixtureRecipe":
    """The shipped recipe of counts, for these people."""
    from tacit.recipe.mixture import MixtureRecipe

    recipe = MixtureRecipe.from_toml(_shipped("demo-counts.toml"), where="demo-counts.toml")
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update={"cache": clients.path}),
            "mixture": recipe.mixture.model_copy(update={"public": public.path, "network": start}),
        }
    )


def shipped_rounds(clients: "Cache", start: Path, *, quick: bool = False) -> "Recipe":
    """The shipped recipe of rounds for these people: as many of them in a round as their separation allows."""
    from tacit.recipe import Recipe

    recipe = Recipe.from_toml(_shipped("demo.toml"), where="demo.toml")
    goal = len(clients.clients("train")) // recipe.rounds.min_separation
    changed = {
        "data": recipe.data.model_copy(update={"cache": clients.path}),
        "model": recipe.model.model_copy(update={"init": start}),
        "rounds": recipe.rounds.model_copy(update={"report_goal": goal}),
    }
    if quick:
        changed["client"] = recipe.client.model_copy(update={"sentences": recipe.client.batch_size})
    return recipe.model_copy(update=changed)


def _shipped(name: str) -> str:
    return (files("tacit") / name).read_text(encoding="utf-8")


def _without_noise(recipe: "Recipe") -> "Recipe":
    """The same training, but that no noise is added; what is free was measured at the end of the private one."""
    changed = {
        "name": f"{recipe.name}, without noise",
        "privacy": recipe.privacy.model_copy(update={"mechanism": None, "epsilon": None}),
        "evaluation": recipe.evaluation.model_copy(update={"baselines": False}),
    }
    return recipe.model_copy(update=changed)
