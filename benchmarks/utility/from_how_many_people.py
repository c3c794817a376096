r"""From how many people on does private learning beat what is free? Real authors, each once, and a ladder of baselines.

    python benchmarks/utility/from_how_many_people.py near --clients DATA/commits-en --public caches/docs \
        --ngrams pb/docs --network net-docs --runs runs/near
    ... --rounds 5000 24433      trains the network privately, too, at these populations: hours
    ... --table                  prints what is remembered and measures nothing

A population is so many authors of the training split, drawn with a seed; the same authors of the validation and the
test split judge all of them. What is free is made of public text alone: an n-gram, a network, and both mixed by the
weight under which VALIDATION authors' text is likeliest, which costs their privacy and is not charged, in favour of
what is free. An arm with an epsilon has that epsilon for the people that there are: nobody stands in for others.

    counts E     the public n-gram and network bent by counts of epsilon E (`tacit count`, `tacit mix`)
    network E    the public network trained in the rounds that `tacit recipe new` chooses for so many at epsilon E
    rounds E     the same mixed with the public n-gram, by validation authors as what is free
    both R+C     the network of rounds of epsilon R beside counts of epsilon C, which `tacit mix` composes
    clients' n-gram, alone and mixed with what is free: all text of the same people counted without privacy

Where tacit refuses an epsilon for so few people, what it serves is the free model: such an arm gains 0.
Each cell is kept in RUNS, so that a killed experiment goes on where it was.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cells import save
from numpy.typing import NDArray
from remembered_rows import REMEMBERED, Row, interval, level, markdown, remember_row, remembered_rows

import tacit
from tacit.compute import Hardware
from tacit.data import Cache, VocabularyChoice
from tacit.errors import InputError
from tacit.evaluation.comparison_models import (
    BOTH_AND_NETWORK,
    CLIENTS,
    FREE,
    PUBLIC_NETWORK,
    PUBLIC_NGRAM,
    WITH_NGRAM,
)
from tacit.evaluation.crossed import crossed_change, crossed_interval
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.ladder import CountedText, Ladder, counted, ladder, training_text, tuned
from tacit.evaluation.predictors import Predictor, Weighted, measured, predictor_at, probabilities
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.evaluation.trigram import text_of
from tacit.planning.counts import sums_for
from tacit.recipe import Recipe

if TYPE_CHECKING:  # drawing alone needs it
    from matplotlib.axes import Axes

PEOPLE = (500, 1_500, 5_000, 15_000, 24_433)
EPSILONS = (1.0, 2.0, 8.0, math.inf)
SEEDS = 3
VALIDATION, TEST = 300, 1_000  # authors
DELTA = 1e-5  # below one over the largest population
WITHOUT_NOISE = 1e9  # rho of zCDP: less than one unit of noise
SPLITS = ("train", "validation", "test")
SENTENCES, LENGTH = 8, 20  # of each author who judges
ORDERS = (4,)  # of all n-grams; of 3 to 5, validation authors like 4 or 5 best, and the difference is small
MOST = 1_000  # sentences of an author that are counted: more than anybody has
COUNTS, NETWORK, ROUNDS, BOTH_WAYS = "counts ", "network ", "rounds ", "both "  # before the epsilon of an arm
PHONE = "best free model of the phone's n-grams"  # those that private arms bend; rare ones are left out
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)  # of the network after rounds beside counts, that are tried
TOGETHER = (8.0, 1.0)  # of rounds and of counts in one model: epsilon 8.13
OPEN = (PUBLIC_NGRAM, PUBLIC_NETWORK, FREE, PHONE, CLIENTS, BOTH_AND_NETWORK)  # the last two protect nobody
PAIRS = (  # that are held against each other
    ("rounds 8", "counts 8"),
    ("rounds 2", "counts 2"),
    ("rounds 1", "counts 1"),
    ("both 8+1", "rounds 8"),
    ("both 8+1", "counts 8"),
    ("counts 8", "counts inf"),
    ("counts 8", "counts 1"),
    ("counts 1", PHONE),
    ("counts 8", PHONE),
)
SUMS = ("words", "predicted", "top1", "top3", "nats")
FILE = "people.jsonl"  # of what is remembered
Rows = NDArray[np.float64]  # (authors, SUMS)


@dataclass(frozen=True)
class Cell:
    """So many people, drawn with a seed, which is that of all noise, too."""

    people: int
    seed: int
    runs: Path

    @property
    def folder(self) -> Path:
        return self.runs / f"{self.people}-{self.seed}"

    def text(self, clients: str, split: str) -> pa.Table:
        """Of those who learn (train), tune or judge. clients: as `--clients`."""
        people, seed = {"train": (self.people, self.seed), "validation": (VALIDATION, 0), "test": (TEST, 0)}[split]
        return drawn(pq.read_table(f"{clients}.{split}.parquet"), people, seed)


# -- who ---------------------------------------------------------------------------------------------------------------


def population(asked: argparse.Namespace, cell: Cell) -> Cache:
    """The cache of a cell, drawn and imported once."""
    words = VocabularyChoice(file=Cache.open(asked.public).vocabulary_path)
    if not (cell.folder / "cache").is_dir():
        cell.folder.mkdir(parents=True, exist_ok=True)
        for split in SPLITS:
            text = cell.text(asked.clients, split)
            pq.write_table(text, cell.folder / f"text.{split}.parquet", compression="zstd")
        tacit.import_data(str(cell.folder / "text"), cell.folder / "cache", vocabulary=words)
    return Cache.open(cell.folder / "cache")


def drawn(text: pa.Table, people: int, seed: int) -> pa.Table:
    """The text of so many authors; of all where there are no more."""
    authors = np.unique(text["client_id"].to_numpy().astype(str))
    chosen = np.random.default_rng(seed).permutation(authors)[:people]
    return text.filter(pc.is_in(text["client_id"], pa.array(np.sort(chosen))))


# -- what is learnt from them ------------------------------------------------------------------------------------------


def bent_by_counts(asked: argparse.Namespace, cell: Cell, cache: Cache, epsilon: float) -> Path | None:
    """The mixture that counts of this epsilon bend; None where noise would hide every word."""
    out, counts = cell.folder / f"mixture-{epsilon:g}", cell.folder / f"counts-{epsilon:g}"
    cost = ReleaseCost(zcdp=WITHOUT_NOISE) if math.isinf(epsilon) else ReleaseCost(epsilon=epsilon, delta=DELTA)
    sums = sums_for(Cache.open(asked.public), clients=len(cache.clients("train")), rho=cost.rho)
    if not sums:
        return None
    if not (counts / "report").is_dir():
        settings = CountSettings(sums=sums, split_name="train")
        tacit.count(cache, counts, settings=settings, release=cost, seed=cell.seed)
    if not out.is_dir():
        tacit.mix(asked.ngrams, out, counts=counts, network=asked.network, public=asked.public)
    return out


def together(asked: argparse.Namespace, cell: Cell, cache: Cache) -> Path | None:
    """The public n-grams bent by counts, beside the network that was trained in rounds; epsilons of TOGETHER."""
    rounds, counts = TOGETHER
    out = cell.folder / f"both-{rounds:g}+{counts:g}"
    network, bent = trained(asked, cell, cache, rounds), bent_by_counts(asked, cell, cache, counts)
    if network is None or bent is None:
        return network or bent
    if not out.is_dir():
        of = cell.folder / f"counts-{counts:g}"
        tacit.mix(asked.ngrams, out, counts=of, network=network, public=asked.public)
    return out


def by_weight(cell: Cell, cache: Cache, ngrams: Path | None = None) -> dict[str, float]:
    """Of validation authors' typed words those among the three shown, by the weight of the network that `together` put
    beside counts, or beside these n-grams alone; empty where it made no mixture.
    """
    rounds, counts = TOGETHER
    folder = cell.folder / f"both-{rounds:g}+{counts:g}"
    if not folder.is_dir():
        return {}
    mixture = predictor_at(folder)
    assert isinstance(mixture, Weighted)
    validation = HeldOut.read(cache, cache.clients("validation"), sentences=SENTENCES, words=LENGTH)
    parts = {str(at): part for at, (part, _) in enumerate(mixture.parts)}  # n-grams, then the network
    parts |= {} if ngrams is None else {"0": predictor_at(ngrams)}
    mixed = {f"{weight:g}": {"0": 1 - weight, "1": weight} for weight in WEIGHTS}
    found = Ladder(rungs=measured(parts, validation, mixtures=mixed), weights=mixed, validation={}, parts=parts)
    return {weight: float(found.sums(weight)["top3"].sum() / found.sums(weight)["words"].sum()) for weight in mixed}


def trained(asked: argparse.Namespace, cell: Cell, cache: Cache, epsilon: float) -> Path | None:
    """The run of the recipe that tacit writes for so many people; None where it refuses to.

    Without noise it is the recipe of the largest epsilon but for that.
    """
    out, noise = cell.folder / f"rounds-{epsilon:g}", not math.isinf(epsilon)
    priced = epsilon if noise else max(each for each in EPSILONS if not math.isinf(each))
    try:
        written = tacit.new_recipe(cache, epsilon=priced, delta=DELTA, init=asked.network, name=cell.folder.name)
    except InputError:
        return None
    recipe = written.proposal.recipe
    if not noise:
        without = {"mechanism": None, "epsilon": None, "delta": None}
        recipe = recipe.model_copy(update={"privacy": recipe.privacy.model_copy(update=without)})
    faster = recipe.client.model_copy(update={"precision": asked.precision})
    recipe = Recipe.from_toml(recipe.model_copy(update={"client": faster}).to_toml())
    tacit.train(recipe, out, seed=cell.seed, hardware=Hardware(workers=1), anyway=True)
    return out


def cells(asked: argparse.Namespace) -> Iterator[Cell]:
    """Seed by seed, so that an experiment that was stopped has whole seeds."""
    for seed in range(1, asked.seeds + 1):
        for people in asked.people:
            yield Cell(people, seed, asked.runs)


# -- what it is worth --------------------------------------------------------------------------------------------------


def judged(asked: argparse.Namespace, cell: Cell) -> dict[str, Rows]:
    """Of each arm what each test author got, (authors, SUMS); kept in RUNS."""
    kept = cell.folder / "judged.npz"
    there = dict(np.load(kept)) if kept.is_file() else {}
    missing = [arm for arm in arms(asked, cell) if arm not in there]
    if not missing:
        return there
    cache = population(asked, cell)
    folders = {arm: made(asked, cell, cache, arm) for arm in missing if arm.startswith((COUNTS, NETWORK, BOTH_WAYS))}
    models = {arm: predictor_at(folder) for arm, folder in folders.items() if folder is not None}
    held_out, validation = (
        HeldOut.read(cache, cache.clients(split), sentences=SENTENCES, words=LENGTH) for split in ("test", "validation")
    )
    clients = None
    if CLIENTS in missing:
        text = training_text(cache, cache.clients("train"), sentences=MOST, words=LENGTH)
        clients = counted(text, validation, vocabulary=cache.manifest.vocabulary.size, orders=ORDERS)
    found = ladder(
        held_out,
        validation,
        public=[public_text(each, cell.runs) for each in asked.texts],
        public_network=network(asked.network),
        clients=clients,
        models={arm: each for arm, each in models.items() if arm.startswith(NETWORK)},
    )
    bent = {arm: each for arm, each in models.items() if arm.startswith((COUNTS, BOTH_WAYS))}
    bent |= {PHONE: of_the_phone(asked, validation)} if PHONE in missing else {}
    found = replace(found, rungs={**found.rungs, **(measured(bent, held_out) if bent else {})})
    for arm in missing:
        there[arm] = np.stack([found.sums(rung_of(arm, found))[name] for name in SUMS], axis=1)
    np.savez(kept, **there)
    return there


def rung_of(arm: str, found: Ladder) -> str:
    """Where an arm stands on the ladder. Where tacit refused, it is what is free that is served."""
    rung = arm.replace(ROUNDS, NETWORK) + WITH_NGRAM if arm.startswith(ROUNDS) else arm
    return rung if rung in found.rungs else FREE if not arm.startswith(NETWORK) else PUBLIC_NETWORK


def of_the_phone(asked: argparse.Namespace, validation: HeldOut) -> Predictor:
    """The n-grams that private arms bend, and the public network, as validation authors like them."""
    parts = {str(each): predictor_at(each) for each in asked.ngrams} | {PUBLIC_NETWORK: network(asked.network)}
    shares, _ = tuned(list(probabilities(parts, validation).values()))
    return Weighted(parts=tuple(zip(parts.values(), shares, strict=True)))


@lru_cache
def public_text(cache: Path, runs: Path) -> CountedText:
    """The n-grams of a public text, of the order that the validation authors like; counted once for all cells."""
    open_text = Cache.open(cache)
    judge = Cache.open(next(runs.glob("*/cache")))  # all cells have the same validation authors
    validation = HeldOut.read(judge, judge.clients("validation"), sentences=SENTENCES, words=LENGTH)
    text = text_of(open_text, open_text.clients("train"))
    return counted(text, validation, vocabulary=open_text.manifest.vocabulary.size, orders=ORDERS)


@lru_cache
def network(folder: Path) -> Predictor:
    """Compiled once."""
    return predictor_at(folder)


def arms(asked: argparse.Namespace, cell: Cell) -> list[str]:
    """What is judged at so many people."""
    epsilons = asked.rounds_at if cell.people in asked.rounds else ()
    rounds = [f"{way}{each:g}" for each in epsilons for way in (NETWORK, ROUNDS)]
    of = "+".join(f"{each:g}" for each in TOGETHER)
    both = [f"{BOTH_WAYS}{of}"] if TOGETHER[0] in epsilons else []
    return [*OPEN, *(f"{COUNTS}{each:g}" for each in asked.counts_at), *rounds, *both]


def made(asked: argparse.Namespace, cell: Cell, cache: Cache, arm: str) -> Path | None:
    """The folder of a private arm's model."""
    if arm.startswith(BOTH_WAYS):
        return together(asked, cell, cache)
    way, _, epsilon = arm.partition(" ")
    return {COUNTS: bent_by_counts, NETWORK: trained}[f"{way} "](asked, cell, cache, float(epsilon))


