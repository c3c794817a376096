"""A population and a network so small that a round takes milliseconds: what tests of training run on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tomli_w
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache, ClientText, VocabularyRecord, build_cache
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import next_word_loss
from tacit.recipe import Recipe
from tacit.text.vocabulary import BOS, EOS, OOV, Provenance, Vocabulary
from tacit.training import Learner, RoundPlan, SimulatedCollector
from tacit.training.cohort import Workers
from tacit.training.rounds import TrainingState, initial_state
from tacit.training.sampling import Cohorts, CohortSampler, UniformCohorts
from tacit.training.workers_cores import CoreWorkers

WORDS = tuple(f"w{chr(97 + i // 8)}{chr(97 + i % 8)}" for i in range(56))  # with the four specials: 60
CLIENTS = {"train": 40, "validation": 5, "test": 6}
SETTINGS = Cifg(vocabulary=60, embedding=8, units=16)
LOSS = next_word_loss(SETTINGS)

# One line per mechanism: what a recipe's [privacy] says besides the clip norm.
MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": {"name": "none"}},
    "independent": {"mechanism": {"name": "independent"}, "noise_multiplier": 0.3},
    "tree": {"mechanism": {"name": "tree", "restarts": [5]}, "noise_multiplier": 0.3},
    "tree-variance-reduced": {"mechanism": {"name": "tree-variance-reduced"}, "noise_multiplier": 0.3},
    "blt": {"mechanism": {"name": "blt-b400"}, "noise_multiplier": 0.3},
    "banded-toeplitz": {
        "mechanism": {"name": "banded-toeplitz", "coefficients": [1.0, 0.5, 0.25]},
        "noise_multiplier": 0.3,
    },
    "banded-inverse": {"mechanism": {"name": "banded-inverse", "coefficients": [1.0, -0.5]}, "noise_multiplier": 0.3},
    "banded": {"mechanism": {"name": "banded", "bands": 3}, "noise_multiplier": 0.3},
    "tree-full": {"mechanism": {"name": "tree-full"}, "noise_multiplier": 0.3},
}


@dataclass
class Typists:
    """Clients whose next word mostly follows from the one before: something that can be learnt."""

    counts: Mapping[str, int]
    description: str = "typists of a test"
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def expected_clients(self) -> int | None:
        return sum(self.counts.values())

    def clients(self) -> Iterator[ClientText]:
        draw = np.random.default_rng(7)
        for split, count in self.counts.items():
            for number in range(count):
                texts = tuple(self._sentence(draw) for _ in range(draw.integers(1, 13)))
                yield ClientText(client_id=f"{split}-{number}", texts=texts, split=split)

    def _sentence(self, draw: np.random.Generator) -> str:
        at = int(draw.integers(56))
        words = []
        for _ in range(draw.integers(1, 9)):
            words.append("unheard" if draw.random() < 0.05 else WORDS[at])
            at = (3 * at + 1) % 56 if draw.random() < 0.9 else int(draw.integers(56))
        return " ".join(words)


@dataclass(frozen=True)
class Encoded:
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    text_of: NDArray[np.int32]


def tiny_cache(path: Path, counts: Mapping[str, int] = CLIENTS) -> Cache:
    vocabulary = Vocabulary(words=WORDS, provenance=Provenance(kind="word list", description="tiny"), lowercase=False)

    def encode(texts: Sequence[str]) -> Encoded:
        rows = [[BOS, *(vocabulary.id_of(word) for word in text.split()), EOS] for text in texts]
        flat = np.array([id for row in rows for id in row], np.int32)
        return Encoded(flat, np.array([len(row) for row in rows], np.int32), np.arange(len(rows), dtype=np.int32))

    record = VocabularyRecord(
        size=vocabulary.size,
        sha256=vocabulary.sha256,
        lowercase=False,
        kind="word list",
        description="tiny",
        oov_id=OOV,
    )
    return build_cache(
        Typists(counts), encode, path, vocabulary=record, vocabulary_json=vocabulary.to_json(), tokenizer="words"
    )


def tiny_values(cache: Path, **sections: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recipe that trains in a second; `sections` change some."""
    values: dict[str, dict[str, Any]] = {
        "data": {"cache": str(cache)},
        "model": {"embedding": SETTINGS.embedding, "units": SETTINGS.units},
        "client": {"batch_size": 4, "sentences": 8, "words": 6},
        "rounds": {"rounds": 9, "report_goal": 6, "min_separation": 3},
        "privacy": {**MECHANISMS["blt"], "clip_norm": 0.2},
        "evaluation": {"every": 4, "clients": 5, "test_clients": 6, "sentences": 8},
        "run": {"seed": 3},
    }
    for name, changes in sections.items():
        values[name] = {**values.get(name, {}), **changes} if name != "privacy" else {"clip_norm": 0.2, **changes}
    return {"name": "tiny", **values}


def tiny_toml(cache: Path, **sections: Mapping[str, Any]) -> str:
    return tomli_w.dumps(tiny_values(cache, **sections))


def tiny_recipe(cache: Path, **sections: Mapping[str, Any]) -> Recipe:
    return Recipe.from_toml(tiny_toml(cache, **sections))


def tiny_learner(cache: Cache, loss: Any = LOSS) -> Learner:
    start, unravel = ravel_pytree(SETTINGS.init(jax.random.key(0)))
    return Learner(start=np.asarray(start), unravel=unravel, loss=loss, cache=cache, clients=cache.clients("train"))


def cores(workers: int = 1) -> CoreWorkers:
    """So many cores as the workers of a cohort."""
    return CoreWorkers(Cores(Hardware(workers=workers)))


def cohorts_of(learner: Learner, plan: RoundPlan, key: bytes, sampler: CohortSampler | None = None) -> Cohorts:
    sampler = sampler or UniformCohorts(plan.guarantee.participation)
    return Cohorts(learner.clients, sampler, report_goal=plan.report_goal, key=key)


def collector_of(learner: Learner, plan: RoundPlan, workers: Workers, key: bytes) -> SimulatedCollector:
    return SimulatedCollector(learner, cohorts_of(learner, plan, key), workers)


def first_state(learner: Learner, plan: RoundPlan) -> TrainingState:
    """The state before the first round of a simulated population."""
    return initial_state(learner.start, plan, collector_of(learner, plan, cores(), bytes(16)))


def what_happened(path: Path) -> dict[str, Any]:
    """All that two runs of one recipe and seed must have in common, bit for bit; clocks and paths are left out."""
    from tacit.runs import Run

    with Run.open(path) as run:
        files = {file.name: file.read_bytes() for file in sorted((path / "model").iterdir())}
        return {
            "rounds": [(r.step, r.file, r.digest, json.dumps(r.releases), json.dumps(r.measures)) for r in run.steps()],
            "participations": [column.tolist() for column in run.participations()],
            "metrics": [(m.step, m.split, m.name, m.value) for m in run.metrics()],
            "files": files,
            "finished": run.finished,
        }


POISON = 59  # a word that makes whoever typed it diverge


def poisoned_loss(model: Any, sentences: Any) -> Any:
    return LOSS(model, sentences) * jnp.where((sentences == POISON).any(), jnp.float32("nan"), 1.0)
