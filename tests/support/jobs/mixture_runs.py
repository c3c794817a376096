"""Public text, clients who type otherwise, and what a recipe of a mixture is made of: each in milliseconds."""

import os
import signal
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from tests.support.zipf_text import WORDS, sentences

import tacit
from tacit.data import Cache, TextsOf, VocabularyChoice
from tacit.networks.cifg.network import Cifg
from tacit.progress import Event
from tacit.recipe.mixture import MixtureRecipe
from tacit.training.pretrain import Pretraining

SUMS = ["word_counts:64 norm 8 unit 16", "word_pairs:20 norm 6 unit 16"]
# Rounds of a second, from the public network.
TRAINING: dict[str, Any] = {
    "model": {"embedding": 8, "units": 16},
    "client": {"batch_size": 4, "sentences": 8, "words": 6},
    "rounds": {"rounds": 3, "report_goal": 6, "min_separation": 3},
    "privacy": {"clip_norm": 0.2, "mechanism": {"name": "blt-b400"}},
    "evaluation": {"every": 4, "clients": 5, "test_clients": 6, "sentences": 8},
}


class Parts(NamedTuple):
    """Where everything is."""

    public: Path
    typed: Path
    ngram: Path
    network: Path


def parts_at(folder: Path) -> Parts:
    """Make them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("\n".join(WORDS) + "\n")
    choice = VocabularyChoice(word_list=folder / "words.txt")
    texts = {f"text {n}": sentences(n, 90) for n in range(40)}
    public = tacit.import_data(
        TextsOf(texts, description="public text of a test"), folder / "public", vocabulary=choice
    )
    typed = {f"client {n}": sentences(1000 + n, 4 + n % 9, backwards=True) for n in range(120)}
    same = VocabularyChoice(file=public.vocabulary_path)
    tacit.import_data(TextsOf(typed, description="clients of a test"), folder / "typed", vocabulary=same)
    tacit.ngram(public, folder / "pb", cutoffs=(1, 1, 1))
    network = Cifg(vocabulary=public.manifest.vocabulary.size, embedding=8, units=16)
    tacit.pretrain(public, folder / "net", model=network, settings=Pretraining(sentences=64, every=64))
    return Parts(folder / "public", folder / "typed", folder / "pb", folder / "net")


def values(parts: Parts, **sections: Any) -> dict[str, Any]:
    """The values of a recipe without rounds; `sections` change some, and None drops a key or a section."""
    found: dict[str, Any] = {
        "name": "tiny mixture",
        "data": {"cache": str(parts.typed)},
        "mixture": {
            "public": str(parts.public),
            "ngram": str(parts.ngram),
            "network": str(parts.network),
            "sums": SUMS,
        },
        "privacy": {"epsilon": 8.0, "delta": 1e-5},
        "evaluation": {"test_clients": 6, "sentences": 8},
        "run": {"seed": 3},
    }
    for name, changes in sections.items():
        changed = {**found.get(name, {}), **changes} if isinstance(changes, dict) else changes
        found[name] = _without_none(changed) if isinstance(changed, dict) else changed
    return _without_none(found)


def with_rounds(parts: Parts, **sections: Any) -> dict[str, Any]:
    """The same with rounds that take half of the budget."""
    mixture = {"counts_share": 0.5, **sections.pop("mixture", {})}
    return values(parts, mixture=mixture, training=TRAINING, **sections)


def recipe_of(given: dict[str, Any]) -> MixtureRecipe:
    """As a file says it."""
    return MixtureRecipe.from_toml(tomli_w.dumps(given))


def _without_none(given: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in given.items() if each is not None}


def opened(parts: Parts) -> Cache:
    """The clients' text."""
    return Cache.open(parts.typed)


def main(recipe: str, out: str, stop_at: int) -> None:
    """Make a mixture, and kill this process at the event with that number; without a recipe, end the one at `out`."""
    seen = 0

    def killed(event: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if recipe:
        tacit.train_mixture(recipe, out, progress=killed)
    else:
        tacit.finish(out, progress=killed)