# -- what is said ------------------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """One sum of SUMS over another."""

    of: str
    over: str


MEASURES = {
    "top3": Measure("top3", "words"),  # of all typed words: one that is not in the vocabulary is missed
    "top1": Measure("top1", "words"),
    "nats": Measure("nats", "predicted"),  # of the words in the vocabulary
}


def values(rows: Rows) -> dict[str, float]:
    """Of all authors together."""
    sums = dict(zip(SUMS, rows.sum(axis=0), strict=True))
    return {name: float(sums[measure.of] / sums[measure.over]) for name, measure in MEASURES.items()}


def less(arm: Rows, other: Rows, named: str = "free") -> dict[str, list[float]]:
    """What an arm has more than another, both (seeds, authors, SUMS): the value, and its interval over seeds and
    authors crossed. named: the other, in the names of the facts.
    """
    columns = {name: at for at, name in enumerate(SUMS)}
    found = {}
    for name, (of, over) in MEASURES.items():
        parts = (arm - other)[:, :, columns[of]]
        found[f"{name}_less_{named}"] = [*crossed_interval(parts, arm[:, :, columns[over]]).interval]
    return found


def remember(asked: argparse.Namespace, found: Mapping[Cell, Mapping[str, Rows]]) -> None:
    """A row an arm and a seed; and of all seeds the difference to the best free model."""
    for people in asked.people:
        of_seed = {cell.seed: rows for cell, rows in found.items() if cell.people == people}
        if len(of_seed) < asked.seeds:
            continue
        experiment = f"{asked.name} {people}"
        for one, other in PAIRS:
            if all(one in rows and other in rows for rows in of_seed.values()):
                ours, theirs = (np.stack([rows[each] for rows in of_seed.values()]) for each in (one, other))
                remember_row(FILE, f"{experiment} pairs", f"{one} less {other}", None, less(ours, theirs, "other"))
        for cell in (each for each in found if each.people == people):
            if of_weights := by_weight(cell, population(asked, cell)):
                remember_row(FILE, f"{experiment} weights", "beside counts", cell.seed, of_weights)
                text = asked.ngrams[0]  # of the public text that is most like theirs
                alone = by_weight(cell, population(asked, cell), text)
                remember_row(FILE, f"{experiment} weights", "beside n-grams", cell.seed, alone)
        for arm in dict.fromkeys(arm for rows in of_seed.values() for arm in rows):
            for seed, rows in of_seed.items():
                remember_row(FILE, experiment, arm, seed, values(rows[arm]))
            ours, free, start = (
                np.stack([rows[each] for rows in of_seed.values()]) for each in (arm, FREE, PUBLIC_NETWORK)
            )
            if arm != FREE:
                remember_row(FILE, experiment, arm, None, less(ours, free))
            if arm.startswith(NETWORK):
                cell = next(each for each in found if each.people == people)
                remember_row(FILE, f"{experiment} foreseen", arm, None, foreseen(asked, cell, arm, ours, start))


