"""Run folders that tests write by hand, row by row, as `tacit train` would have."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.privacy import Independent, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.records import to_plain
from tacit.runs import Metric, Run, Step, TrainingMetadata
from tacit.runs.metadata import CacheUsed
from tacit.statements import NoisedSum

DELTA = 1e-10
REPORT_GOAL = 4
SEPARATION = 5


def training_metadata(**changed: Any) -> TrainingMetadata:
    """Of a run of 4 rounds of 5 clients among 10, non-private, with whatever is given in place of that."""
    values: dict[str, Any] = {
        "versions": {"tacit": "0.1.0"},
        "created": 1_789_990_000.0,
        "key_source": "operating system",
        "asked": 'name = "made by hand"\n',
        "recipe": 'name = "made by hand"\n',
        "data": CacheUsed(
            cache="caches/made",
            source="folder:made",
            vocabulary_sha256="ab" * 32,
            vocabulary_size=100,
            cache_digest="cd" * 32,
        ),
        "vocabulary": {"kind": "public", "description": "100 words"},
        "population": 10,
        "report_goal": 5,
        "participation": {"rounds": 4, "min_separation": 2, "max_participations": 2},
        "guarantee": {"strategy": None, "clip_norm": 1.0, "noise_multiplier": 0.0},
        "also_released": {},
        "delta": 1e-10,
        "parameters": 1234,
        "first_model": None,
        "stands_in_for": None,
        "simulated": None,
        "evaluation": {"every": 2, "clients": 10, "test_clients": 20, "sentences": 64},
    }
    return TrainingMetadata(**{**values, **changed})


def release(round: int, strategy: Strategy | None, noise: float, dropped: int = 0) -> NoisedSum:
    return NoisedSum(
        round=round,
        what="model update",
        strategy_record=None if strategy is None else strategy.to_record(),
        clip_norm=1.0,
        noise_multiplier=noise,
        reports=REPORT_GOAL - dropped,
        dropped=dropped,
    )


def write_run(
    path: Path,
    *,
    strategy: Strategy | None,
    rounds: int = 20,
    done: int | None = None,
    noise: float = 6.0,
    every: int = 5,
    separation: int = SEPARATION,
    name: str = "made by hand",
    finished: bool | None = None,
    **changed: Any,
) -> Path:
    """A run folder in which client c comes every `separation` rounds, but for the cohort of the last."""
    done, noise = rounds if done is None else done, noise if strategy else 0.0
    served = Participation.worst_case(rounds, SEPARATION)
    metadata = training_metadata(
        **{
            "versions": {"tacit": "0.1.0", "jax": "0.10", "numpy": "2", "python": "3.11"},
            "created": 1_790_000_000.0,
            "data": CacheUsed(
                cache="caches/made",
                source="made <by> hand",
                vocabulary_sha256="ab" * 32,
                vocabulary_size=104,
                cache_digest="cd" * 32,
            ),
            "vocabulary": {"kind": "public", "description": "100 words of public text"},
            "population": 100,
            "report_goal": REPORT_GOAL,
            "participation": asdict(served),
            "guarantee": {
                "strategy": None if strategy is None else strategy.to_record(),
                "clip_norm": 1.0,
                "noise_multiplier": noise,
            },
            "delta": DELTA,
            "evaluation": {"every": every, "clients": 10, "test_clients": 20, "sentences": 64},
            **changed,
        }
    )
    recipe = f'name = "{name}"\n[rounds]\nrounds = {rounds}\nreport_goal = {REPORT_GOAL}\n'
    with Run.create(path, recipe, metadata, b"k" * 16) as run:
        if done == rounds if finished is None else finished:
            run.finish()
        measure(run, 0, "validation")
        for round in range(done):
            row = Step(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(release(round, strategy, noise, dropped=round % 2)),),
                measures={"loss": 6.0 - round / 10, "clipped": 0.5},
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % separation)
            run.commit(row, clients=clients, finished=1_790_000_000.0 + round, seconds=0.5)
            if (round + 1) % every == 0:
                measure(run, round + 1, "validation")
        if done == rounds:
            measure(run, rounds, "test")
    return path


def measure(run: Run, rounds: int, split: str) -> None:
    values = {"top1_accuracy": 0.01 * rounds**0.5, "top3_accuracy": 0.02 * rounds**0.5, "oov_rate": 0.1}
    values |= {"cross_entropy": 6.0, "words": 1000.0, "clients": 10.0}
    values |= {f"client_accuracy_q{quartile}": 0.1 for quartile in (25, 50, 75)}
    run.record_metrics([Metric(step=rounds, split=split, name=k, value=v) for k, v in values.items()])


def write_adaptive_run(path: Path, **changed: Any) -> Path:
    """A run of 20 rounds whose tree restarts in round 8, and its clip norm with it: as `tacit train` writes one."""
    tree = Tree(restarts=(8,))
    counts = {"strategy": tree.to_record(), "clip_norm": 0.5, "noise_multiplier": 8.0}
    write_run(path, strategy=tree, done=0, also_released={"clip estimate": counts}, finished=True, **changed)
    with Run.open(path) as run:
        for round in range(20):
            norm = 1.0 if round < 8 else 2.5
            bits = replace(release(round, tree, 8.0), what="clip estimate", clip_norm=0.5)
            row = Step(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(replace(release(round, tree, 6.0), clip_norm=norm)), to_plain(bits)),
                measures={"loss": 6.0, "clipped": 0.5, "clip_norm": norm, "clip_estimate": 1 + round / 10},
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % SEPARATION)
            run.commit(row, clients=clients, finished=1_790_000_000.0 + round, seconds=0.5)
        measure(run, 20, "test")
    return path


RUNS: dict[str, dict[str, Any]] = {
    "tree": {"strategy": Tree()},
    "tree with restarts": {"strategy": Tree(restarts=(8, 16), variance_reduced=True)},
    "blt": {"strategy": PUBLISHED_BLT["b400"]},
    "independent": {"strategy": Independent()},
    "non-private": {"strategy": None},
    "unfinished": {"strategy": Tree(), "done": 7},
    "empty": {"strategy": Tree(), "done": 0},
    "empty and non-private": {"strategy": None, "done": 0},
    "one round": {"strategy": Tree(), "rounds": 1, "every": 1},
    "stands in": {"strategy": Tree(), "stands_in_for": 52},
    "stands in for less": {"strategy": Tree(), "stands_in_for": 4},
    "private words": {
        "strategy": Tree(),
        "vocabulary": {"kind": "private", "description": "counted in clients' text"},
    },
    "fixed seed": {"strategy": Tree(), "key_source": "fixed seed 7"},
    "broken promise": {"strategy": Tree(), "separation": 2},
}
