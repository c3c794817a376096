"""Training on sums of integers ends with the accuracy of training on sums in the clear.

Pairs of runs of one recipe by `tacit train`, equal in everything (seed, hence initial model, cohorts and sentences) but
its section [aggregation], on real text. Without noise a pair differs by the encoding alone, which is the sharp test;
with noise, whose draws follow from what is summed, by other noise and by the 1% more of it that the longer updates
cost, too. Prints one JSON line a run, and one a measure with each way's mean and 95% interval over the seeds (Student's
t), whether they overlap, and the interval of the paired difference encoded - plain.

    python benchmarks/utility/encoding_harms_no_accuracy.py --recipe chat.toml --cache caches/chat --runs runs/encoding
    ... --recipe chat.toml --cache caches/chat --runs runs/smoke --rounds 4

Run folders that are there already are continued, or read if they are done.
"""

import argparse
import tomllib
from pathlib import Path

from cells import Cell, compare, figure, play

from tacit.recipe import Recipe

WAYS = ("plain", "encoded")
MEASURES = ("test_top1_accuracy", "test_top3_accuracy", "test_cross_entropy", "validation_top1_accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", type=Path, required=True, help="one without [aggregation]")
    parser.add_argument("--cache", type=Path, required=True, help="in place of the recipe's")
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are made")
    parser.add_argument("--rounds", type=int, help="in place of the recipe's")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    if asked.seeds < 2:
        raise SystemExit(f"--seeds {asked.seeds}: an interval needs at least 2.")
    cells = {way: [trained(asked, seed, way) for seed in range(1, asked.seeds + 1)] for way in WAYS}
    runs = play([cell for pair in zip(*cells.values(), strict=True) for cell in pair], asked.runs)
    found = {
        way: [{name: round(runs[cell.name].last(name), 6) for name in MEASURES} for cell in cells[way]] for way in WAYS
    }
    for way in WAYS:
        for seed, values in enumerate(found[way], 1):
            figure("run", way=way, seed=seed, **values)
    for name in MEASURES:
        plain, encoded = ((way, [run[name] for run in found[way]]) for way in WAYS)
        compare("encoding_harms_no_accuracy", name, plain, encoded)


def trained(asked: argparse.Namespace, seed: int, way: str) -> Cell:
    """The run of one way and seed, on one core."""
    values = tomllib.loads(asked.recipe.read_text(encoding="utf-8"))
    values["name"] = f"{way}-{seed}"
    values["data"] = {**values["data"], "cache": str(asked.cache)}
    values["run"] = {**values.get("run", {}), "seed": seed}
    if asked.rounds is not None:
        values["rounds"]["rounds"] = asked.rounds
    if way == "encoded":
        values["aggregation"] = {"kind": "secure"}
    return Cell(values["name"], Recipe.model_validate(values, strict=False))


if __name__ == "__main__":
    main()
