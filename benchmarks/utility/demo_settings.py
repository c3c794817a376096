"""What `tacit demo` shows, over three seeds and other public text: private counts and rounds against what is free.

    python benchmarks/utility/demo_settings.py --runs runs/demo-settings
    python benchmarks/utility/demo_settings.py --runs runs/demo-settings --public FILE.parquet --called forum
    python benchmarks/utility/demo_settings.py --runs runs/demo-settings --remember

Public models and recipes are the demo's; --public takes the place of the novels, its words that of their vocabulary. A
seed draws the noise, the cohorts and the order of sentences; the people who judge are all of the test split. Intervals
are over seeds and people crossed. Killed at any time, the same command goes on. One JSON line for each arm; --remember
keeps it in remembered/demo.jsonl, from which docs/results/demo.md has its tables.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from remembered_rows import remember_row

import tacit
from tacit.data import Cache, VocabularyChoice
from tacit.data.formats.shipped import Chat, Novels
from tacit.evaluation.comparison_models import CLIENTS, FREE, PUBLIC_NETWORK, PUBLIC_NGRAM
from tacit.evaluation.crossed import crossed_interval
from tacit.evaluation.ladder import Ladder
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.jobs.demo import LEARNING_RATE, PUBLIC_SENTENCES, VOCABULARY, shipped_rounds
from tacit.jobs.ladder import LadderSettings
from tacit.planning.counts import sums_for
from tacit.recipe import Recipe
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining

EPSILONS = (1.0, 8.0, math.inf)  # of counts
DELTA = 1e-5
WITHOUT_NOISE = 1e9  # rho of zCDP: less than one unit of noise
FILE = "demo.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are, or are made")
    parser.add_argument("--public", type=Path, help="Parquet with a column text, in place of the novels")
    parser.add_argument("--called", default="novels", help="what the public text is called in the rows")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--counts-only", action="store_true", help="no rounds, which take a minute each")
    parser.add_argument("--remember", action="store_true")
    asked = parser.parse_args()
    place = asked.runs / asked.called
    public, clients = caches(place, asked.public)
    seeds = range(1, asked.seeds + 1)
    arms = {
        f"counts {epsilon:g}": [counted(place, public, clients, epsilon, seed) for seed in seeds]
        for epsilon in EPSILONS
    }
    if not asked.counts_only:
        arms["rounds 1"] = [trained(place, clients, seed, noise=True) for seed in seeds]
        arms["rounds inf"] = [trained(place, clients, seed, noise=False) for seed in seeds]
    found = tacit.ladder(
        clients,
        public=[public],
        network=place / "network",
        models=[model for models in arms.values() for model in models],
        settings=LadderSettings(),
    )
    for free in (PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, CLIENTS):
        say(asked, found.ladder, free, [free])
    for arm, models in arms.items():
        say(asked, found.ladder, arm, [str(model) for model in models])


def caches(place: Path, public: Path | None) -> tuple[Cache, Cache]:
    """The public text and the people's, in the public text's words, and the public models."""
    if not (place / "people").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        words = VocabularyChoice(public=("novels" if public is None else str(public),))
        source = Novels() if public is None else f"public:{public}"
        made = tacit.import_data(source, place / "public", vocabulary=words, vocabulary_size=VOCABULARY)
        tacit.import_data(Chat(), place / "people", vocabulary=VocabularyChoice(file=made.vocabulary_path))
    text, people = Cache.open(place / "public"), Cache.open(place / "people")
    if not (place / "ngram").is_dir():
        tacit.ngram(text, place / "ngram")
    model = shipped_rounds(people, place / "network").model.settings(people.manifest.vocabulary.size)
    central = CentralTraining(learning_rate=LEARNING_RATE, precision="bfloat16")
    how = Pretraining(central=central, sentences=PUBLIC_SENTENCES, every=PUBLIC_SENTENCES)
    tacit.pretrain(text, place / "network", model=model, settings=how)
    return text, people


def counted(place: Path, public: Cache, clients: Cache, epsilon: float, seed: int) -> Path:
    """Both public models, bent by counts of this epsilon."""
    run, out = place / f"counts-{epsilon:g}-{seed}", place / f"mixture-{epsilon:g}-{seed}"
    cost = ReleaseCost(zcdp=WITHOUT_NOISE) if math.isinf(epsilon) else ReleaseCost(epsilon=epsilon, delta=DELTA)
    if not out.is_dir():
        sums = sums_for(public, clients=len(clients.clients("train")), rho=cost.rho)
        tacit.count(clients, run, settings=CountSettings(sums=sums, split_name="train"), release=cost, seed=seed)
        tacit.mix(place / "ngram", out, counts=run, network=place / "network", public=public)
    return out


def trained(place: Path, clients: Cache, seed: int, *, noise: bool) -> Path:
    """The public network after the demo's rounds."""
    recipe = shipped_rounds(clients, place / "network")
    changed = {
        "run": recipe.run.model_copy(update={"seed": seed}),
        "evaluation": recipe.evaluation.model_copy(update={"baselines": False}),
    }
    if not noise:
        changed["privacy"] = recipe.privacy.model_copy(update={"mechanism": None, "epsilon": None})
    played: Recipe = recipe.model_copy(update=changed)
    out = place / f"rounds-{'1' if noise else 'inf'}-{seed}"
    tacit.train(played, out, anyway=True)
    return out


def say(asked: argparse.Namespace, ladder: Ladder, arm: str, models: Sequence[str]) -> None:
    """A line of JSON of an arm: its accuracies, and its points over the best free model with their interval."""
    sums = [ladder.sums(model) for model in models]
    free = ladder.sums(str(ladder.free))
    facts: dict[str, float | Sequence[float]] = {}
    for what, of in (("top1", "predicted"), ("top3", "predicted"), ("top3", "words")):
        name = what if of == "predicted" else f"{what}_of_all"
        parts = np.array([each[what] for each in sums])
        facts[name] = float(parts.mean(axis=0).sum() / free[of].sum())
        if arm != ladder.free:
            facts[f"{name}_over_free"] = list(crossed_interval(parts - free[what], free[of]).interval)
    print(json.dumps({"experiment": asked.called, "arm": arm, "seeds": len(models), **facts}))
    if asked.remember:
        remember_row(FILE, asked.called, arm, None, facts)


if __name__ == "__main__":
    main()
