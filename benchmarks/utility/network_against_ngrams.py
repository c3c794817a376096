"""A federated network and n-grams of the very sentences that its rounds read, tuned as well: which predicts better?

public-S    the recipe's network pre-trained on public text with seed S
trained-S   from it, the rounds of the recipe with seed S, without noise
private-S   the same with the recipe's noise
scratch-S   the same as trained-S from a random model

The recipe is recipes/blogs-local-steps.toml (96 x 670, 0.83 M parameters at 2,000 words), which has no noise of its
own: private-S has, by a BLT, the noise on the mean that epsilon 8 would cost a cohort of 6,500
(privacy.extrapolate_to); its own epsilon is beyond 20,000. A recipe of yours is played as it stands.

What they are held against is counted without privacy (interpolated modified Kneser-Ney): the sentences that the rounds
of seed S read, which follow from S (the same clients, the same of their sentences, cut after as many words); public
text; both, their probabilities weighted. The orders (3 to 5) and the weight are those under which validation clients'
text is likeliest (evaluation.ladder). Everything is judged on the same sentences of all test clients.

Two intervals (95%, Student's t), for two questions: over seeds, each with a first model, cohorts and n-grams of its
own, for these clients; and over the clients, seeds averaged, for other clients of that kind.

    python benchmarks/utility/network_against_ngrams.py --cache caches/blogs2k --public caches/public2k --runs runs/n
    ... --without-networks                  n-grams alone: 43 CPU-seconds for three seeds
    ... --only 'trained-*' 'private-*'      without the rounds from a random model
    ... --recipe mine.toml --pretrained 400000 --sentences 64
    ... --table                             Markdown, from the finished cells
    ... --remember FILE                     add each row to a file of remembered/, from which tables of pages follow
    ... --smoke                             whether it works

A seed of ours is 45 CPU-minutes, ten of them of pre-training. Killed at any time, the same command goes on.
"""

import argparse
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cells import TACIT, Cell, Spread, cell, chosen, figure, options, paired, play, read, spread
from federated_against_central import RECIPES
from remembered_rows import Fact, interval, markdown, measure_of, remember_row, remembered_rows
from scipy.stats import t as student
from utility_of_mechanisms import DELTA, Level

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import Evaluation, evaluate
from tacit.evaluation.comparison_models import BOTH, CLIENTS, PUBLIC_NGRAM
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.intervals import Estimate, ratio_of_means
from tacit.evaluation.ladder import counted, tuned
from tacit.evaluation.predictors import measured, probabilities
from tacit.evaluation.trigram import text_of
from tacit.keyboard.model_folder import load_model
from tacit.networks.ngram.kneser_ney import Ids
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.recipe import Recipe
from tacit.text.vocabulary import BOS, PAD
from tacit.training.client import gather
from tacit.training.randomness import key_from_seed, seed_for
from tacit.training.sampling import Cohorts, UniformCohorts

RECIPE = RECIPES / "blogs-local-steps.toml"
PRETRAINED, TRAINED, PRIVATE, SCRATCH = "public", "trained", "private", "scratch"
LEVEL = Level(8, 6500)
NETWORKS = {
    PRETRAINED: "network of the public text",
    TRAINED: "network of the public text, then of the clients",
    PRIVATE: "the same under noise",
    SCRATCH: "network of the clients alone",
}
NGRAMS = {
    CLIENTS: "n-gram of the sentences that the rounds read",
    BOTH: "n-gram of those and the public text",
    PUBLIC_NGRAM: "n-gram of the public text",
}
VALIDATION = 300  # clients, by whom n-grams are tuned
PAIRS = (
    *((one, other) for one in (TRAINED, PRIVATE) for other in (*NGRAMS, PRETRAINED)),
    (PRIVATE, TRAINED),
    (SCRATCH, CLIENTS),
    (BOTH, PUBLIC_NGRAM),
)


class Measure(NamedTuple):
    """How it is shown: a level as `level` says, a difference as `difference`, times `scale`, with so many digits."""

    level: str
    difference: str
    scale: float
    digits: int


