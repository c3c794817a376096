"""Federated training beats a trigram of as much text: the whole chain anew with each seed, the same clients judge.

public-S    the recipe's network pre-trained on public text with seed S
trained-S   from it, the rounds of the recipe with seed S, without noise
private-S   the same with the recipe's noise
scratch-S   the same as trained-S from a random model

The recipe is recipes/blogs-local-steps.toml (96 x 670, 0.83 M parameters at 2,000 words), which has no noise of its
own: private-S has, by a BLT, the noise on the mean that epsilon 8 costs a cohort of 6,500 (privacy.extrapolate_to). A
recipe of yours, as `tacit recipe new` writes it, is played as it stands.

What they are held against is counted on pooled text, without privacy (interpolated modified Kneser-Ney): as many
sentences of the clients as the rounds read, drawn anew with each seed; those with all the public text besides; the
public text alone; all text of all clients. Everything is judged on the same sentences of all test clients.

Two intervals (95%, Student's t), for two questions: over seeds, each with a first model, cohorts and a trigram of its
own, for these clients; and over the clients, seeds averaged, for other clients of that kind.

    python benchmarks/utility/beats_a_trigram.py --cache caches/blogs2k --public caches/public2k --runs runs/trigram
    ... --only 'trained-*' 'private-*'      without the rounds from a random model
    ... --recipe mine.toml --pretrained 400000 --sentences 64
    ... --table                             Markdown, from the finished cells
    ... --smoke                             whether it works

A seed of ours is 45 CPU-minutes, ten of them of pre-training. Killed at any time, the same command goes on.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cells import TACIT, Cell, Spread, cell, chosen, figure, options, paired, play, read, spread
from federated_against_central import RECIPES, words_seen
from utility_of_mechanisms import DELTA, Level

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import Evaluation, evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.intervals import Estimate, ratio_of_means
from tacit.evaluation.trigram import BackedOffTrigram, text_of
from tacit.keyboard.model_folder import load_model
from tacit.privacy.gaussian import zcdp_for_epsilon

RECIPE = RECIPES / "blogs-local-steps.toml"
PRETRAINED, TRAINED, PRIVATE, SCRATCH = "public", "trained", "private", "scratch"
LEVEL = Level(8, 6500)
NETWORKS = {
    PRETRAINED: "network of the public text",
    TRAINED: "network of the public text, then of the clients",
    PRIVATE: "the same under noise",
    SCRATCH: "network of the clients alone",
}
EQUAL, BOTH, PUBLICLY, ALL = "equal", "both", "publicly", "all"
TRIGRAMS = {
    EQUAL: "trigram of as many sentences of the clients",
    BOTH: "trigram of those and all the public text",
    PUBLICLY: "trigram of the public text",
    ALL: "trigram of all text of all clients",
}
PAIRS = (
    *((one, other) for one in (TRAINED, PRIVATE) for other in (EQUAL, BOTH, PUBLICLY, ALL, PRETRAINED)),
    (PRIVATE, TRAINED),
    (SCRATCH, EQUAL),
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
    asked = parser.parse_args()
    if not asked.recipe.is_file():
        raise SystemExit(f"--recipe: there is no file '{asked.recipe}'; `tacit recipe new` writes one.")
    if asked.figure:
        raise SystemExit("this experiment draws no figure; leave --figure out.")
    cells = chosen(planned(asked), asked.only)
    if not asked.table:
        pretrain(asked, cells)
        play(cells, asked.runs, at_once=asked.at_once)
    finished = read(cells, asked.runs)
    if not finished:
        raise SystemExit(f"no cell is finished in '{asked.runs}'; run the experiment first.")
    judged = judge(asked, list(finished))
    say = table if asked.table else report
    say(judged)


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


# -- what is measured ----------------------------------------------------------------------------------------------


def judge(asked: argparse.Namespace, finished: Sequence[str]) -> dict[str, Seeds]:
    """{kind: {seed: counts of each test client}} of the finished networks, and of the trigrams of their seeds."""
    hardware = Hardware(workers=1)
    hardware.apply()
    cores, private, public = Cores(hardware), Cache.open(asked.cache), Cache.open(asked.public)
    recipe = one(asked, SCRATCH, 1).recipe
    held_out = HeldOut.read(private, private.clients("test"), sentences=asked.sentences, words=recipe.client.words)

    def network(folder: Path) -> Evaluation:
        model = load_model(folder)
        return evaluate(model.network, model.parameters, held_out, cores=cores)

    def trigram(*texts: np.ndarray) -> Evaluation:
        text = np.concatenate(texts)
        return BackedOffTrigram.of_text(text, vocabulary=private.manifest.vocabulary.size).evaluate(held_out)

    seeds = sorted({int(name.split("-")[1]) for name in finished})
    found: dict[str, Seeds] = {}
    for kind in (TRAINED, PRIVATE, SCRATCH):
        if mine := [seed for seed in seeds if f"{kind}-{seed}" in finished]:
            found[kind] = {seed: network(asked.runs / f"{kind}-{seed}") for seed in mine}
    if mine := sorted({*found.get(TRAINED, {}), *found.get(PRIVATE, {})}):
        found[PRETRAINED] = {seed: network(first_model(asked, seed)) for seed in mine}
    sentences = recipe.rounds.rounds * recipe.rounds.report_goal * recipe.client.sentences
    openly = text_of(public, public.clients("train"))

    def equal(seed: int) -> np.ndarray:
        """As many of the clients' words as the rounds read, of random clients."""
        drawn = np.random.default_rng(seed).permutation(private.clients("train"))
        return text_of(private, drawn, words_seen(private, drawn, sentences, recipe.client.words))

    found[EQUAL] = {seed: trigram(equal(seed)) for seed in seeds}
    found[BOTH] = {seed: trigram(openly, equal(seed)) for seed in seeds}
    found[PUBLICLY] = dict.fromkeys(seeds, trigram(openly))
    found[ALL] = dict.fromkeys(seeds, trigram(text_of(private, private.clients("train"))))
    return {kind: found[kind] for kind in {**NETWORKS, **TRIGRAMS} if kind in found}


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