def foreseen(
    asked: argparse.Namespace, cell: Cell, arm: str, ours: Rows, start: Rows
) -> dict[str, str | Sequence[float]]:
    """What `tacit recipe new` says that rounds gain, as a share of the public network's top-1 of the words in the
    vocabulary (where public text is near, otherwise, far), and what came. ours, start: (seeds, authors, SUMS).
    """
    of, over = SUMS.index("top1"), SUMS.index("predicted")
    came = crossed_change(*((each[:, :, of], each[:, :, over]) for each in (start, ours))).interval
    if math.isinf(epsilon := float(arm.removeprefix(NETWORK))):
        return {"prospect": "no noise, so no forecast", "came": [*came]}
    cache = population(asked, cell)
    found = tacit.new_recipe(cache, epsilon=epsilon, delta=DELTA, init=asked.network, anyway=True)
    return {"foreseen": [*found.proposal.gains], "prospect": found.proposal.prospect, "came": [*came]}


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The arguments of an experiment on populations: what it reads, where it keeps it, and at which epsilons."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the clients and the public text, such as commits-near")
    parser.add_argument("--clients", help="Parquet of authors: the path before .train.parquet")
    parser.add_argument("--public", type=Path, help="a cache of public text, whose words are those of all models")
    parser.add_argument("--texts", type=Path, nargs="+", help="caches of single public texts; left out, --public")
    parser.add_argument("--ngrams", type=Path, nargs="+", help="what `tacit ngram` wrote of each")
    parser.add_argument("--network", type=Path, help="what `tacit pretrain` made of the public text")
    parser.add_argument("--runs", type=Path, help="where everything is kept")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rounds-at", type=float, nargs="*", default=EPSILONS, help="the epsilons of rounds")
    parser.add_argument("--counts-at", type=float, nargs="+", default=EPSILONS, help="the epsilons of counts")
    parser.add_argument("--precision", default="bfloat16", help="of the rounds; float32 where there are no units")
    parser.add_argument("--table", action="store_true", help="print what is remembered, and measure nothing")
    return parser


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    parser.add_argument("--rounds", type=int, nargs="+", default=(), help="populations at which the network is trained")
    parser.add_argument("--figure", type=Path, help="draw PNG and SVG of what is remembered, and measure nothing")
    parser.add_argument("--beside", nargs="+", default=(), help="other names, each a panel of the figure")
    asked = parser.parse_args()
    asked.texts = asked.texts or [asked.public]
    if asked.figure:
        draw([asked.name, *asked.beside], asked.figure)
        return
    if asked.table:
        print(table(REMEMBERED / FILE, asked.name))
        return
    found = {}
    for cell in cells(asked):
        found[cell] = judged(asked, cell)
        print(
            cell.folder, {arm: values(rows)["top3"] for arm, rows in found[cell].items()}, file=sys.stderr, flush=True
        )
    remember(asked, found)


