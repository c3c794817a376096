r"""Does smart compose's trigger rate keep rising with rounds while next words are flat? [Paper 1, section 3]

    python benchmarks/keyboard/compose_over_rounds.py commits-near --clients DATA/commits-en --public caches/docs \
        --network net-docs --runs runs/near
    ... --table                  prints what is remembered and measures nothing

A public network is trained without noise for ever more rounds on the text of the same training authors, with the rates
that `tacit recipe new` writes, which stay as they are. Each model types the text of the same test authors beside the
public network on the same keyboard, which composes phrases that it finds likelier than COMPOSE; and its next words are
judged on the text of 1,000 others of the same split. Noise is left out so that what rounds do is seen by itself.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "utility"))

import from_how_many_people as people
import numpy as np
import typing_ab
from from_how_many_people import Cell, Rows
from remembered_rows import REMEMBERED, interval, level, markdown, remember_row, remembered_rows

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.typed_sentences import Share
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.ladder import Ladder
from tacit.evaluation.predictors import measured, predictor_at
from tacit.evaluation.type_ab.settings import TypingSettings
from tacit.recipe import Recipe

ROUNDS = (30, 60, 120, 240, 480)
REPORTS = 50  # a round
COMPOSE = 0.8  # the least probability of a phrase that is shown: then one is shown at a quarter of the words
USERS, SENTENCES, WORDS = 200, 8, 20  # who type
FILE = "compose-over-rounds.jsonl"
START = "0"  # rounds: the public network
TYPED = {  # of typing's measures: what they are called here
    "compose trigger rate": "phrases shown",
    "compose picked rate": "of them taken",
    "keystrokes saved": "keystrokes saved",
}


def trained(asked: argparse.Namespace, cell: Cell, cache: Cache, rounds: int) -> Path:
    """The run of so many rounds."""
    out = cell.folder / f"compose-{rounds}"
    recipe = tacit.new_recipe(cache, epsilon=8.0, delta=people.DELTA, init=asked.network, name=out.name).proposal.recipe
    without = {"mechanism": None, "epsilon": None, "delta": None}
    separation = min(rounds, len(cache.clients("train")) // REPORTS)
    schedule = {"rounds": rounds, "report_goal": REPORTS, "min_separation": separation}
    changed = {
        "privacy": recipe.privacy.model_copy(update=without),
        "rounds": recipe.rounds.model_copy(update=schedule),
        "client": recipe.client.model_copy(update={"precision": asked.precision}),
        "evaluation": recipe.evaluation.model_copy(update={"every": rounds}),
    }
    recipe = Recipe.from_toml(recipe.model_copy(update=changed).to_toml())
    tacit.train(recipe, out, seed=cell.seed, hardware=Hardware(workers=1), anyway=True)
    return out


def judged(asked: argparse.Namespace, cells: list[Cell]) -> dict[str, Rows]:
    """Of the public network and of each number of rounds what each test author got, (seeds, authors, SUMS)."""
    cache = people.population(asked, cells[0])
    test = HeldOut.read(cache, cache.clients("test"), sentences=people.SENTENCES, words=people.LENGTH)
    models = {(START, 0): predictor_at(asked.network)}
    for cell in cells:
        own = people.population(asked, cell)
        models |= {(str(each), cell.seed): predictor_at(trained(asked, cell, own, each)) for each in asked.rounds}
    found = measured({f"{rounds} {seed}": model for (rounds, seed), model in models.items()}, test)
    rows: dict[str, list[Rows]] = {}
    for rounds, seed in models:
        of = Ladder(rungs=found, weights={}, validation={}, parts={}).sums(f"{rounds} {seed}")
        rows.setdefault(rounds, []).append(np.stack([of[name] for name in people.SUMS], axis=1))
    rows[START] *= len(cells)
    return {rounds: np.stack(of) for rounds, of in rows.items()}


def typing(asked: argparse.Namespace, cells: list[Cell], rounds: int) -> dict[str, list[float]]:
    """What changes from the public network to the models of so many rounds: relative, over seeds and users crossed."""
    share = Share(users=USERS, sentences=SENTENCES, words=WORDS)
    settings = TypingSettings.on("qwerty", share=share, condition="network", compose=COMPOSE)
    given = argparse.Namespace(
        base=str(asked.network), data=f"{asked.clients}.test.parquet", runs=asked.runs / "typed", name=asked.name
    )
    pairs = []
    for cell in cells:
        model = str(cell.folder / f"compose-{rounds}")
        pairs.append(typing_ab.typed(given, settings, f"rounds-{rounds}", model, cell.seed))
    changes = typing_ab.of_all_seeds(pairs, trained=True).changes
    found = {name: changes[name].relative for name in TYPED}
    return {f"{name} changes": [*each] for name, each in found.items() if each is not None}


def remember(asked: argparse.Namespace, found: dict[str, Rows], typed: dict[str, dict[str, list[float]]]) -> None:
    """A row a number of rounds and a seed, and one of all seeds."""
    for rounds, rows in found.items():
        for seed, of in enumerate(rows, 1):
            remember_row(FILE, asked.name, rounds, seed, people.values(of))
        if rounds != START:
            facts = people.less(rows, found[START], "start") | typed[rounds]
            remember_row(FILE, asked.name, rounds, None, facts)


def table(path: Path, name: str) -> str:
    """Markdown: a line a number of rounds: next words over the public network, and what typing changes, in %."""
    rows = remembered_rows(path, name)
    start = [row for row in rows if row.arm == START]
    lines = [["rounds", *people.MEASURES, *(f"{said}, %" for said in TYPED.values())]]
    levels = [level(each, [float(row.facts[each]) for row in start]) for each in people.MEASURES]  # type: ignore[arg-type]
    lines.append([START, *levels, *[""] * len(TYPED)])
    for row in (row for row in rows if row.seed is None):
        cells = [interval(each, row.facts[f"{each}_less_start"]) for each in people.MEASURES]  # type: ignore[arg-type]
        for measure in TYPED:
            value, low, high = (100 * float(part) for part in row.facts[f"{measure} changes"])  # type: ignore[union-attr]
            cells.append(f"{value:+.1f} ({low:+.1f} to {high:+.1f})")
        lines.append([row.arm, *cells])
    return markdown(lines, numbers=len(lines[0]))


def main() -> None:
    parser = people.parser_of(__doc__)
    parser.add_argument("--people", type=int, default=people.PEOPLE[-1])
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS)
    asked = parser.parse_args()
    if asked.table:
        print(table(REMEMBERED / FILE, asked.name))
        return
    asked.texts = asked.texts or [asked.public]
    cells = [Cell(asked.people, seed, asked.runs) for seed in range(1, asked.seeds + 1)]
    found = judged(asked, cells)
    typed = {str(rounds): typing(asked, cells, rounds) for rounds in asked.rounds}
    remember(asked, found, typed)
    print(table(REMEMBERED / FILE, asked.name))


if __name__ == "__main__":
    main()
