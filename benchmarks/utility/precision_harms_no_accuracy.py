"""Training in bfloat16 ends with the accuracy of training in float32.

Pairs of runs of one recipe by `tacit train`, equal in everything (seed, hence initial model, cohorts and sentences) but
client.precision, on real text without noise, which would hide a loss of precision. Prints one JSON line a run, one a
measure with each precision's mean and 95% interval over the seeds (Student's t) and whether the intervals overlap,
and the interval of the paired difference bfloat16 - float32, which is the sharper test. On a processor without bfloat16
units both runs of a pair are the same, and the first line says so.

    python benchmarks/utility/precision_harms_no_accuracy.py --cache caches/blogs-en --runs runs/precision
    ... --cache caches/blogs-en --runs runs/smoke --rounds 4 --seeds 2

Run folders that are there already are continued, or read if they are done.
"""

import argparse
import tomllib
from pathlib import Path

from cells import Cell, Played, compare, figure, play

from tacit.compute.precision import has_bfloat16_units
from tacit.recipe import Recipe

RECIPES = Path(__file__).resolve().parent / "recipes"
PRECISIONS = ("float32", "bfloat16")
MEASURES = ("test_top1_accuracy", "test_top3_accuracy", "test_cross_entropy", "validation_top1_accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are made")
    parser.add_argument("--recipe", type=Path, default=RECIPES / "blogs-nonprivate.toml", help="one without noise")
    parser.add_argument("--rounds", type=int, default=200, help="in place of the recipe's")
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    if asked.seeds < 2:
        raise SystemExit(f"--seeds {asked.seeds}: an interval needs at least 2.")
    figure("machine", bfloat16_units=has_bfloat16_units(), rounds=asked.rounds, recipe=asked.recipe.stem)
    found: dict[str, list[dict[str, float]]] = {precision: [] for precision in PRECISIONS}
    for seed in range(1, asked.seeds + 1):
        for precision in PRECISIONS if seed % 2 else PRECISIONS[::-1]:  # whoever comes second finds warm files
            (run,) = play([trained(asked, seed, precision)], asked.runs, workers=0).values()
            found[precision].append(measured(run))
            figure("run", seed=seed, precision=precision, **found[precision][-1])
    for name in MEASURES:
        one, other = ((precision, [run[name] for run in found[precision]]) for precision in PRECISIONS)
        compare("precision_harms_no_accuracy", name, one, other)
    seconds = [sum(run["client_seconds"] for run in found[precision]) for precision in PRECISIONS]
    figure("rounds_are_times_as_fast_in_bfloat16", ratio=round(seconds[0] / seconds[1], 3))


def trained(asked: argparse.Namespace, seed: int, precision: str) -> Cell:
    """The run of one precision and seed, on all cores."""
    values = tomllib.loads(asked.recipe.read_text(encoding="utf-8"))
    values["name"] = f"{precision}-{seed}"
    values["data"] = {**values["data"], "cache": str(asked.cache)}
    values["run"] = {**values.get("run", {}), "seed": seed}
    values["rounds"]["rounds"] = asked.rounds
    values["client"]["precision"] = precision
    return Cell(values["name"], Recipe.model_validate(values, strict=False))


def measured(run: Played) -> dict[str, float]:
    """The last figures of a run, and how long its rounds took."""
    return {name: round(run.last(name), 6) for name in MEASURES} | {"client_seconds": round(run.client_seconds, 2)}


if __name__ == "__main__":
    main()
