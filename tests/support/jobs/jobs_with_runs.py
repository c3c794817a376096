"""Every job that makes a run folder, as small as it can be, and what two such runs have in common."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
from tests.support.networks.bigram import Bigram
from tests.support.training.tiny import MECHANISMS, SETTINGS, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache, TextsOf
from tacit.data.splits import TemporalSplit
from tacit.data.typed_sentences import Share
from tacit.discovery.settings import DiscoverySettings, LocalReportSettings
from tacit.evaluation.counts.device_part import StatisticHistogram
from tacit.evaluation.personalize.fine_tuning import FineTuning
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings, EvaluationSettings, PersonalizationSettings
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.keyboard.model_folder import write_model
from tacit.planning.tuning import TuningSettings
from tacit.progress import Progress
from tacit.runs import Run
from tacit.text.alphabet import Alphabet
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining

ONE = Hardware(workers=1)
STATISTIC = StatisticHistogram.from_text("words:8,16 by sentences:3")


class Stop(Exception):
    """What a listener raises to end a job."""


@dataclass(frozen=True)
class MakesARun:
    """A job as the contract calls it: with a cache of tiny clients, where to, who listens, and changes."""

    call: Callable[..., Any]
    others: Mapping[str, Any]  # changes that make it another run
    named: str  # how the refusal of these names the first that differs
    impossible: Mapping[str, Any]  # changes that no run can have


def train(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], rounds={"rounds": 5, **changed})
    return tacit.train(recipe, out, hardware=ONE, progress=progress)


KNOWN = Vocabulary(words=("the", "of"), provenance=Provenance(kind="public", description="two words"))
TYPED = TextsOf({f"c{n}": ["the the covid" + " selfie" * (n % 3 == 0)] for n in range(40)})
DISCOVERY = DiscoverySettings(
    reports=LocalReportSettings(local_epsilon=6.0),
    users_per_layer=400,
    prefixes=6,
    depth=6,
    alphabet=Alphabet("abcdefghijklmnopqrstuvwxyz"),
    counting_users=400,
    resample_users=True,
    seed=1,
)


def discover(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    return tacit.discover(TYPED, KNOWN, out, replace(DISCOVERY, **changed), progress=progress)


def model_for(cache: Cache) -> Path:
    """An untrained network beside the cache, with its words."""
    folder = cache.path.parent / "model"
    if not folder.exists():
        write_model(folder, SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_path.read_bytes())
    return folder


def evaluate(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    return tacit.evaluate(
        [model_for(cache)],
        cache,
        settings=EvaluationSettings(**{"sentences": 8, "words": 6, **changed}),
        release=ReleaseCost(epsilon=9.0),
        out=out,
        seed=3,
        hardware=ONE,
        progress=progress,
    )


def count(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    asked = {"statistics": (STATISTIC,), "split_name": "train", **changed}
    cost = ReleaseCost(epsilon=9.0)
    return tacit.count(cache, out, settings=CountSettings(**asked), release=cost, seed=3, progress=progress)


def personalize(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    settings = PersonalizationSettings(
        strategies=(FineTuning(learning_rate=0.5),), split=TemporalSplit(undated="order"), **changed
    )
    cost = ReleaseCost(local_epsilon=4.0)
    return tacit.personalize(
        model_for(cache), cache, out, settings=settings, release=cost, seed=3, hardware=ONE, progress=progress
    )


def type_ab(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    settings = TypingSettings(share=Share(**{"sentences": 3, "words": 4, **changed}), sensitivity=2)
    cost = ReleaseCost(epsilon=9.0)
    asked: dict[str, Any] = {"settings": settings, "release": cost, "noise_seed": 3, "hardware": ONE}
    return tacit.type_ab(model_for(cache), f"trigram:{cache.path}", cache, out, progress=progress, **asked)


def pretrain(cache: Cache, out: Path, progress: Progress, **changed: Any) -> Any:
    central = CentralTraining(batch_size=2, words=6, learning_rate=0.01)
    plan = Pretraining(central=central, sentences=128, every=64, patience=2)
    asked = {"model": Bigram(scale=0.2), "settings": plan, "held_out": 3, "declared_public": True, **changed}
    return tacit.pretrain(cache, out, progress=progress, **asked)


def tune(
    cache: Cache, out: Path, progress: Progress, rates: tuple[float, ...] = (0.5, 1.0), report_goal: int = 6
) -> Any:
    rounds = {"rounds": 3, "report_goal": report_goal, "min_separation": 3}
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["tree"], rounds=rounds)
    return tacit.tune(recipe, out, TuningSettings(server_learning_rates=rates), hardware=ONE, progress=progress)


RUNS = {
    "pretrain": MakesARun(pretrain, {"held_out": 2}, "held_out", {"held_out": 0}),
    "tune": MakesARun(tune, {"report_goal": 5}, r"rounds\.report_goal", {"rates": (-1.0,)}),
    "evaluate": MakesARun(evaluate, {"sentences": 7}, "sentences", {"clients": 1}),
    "count": MakesARun(count, {"clients": 9}, "clients", {"clients": 1}),
    "personalize": MakesARun(personalize, {"harm_weight": 3.0}, "harm_weight", {"harm_weight": -1.0}),
    "type": MakesARun(type_ab, {"words": 5}, r"share\.words", {"sentences": -1}),
    "train": MakesARun(train, {"report_goal": 5}, r"rounds\.report_goal", {"report_goal": 5_000}),
    "discover": MakesARun(discover, {"prefixes": 7}, "prefixes", {"resample_users": False}),
}


def content(path: Path) -> dict[str, Any]:
    """What two runs with the same arguments have in common to the last bit; clocks, paths and versions are left out."""
    trials = [folder for folder in sorted((path / "runs").glob("*")) if folder.is_dir()]
    files = [file for folder in ("steps", "model") for file in sorted((path / folder).glob("*"))]
    with Run.open(path) as run:
        steps = [(s.step, s.file, s.digest, json.dumps(s.releases), json.dumps(dict(s.measures))) for s in run.steps()]
        return {
            "settings": run.settings,
            "steps": steps,
            "metrics": [(m.step, m.split, m.name, m.value) for m in run.metrics()],
            "participations": [column.tolist() for column in run.participations()],
            "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
            "trials": {folder.name: content(folder) for folder in trials},  # a tuning is of runs
            "finished": run.finished,
        }


def without_places(record: Mapping[str, Any]) -> dict[str, Any]:
    """What two runs in different folders have in common."""
    return {name: value for name, value in record.items() if name not in ("run", "report", "simulation")}
