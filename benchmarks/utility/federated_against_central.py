"""How near federated training comes to pooled training, and what the noise of each mechanism costs.

On a cache of real text, measured on the same held-out clients as the run folders: the run folders made by the
recipes blogs-nonprivate, -tree, -blt and -independent (made here by `tacit train`, or continued by `tacit resume`), a
backed-off trigram on as many pooled words as the federated run saw and on all of them, and the same network trained
centrally on as many pooled sentences. One JSON line per figure; runs that are done already are read, not done again.

    python benchmarks/utility/federated_against_central.py --cache caches/blogs-en --runs runs --seed 1
"""

import argparse
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.networks.language_model import next_word_loss
from tacit.networks.metrics import Counts
from tacit.privacy import Participation
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.training import generator_for, key_from_seed
from tacit.training.central import CentralState, CentralTraining, central_start, central_states

RECIPES = Path(__file__).resolve().parent / "recipes"
RATES = (1e-3, 2e-3, 4e-3)  # Adam's learning rates that the central baseline may choose from
SWEEP = 16  # each rate is tried on this part of the sentences
TOP1 = "top1_accuracy"
RECORDED = {"top1": TOP1, "top3": "top3_accuracy", "nats": "cross_entropy"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, required=True)
    options.add_argument("--runs", type=Path, required=True)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--recipes", nargs="*", default=["nonprivate", "blt", "tree", "independent"])
    options.add_argument("--noise", type=float, default=1, help="times the noise of the shipped recipes")
    options.add_argument("--rounds", type=int, help="in place of the recipes'")
    options.add_argument("--only-runs", action="store_true", help="neither trigram nor central training")
    options.add_argument("--without-central", action="store_true")
    options.add_argument("--without-trigram", action="store_true")
    options.add_argument("--central-batch", type=int, default=64, help="640: as many steps as the server takes")
    options.add_argument("--central-rate", type=float, default=None, help="left out, the best of a sweep")
    options.add_argument("--out", type=Path, help="also append the lines to this file")
    options.add_argument("--figure", type=Path, help="only draw the curves of the run folders to this PNG")
    asked = options.parse_args()
    if asked.figure:
        draw([folder_of(name, asked) for name in asked.recipes], asked.figure)
        return

    def say(**figure: object) -> None:
        line = json.dumps(figure)
        print(line, flush=True)
        if asked.out:
            with open(asked.out, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    for name in asked.recipes:
        run_recipe(name, asked)
        say(**of_run(folder_of(name, asked)))
    if asked.only_runs:
        return
    Hardware().apply()
    cores = Cores(Hardware())
    recipe = Recipe.load(RECIPES / "blogs-nonprivate.toml")
    cache = Cache.open(asked.cache)
    splits = held_out(cache, recipe)
    visits = recipe.rounds.rounds * recipe.rounds.report_goal
    sentences = visits * recipe.client.sentences
    if not asked.without_central:
        central(recipe, cache, sentences, splits, asked, cores, say)
    if asked.without_trigram:
        return
    trained = np.random.default_rng(asked.seed).permutation(cache.clients("train"))
    words = words_seen(cache, trained, sentences, recipe.client.words)
    for share in (words, None):
        began = time.process_time()
        trigram = BackedOffTrigram.train(cache, trained, vocabulary=cache.manifest.vocabulary.size, words=share)
        for split, there in splits.items():
            say(what="trigram", words=share or "all", split=split, **figures(trigram.evaluate(there).total))
        say(what="trigram", words=share or "all", cpu_seconds=time.process_time() - began)


def folder_of(name: str, asked: argparse.Namespace) -> Path:
    """Where a recipe's run is; one with more noise stands beside it."""
    return asked.runs / (f"blogs-{name}" if asked.noise == 1 else f"blogs-{name}-noise{asked.noise:g}")


def recipe_of(name: str, asked: argparse.Namespace) -> Path:
    """The shipped recipe, or one made of it: fewer rounds, and the noise of the zCDP of blogs-tree so scaled."""
    shipped = RECIPES / f"blogs-{name}.toml"
    if asked.noise == 1 and asked.rounds is None:
        return shipped
    values = tomllib.loads(shipped.read_text(encoding="utf-8"))
    rounds = values["rounds"]["rounds"] = asked.rounds or values["rounds"]["rounds"]
    tree = Recipe.load(RECIPES / "blogs-tree.toml").guarantee()
    served = Participation.worst_case(rounds=rounds, min_separation=tree.participation.min_separation)
    values["privacy"].pop("noise_multiplier", None)
    if values["privacy"]["mechanism"] != {"name": "none"}:
        values["privacy"]["zcdp"] = tree.with_participation(served).zcdp / asked.noise**2
    values["name"] = folder_of(name, asked).name
    asked.runs.mkdir(parents=True, exist_ok=True)
    made = asked.runs / f"{values['name']}.toml"
    made.write_text(Recipe.model_validate(values).to_toml(), encoding="utf-8")
    return made


def run_recipe(name: str, asked: argparse.Namespace) -> None:
    """The run folder of a recipe: made, or carried to its end."""
    folder = folder_of(name, asked)
    tacit = [sys.executable, "-m", "tacit"]
    if not folder.exists():
        recipe = str(recipe_of(name, asked))
        command = ["train", recipe, "--out", str(folder), "--data", str(asked.cache), "--seed", str(asked.seed)]
    else:
        with Run.open(folder) as run:
            if run.finished:
                return
        command = ["resume", str(folder)]
    subprocess.run([*tacit, *command], check=True)


def of_run(folder: Path) -> dict[str, object]:
    """The last accuracies of a run folder, and how long its rounds took."""
    with Run.open(folder) as run:
        last = run.steps_done
        found = {(m.split, m.name): m.value for m in run.metrics() if m.step == last}
        curve = {m.step: round(m.value, 5) for m in run.metrics() if m.split == "validation" and m.name == TOP1}
        return {
            "what": folder.name,
            "rounds": last,
            "validation_top1": found["validation", TOP1],
            "validation_top3": found["validation", "top3_accuracy"],
            "validation_nats": found["validation", "cross_entropy"],
            "test_top1": found["test", TOP1],
            "round_seconds": sum(seconds for _, _, seconds in run.times()),
            "curve": curve,
        }


def draw(folders: list[Path], out: Path) -> None:
    """Accuracy on validation clients over rounds, one curve a run folder."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for folder in folders:
        with Run.open(folder) as run:
            points = sorted((m.step, m.value) for m in run.metrics() if m.split == "validation" and m.name == TOP1)
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=folder.name.removeprefix("blogs-"))
    axes.set_xlabel("rounds")
    axes.set_ylabel("top-1 in-vocabulary accuracy, validation clients")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(out, dpi=120, metadata={"Software": None})


def held_out(cache: Cache, recipe: Recipe) -> dict[str, HeldOut]:
    """The very sentences that the run folders were measured on."""
    asked = recipe.evaluation
    chosen = {
        "validation": cache.clients("validation")[: asked.clients],
        "test": cache.clients("test")[: asked.test_clients],
    }
    return {
        split: HeldOut.read(cache, clients, sentences=asked.sentences, words=recipe.client.words)
        for split, clients in chosen.items()
    }


def words_seen(cache: Cache, clients: np.ndarray, sentences: int, words: int) -> int:
    """How many words so many sentences have when each is cut at `words`: the mean over some clients, times as many."""
    lengths = np.concatenate([cache.sentences(int(client))[1] for client in clients[:500]])
    return int(np.minimum(lengths - 2, words).mean() * sentences)


def central(
    recipe: Recipe,
    cache: Cache,
    sentences: int,
    splits: dict[str, HeldOut],
    asked: argparse.Namespace,
    cores: Cores,
    say: Callable[..., None],
) -> None:
    """The same network on the pooled text; the learning rate is the best of a sweep on validation clients."""
    network = recipe.model.settings(cache.manifest.vocabulary.size)
    key = key_from_seed(asked.seed)
    import jax

    start = network.init(jax.random.key(int(generator_for(key, "initial model").integers(2**31))))
    clients = cache.clients("train")

    def trained(rate: float, sentences: int, watch: Callable[[CentralState], None] | None = None) -> Any:
        chosen = CentralTraining(learning_rate=rate, batch_size=asked.central_batch)
        begin, loss, model = central_start(start, sentences, chosen), next_word_loss(network), start
        for state in central_states(loss, begin, cache, clients, sentences=sentences, settings=chosen, key=key):
            model = state.model
            if watch:
                watch(state)
        return model

    def accuracy(rate: float) -> float:
        counts = evaluate(network, trained(rate, sentences // SWEEP), splits["validation"], cores=cores).total
        say(what="central sweep", rate=rate, sentences=sentences // SWEEP, **figures(counts))
        return counts.value(TOP1)

    best = asked.central_rate or max(RATES, key=accuracy)

    def watch(progress: CentralState) -> None:
        print(f"central: {progress.sentences}/{sentences} sentences, loss {progress.loss:.3f}", file=sys.stderr)

    began = time.process_time()
    model = trained(best, sentences, watch)
    parameters = len(ravel_pytree(model)[0])
    for split, there in splits.items():
        counts = evaluate(network, model, there, cores=cores).total
        steps = -(-sentences // asked.central_batch)
        made = {"rate": best, "sentences": sentences, "steps": steps, "parameters": parameters}
        say(what="central", **made, split=split, **figures(counts))
    say(what="central", cpu_seconds=time.process_time() - began)


def figures(counts: Counts) -> dict[str, float]:
    return {name: counts.value(metric) for name, metric in RECORDED.items()}


if __name__ == "__main__":
    main()
