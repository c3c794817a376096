"""What is lost where a server learning rate and a clip norm were chosen on text of another domain.

Papers 1 and 4 tune on public text and reuse what they found. Here `tacit.tune` tries the same rates and quantiles on
each of several texts, and the recipe that it writes for a larger report goal is trained on every target: once as its
own tuning chose it, once as each other's did. A seed is all of it again: its trials, its choice, its production run. So
the paired differences over seeds hold how much a choice varies, too; those of one seed alone are over its test clients.
Target and source share the vocabulary.

    tacit data import DATA/chat-en --out caches/chat2k --vocabulary-size 2000 \
        --vocabulary-from DATA/public-forum-en.parquet --vocabulary-from DATA/public-novels-en.parquet
    tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary caches/chat2k/vocabulary.json
    tacit data import public:DATA/public-forum-en.parquet --out caches/forum2k \
        --vocabulary caches/chat2k/vocabulary.json
    python benchmarks/utility/tuning_on_another_domain.py --targets caches/chat2k caches/blogs2k \
        --sources caches/forum2k --runs runs/domains --remember FILE.jsonl
    ... --table                       Markdown from FILE.jsonl alone

Killed at any time, the same command goes on.
"""

import argparse
import itertools
import json
import statistics
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cells import Cell, Spread, cell, paired, play, remember, small

import tacit
from tacit.compute import Hardware
from tacit.evaluation.intervals import ratio_of_means
from tacit.planning.tuning import TuningSettings
from tacit.recipe import Recipe

MEASURES = ("top1_accuracy", "top3_accuracy", "cross_entropy")
RATES, QUANTILES = (1.0, 2.0, 4.0, 8.0), (0.5,)
ROUNDS, SMALL_GOAL, LARGE_GOAL, APART = 150, 20, 60, 30  # 730 people, the forum's, come 20 at a time, 30 rounds apart
# As long in this network of 316 thousand parameters as 7 / 6,500 is in the papers' of 2.4 million.
NOISE_ON_THE_MEAN = 0.003
VALIDATED = 80  # of the smallest text's 90 validation clients; of the others as many


class Chosen(NamedTuple):
    """What a tuning came to: a line of the file of remembered cells."""

    source: str
    seed: int
    server_learning_rate: float
    quantile: float
    clip_norm: float
    failed: int  # trials
    at_edge: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=Path, nargs="+", default=[], help="caches to tune and to train on")
    parser.add_argument("--sources", type=Path, nargs="+", default=[], help="caches to tune on alone")
    parser.add_argument("--runs", type=Path, help="where the run folders are, or are made")
    parser.add_argument("--remember", type=Path, required=True, help="a line of JSON for each choice and cell")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--table", action="store_true", help="from the remembered lines, run nothing")
    asked = parser.parse_args()
    if not asked.table:
        if not asked.targets or asked.runs is None:
            parser.error("give --targets and --runs, or --table")
        run(asked)
    print(choices(asked.remember), losses(asked.remember), sep="\n\n")


def run(asked: argparse.Namespace) -> None:
    for seed in range(1, asked.seeds + 1):
        recipes = {source.name: tuned(asked, source, seed) for source in (*asked.targets, *asked.sources)}
        cells = [
            production(recipes[source], target, source, seed)
            for target, source in itertools.product(asked.targets, recipes)
        ]
        done = play(cells, asked.runs, at_once=1)
        remember(cells, done, asked.remember, MEASURES)
        for target, source in itertools.product((each.name for each in asked.targets), recipes):
            if source != target:
                own, other = (done[f"{target}-by-{by}-{seed}"].folder for by in (target, source))
                line = {"cell": f"{other.name} less its own", "over_clients": over_clients(own, other)}
                _append(asked.remember, line)


def over_clients(own: Path, other: Path) -> dict[str, tuple[float, float, float]]:
    """Of each measure, `other` less `own` on the test clients that both runs share, with its 95% interval over them."""
    (words, first), (same, second) = (_tested(each) for each in (own, other))
    assert words == same, "pairs of one seed are tested on the same words"
    found = {}
    for name in MEASURES:
        apart = np.subtract(second[name], first[name])
        mean, low, high = (float(f"{value:.6g}") for value in ratio_of_means(apart, words))
        found[name] = (mean, low, high)
    return found


def _tested(folder: Path) -> tuple[list[float], dict[str, list[float]]]:
    """(words of each test client, sums of each measure over them), which a simulation's record has."""
    tested = json.loads((folder / "simulation" / "record.json").read_text(encoding="utf-8"))["tested"]
    return tested["predicted"], {name: tested["sums"]["model"][name] for name in MEASURES}


def _append(path: Path, line: dict[str, Any]) -> None:
    """Once."""
    kept = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    if (written := json.dumps(line)) not in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(written + "\n")


