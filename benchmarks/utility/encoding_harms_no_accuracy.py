"""Training on sums of integers, and with noise that decryptors add, ends with the accuracy of training in the clear.

Runs of one recipe by `tacit train`, equal in everything (seed, hence initial model, cohorts and sentences) but the
section [aggregation], on real text. Without noise a pair differs by the encoding alone, which is the sharp test; with
noise, whose draws follow from what is summed, by other noise and by the 1% more of it that the longer updates cost,
too. With --decryptors the server adds no noise: each decryptor adds whole numbers. Where all are relied on their sum is
the server's noise; where one is, it is the root of their number larger, which is the price of trusting one alone.

Prints one JSON line a run, and for each other way and measure both means with their 95% interval over the seeds
(Student's t), whether they overlap, and the interval of the paired difference from plain. With --crossed FILE the
differences from plain are remembered, over seeds and test clients.

    python benchmarks/utility/encoding_harms_no_accuracy.py --recipe chat.toml --cache caches/chat --runs runs/encoding
    ... --recipe benchmarks/utility/recipes/chat-encoded.toml --cache caches/chat2k --runs runs/keepers --decryptors 3
    ... --recipe chat.toml --cache caches/chat --runs runs/smoke --rounds 4

Run folders that are there already are continued, or read if they are done.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cells import Cell, Played, compare, figure, play, remember
from crossed_pairs import MEASURES as FACTS
from crossed_pairs import remember_pair
from remembered_rows import remember_row

from tacit.recipe import Recipe

PLAIN = "plain"
MEASURES = ("test_top1_accuracy", "test_top3_accuracy", "test_cross_entropy", "validation_top1_accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", type=Path, required=True, help="one without [aggregation]")
    parser.add_argument("--cache", type=Path, required=True, help="in place of the recipe's")
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are made")
    parser.add_argument("--rounds", type=int, help="in place of the recipe's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--decryptors", type=int, help="also runs in which so many add the noise, and no server")
    parser.add_argument("--only", nargs="+", metavar="WAY", help="beside plain these ways alone, by their names")
    parser.add_argument("--at-once", type=int, default=2, help="cells side by side, each on one core")
    parser.add_argument("--remember", type=Path, help="a file for what the cells came to, a line of JSON each")
    parser.add_argument(
        "--crossed", metavar="FILE", help="remember cells and pairs, over seeds and clients, in this file"
    )
    asked = parser.parse_args()
    if asked.seeds < 2:
        raise SystemExit(f"--seeds {asked.seeds}: an interval needs at least 2.")
    sections = ways(asked.decryptors)
    if asked.only is not None:
        if unknown := set(asked.only) - sections.keys():
            raise SystemExit(f"--only {sorted(unknown)[0]!r}: the ways are {', '.join(sections)}.")
        sections = {way: sections[way] for way in (PLAIN, *asked.only)}
    cells = {way: [trained(asked, seed, way, sections[way]) for seed in range(1, asked.seeds + 1)] for way in sections}
    in_turns = [cell for together in zip(*cells.values(), strict=True) for cell in together]
    runs = play(in_turns, asked.runs, at_once=asked.at_once)
    if asked.remember is not None:
        remember(in_turns, runs, asked.remember, ("top1_accuracy", "top3_accuracy", "cross_entropy"))
    if asked.crossed is not None:
        remember_crossed(
            asked.recipe.stem, {way: [runs[each.name] for each in cells[way]] for way in cells}, asked.crossed
        )
    found = {
        way: [{name: round(runs[cell.name].last(name), 6) for name in MEASURES} for cell in cells[way]] for way in cells
    }
    for way in found:
        for seed, values in enumerate(found[way], 1):
            figure("run", way=way, seed=seed, **values)
    for way in list(found)[1:]:
        for name in MEASURES:
            plain, other = ((each, [run[name] for run in found[each]]) for each in (PLAIN, way))
            compare("encoding_harms_no_accuracy", name, plain, other)


def remember_crossed(experiment: str, runs: Mapping[str, Sequence[Played]], file: str) -> None:
    """Rows of every way and seed, and of each way less plain over seeds and clients."""
    plain = [run.folder for run in runs[PLAIN]]
    for way, mine in runs.items():
        for seed, run in enumerate(mine, 1):
            facts = {fact: run.last(f"test_{measure}") for fact, measure in FACTS.items()}
            remember_row(file, experiment, way, seed, facts)
        if way != PLAIN:
            folders = [run.folder for run in mine]
            remember_pair(file, f"{experiment}, pairs", f"{way} - {PLAIN}", folders, plain, tuple(FACTS))


def ways(decryptors: int | None) -> Mapping[str, Mapping[str, Any] | None]:
    """The sections [aggregation] that are compared, by name; None: the recipe has none."""
    found: dict[str, Mapping[str, Any] | None] = {PLAIN: None, "encoded": {"kind": "secure"}}
    if decryptors is not None:
        for honest in (decryptors, 1):
            found[f"noise of {decryptors}, {honest} honest"] = {
                "kind": "secure",
                "decryptors": decryptors,
                "honest_decryptors": honest,
            }
    return found


def trained(asked: argparse.Namespace, seed: int, way: str, aggregation: Mapping[str, Any] | None) -> Cell:
    """The run of one way and seed, on one core."""
    values = tomllib.loads(asked.recipe.read_text(encoding="utf-8"))
    values["name"] = f"{way.replace(',', '').replace(' ', '-')}-{seed}"
    values["data"] = {**values["data"], "cache": str(asked.cache)}
    values["run"] = {**values.get("run", {}), "seed": seed}
    if asked.rounds is not None:
        values["rounds"]["rounds"] = asked.rounds
    if aggregation is not None:
        values["aggregation"] = dict(aggregation)
    return Cell(values["name"], Recipe.model_validate(values, strict=False))


if __name__ == "__main__":
    main()
