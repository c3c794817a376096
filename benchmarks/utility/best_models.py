r"""What is there to learn? A network of everybody's text in one place, without privacy.

    python benchmarks/utility/best_models.py commits-near --clients DATA/commits-en --public caches/docs \
        --network net-docs --runs runs/near
    ... --table                  prints what is remembered and measures nothing

Training begins with the public network, and reads the text of all 24,433 training authors: Adam, batches of 64
sentences that mix authors, a rate that falls to 0. Of its looks at VALIDATION authors' text the best is kept.
It is judged alone, mixed with the public n-gram, and mixed with n-grams of the public text and of the same authors'
text: weights of the validation authors, as on the ladder. It protects nobody: it says what a network of this size can
learn, and how far private learning is from it.
"""

import argparse
import sys
import time
from pathlib import Path

import from_how_many_people as people
import numpy as np
from from_how_many_people import Cell, Rows
from remembered_rows import REMEMBERED, interval, level, markdown, remember_row, remembered_rows

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.comparison_models import BOTH_AND_NETWORK, FREE, PUBLIC_NETWORK
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.ladder import Ladder, counted, ladder, training_text, tuned
from tacit.evaluation.predictors import measured, predictor_at, probabilities
from tacit.keyboard.model_folder import load_model, write_model
from tacit.networks.gradients import central_loss
from tacit.training.central import CentralTraining, central_start, central_states

FILE = "best-models.jsonl"
POOLED = "network of everybody's text"
WITH_ALL = " + both n-grams"  # of the public text and of the same people's
PASSES = 1.0  # of the pooled text
RATE = 1e-3  # Adam's; half of what a new network gets
LOOKS = 20  # at validation authors on the way


def pooled(asked: argparse.Namespace, cell: Cell, cache: Cache) -> Path:
    """The folder of the network that read everybody's text in one place; the best of its looks at validation."""
    out = cell.folder / f"pooled-{asked.network.name}"
    if out.is_dir():
        return out
    first = load_model(asked.network)
    validation = held_out(cache, "validation")
    clients, cores = cache.clients("train"), Cores(Hardware(workers=1))
    sentences = round(asked.passes * sum(cache.sentence_count(int(each)) for each in clients))
    settings = CentralTraining(learning_rate=asked.rate, words=people.LENGTH, precision=asked.precision)

    def nats(parameters: object) -> float:
        return float(evaluate(first.network, parameters, validation, cores=cores).metrics()["cross_entropy"])

    begin = central_start(first.parameters, sentences, settings)
    best, kept, looked = nats(first.parameters), first.parameters, 0
    print(f"{out}: {sentences:,} sentences, before them {best:.4f} nats", file=sys.stderr, flush=True)
    steps = central_states(
        central_loss(first.network),
        begin,
        cache,
        clients,
        sentences=sentences,
        settings=settings,
        key=cell.seed.to_bytes(16, "big"),
    )
    for state in steps:
        if state.sentences * LOOKS // sentences > looked:
            looked, found = state.sentences * LOOKS // sentences, nats(state.model)
            print(f"{out}: {state.sentences:,} sentences, {found:.4f} nats", file=sys.stderr, flush=True)
            if found < best:
                best, kept = found, state.model
    write_model(out, first.network, kept, cache.vocabulary_json.encode())
    return out


def held_out(cache: Cache, split: str) -> HeldOut:
    """Of each author of a split what judges, as `from_how_many_people.py` reads it."""
    return HeldOut.read(cache, cache.clients(split), sentences=people.SENTENCES, words=people.LENGTH)


def judged(asked: argparse.Namespace, cell: Cell) -> dict[str, Rows]:
    """Of each rung what each test author got, (authors, SUMS)."""
    cache = people.population(asked, cell)
    models = {POOLED: predictor_at(pooled(asked, cell, cache))}
    test, validation = held_out(cache, "test"), held_out(cache, "validation")
    text = training_text(cache, cache.clients("train"), sentences=people.MOST, words=people.LENGTH)
    clients = counted(text, validation, vocabulary=cache.manifest.vocabulary.size, orders=people.ORDERS)
    found = ladder(
        test,
        validation,
        public=[people.public_text(each, cell.runs) for each in asked.texts],
        public_network=people.network(asked.network),
        clients=clients,
        models=models,
    )
    return {rung: rows(found, rung) for rung in found.rungs} | with_all(found, list(models), test, validation)