MEASURES = {
    "top1_accuracy": Measure("top-1, %", "top-1, points", 100.0, 2),
    "top3_accuracy": Measure("top-3, %", "top-3, points", 100.0, 2),
    "cross_entropy": Measure("nats a word", "nats a word", 1.0, 3),
}
REMEMBERED = {"top1": "top1_accuracy", "top3": "top3_accuracy", "nats": "cross_entropy"}

Seeds = Mapping[int, Evaluation]


@dataclass(frozen=True)
class Apart:
    """One less the other: over seeds (None for one seed), and over clients with the seeds averaged."""

    seeds: int
    over_seeds: Spread | None
    over_clients: Estimate


def main() -> None:
    parser = options(__doc__ or "", seeds=5, rounds=None)
    parser.add_argument("--public", type=Path, required=True, help="a cache of public text with the same vocabulary")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="what is trained; --cache, seeds and first models")
    parser.add_argument("--pretrained", type=int, default=320_000, help="public sentences that a first model reads")
    parser.add_argument("--sentences", type=int, default=16, help="of each test client, to judge by")
    parser.add_argument("--without-networks", action="store_true", help="train and judge no network")
    parser.add_argument("--remember", metavar="FILE", help="of remembered/, as network-against-ngrams.jsonl")
    asked = parser.parse_args()
    if not asked.recipe.is_file():
        raise SystemExit(f"--recipe: there is no file '{asked.recipe}'; `tacit recipe new` writes one.")
    if asked.figure:
        raise SystemExit("this experiment draws no figure; leave --figure out.")
    cells = [] if asked.without_networks else chosen(planned(asked), asked.only)
    if cells and not asked.table:
        pretrain(asked, cells)
        play(cells, asked.runs, at_once=asked.at_once)
    finished = read(cells, asked.runs)
    if cells and not finished:
        raise SystemExit(f"no cell is finished in '{asked.runs}'; run the experiment first, or --without-networks.")
    judged = judge(asked, list(finished))
    (table if asked.table else report)(judged)


# -- what is trained -----------------------------------------------------------------------------------------------


def planned(asked: argparse.Namespace) -> list[Cell]:
    """Seed by seed, so that an experiment that was stopped has whole seeds."""
    return [one(asked, kind, seed) for seed in range(1, asked.seeds + 1) for kind in (TRAINED, PRIVATE, SCRATCH)]


