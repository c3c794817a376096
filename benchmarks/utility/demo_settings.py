"""The demo keeps the accuracy that it would have without noise: its recipe at several epsilons and none, seed by seed.

Runs of one seed share the first model, the cohorts and the order of every client's sentences, so that their difference
is the noise's. The first model is the demo's, which saw public text alone. What the demo itself prints is less exact:
its two runs draw cohorts of their own.

    tacit demo
    python benchmarks/utility/demo_settings.py --demo runs/demo --runs runs/demo-settings
    python benchmarks/utility/demo_settings.py --demo runs/demo --runs runs/demo-settings --table

One JSON line for each epsilon: accuracy, and the share that is kept of the accuracy without noise, with 95% intervals
(Student's t). About 30 CPU-seconds a run; killed at any time, the same command goes on.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from cells import Cell, Played, figure, play, read, read_folder, spread

from tacit.recipe import Recipe

NONE = "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, required=True, help="the private run of `tacit demo`")
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are, or are made")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.5, 0.25])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2, help="cells side by side, each on one core")
    parser.add_argument("--table", action="store_true", help="print Markdown from the finished cells, run nothing")
    asked = parser.parse_args()
    recipe = Recipe.from_toml(read_folder(asked.demo).metadata.asked)
    cells = [cell(recipe, kind, seed) for seed in range(1, asked.seeds + 1) for kind in (NONE, *asked.epsilons)]
    runs = read(cells, asked.runs) if asked.table else play(cells, asked.runs, at_once=asked.at_once)
    for epsilon in asked.epsilons:
        show(runs, epsilon, asked)


def cell(recipe: Recipe, kind: str | float, seed: int) -> Cell:
    noise = {"mechanism": None, "epsilon": None} if kind == NONE else {"epsilon": float(kind)}
    changed = {
        "privacy": recipe.privacy.model_copy(update=noise),
        "run": recipe.run.model_copy(update={"seed": seed}),
    }
    return Cell(f"{kind}-{seed}", recipe.model_copy(update=changed))


def show(runs: Mapping[str, Played], epsilon: float, asked: argparse.Namespace) -> None:
    """A line of JSON, or a row of Markdown, of the seeds of which both runs have ended."""
    seeds = [seed for seed in range(1, asked.seeds + 1) if {f"{NONE}-{seed}", f"{epsilon}-{seed}"} <= runs.keys()]
    if len(seeds) < 2:
        raise SystemExit(f"epsilon {epsilon}: {len(seeds)} seeds have both runs; an interval needs at least 2.")
    top1 = {kind: [runs[f"{kind}-{seed}"].last("test_top1_accuracy") for seed in seeds] for kind in (NONE, epsilon)}
    kept = spread([private / plain for private, plain in zip(top1[epsilon], top1[NONE], strict=True)])
    private, plain = spread(top1[epsilon]), spread(top1[NONE])
    if asked.table:
        cells = [f"{each.mean:.2%} ± {each.deviation:.2%}" for each in (private, plain)]
        print(f"| {epsilon:g} | {' | '.join(cells)} | {kept.mean:.1%} ({kept.low:.1%} to {kept.high:.1%}) |")
        return
    figure(
        "demo_settings",
        epsilon=epsilon,
        seeds=len(seeds),
        private=private._asdict(),
        without_noise=plain._asdict(),
        kept=kept._asdict(),
    )


if __name__ == "__main__":
    main()