def rows_of(path: Path, name: str) -> dict[int, list[Row]]:
    """The rows of an experiment by how many people there were, the fewest first."""
    found: dict[int, list[Row]] = {}
    for row in remembered_rows(path):
        experiment, _, people = row.experiment.rpartition(" ")
        if experiment == name:  # "NAME PEOPLE foreseen" is none
            found.setdefault(int(people), []).append(row)
    return dict(sorted(found.items()))


def gain(rows: list[Row], arm: str, measure: str) -> Sequence[float] | None:
    """Over the best free model, and its interval; None where it was not measured."""
    found = [
        row.facts[f"{measure}_less_free"] for row in rows if row.arm == arm and f"{measure}_less_free" in row.facts
    ]
    return found[0] if found else None  # type: ignore[return-value]


def table(path: Path, name: str, measure: str = "top3", *chosen: str) -> str:
    """Markdown: a line an arm, a column a population: the gain over the best free model, whose own value is the first
    line. chosen: arms; left out, all.
    """
    of = rows_of(path, name)
    arms = chosen or tuple(dict.fromkeys(row.arm for rows in of.values() for row in rows if row.arm != FREE))
    lines = [["", *(f"{people:,} people" for people in of)]]
    free = [[float(row.facts[measure]) for row in rows if row.arm == FREE and row.seed] for rows in of.values()]  # type: ignore[arg-type]
    lines.append([FREE, *(level(measure, each) for each in free)])
    for arm in arms:
        gains = [gain(rows, arm, measure) for rows in of.values()]
        lines.append([arm, *("" if each is None else interval(measure, each) for each in gains)])
    return markdown(lines, numbers=len(of))


