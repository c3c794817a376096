"""What is left of a model's accuracy follows from one number: the noise in its weights, whatever put it there.

Small trainings on real text at rising noise, with several mechanisms, report goals, clip norms, learning rates, numbers
of rounds and networks, from random and from public weights. Each is held against the same recipe without noise: the
share of its accuracy that is kept, against the ratio that `planning/outlook.py` gives before training. The curve is
fitted on one text and predicts others.

    tacit data import DATA/chat-en --out caches/chat2k --vocabulary-size 2000 --vocabulary-from PUBLIC.parquet
    tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary caches/chat2k/vocabulary.json
    tacit data import docstrings --out caches/docstrings2k --vocabulary-size 2000
    tacit data import public:PUBLIC.parquet --out caches/public2k --vocabulary caches/chat2k/vocabulary.json
    tacit pretrain caches/public2k --out runs/public --embedding 32 --units 64 --tied --sentences 60000 --seed 1
    python benchmarks/noise_against_signal.py --cache caches/chat2k --held-out caches/blogs2k caches/docstrings2k \
        --public runs/public --runs runs/outlook
    ... --table, or --figure docs/results/outlook           from finished cells

About 25 CPU-minutes; killed at any time, the same command goes on.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cells import Cell, cell, chosen, options, play

from tacit.data import Cache
from tacit.design.losses import prefix_errors
from tacit.recipe.sections import PrivacySection, RoundsSection

LEVELS = (0.2, 0.4, 0.8, 1.6)  # noise in a weight
SECTIONS: dict[str, dict[str, Any]] = {
    "model": {"embedding": 32, "units": 64, "tied": True},
    "client": {"batch_size": 16, "learning_rate": 4.0, "sentences": 16},
    "server": {"learning_rate": 1.0},
    "rounds": {"rounds": 120, "report_goal": 20, "min_separation": 40},
    "privacy": {"clip_norm": 1.0, "mechanism": {"name": "blt"}},
}


class Family(NamedTuple):
    """Recipes that differ from the base in `changes`, and from one another in their noise."""

    changes: Mapping[str, Mapping[str, Any]]
    levels: tuple[float, ...] = LEVELS
    seeds: tuple[int, ...] = (1,)
    noiseless: str | None = None  # whose runs without noise are the same


FAMILIES: dict[str, Family] = {
    "base": Family({}, (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)),
    "five": Family({"rounds": {"report_goal": 5}}),
    "independent": Family({"privacy": {"mechanism": {"name": "independent"}}}, noiseless="base"),
    "slow": Family({"server": {"learning_rate": 0.2}}),
    "clipped": Family({"privacy": {"clip_norm": 0.25}}),
    "short": Family({"rounds": {"rounds": 40, "min_separation": 20}}),
    "separate": Family({"model": {"tied": False}}),
    "public": Family({"model": {"init": "PUBLIC"}}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "tree": Family({"privacy": {"mechanism": {"name": "tree"}}}, noiseless="base"),
    "sgd": Family({"server": {"method": "sgd", "learning_rate": 10.0}}, (0.2, 0.8)),
    "wide": Family({"model": {"embedding": 96, "units": 192}, "rounds": {"report_goal": 10}}, (0.2, 0.4, 0.8)),
    "gentle": Family({"client": {"learning_rate": 1.0}}),
    "rate-0.05": Family({"server": {"learning_rate": 0.05}}, ()),
    "rate-0.5": Family({"server": {"learning_rate": 0.5}}, ()),
    "rate-2": Family({"server": {"learning_rate": 2.0}}, ()),
}
HELD_OUT = ("base", "public")


def main() -> None:
    parser = options(__doc__, seeds=1, rounds=120)
    parser.add_argument("--held-out", type=Path, nargs="*", default=[])
    parser.add_argument("--public", type=Path, required=True)
    asked = parser.parse_args()
    cells = chosen(list(planned(asked)), asked.only)
    play(cells, asked.runs, at_once=asked.at_once)


def planned(asked: argparse.Namespace) -> Iterator[Cell]:
    for name, family in FAMILIES.items():
        yield from cells_of(asked, asked.cache, name, family)
    for text in asked.held_out:
        for name in HELD_OUT if vocabulary(text) == vocabulary(asked.cache) else HELD_OUT[:1]:
            yield from cells_of(asked, text, name, FAMILIES[name]._replace(levels=LEVELS))


def vocabulary(text: Path) -> str:
    return Cache.open(text).manifest.vocabulary.sha256


def cells_of(asked: argparse.Namespace, text: Path, name: str, family: Family) -> Iterator[Cell]:
    for seed in range(1, asked.seeds + 1):
        for level in ((0.0,) if family.noiseless is None else ()) + family.levels:
            yield one(asked, text, name, family, level, seed)


def one(asked: argparse.Namespace, text: Path, name: str, family: Family, level: float, seed: int) -> Cell:
    sections = {key: {**SECTIONS.get(key, {}), **family.changes.get(key, {})} for key in SECTIONS}
    if "init" in sections["model"]:
        sections["model"]["init"] = str(asked.public)
    sections["evaluation"] = {
        "every": sections["rounds"]["rounds"],
        "clients": 20,
        "test_clients": 200,
        "sentences": 16,
    }
    noise = {"noise_multiplier": multiplier(sections, level)} if level else {"mechanism": {"name": "none"}}
    sections["privacy"] |= noise
    return cell(f"{text.name}-{name}-{level:g}-{seed}", sections, cache=text, seed=seed)


def multiplier(sections: dict[str, dict[str, Any]], level: float) -> float:
    """The noise multiplier that brings so much noise into a weight."""
    server, clip = sections["server"], sections["privacy"]["clip_norm"]
    gain = server["learning_rate"] / (1 - (0.9 if server.get("method") != "sgd" else 0.0))
    served = RoundsSection(**sections["rounds"]).participation()
    strategy = PrivacySection(noise_multiplier=1.0, **sections["privacy"]).designed(served).strategy(served)
    error = prefix_errors(strategy, served.rounds)[1]
    return float(f"{level / gain / clip * sections['rounds']['report_goal'] / error:.6g}")


if __name__ == "__main__":
    main()
