"""What typists would feel of each arm: models of several training seeds against one that is in use, on real text.

Every pair is a run of `tacit type`, made or gone on with where it was stopped, and read where it is finished. The users
are the same in all; a seed is that of the training where the path has {seed}, and that of the typists' slips.

    python benchmarks/typing_on_text.py --a trigram:ab/public --data DATA/chat-en.test.parquet --runs runs/typing \\
        --name chat --arms start=ab/start blt=ab/runs/chat-blt-{seed} --seeds 3

Prints one JSON line a pair, one an arm and measure (the mean over seeds of the relative change with its 95% interval by
Student's t, and in how many seeds the interval over users was wholly above or below 0), and the papers' rows.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from cells import figure
from scipy.stats import t as student

import tacit
from tacit.compute import Hardware
from tacit.data.typed_sentences import Share
from tacit.evaluation.typing_settings import TypingSettings

COLUMNS = {  # of the papers' tables: the measure, and the sign that makes more better
    "PRate(+%)": ("picked rate", 1),
    "Acc(+%)": ("accuracy", 1),
    "SC trig(+%)": ("compose trigger rate", 1),
    "SC PRate(+%)": ("compose picked rate", 1),
    "WMR(-%)": ("words modified ratio", -1),
    "WPM(+%)": ("words a minute", 1),
    "saved(+%)": ("keystrokes saved", 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", required=True, help="what is in use")
    parser.add_argument("--arms", nargs="+", required=True, metavar="NAME=MODEL", help="{seed} in MODEL is filled in")
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are made")
    parser.add_argument("--name", required=True, help="what their names begin with")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--words", type=int, default=40, help="of a sentence, its first")
    parser.add_argument("--compose", type=float, default=0.2)
    asked = parser.parse_args()
    if asked.seeds < 2:
        raise SystemExit(f"--seeds {asked.seeds}: an interval needs at least 2.")
    rows = []
    for arm in asked.arms:
        name, _, model = arm.partition("=")
        pairs = [typed(asked, name, model, seed) for seed in range(1, asked.seeds + 1)]
        rows.append((name, summary(name, pairs)))
    print("| against " + asked.a + " | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")


def typed(asked: argparse.Namespace, name: str, model: str, seed: int) -> dict[str, Any]:
    """The measures of one pair."""
    share = Share(users=asked.users, sentences=asked.sentences, words=asked.words)
    settings = TypingSettings.on("qwerty", share=share, compose=asked.compose)
    result = tacit.type_ab(
        asked.a,
        model.format(seed=seed),
        asked.data,
        asked.runs / f"{asked.name}-{name}-{seed}",
        settings=settings,
        seed=seed,
        hardware=Hardware(workers=1),
    )
    exact = result.to_record()["simulation_only"]
    said = {
        key: [round(of["a"], 6), round(of["b"], 6), *(round(x, 6) for x in of["relative"] or ())]
        for key, of in exact["measures"].items()
    }
    figure("pair", arm=name, seed=seed, words=exact["typed"]["words"], verdict=result.verdict, **said)
    return dict(exact["measures"])


def summary(arm: str, pairs: list[dict[str, Any]]) -> list[str]:
    """A cell for each column: the mean over seeds, its interval, and how many seeds tell it from 0."""
    cells = []
    for column, (measure, sign) in COLUMNS.items():
        found = [sorted(sign * 100 * x for x in pair[measure]["relative"]) for pair in pairs]  # low, middle, high
        middle = [sign * 100 * pair[measure]["relative"][0] for pair in pairs]
        mean = statistics.mean(middle)
        half = float(student.ppf(0.975, len(middle) - 1)) * statistics.stdev(middle) / len(middle) ** 0.5
        better, worse = sum(low > 0 for low, *_ in found), sum(high < 0 for *_, high in found)
        told = [f"{count} of {len(found)} {word}" for count, word in ((better, "better"), (worse, "worse")) if count]
        figure("arm", arm=arm, column=column, mean=round(mean, 3), half=round(half, 3), better=better, worse=worse)
        cells.append(f"{mean:+.1f} ± {half:.1f} ({', '.join(told) or 'not told'})")
    return cells


if __name__ == "__main__":
    main()