def tuned(asked: argparse.Namespace, source: Path, seed: int) -> Recipe:
    """The production recipe of a tuning on `source`, whose choice is remembered."""
    sections = small(
        {
            "rounds": {"rounds": asked.rounds, "report_goal": SMALL_GOAL, "min_separation": APART},
            "privacy": {
                "mechanism": {"name": "tree-variance-reduced"},
                "noise_multiplier": NOISE_ON_THE_MEAN * SMALL_GOAL,
            },
            "evaluation": {"every": asked.rounds, "clients": VALIDATED, "test_clients": VALIDATED},
        }
    )
    folder = asked.runs / f"tuned-{source.name}-{seed}"
    result = tacit.tune(
        cell(f"tune-{source.name}", sections, cache=source, seed=seed).recipe,
        folder,
        TuningSettings(server_learning_rates=RATES, quantiles=QUANTILES, large_report_goal=LARGE_GOAL),
        hardware=Hardware(workers=1),
    )
    if result.choice is None or result.production is None:
        raise SystemExit(f"every trial of '{folder}' failed; give other rates.")
    chosen = Chosen(
        source=source.name,
        seed=seed,
        server_learning_rate=result.choice.setting.server_learning_rate,
        quantile=result.choice.setting.quantile,
        clip_norm=result.choice.clip_norm,
        failed=sum(trial.failure is not None for trial in result.trials),
        at_edge=result.edge,
    )
    _append(asked.remember, {"cell": folder.name, "choice": chosen._asdict()})
    return result.production


def production(recipe: Recipe, target: Path, source: str, seed: int) -> Cell:
    """What `source` chose, trained on `target`: pairs of one seed share model, cohorts and sentences."""
    values: dict[str, Any] = tomllib.loads(recipe.to_toml())
    values["data"]["cache"], values["run"] = str(target), {"seed": seed}
    values["evaluation"] |= {"clients": 200, "test_clients": 400}
    values["name"] = f"{target.name}-by-{source}-{seed}"
    return Cell(values["name"], Recipe.model_validate(values, strict=False))


def choices(path: Path) -> str:
    """What each tuning chose, as Markdown."""
    found = [Chosen(**line["choice"]) for line in _lines(path) if "choice" in line]
    rows = [
        "| tuned on | server learning rate, by seed | clip norm, by seed | failed trials | at the edge of the grid |",
        "|---|---|---|---|---|",
    ]
    for source in dict.fromkeys(each.source for each in found):
        own = sorted((each for each in found if each.source == source), key=lambda each: each.seed)
        rates, norms = (
            ", ".join(f"{value:g}" for value in values)
            for values in ([each.server_learning_rate for each in own], [each.clip_norm for each in own])
        )
        trials, failed = len(own) * len(RATES) * len(QUANTILES), sum(each.failed for each in own)
        edges = sum(bool(each.at_edge) for each in own)
        rows.append(f"| {source} | {rates} | {norms} | {failed} of {trials} | {edges} of {len(own)} |")
    return "\n".join(rows)


def losses(path: Path) -> str:
    """What each choice came to on each target, and what it lost to the target's own, as Markdown."""
    ended = {(*_named(line["cell"]),): line["curves"] for line in _lines(path) if "curves" in line}
    rows = [
        "| trained on | tuned on | top-1 | top-3 | nats | top-1, less its own | top-3 | nats |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for target, source in dict.fromkeys((target, source) for target, source, _ in ended):
        seeds = sorted(seed for where, by, seed in ended if (where, by) == (target, source))
        means, apart = [], []
        for name in MEASURES:
            values = _values(ended, target, source, seeds, name)
            means.append(_mean(values, name))
            if source != target:
                own = _values(ended, target, target, seeds, name)
                apart.append(_apart(_of_one(path, target, source, seeds, name) or paired(own, values), name))
        by = "its own" if source == target else source
        rows.append(f"| {target} | {by} | {' | '.join(means)} | {' | '.join(apart or ['', '', ''])} |")
    return "\n".join(rows)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _named(name: str) -> tuple[str, str, int]:
    """(target, source, seed) of a production cell."""
    where, _, seed = name.rpartition("-")
    target, _, source = where.partition("-by-")
    return target, source, int(seed)


def _values(ended: dict[Any, Any], target: str, source: str, seeds: Sequence[int], name: str) -> list[float]:
    curves = [ended[target, source, seed][f"test_{name}"] for seed in seeds]
    return [curve[max(curve, key=int)] for curve in curves]


def _mean(values: Sequence[float], name: str) -> str:
    mean = statistics.mean(values)
    return f"{mean:.3f}" if name == "cross_entropy" else f"{mean:.2%}"


def _of_one(path: Path, target: str, source: str, seeds: Sequence[int], name: str) -> Spread | None:
    """The interval over clients, where there is one seed."""
    if len(seeds) > 1:
        return None
    wanted = f"{target}-by-{source}-{seeds[0]} less its own"
    (line,) = (line for line in _lines(path) if line["cell"] == wanted)
    mean, low, high = line["over_clients"][name]
    return Spread(mean, 0.0, low, high)


def _apart(found: Spread, name: str) -> str:
    scale, digits = (1, 3) if name == "cross_entropy" else (100, 2)
    mean, low, high = (scale * value for value in (found.mean, found.low, found.high))
    return f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


if __name__ == "__main__":
    main()
