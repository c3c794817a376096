"""`tacit.demo`: from nothing to a private model on this machine's own text, what it can do and what that cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import RunError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.result import JobResult
from tacit.progress import Progress, StageBegan, StageEnded, silent
from tacit.records import json_ready
from tacit.runs import TrainingMetadata

if TYPE_CHECKING:  # what these need is loaded when the demo runs
    from tacit.data import Cache
    from tacit.jobs.pretrain import PretrainingResult
    from tacit.jobs.suggest import Suggestions
    from tacit.jobs.train.job import TrainingResult
    from tacit.recipe import Recipe
    from tacit.reports.blocks import Block

VOCABULARY = 2_000  # with the special ones: the noise grows with the network, and the network with them
PUBLIC_SENTENCES = 100_000  # about once through the public text
LEARNING_RATE = 2e-2  # of the pre-training: the best of 0.002, 0.008 and 0.02 after so few sentences
MEASURING = "measuring the public model"  # the stage
PROMPTS = ("Return the", "This function", "If the file", "The number of")  # nobody's: words of manuals


@dataclass(frozen=True, kw_only=True)
class DemoResult(JobResult):
    """Three models of one network, measured on the same clients, on whose text none was trained."""

    private: "TrainingResult"  # the released model, with noise
    without_noise: "TrainingResult"  # the same training, cohorts drawn anew: what the noise cost; it protects nobody
    public: Mapping[str, float]  # the metrics of the model that both began from, which saw no client

    @property
    def kept(self) -> float:
        """The private model's accuracy as a share of the one without noise; 1 where that one has none."""
        without = self.without_noise.test["top1_accuracy"]
        return self.private.test["top1_accuracy"] / without if without else 1.0

    def suggestions(self) -> "Suggestions":
        """What the private model suggests after a few prompts: words of the public vocabulary alone."""
        from tacit.jobs.suggest import suggest

        return suggest(self.private.model(), PROMPTS)

    def blocks(self) -> "list[Block]":
        """What people read of it: accuracies side by side, what the epsilon means, suggestions, what next."""
        from tacit.reports.demo import of_demo

        stated, report = self.private.summary().statement, self.private.report
        assert stated is not None  # every round was released
        return of_demo(
            {"public": self.public, "private": self.private.test, "without noise": self.without_noise.test},
            kept=self.kept,
            clients=self.private.run.of_kind(TrainingMetadata, "").population,
            statement=stated,
            suggested=self.suggestions().after,
            where=[] if report is None else report.where(),
            run=str(self.private.run.path),
            plain=str(self.without_noise.run.path),
        )

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit demo --json` prints."""
        record: dict[str, Any] = json_ready(
            {
                "schema": "tacit.demo",
                "version": 1,
                "private": self.private.to_record(),
                "without_noise": {"run": str(self.without_noise.run.path), "test": dict(self.without_noise.test)},
                "public": dict(self.public),
                "kept": self.kept,
                "suggestions": self.suggestions().to_record()["after"],
            }
        )
        return record


def demo(out: PathLike = "runs/demo", *, quick: bool = False, progress: Progress = silent) -> DemoResult:
    """A population of this Python's modules, a public model, private training from it, and the same without noise.

    out: the folder of the private run.

    The private run is at `out`; the caches, the public model and the run without noise are beside it (`out`-manuals,
    `out`-data, `out`-start, `out`-without-noise). Called again it goes on, or reads what is finished. quick: a
    twentieth of it, to see every step in half a minute; such a model has learned next to nothing. Raises: RunError
    where something else is at one of these places.
    """
    from tacit.jobs.pretrain import pretrain
    from tacit.jobs.run_start import check_place
    from tacit.jobs.train.job import train
    from tacit.training.central import CentralTraining
    from tacit.training.pretrain import Pretraining

    of_type("quick", quick, bool)
    out = as_path("out", out)
    if not out.name:
        raise RunError(f"'{out}' has no name, and others begin with it; give another --out, as runs/demo.")
    manuals, typed, start, plain = (
        out.with_name(f"{out.name}-{name}") for name in ("manuals", "data", "start", "without-noise")
    )
    for place in (out, start, plain):
        check_place(place)
    begun = (start / "run.db").exists()
    if not begun and (out / "run.db").exists():
        raise RunError(f"'{out}' is a run of something else, for '{start}' is missing; give another --out.")
    public, clients = _opened(manuals, typed) if begun else _imported(manuals, typed, quick, progress)
    recipe = _recipe(clients, start, quick)
    sentences = PUBLIC_SENTENCES // 20 if quick else PUBLIC_SENTENCES
    plan = Pretraining(central=CentralTraining(learning_rate=LEARNING_RATE), sentences=sentences, every=sentences)
    public_model = pretrain(
        public, start, model=recipe.model.settings(clients.manifest.vocabulary.size), settings=plan, progress=progress
    )
    result = train(recipe, out, anyway=True, progress=progress)  # it shows what comes of it
    without_noise = train(_without_noise(recipe), plain, progress=progress)
    progress(StageBegan(MEASURING))
    public_metrics = _tested(public_model, clients, recipe)
    progress(StageEnded(MEASURING))
    return DemoResult(private=result, without_noise=without_noise, public=public_metrics)


def _opened(*paths: Path) -> "tuple[Cache, Cache]":
    from tacit.data import Cache

    public, clients = map(Cache.open, paths)
    return public, clients


def _imported(manuals: Path, typed: Path, quick: bool, progress: Progress) -> "tuple[Cache, Cache]":
    """The public text, whose words are the vocabulary, and the clients' text in these words."""
    import sysconfig

    from tacit.data import VocabularyChoice
    from tacit.data.formats.docstrings import Docstrings
    from tacit.data.vocabulary_choice import MANUALS
    from tacit.jobs.import_data import FINDING, import_data

    words = VocabularyChoice(public=(MANUALS,))
    public = import_data(MANUALS, manuals, vocabulary=words, vocabulary_size=VOCABULARY, progress=progress)
    same = VocabularyChoice(file=public.vocabulary_path)
    progress(StageBegan(FINDING, opening=Docstrings.name))
    modules = Docstrings([Path(sysconfig.get_path("stdlib"))] if quick else None)
    progress(StageEnded(FINDING))
    return public, import_data(modules, typed, vocabulary=same, progress=progress)


def _recipe(clients: "Cache", start: Path, quick: bool) -> "Recipe":
    """The shipped recipe for these clients: as many of them in a round as their separation allows."""
    from tacit.recipe import Recipe

    recipe = Recipe.from_toml((files("tacit") / "demo.toml").read_text(encoding="utf-8"), where="demo.toml")
    goal = len(clients.clients("train")) // recipe.rounds.min_separation
    changed = {
        "data": recipe.data.model_copy(update={"cache": clients.path}),
        "model": recipe.model.model_copy(update={"init": start}),
        "rounds": recipe.rounds.model_copy(update={"report_goal": goal}),
    }
    if quick:
        changed["client"] = recipe.client.model_copy(update={"sentences": recipe.client.batch_size})
    return recipe.model_copy(update=changed)


def _without_noise(recipe: "Recipe") -> "Recipe":
    """The same training, but that no noise is added; what is free was measured at the end of the private one."""
    changed = {
        "name": f"{recipe.name}, without noise",
        "privacy": recipe.privacy.model_copy(update={"mechanism": None, "epsilon": None}),
        "evaluation": recipe.evaluation.model_copy(update={"baselines": False}),
    }
    return recipe.model_copy(update=changed)


def _tested(model: "PretrainingResult", clients: "Cache", recipe: "Recipe") -> Mapping[str, float]:
    """The metrics of the public model on the test clients, as the trainings measure theirs."""
    from tacit.compute import Hardware
    from tacit.compute.cores import Cores
    from tacit.evaluation.accuracy import evaluate
    from tacit.evaluation.held_out import HeldOut

    numbers = clients.clients("test")[: recipe.evaluation.test_clients]
    held_out = HeldOut.read(clients, numbers, sentences=recipe.evaluation.sentences, words=recipe.client.words)
    trained = model.model()
    return evaluate(trained.network, trained.parameters, held_out, cores=Cores(Hardware())).metrics()