def table(judged: Mapping[str, Seeds]) -> None:
    """Markdown: what each reaches, and the pairs."""
    shown = {**NETWORKS, **TRIGRAMS}
    titles = [shown.level for shown in MEASURES.values()]
    print("| | seeds | " + " | ".join(titles) + " |\n|---|" + "--:|" * (1 + len(titles)))
    for kind, of in judged.items():
        print(f"| {shown[kind]} | {len(of)} | " + " | ".join(level(of, measure) for measure in MEASURES) + " |")
    heads = [f"{shown.difference}, over {units}" for shown in MEASURES.values() for units in ("seeds", "clients")]
    print("\n| | seeds | " + " | ".join(heads) + " |\n|---|" + "--:|" * (1 + len(heads)))
    for one, other in there(judged):
        apart_by = {measure: apart(judged[one], judged[other], measure) for measure in MEASURES}
        cells = [said(way, measure) for measure, of in apart_by.items() for way in (of.over_seeds, of.over_clients)]
        seeds = apart_by["top1_accuracy"].seeds
        print(f"| {shown[one]} - {shown[other]} | {seeds} | " + " | ".join(cells) + " |")


def report(judged: Mapping[str, Seeds]) -> None:
    """The JSON lines."""
    for kind, of in judged.items():
        for seed, each in of.items():
            figure(kind, seed=seed, **{measure: round(each.total.value(measure), 6) for measure in MEASURES})
    for one, other in there(judged):
        for measure in MEASURES:
            by = apart(judged[one], judged[other], measure)
            ways: Mapping[str, Any] = {"over_seeds": by.over_seeds, "over_clients": by.over_clients}
            facts = {
                name: None if way is None else [round(bound, 6) for bound in (way.low, way.high)]
                for name, way in ways.items()
            }
            middle = round(by.over_clients.value, 6)
            figure("pair", this=one, less=other, measure=measure, seeds=by.seeds, difference=middle, **facts)


def there(judged: Mapping[str, Seeds]) -> list[tuple[str, str]]:
    return [(one, other) for one, other in PAIRS if one in judged and other in judged]


if __name__ == "__main__":
    main()