class Foreseen(NamedTuple):
    """Of a population and an epsilon; gains as shares of the public network's top-1."""

    people: int
    epsilon: str
    prospect: str
    gains: Sequence[float] | None  # near, otherwise, far
    came: Sequence[float]  # with its interval


def foreseen_rows(path: Path, name: str) -> list[Foreseen]:
    """What was foreseen and what came, the fewest people first."""
    found = []
    for row in remembered_rows(path):
        experiment, _, last = row.experiment.rpartition(" ")
        before, _, people = experiment.rpartition(" ")
        if last == "foreseen" and before == name:
            facts = row.facts
            epsilon = row.arm.removeprefix(NETWORK)
            found.append(Foreseen(int(people), epsilon, facts["prospect"], facts.get("foreseen"), facts["came"]))  # type: ignore[arg-type]
    return sorted(found, key=lambda each: (each.people, float(each.epsilon)))


def forecasts(path: Path, name: str) -> str:
    """Markdown: what was foreseen of rounds and what came, a line a population and an epsilon."""
    ends = ["foreseen: near", "otherwise", "far, at most"]
    lines = [["people", "epsilon", "prospect", *ends, "came, over the public network"]]
    for each in foreseen_rows(path, name):
        gains = ["-"] * 3 if each.gains is None else [f"{100 * gain:+.1f}%" for gain in each.gains]
        value, low, high = (100 * part for part in each.came)
        came = f"{value:+.1f}% ({low:+.1f} to {high:+.1f})"
        lines.append([f"{each.people:,}", each.epsilon, each.prospect, *gains, came])
    return markdown(lines, numbers=0)