def one(asked: argparse.Namespace, kind: str, seed: int) -> Cell:
    sections: dict[str, Any] = tomllib.loads(asked.recipe.read_text(encoding="utf-8"))
    rounds, privacy = sections["rounds"], sections["privacy"]
    if asked.rounds is not None:
        rounds |= {"rounds": asked.rounds, "min_separation": min(asked.rounds, rounds["min_separation"])}
    sections["model"].pop("init", None)
    if asked.smoke:
        sections["model"] |= {"embedding": 8, "units": 16}
        rounds |= {"report_goal": 4, "rounds": 2, "min_separation": 2}
    if kind != SCRATCH:
        sections["model"]["init"] = str(first_model(asked, seed))
    if kind != PRIVATE:
        norm = {key: value for key, value in privacy.items() if key == "clip_norm"}
        sections["privacy"] = {**norm, "mechanism": {"name": "none"}}
    elif privacy.get("mechanism") == {"name": "none"}:
        blt = {"mechanism": {"name": "blt", "buffers": 3}, "delta": DELTA, "extrapolate_to": LEVEL.reports}
        zcdp = zcdp_for_epsilon(LEVEL.epsilon, DELTA) * (LEVEL.reports / rounds["report_goal"]) ** 2
        privacy |= {**blt, "zcdp": zcdp}
    looks = {"every": max(1, rounds["rounds"] // 6), "sentences": asked.sentences}
    sections["evaluation"] = sections.get("evaluation", {}) | looks
    return cell(f"{kind}-{seed}", sections, cache=asked.cache, seed=seed)


def first_model(asked: argparse.Namespace, seed: int) -> Path:
    return Path(asked.runs) / f"{PRETRAINED}-{seed}"


def pretrain(asked: argparse.Namespace, cells: Sequence[Cell]) -> None:
    """`tacit pretrain` for what the cells begin from, which does nothing where it has ended already."""
    asked.runs.mkdir(parents=True, exist_ok=True)
    for each in cells:
        if each.recipe.model.init is not None:
            network: Any = each.recipe.model  # its keys are those of its kind
            shape = [f"--embedding={network.embedding}", f"--units={network.units}"]
            shape += ["--tied"] if network.tied else []
            sentences = 64 if asked.smoke else asked.pretrained
            amount = [f"--sentences={sentences}", f"--every={sentences // 4}", f"--seed={each.recipe.run.seed}"]
            out = ["--out", str(each.recipe.model.init)]
            subprocess.run(
                [*TACIT, "pretrain", str(asked.public), *out, *shape, *amount], check=True, stdout=sys.stderr
            )


# -- n-grams -------------------------------------------------------------------------------------------------------


def sentences_read(recipe: Recipe, cache: Cache, seed: int) -> Ids:
    """(n,) the sentences that the rounds of a run with this seed read: its cohorts, of each client the sentences that
    it trains on, cut as there.
    """
    key, goal, parts = key_from_seed(seed), recipe.rounds.report_goal, list[np.ndarray]()
    sampler = UniformCohorts(recipe.guarantee().participation)
    cohorts = Cohorts(cache.clients("train"), sampler, report_goal=goal, key=key)
    clock = cohorts.init()
    for number in range(recipe.rounds.rounds):
        clients, clock = cohorts.draw(clock, number)
        given = gather(cache, clients, recipe.client.settings(), seed_for(key, "client", number)).sentences
        parts.append(given[given != PAD])
    return np.concatenate(parts).astype(np.int64)


def size_of(text: Ids) -> dict[str, float]:
    sentences = int((text == BOS).sum())
    return {"sentences": sentences, "tokens": len(text) - sentences}


# -- what is measured ----------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """Counts of each test client by arm and seed, and what was chosen for the n-grams."""

    arms: Mapping[str, Seeds]
    facts: Mapping[tuple[str, int], Mapping[str, Fact]]


def judge(asked: argparse.Namespace, finished: Sequence[str]) -> Judged:
    """The finished networks, and the n-grams of all seeds asked for."""
    hardware = Hardware(workers=1)
    hardware.apply()
    cores, private, public = Cores(hardware), Cache.open(asked.cache), Cache.open(asked.public)
    recipe = one(asked, SCRATCH, 1).recipe

    def held_out(split: str, clients: int | None) -> HeldOut:
        chosen = private.clients(split)[:clients]
        return HeldOut.read(private, chosen, sentences=asked.sentences, words=recipe.client.words)

    test, validation = held_out("test", None), held_out("validation", VALIDATION)

    def network(folder: Path) -> Evaluation:
        model = load_model(folder)
        return evaluate(model.network, model.parameters, test, cores=cores)

    found: dict[str, dict[int, Evaluation]] = {}
    for kind in (TRAINED, PRIVATE, SCRATCH):
        if mine := [seed for seed in range(1, asked.seeds + 1) if f"{kind}-{seed}" in finished]:
            found[kind] = {seed: network(asked.runs / f"{kind}-{seed}") for seed in mine}
    if mine := sorted({*found.get(TRAINED, {}), *found.get(PRIVATE, {})}):
        found[PRETRAINED] = {seed: network(first_model(asked, seed)) for seed in mine}
    for kind, of in found.items():
        for seed, each in of.items():
            keep(asked, kind, seed, each, {})
    words, facts = private.manifest.vocabulary.size, dict[tuple[str, int], Mapping[str, Fact]]()
    openly = counted(text_of(public, public.clients("train")), validation, vocabulary=words)
    for seed in range(1, asked.seeds + 1):
        own = counted(sentences_read(recipe, private, seed), validation, vocabulary=words)
        parts = {CLIENTS: own.rows, PUBLIC_NGRAM: openly.rows}
        weights, _ = tuned(list(probabilities(parts, validation).values()))
        mixed = dict(zip(parts, weights, strict=True))
        facts[CLIENTS, seed] = {"order": own.order, **size_of(own.text)}
        facts[BOTH, seed] = {"weight": mixed[CLIENTS]}
        facts[PUBLIC_NGRAM, seed] = {"order": openly.order, **size_of(openly.text)}
        for name, each in measured(parts, test, mixtures={BOTH: mixed}).items():
            found.setdefault(name, {})[seed] = each
            keep(asked, name, seed, each, facts[name, seed])
    return Judged({kind: found[kind] for kind in {**NETWORKS, **NGRAMS} if kind in found}, facts)


def apart(one: Seeds, other: Seeds, measure: str) -> Apart:
    """One less the other, of the seeds that both have."""
    both = sorted(one.keys() & other.keys())
    values = [[of[seed].total.value(measure) for seed in both] for of in (other, one)]
    sums = [np.array([[client.sums[measure] for client in of[seed].clients] for seed in both]) for of in (one, other)]
    wholes = [client.over(measure) for client in one[both[0]].clients]  # the same words whoever is asked
    over_clients = ratio_of_means((sums[0] - sums[1]).mean(axis=0), wholes)
    return Apart(len(both), paired(*values) if len(both) > 1 else None, over_clients)


# -- what is said --------------------------------------------------------------------------------------------------


def said(of: Spread | Estimate | None, measure: str) -> str:
    _, _, scale, digits = MEASURES[measure]
    if of is None:
        return ""
    middle = of.mean if isinstance(of, Spread) else of.value
    return f"{scale * middle:+.{digits}f} ({scale * of.low:+.{digits}f} to {scale * of.high:+.{digits}f})"


def level(of: Seeds, measure: str) -> str:
    """The mean over seeds ± their standard deviation; one value where seeds make no difference."""
    _, _, scale, digits = MEASURES[measure]
    values = [scale * each.total.value(measure) for each in of.values()]
    if len(set(values)) < 2:
        return f"{values[0]:.{digits}f}"
    return f"{spread(values).mean:.{digits}f} ± {spread(values).deviation:.{digits}f}"


def table(judged: Judged) -> None:
    """Markdown: what each reaches, and the pairs."""
    shown = {**NETWORKS, **NGRAMS}
    lines = [["", "seeds", *(measure.level for measure in MEASURES.values())]]
    for kind, of in judged.arms.items():
        lines.append([shown[kind], str(len(of)), *(level(of, measure) for measure in MEASURES)])
    heads = [f"{shown.difference}, over {units}" for shown in MEASURES.values() for units in ("seeds", "clients")]
    pairs = [["", "seeds", *heads]]
    for this, other in there(judged):
        apart_by = {measure: apart(judged.arms[this], judged.arms[other], measure) for measure in MEASURES}
        cells = [said(way, measure) for measure, of in apart_by.items() for way in (of.over_seeds, of.over_clients)]
        pairs.append([f"{shown[this]} - {shown[other]}", str(apart_by["top1_accuracy"].seeds), *cells])
    print(markdown(lines, numbers=1 + len(MEASURES)) + "\n\n" + markdown(pairs, numbers=1 + len(heads)))


def report(judged: Judged) -> None:
    """The JSON lines."""
    for kind, of in judged.arms.items():
        for seed, each in of.items():
            facts = {measure: round(each.total.value(measure), 6) for measure in MEASURES}
            figure(kind, seed=seed, **facts, **judged.facts.get((kind, seed), {}))
    for this, other in there(judged):
        for measure in MEASURES:
            by = apart(judged.arms[this], judged.arms[other], measure)
            ways: Mapping[str, Any] = {"over_seeds": by.over_seeds, "over_clients": by.over_clients}
            bounds = {
                name: None if way is None else [round(bound, 6) for bound in (way.low, way.high)]
                for name, way in ways.items()
            }
            middle = round(by.over_clients.value, 6)
            figure("pair", this=this, less=other, measure=measure, seeds=by.seeds, difference=middle, **bounds)


def there(judged: Judged) -> list[tuple[str, str]]:
    return [(this, other) for this, other in PAIRS if this in judged.arms and other in judged.arms]


# -- what is remembered --------------------------------------------------------------------------------------------


def keep(asked: argparse.Namespace, kind: str, seed: int, each: Evaluation, facts: Mapping[str, Fact]) -> None:
    """Remember, where that is asked for, the totals over the test clients."""
    if asked.remember:
        values = {short: each.total.value(measure) for short, measure in REMEMBERED.items()}
        remember_row(asked.remember, asked.recipe.stem, kind, seed, {**values, **facts})


class OverSeeds(NamedTuple):
    """Of an arm: mean and standard deviation over so many seeds; None of one seed."""

    mean: float
    deviation: float | None
    seeds: int


def over_seeds(path: Path, experiment: str) -> dict[str, dict[str, OverSeeds]]:
    """{arm: {measure: ...}} of remembered rows; a row of seeds that were not kept has a list of all three."""
    found: dict[str, dict[str, OverSeeds]] = {}
    rows = remembered_rows(path, experiment)
    for arm in dict.fromkeys(row.arm for row in rows):
        mine = [row for row in rows if row.arm == arm]
        for short in REMEMBERED:
            values: list[Any] = [row.facts[short] for row in mine]
            if mine[0].seed is None:
                of = OverSeeds(*values[0])
            else:
                deviation = statistics.stdev(values) if len(values) > 1 else None
                of = OverSeeds(statistics.mean(values), deviation, len(values))
            found.setdefault(arm, {})[short] = of
    return found


def levels(path: Path, experiment: str) -> str:
    """Markdown: what each arm reaches, over seeds."""
    lines = [["", "seeds", "top-1, %", "top-3, %", "nats a word"]]
    for arm, by in over_seeds(path, experiment).items():
        cells = [_level(short, of) for short, of in by.items()]
        lines.append([{**NETWORKS, **NGRAMS}[arm], f"{by['top1'].seeds:.0f}", *cells])
    return markdown(lines, numbers=4)


def _level(short: str, of: OverSeeds) -> str:
    _, scale, digits = measure_of(short)
    middle = f"{scale * of.mean:.{digits}f}"
    return middle if of.deviation is None else f"{middle} ± {scale * of.deviation:.{digits}f}"


def differences(path: Path, experiment: str, this: str) -> str:
    """Markdown: an arm less each n-gram, 95% over seeds that are not paired (Welch)."""
    found = over_seeds(path, experiment)
    lines = [[f"{NETWORKS[this]}, less", "top-1, points", "top-3, points", "nats"]]
    for arm in (name for name in NGRAMS if name in found):
        cells = [interval(short, welch(found[this][short], found[arm][short])) for short in REMEMBERED]
        lines.append([NGRAMS[arm], *cells])
    return markdown(lines, numbers=3)


def welch(one: OverSeeds, other: OverSeeds) -> tuple[float, float, float]:
    """(one - other, and its 95% interval) of two samples that are not paired; their deviations may differ.

    Source: Welch, "The generalization of 'Student's' problem", Biometrika 34 (1947). Raises: ZeroDivisionError where
    neither varies, ValueError for one seed.
    """
    if one.deviation is None or other.deviation is None:
        raise ValueError("one seed has no interval; measure more.")
    parts = [one.deviation**2 / one.seeds, other.deviation**2 / other.seeds]
    freedom = sum(parts) ** 2 / sum(part**2 / (of.seeds - 1) for part, of in zip(parts, (one, other), strict=True))
    half = float(student.ppf(0.975, freedom)) * sum(parts) ** 0.5
    middle = one.mean - other.mean
    return middle, middle - half, middle + half


if __name__ == "__main__":
    main()
