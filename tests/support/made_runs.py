"""Run folders that tests write by hand, row by row, as `tacit train` would have."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.privacy import Independent, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.records import to_plain
from tacit.runs import MetricEntry, Run, StepEntry, TrainingMetadata
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
            clients=12,
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
        "extrapolate_to": None,
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
    exact: float = 0.0,
    **changed: Any,
) -> Path:
    """A run folder in which client c comes every `separation` rounds, but for the cohort of the last; of real devices
    (`deployment`), so many without identities.

    exact: added to all that is an exact function of clients' text, and to nothing that follows from noised sums.
    """
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
                clients=120,
                cache_digest=f"{int(0xCD + 10 * exact):x}" * 32,
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
            **({} if separation >= SEPARATION else {"hooks": {"sampler": "made.by:hand"}}),  # ours would not draw them
            **changed,
        }
    )
    recipe = f'name = "{name}"\n[rounds]\nrounds = {rounds}\nreport_goal = {REPORT_GOAL}\n'
    with Run.create(path, recipe, metadata, b"k" * 16) as run:
        if done == rounds if finished is None else finished:
            run.finish()
        measure(run, 0, "validation", exact)
        for round in range(done):
            row = StepEntry(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(release(round, strategy, noise, dropped=(round + int(exact > 0)) % 2)),),
                measures={"loss": 6.0 - round / 10 + exact, "clipped": 0.5 + exact / 10},
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % separation)
            came = clients if metadata.deployment is None else len(clients)
            run.commit(row, clients=came, finished=1_790_000_000.0 + round + exact, seconds=0.5 + exact)
            if (round + 1) % every == 0:
                measure(run, round + 1, "validation", exact)
        if done == rounds:
            measure(run, rounds, "test", exact)
            note(run, exact)
    return path


def note(
    run: Run,
    exact: float = 0.0,
    *,
    model: float = 0.2,
    start: float = 0.1,
    public: bool = True,
    first_words: bool = True,
) -> None:
    """What `jobs.baselines` notes at the end of a run, with these shares of the words suggested first."""
    predicted = np.array([100.0, 80.0, 120.0, 90.0]) + 10 * exact
    wobble = np.array([1.0, -1.0, 2.0, 0.0])

    def sums(share: float) -> dict[str, list[float]]:
        first = predicted * share + wobble * (1 + 5 * share)
        return {"top1_accuracy": [*first], "top3_accuracy": [*2 * first], "cross_entropy": [*predicted * 6]}

    others = {"public n-gram": sums(0.12), "best free model": sums(0.15)} if public else {}
    others["clients' n-gram"] = sums(0.16)
    if first_words:
        others["first words"] = {name: values for name, values in sums(0.05).items() if name != "cross_entropy"}
    test = {"model": sums(model), "start": sums(start), **others}
    source = "novels" if public else "the run began from no model of public text"
    of_each = {"test": test, "validation": others}
    splits = {split: {"predicted": [*predicted], "sums": sums} for split, sums in of_each.items()}
    run.note("comparison_models", {"trigram": source, "counted": public, "rungs": {}, **splits})
    run.note("suggestions", [{"prompt": "I will see", "words": [["you", 0.25], ["it", 0.125], ["the", 0.0625]]}])


def measure(run: Run, rounds: int, split: str, exact: float = 0.0) -> None:
    values = {"top1_accuracy": 0.01 * rounds**0.5, "top3_accuracy": 0.02 * rounds**0.5, "oov_rate": 0.1}
    values |= {"cross_entropy": 6.0, "words": 1000.0, "clients": 10.0}
    values |= {f"client_accuracy_q{quartile}": 0.1 for quartile in (25, 50, 75)}
    values = {name: value + exact / 10 for name, value in values.items()}
    run.record_metrics([MetricEntry(step=rounds, split=split, name=k, value=v) for k, v in values.items()])


def write_adaptive_run(
    path: Path,
    *,
    tree: Tree = Tree(restarts=(8,)),  # noqa: B008  (frozen)
    norms: Sequence[float] = (1.0,) * 8 + (2.5,) * 12,
    estimates: Sequence[float] = tuple(1 + round / 10 for round in range(20)),
    clipped: Sequence[float] = (0.5,) * 20,
    losses: Sequence[float] = (6.0,) * 20,
    exact: float = 0.0,
    **changed: Any,
) -> Path:
    """A run of 20 rounds whose clip norm changes where its tree restarts: as `tacit train` writes one.

    norms: in force, round by round. estimates: after each round. exact: as `write_run`'s.
    """
    counts = {"strategy": tree.to_record(), "clip_norm": 0.5, "noise_multiplier": 8.0}
    also = {"clip estimate": counts}
    write_run(path, strategy=tree, done=0, also_released=also, finished=True, exact=exact, **changed)
    with Run.open(path) as run:
        for round in range(20):
            dropped = int(exact > 0)
            bits = replace(release(round, tree, 8.0, dropped), what="clip estimate", clip_norm=0.5)
            update = replace(release(round, tree, 6.0, dropped), clip_norm=norms[round])
            row = StepEntry(
                step=round,
                file=f"round-{round:06d}.safetensors",
                digest="0" * 64,
                releases=(to_plain(update), to_plain(bits)),
                measures={
                    "loss": losses[round] + exact,
                    "clipped": clipped[round] + exact / 10,
                    "clip_norm": norms[round],
                    "clip_estimate": estimates[round],
                },
            )
            clients = np.arange(REPORT_GOAL) + REPORT_GOAL * (round % SEPARATION)
            run.commit(row, clients=clients, finished=1_790_000_000.0 + round + exact, seconds=0.5 + exact)
        measure(run, 20, "test", exact)
        note(run, exact)
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
    "stands in": {"strategy": Tree(), "extrapolate_to": 52},
    "stands in for less": {"strategy": Tree(), "extrapolate_to": 4},
    "private words": {
        "strategy": Tree(),
        "vocabulary": {"kind": "private", "description": "counted in clients' text"},
    },
    "fixed seed": {"strategy": Tree(), "key_source": "fixed seed 7"},
    "broken promise": {"strategy": Tree(), "separation": 2},
}