def pairs(path: Path, name: str, *than: str) -> str:
    """Markdown: one arm less another of the same people, a line a population and a pair of PAIRS. than: those pairs
    alone whose other arm is one of these; left out, all but PHONE.
    """
    asked = [each for each in PAIRS if each[1] in (than or {other for _, other in PAIRS} - {PHONE})]
    order = [f"{one} less {other}" for one, other in asked]
    found = []
    for row in remembered_rows(path):
        experiment, _, last = row.experiment.rpartition(" ")
        before, _, people = experiment.rpartition(" ")
        if last == "pairs" and before == name and row.arm in order:
            facts = [interval(measure, row.facts[f"{measure}_less_other"]) for measure in MEASURES]  # type: ignore[arg-type]
            found.append((int(people), row.arm, facts))
    found.sort(key=lambda each: (each[0], order.index(each[1])))
    lines = [["", "people", *MEASURES], *([arm, f"{people:,}", *facts] for people, arm, facts in found)]
    return markdown(lines, numbers=1 + len(MEASURES))


def weights(path: Path, arm: str, *names: str) -> str:
    """Markdown: validation authors' top-3 by the weight of the network after rounds, in points less than under the best
    one, a line a population; the mean over seeds. arm: "beside counts" or "beside n-grams".
    """
    lines = [["", "people", *(f"{weight:g}" for weight in WEIGHTS)]]
    found: dict[tuple[str, int], list[Row]] = {}
    for row in remembered_rows(path):
        experiment, _, last = row.experiment.rpartition(" ")
        before, _, people = experiment.rpartition(" ")
        if last == "weights" and before in names and row.arm == arm:
            found.setdefault((before, int(people)), []).append(row)
    for (name, of), rows in sorted(found.items(), key=lambda each: (names.index(each[0][0]), each[0][1])):
        means = [np.mean([float(row.facts[f"{weight:g}"]) for row in rows]) for weight in WEIGHTS]  # type: ignore[arg-type]
        lines.append([name, f"{of:,}", *(f"{100 * (mean - max(means)):.2f}" for mean in means)])
    return markdown(lines, numbers=1 + len(WEIGHTS))