def with_all(found: Ladder, models: list[str], test: HeldOut, validation: HeldOut) -> dict[str, Rows]:
    """Each model in the place of the public network in the mixture of everything."""
    counts = [part for part in found.weights[BOTH_AND_NETWORK] if part != PUBLIC_NETWORK]
    mixed = {}
    for model in models:
        names = [*counts, model]
        parts = {name: found.parts[name] for name in names}
        shares, _ = tuned(list(probabilities(parts, validation).values()))
        mixed[model + WITH_ALL] = dict(zip(names, shares, strict=True))
    parts = {name: found.parts[name] for name in (*counts, *models)}
    of = Ladder(rungs=measured(parts, test, mixtures=mixed), weights=mixed, validation={}, parts=parts)
    return {name: rows(of, name) for name in mixed}


def rows(found: Ladder, rung: str) -> Rows:
    """(authors, SUMS)."""
    return np.stack([found.sums(rung)[name] for name in people.SUMS], axis=1)


def remember(asked: argparse.Namespace, found: list[dict[str, Rows]]) -> None:
    """A row a rung and a seed; of all seeds what it has more than what is free, and the network of everybody's text
    more than n-grams of the same text with all that is public.
    """
    for arm in (each for each in found[0] if each.startswith(POOLED)):
        ours, theirs = (np.stack([of[each] for of in found]) for each in (arm, BOTH_AND_NETWORK))
        less = people.less(ours, theirs, "other")
        remember_row(FILE, f"{asked.name} pairs", f"{arm} less {BOTH_AND_NETWORK}", None, less)
    for arm in found[0]:
        for seed, of in enumerate(found, 1):
            remember_row(FILE, asked.name, arm, seed, people.values(of[arm]))
        if arm != FREE:
            ours, free = (np.stack([of[each] for of in found]) for each in (arm, FREE))
            remember_row(FILE, asked.name, arm, None, people.less(ours, free))


def table(path: Path, name: str) -> str:
    """Markdown: a line a rung: its top-3 and top-1, and what it has more than the best free model."""
    of = remembered_rows(path, name)
    lines = [["", *(f"{measure}{said}" for measure in people.MEASURES for said in ("", ", over what is free"))]]
    for arm in dict.fromkeys(row.arm for row in of):
        mine, cells = [row for row in of if row.arm == arm], [arm]
        for measure in people.MEASURES:
            cells.append(level(measure, [float(row.facts[measure]) for row in mine if row.seed is not None]))  # type: ignore[arg-type]
            more = [row.facts[f"{measure}_less_free"] for row in mine if f"{measure}_less_free" in row.facts]
            cells.append(interval(measure, more[0]) if more else "")  # type: ignore[arg-type]
        lines.append(cells)
    return markdown(lines, numbers=2 * len(people.MEASURES))


def main() -> None:
    parser = people.parser_of(__doc__)
    parser.add_argument("--people", type=int, default=people.PEOPLE[-1])
    parser.add_argument("--passes", type=float, default=PASSES, help="through the pooled text")
    parser.add_argument("--rate", type=float, default=RATE, help="Adam's, at its highest")
    parser.set_defaults(seeds=1)
    asked = parser.parse_args()
    if asked.table:
        print(table(REMEMBERED / FILE, asked.name))
        return
    asked.texts = asked.texts or [asked.public]
    found = []
    for seed in range(1, asked.seeds + 1):
        began = time.process_time()
        found.append(judged(asked, Cell(asked.people, seed, asked.runs)))
        print(f"seed {seed}: {time.process_time() - began:.0f} CPU-seconds", file=sys.stderr, flush=True)
        for arm, of in found[-1].items():
            print(arm, people.values(of), file=sys.stderr, flush=True)
    remember(asked, found)


if __name__ == "__main__":
    main()