# Colours that are told apart without red and green [Okabe & Ito 2008]; the lines of a figure by their arm.
LINES = {
    BOTH_AND_NETWORK: ("their text counted without privacy", "#999999", ":"),
    "counts inf": ("private counts without noise", "#000000", ":"),
    "counts 8": ("private counts, epsilon 8", "#0072B2", "-"),
    "counts 2": ("epsilon 2", "#009E73", "-"),
    "counts 1": ("epsilon 1", "#D55E00", "-"),
    "rounds 8": ("network in rounds, epsilon 8", "#0072B2", "--"),
    "rounds 2": ("network in rounds, epsilon 2", "#009E73", "--"),
    "rounds 1": ("network in rounds, epsilon 1", "#D55E00", "--"),
    "both 8+1": ("rounds of 8 and counts of 1: epsilon 8.13", "#CC79A7", "-."),
}


def draw(names: Sequence[str], path: Path) -> None:
    """A panel an experiment: people against points of top-3 gained over the best free model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = 5.2 * len(names), 7.6
    drawing, panels = pyplot.subplots(2, len(names), figsize=size, sharey="row", squeeze=False, height_ratios=(4, 3))
    for name, panel, below in zip(names, *panels, strict=True):
        _draw_foreseen(below, foreseen_rows(REMEMBERED / FILE, name))
        of = rows_of(REMEMBERED / FILE, name)
        for shift, (arm, (label, colour, style)) in enumerate(LINES.items()):
            there = {people: found for people, rows in of.items() if (found := gain(rows, arm, "top3")) is not None}
            if not there:
                continue
            x = np.array(list(there)) * 1.03 ** (shift - len(LINES) / 2)  # bars beside one another
            value, low, high = 100 * np.array(list(there.values())).T
            marker = "s" if arm.startswith(ROUNDS) else "o"
            bars = (value - low, high - value)
            panel.errorbar(x, value, bars, label=label, color=colour, ls=style, marker=marker, ms=4, capsize=2)
        panel.axhline(0, color="#000000", lw=1)
        for each in (panel, below):
            each.set_xscale("log")
            each.set_xticks(list(of), [f"{people:,}" for people in of], fontsize=8)
            each.minorticks_off()
            each.grid(axis="y", alpha=0.3)
            each.spines[["top", "right"]].set_visible(False)
        below.set_xlabel("people who took part")
        panel.set_title(TITLES.get(name, name), fontsize=11)
    panels[0][0].set_ylabel("words among the three shown:\npoints above the best free model")
    panels[1][0].set_ylabel("rounds: top-1 of the public network\ngains, %")
    for row in panels:
        row[0].legend(fontsize=8, frameon=False, loc="upper left")
    drawing.tight_layout()
    save(drawing, path)


def _draw_foreseen(panel: "Axes", found: Sequence[Foreseen]) -> None:
    """From the gain that is foreseen where public text is near to that where it is far, and what came."""
    for epsilon, colour, shift in (("1", "#D55E00", 0.92), ("2", "#009E73", 1.0), ("8", "#0072B2", 1.08)):
        there = [each for each in found if each.epsilon == epsilon and each.gains is not None]
        if not there:
            continue
        x = np.array([each.people for each in there]) * shift
        near, otherwise, far = 100 * np.array([each.gains for each in there]).T
        value, low, high = 100 * np.array([each.came for each in there]).T
        panel.vlines(x, near, far, color=colour, alpha=0.25, lw=7, label=f"foreseen, epsilon {epsilon}: near to far")
        panel.plot(x, otherwise, "_", color=colour, ms=9)
        panel.errorbar(
            x,
            value,
            (value - low, high - value),
            fmt="s",
            color=colour,
            ms=4,
            capsize=2,
            label=f"came, epsilon {epsilon}",
        )


TITLES = {
    "commits-near": "public text near what people type",
    "commits-far": "public text far from it",
    "chat": "chat, public text of a forum and novels",
    "blogs": "blogs, the same public text",
}


if __name__ == "__main__":
    main()
