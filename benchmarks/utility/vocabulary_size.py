"""What a larger vocabulary brings and what it costs, under federated learning without noise and with it.

10,000, 20,000 and 30,000 words of the same public text; a network of tied embeddings for each (half as wide as the
papers'), pre-trained on as many public sentences, then the same private rounds: cohorts of GOAL clients, four local
steps.

tune-*   seed 101, the middle vocabulary, half the rounds: the server rate without noise and with it, by validation
         clients
quiet-*  no noise
noise-*  a BLT of three buffers at the zCDP of epsilon 2 at 1,000 reports: one zCDP, so one noise in each weight, for
         all vocabularies; the norm of it grows as the square root of the parameters

Accuracy over words of the vocabulary cannot be compared between vocabularies: whoever knows fewer words is asked fewer
and easier ones. So each final model, the public ones too, reads the same test clients, and what is compared is

- hits over ALL typed words, an unknown word being one that cannot be hit; also by how frequent the word is (BANDS);
- nats over events that all models have: the words of the smallest vocabulary, and "any other word", of which a larger
  model has the probability as a sum.

`{}` in the paths of the caches stands for the vocabulary, 10000 and so on:

    ... --cache 'caches/blogs{}' --public 'caches/public{}' --runs runs/vocabulary
    ... --only '*-1'                                       one seed
    ... --phone                                            a client's CPU time; an exported model's bytes and time
    ... --typist 'caches/chat{}'                           nothing trained: which words could be suggested, there too
    ... --table, or --figure docs/results/vocabulary-size  from the finished cells
    ... --runs runs/smoke --smoke                          two minutes: does it work

Killed at any time, the same command goes on.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from cells import TACIT, Cell, Played, Spread, cell, chosen, figure, options, paired, play, read, save, spread
from numpy.typing import NDArray
from utility_of_mechanisms import DELTA, Level

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.evaluation.held_out import HeldOut
from tacit.keyboard.model_folder import load_model, write_model
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import parameter_count
from tacit.networks.metrics import SHOWN
from tacit.text.vocabulary import OOV, SPECIALS, Vocabulary

SIZES = (10_000, 20_000, 30_000)
NETWORK = {"embedding": 48, "units": 256, "tied": True}
PAPERS = {"embedding": 96, "units": 670, "tied": True}  # whose cost to devices is measured, too
PUBLIC = 64_000  # sentences of public text
GOAL = 20
LEVEL = Level(2, 1000)
STARTS, KINDS = "public", ("quiet", "noise")
TRIED = (1.0, 3.0, 6.0)  # server rates, of which those below were chosen
RATES = {"quiet": 3.0, "noise": 3.0}
TUNING_SEED = 101
TEST = 200  # clients
SENTENCES = 16  # of each of them
TOGETHER = 16  # sentences that are read at once
MEASURED = 13  # clients whose time is taken, and one before them
TOP1, TOP3, OOVS = "test_top1_accuracy", "test_top3_accuracy", "test_oov_rate"


def main() -> None:
    parser = options(__doc__ or "", seeds=2, rounds=20)
    parser.add_argument("--public", type=Path, required=True, help="caches of public text with the same vocabularies")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="of the vocabularies, from small")
    parser.add_argument("--phone", action="store_true", help="measure what it costs devices, train nothing more")
    parser.add_argument("--typist", type=Path, nargs="*", help="count words, of these caches too; train nothing")
    asked = parser.parse_args()
    asked.sentences, asked.network, asked.clients = PUBLIC, NETWORK, TEST
    if asked.smoke:
        asked.seeds, asked.rounds, asked.sentences, asked.clients = 2, 2, 64, 4
        asked.network = {"embedding": 8, "units": 16, "tied": True}
    if asked.typist is not None:
        for caches in (asked.cache, *asked.typist):
            typist(asked, caches)
        return
    cells = chosen(planned(asked), asked.only)
    if asked.table or asked.figure or asked.phone:
        runs = read(cells, asked.runs)
    else:
        pretrain(asked, cells)
        runs = play(cells, asked.runs, at_once=asked.at_once)
        Hardware(workers=1).apply()
        judge_all(asked, runs)
    if asked.phone:
        Hardware(workers=1).apply()
        for size in asked.sizes:
            for shape in (asked.network, PAPERS):
                a_client(asked, size, shape)
                phone(asked, size, shape)
    elif asked.figure:
        draw(asked, runs)
    elif asked.table:
        print("\n\n".join(map("\n".join, (tuning_table(runs), accuracy_table(asked, runs), cost_table(asked, runs)))))
    else:
        report(asked, runs)


# -- what is trained -----------------------------------------------------------------------------------------------


def planned(asked: argparse.Namespace) -> list[Cell]:
    """The tuning, then seed by seed, so that an experiment that was stopped has whole pairs."""
    middle = asked.sizes[len(asked.sizes) // 2]
    cells = [
        one(asked, f"tune-{kind}-{rate:g}", middle, kind, rate, TUNING_SEED, rounds=max(2, asked.rounds // 2))
        for kind in KINDS
        for rate in TRIED
    ]
    for seed in range(1, asked.seeds + 1):
        for kind in KINDS:
            for size in asked.sizes:
                cells.append(one(asked, name(kind, size, seed), size, kind, RATES[kind], seed, rounds=asked.rounds))
    return cells


def name(kind: str, size: int, seed: int) -> str:
    return f"{kind}-{size}-{seed}"


def one(asked: argparse.Namespace, name: str, size: int, kind: str, rate: float, seed: int, *, rounds: int) -> Cell:
    blt = {"mechanism": {"name": "blt", "buffers": 3}, "zcdp": LEVEL.zcdp, "delta": DELTA}
    noise = {**blt, "extrapolate_to": LEVEL.reports} if kind == "noise" else {"mechanism": {"name": "none"}}
    sections: dict[str, Mapping[str, Any]] = {
        "model": {**asked.network, "init": str(public(asked, size))},
        # Gentler than from a random model: at client rate 2 the tied tables forgot what public text had taught them.
        "client": {"batch_size": 8, "sentences": 32, "learning_rate": 0.3, "precision": "float32"},
        "server": {"method": "nesterov", "learning_rate": rate, "cooldown": 0.3},
        "rounds": {"rounds": rounds, "report_goal": GOAL, "min_separation": rounds},  # nobody comes twice
        "privacy": {**noise, "clip_norm": 0.3},
        "evaluation": {
            "every": max(1, rounds // 2),
            "clients": min(100, asked.clients),
            "test_clients": asked.clients,
            "sentences": SENTENCES,
        },
    }
    return cell(name, sections, cache=of_size(asked.cache, size), seed=seed)


def of_size(caches: Path, size: int) -> Path:
    return Path(str(caches).replace("{}", str(size)))


def public(asked: argparse.Namespace, size: int) -> Path:
    return asked.runs / f"public-{size}"


def pretrain(asked: argparse.Namespace, cells: Sequence[Cell]) -> None:
    """`tacit pretrain` for what the cells begin from, which does nothing where it has ended already."""
    asked.runs.mkdir(parents=True, exist_ok=True)
    shape = [f"--{key}={asked.network[key]}" for key in ("embedding", "units")]
    for size in asked.sizes:
        if any(each.recipe.model.init == public(asked, size) for each in cells):
            command = [*TACIT, "pretrain", str(of_size(asked.public, size)), "--out", str(public(asked, size)), *shape]
            amount = [f"--sentences={asked.sentences}", f"--every={asked.sentences}", "--seed=1", "--held-out=8"]
            subprocess.run([*command, "--tied", *amount], check=True, stdout=sys.stderr)


# -- what is measured ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Sums over the words that test clients typed, the same words for each vocabulary."""

    words: int
    first: int  # the word was the first suggestion
    shown: int  # or one of the first three
    bands: tuple[int, ...]  # first, by the smallest vocabulary that has the word
    asked: tuple[int, ...]  # the words of each of these bands; what is missing in `words` nobody knows
    nats: float  # of the words of the smallest vocabulary, and "any other word"

    def __add__(self, other: "Judged") -> "Judged":
        bands = tuple(a + b for a, b in zip(self.bands, other.bands, strict=True))
        asked = tuple(a + b for a, b in zip(self.asked, other.asked, strict=True))
        sums = (self.words + other.words, self.first + other.first, self.shown + other.shown)
        return Judged(*sums, bands, asked, self.nats + other.nats)


def seen(scores: Any, targets: Any, common: int, numbers: Any) -> tuple[Any, Any]:
    """(rank, nats) of words, each (W,), for `judged`; of padding, beginnings and ends they mean nothing.

    scores (W, V); targets (W,), ids of the largest vocabulary, of which the smaller ones are the beginnings; common:
    ids of the smallest; numbers: the library that computes, `numpy` or, for gigabytes of scores, `jax.numpy`.
    """
    most = scores.shape[1]
    known = (targets >= SPECIALS) & (targets < most)
    picked = numbers.take_along_axis(scores, numbers.where(known, targets, OOV)[:, None], axis=1)
    ids = numbers.arange(most)[None, :]
    before = (scores > picked) | ((scores == picked) & (ids < targets[:, None]))
    rank = numbers.where(known, (before & (ids >= SPECIALS)).sum(axis=1), most)
    top = scores.max(axis=1)
    odds = numbers.exp(scores - top[:, None])
    others = numbers.log(numbers.where((ids >= common) | (ids == OOV), odds, 0).sum(axis=1))
    event = numbers.where((targets >= SPECIALS) & (targets < common), picked[:, 0] - top, others)
    return rank, numbers.log(odds.sum(axis=1)) - event


def judged(rank: NDArray[Any], nats: NDArray[Any], targets: NDArray[np.int32], sizes: Sequence[int]) -> Judged:
    """The sums of what is `seen` of targets (W,); sizes: of all vocabularies, from small."""
    typed = (targets == OOV) | (targets >= SPECIALS)
    band = np.where(targets >= SPECIALS, np.searchsorted(sizes, targets, side="right"), len(sizes))
    return Judged(
        words=int(typed.sum()),
        first=int((typed & (rank < 1)).sum()),
        shown=int((typed & (rank < SHOWN)).sum()),
        bands=tuple(int((typed & (rank < 1) & (band == each)).sum()) for each in range(len(sizes))),
        asked=tuple(int((band == each).sum()) for each in range(len(sizes))),
        nats=float(nats[typed].sum(dtype=np.float64)),
    )


def judge_all(asked: argparse.Namespace, runs: Mapping[str, Played]) -> None:
    """What the models of the finished cells, and the public ones, make of the test clients; kept beside the runs."""
    models = {public(asked, size): size for size in asked.sizes if (public(asked, size) / "model").is_dir()}
    models |= {run.folder: int(each.split("-")[1]) for each, run in runs.items() if not each.startswith("tune")}
    for folder, size in models.items():
        if not kept(folder).is_file():
            sentences = read_alike(asked)
            kept(folder).write_text(json.dumps(asdict(judge(folder, sentences, size, asked.sizes))), encoding="utf-8")
    for each, run in runs.items():
        if run.folder in models:  # the run counted the same hits in its own way
            found = of(run.folder)
            said = run.last(TOP1) * (1 - run.last(OOVS))
            assert found is not None
            if abs(found.first / found.words - said) > 2e-4:
                raise SystemExit(f"'{each}' has {said:.4%} of all words right by its own count, {found} by this one.")


def kept(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.judged.json")


def of(folder: Path) -> Judged | None:
    """None where it was not judged yet."""
    if not kept(folder).is_file():
        return None
    found = json.loads(kept(folder).read_text(encoding="utf-8"))
    return Judged(**{**found, "bands": tuple(found["bands"]), "asked": tuple(found["asked"])})


def read_alike(asked: argparse.Namespace) -> NDArray[np.int32]:
    """The sentences (N, L+1) of the test clients, in ids of the largest vocabulary.

    Raises: SystemExit where a smaller cache has other sentences, or its vocabulary is not a beginning of the largest.
    """
    return _read_alike(asked.cache, tuple(asked.sizes), asked.clients)


@cache
def _read_alike(caches: Path, sizes: tuple[int, ...], clients: int) -> NDArray[np.int32]:
    most = opened(caches, sizes[-1])
    sentences = held_out(most, clients)
    words = vocabulary(most).words
    for size in sizes:
        there = opened(caches, size)
        if vocabulary(there).words != words[: size - SPECIALS]:
            raise SystemExit(f"the vocabulary of '{of_size(caches, size)}' is not the beginning of the largest one.")
        if not np.array_equal(held_out(there, clients), np.where(sentences < size, sentences, OOV)):
            raise SystemExit(f"'{of_size(caches, size)}' has other sentences than '{of_size(caches, sizes[-1])}'.")
    return sentences


def opened(caches: Path, size: int) -> Cache:
    return Cache.open(of_size(caches, size))


def vocabulary(there: Cache) -> Vocabulary:
    return Vocabulary.from_json(there.vocabulary_json)


def held_out(there: Cache, clients: int) -> NDArray[np.int32]:
    """(N, L+1): those that a run reads at its end."""
    first = there.clients("test")[:clients]
    sentences = HeldOut.read(there, first, sentences=SENTENCES, words=20).sentences
    return sentences.reshape(-1, sentences.shape[-1])


def judge(folder: Path, sentences: NDArray[np.int32], size: int, sizes: Sequence[int]) -> Judged:
    import jax
    import jax.numpy as jnp

    model = load_model(folder)

    @jax.jit
    def look(tokens: Any, targets: Any) -> tuple[Any, Any]:
        scores = model.network.logits(model.parameters, tokens)
        return seen(scores.reshape(-1, scores.shape[-1]), targets, sizes[0], jnp)

    empty = (0,) * len(sizes)
    total = Judged(0, 0, 0, empty, empty, 0.0)
    missing = -len(sentences) % TOGETHER
    padded = np.concatenate([sentences, np.zeros((missing, sentences.shape[1]), np.int32)])
    for first in range(0, len(padded), TOGETHER):
        batch = padded[first : first + TOGETHER]
        targets = batch[:, 1:].reshape(-1)
        rank, nats = look(np.where(batch < size, batch, OOV)[:, :-1], targets)
        total += judged(np.asarray(rank), np.asarray(nats), targets, sizes)
    return total


def typist(asked: argparse.Namespace, caches: Path) -> None:
    """Of all words of the test clients, those that each vocabulary could suggest; nothing is trained."""
    most = opened(caches, asked.sizes[-1])
    for size in asked.sizes:
        shares, known, words, whole, sentences = [], 0, 0, 0, 0
        for client in most.clients("test"):
            tokens, lengths = most.sentences(int(client))
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            typed = (tokens == OOV) | (tokens >= SPECIALS)
            missing = typed & ((tokens == OOV) | (tokens >= size))
            known, words = known + int((typed & ~missing).sum()), words + int(typed.sum())
            whole += int((np.add.reduceat(missing, starts) == 0).sum())
            sentences += len(lengths)
            shares.append(1 - missing.sum() / typed.sum())
        low, middle, high = np.quantile(shares, (0.05, 0.5, 0.95))
        figure(
            f"words of {caches} that {size:,} can suggest",
            share=round(known / words, 5),
            one_unknown_in=round(words / (words - known), 1),
            sentences_all_known=round(whole / sentences, 5),
            clients=len(shares),
            of_the_5th_client=round(low, 5),
            of_the_median_client=round(middle, 5),
            of_the_95th_client=round(high, 5),
        )


def a_client(asked: argparse.Namespace, size: int, shape: Mapping[str, Any]) -> None:
    """CPU time of the recipe's local training, clipping included, by this process; parameters are random."""
    import jax
    from jax.flatten_util import ravel_pytree

    from tacit.networks.language_model import next_word_loss
    from tacit.training.client import ClientWork, gather
    from tacit.training.shards import shard_sum

    recipe = one(asked, "cost", size, "quiet", RATES["quiet"], 1, rounds=2).recipe
    there, network = opened(asked.cache, size), Cifg(vocabulary=size, **shape)
    flat, unravel = ravel_pytree(network.init(jax.random.key(0)))
    settings = recipe.client.settings()
    work = ClientWork(loss=next_word_loss(network), unravel=unravel, cache=there, settings=settings)
    spent, (device, *_) = [], jax.devices()
    for client in there.clients("train")[:MEASURED]:
        data = gather(there, np.array([client]), settings, bytes(16))
        before = time.process_time()
        shard_sum(work, flat, data, clip_norm=recipe.privacy.clip_norm, device=device)
        spent.append(time.process_time() - before)
    seconds = round(statistics.mean(spent[1:]), 4)  # the first is compiled
    facts = {"embedding": network.embedding, "parameters": len(flat), "update_megabytes": round(len(flat) * 4e-6, 2)}
    figure(f"a client of {size:,} words", **facts, cpu_seconds=seconds, clients=len(spent) - 1)


def phone(asked: argparse.Namespace, size: int, shape: Mapping[str, Any]) -> None:
    """A model as `tacit export` writes it: bytes of a word's graph, milliseconds of a word; parameters are random."""
    import jax

    sys.path.append(str(Path(__file__).parents[1] / "keyboard"))
    from suggestion_latency import a_word, by_onnx

    from tacit.keyboard.exported import STEP

    words, network = vocabulary(opened(asked.cache, size)), Cifg(vocabulary=size, **shape)
    for quantize in (None, "int8", "int4"):
        with tempfile.TemporaryDirectory() as at:
            folder, exported = Path(at, "model"), Path(at, "phone")
            write_model(folder, network, network.init(jax.random.key(0)), words.to_json().encode())
            tacit.export(folder, exported, quantize=quantize)
            figure(
                f"{size:,} words on a phone",
                embedding=network.embedding,
                numbers=quantize or "float32",
                megabytes=round((exported / STEP).stat().st_size / 1e6, 2),
                **a_word(load_model(folder), exported, *by_onnx(load_model(folder), exported)),
            )


# -- what is said --------------------------------------------------------------------------------------------------

MEASURES = {
    "top-1 of all words, %": lambda each: 100 * each.first / each.words,
    "top-3 of all words, %": lambda each: 100 * each.shown / each.words,
    "nats of common events": lambda each: each.nats / each.words,
}


def values(asked: argparse.Namespace, kind: str, size: int, measure: Any) -> dict[int, float]:
    """{seed: value}; a public model is that of every seed."""
    names = {seed: name(kind, size, seed) for seed in range(1, asked.seeds + 1)}
    folders = {seed: public(asked, size) if kind == STARTS else asked.runs / each for seed, each in names.items()}
    found = {seed: of(folder) for seed, folder in folders.items()}
    return {seed: measure(each) for seed, each in found.items() if each is not None}


def apart(first: Mapping[int, float], second: Mapping[int, float]) -> Spread | None:
    """second - first of the seeds that both have; None for fewer than two."""
    both = sorted(first.keys() & second.keys())
    return paired([first[seed] for seed in both], [second[seed] for seed in both]) if len(both) > 1 else None


def interval(of: Spread | None) -> str:
    return "" if of is None else f"{of.mean:+.2f} ({of.low:+.2f} to {of.high:+.2f})"


def middle(found: Mapping[int, float], digits: int = 2) -> str:
    """± is half the 95% interval; a single value has none."""
    if len(found) < 2 or len(set(found.values())) == 1:
        return f"{statistics.mean(found.values()):.{digits}f}" if found else ""
    there = spread(list(found.values()))
    return f"{there.mean:.{digits}f} ± {there.high - there.mean:.{digits}f}"


def tuning_table(runs: Mapping[str, Played]) -> list[str]:
    """What each server rate reached on validation clients."""
    lines = ["| rounds | server rate | top-1 in-vocabulary accuracy, validation, % |", "|---|--:|--:|"]
    for kind in KINDS:
        for rate in TRIED:
            if run := runs.get(f"tune-{kind}-{rate:g}"):
                lines.append(f"| {kind} | {rate:g} | {100 * run.last('validation_top1_accuracy'):.2f} |")
    return lines


def accuracy_table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[str]:
    least = asked.sizes[0]
    bands = [f"{size // 1000}k" for size in asked.sizes]
    lines = [
        f"| rounds | words | seeds | {' | less the smallest | '.join(MEASURES)} | less the smallest "
        f"| in-vocabulary top-1, % | all-token, % | hits by band, % of all words: {', '.join(bands)} |",
        "|---" * (6 + 2 * len(MEASURES)) + "|",
    ]
    for kind in (STARTS, *KINDS):
        for size in asked.sizes:
            if not (seeds := values(asked, kind, size, lambda each: each.words)):
                continue
            row = [kind, f"{size:,}", "1 model" if kind == STARTS else str(len(seeds))]
            for measure in MEASURES.values():
                found, smallest = values(asked, kind, size, measure), values(asked, kind, least, measure)
                alone = {1: found[1]} if kind == STARTS else found
                row += [middle(alone, 3 if measure is MEASURES["nats of common events"] else 2)]
                row += ["" if size == least else difference(kind, smallest, found)]
            ended = [run for each, run in runs.items() if each in {name(kind, size, seed) for seed in seeds}]
            for curve in (TOP1, "test_all_token_accuracy"):
                row.append(middle({index: 100 * run.last(curve) for index, run in enumerate(ended)}))
            row.append(", ".join(shares(asked, kind, size)))
            lines.append("| " + " | ".join(row) + " |")
    return [*lines, "", *gains_table(asked)]


def difference(kind: str, smallest: Mapping[int, float], found: Mapping[int, float]) -> str:
    """Of a public model there is one, and no interval."""
    return f"{found[1] - smallest[1]:+.2f}" if kind == STARTS else interval(apart(smallest, found))


def shares(asked: argparse.Namespace, kind: str, size: int) -> list[str]:
    """Hits of each band, in % of all words."""
    bands = range(len(asked.sizes))
    each = [values(asked, kind, size, lambda of, band=band: 100 * of.bands[band] / of.words) for band in bands]
    return [f"{statistics.mean(found.values()):.3f}" for found in each]


def gains_table(asked: argparse.Namespace) -> list[str]:
    """What rounds bring and noise costs each vocabulary, and how that differs from the smallest."""
    lines = [
        "| words | top-1 of all words: quiet - public | noise - quiet | the latter less the smallest's |",
        "|--:|---|---|---|",
    ]
    costs: dict[int, dict[int, float]] = {}
    for size in asked.sizes:
        start, quiet, noise = (
            values(asked, kind, size, MEASURES["top-1 of all words, %"]) for kind in (STARTS, *KINDS)
        )
        costs[size] = {seed: noise[seed] - quiet[seed] for seed in sorted(noise.keys() & quiet.keys())}
        more = "" if size == asked.sizes[0] else interval(apart(costs[asked.sizes[0]], costs[size]))
        row = [f"{size:,}", interval(apart(start, quiet)), interval(apart(quiet, noise)), more]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def cost_table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[str]:
    """Parameters, bytes, time, and the noise; ratios are to the smallest vocabulary."""
    lines = [
        "| words | parameters | update, MB of float32 | seconds of a round / client | noise in a weight | its norm | "
        "sqrt(parameters), times the smallest's | norm, times the smallest's |",
        "|--:" * 8 + "|",
    ]
    least: tuple[float, float] | None = None
    for size in asked.sizes:
        mine = {each: run for each, run in runs.items() if each.split("-")[1] == str(size)}
        noisy = next((run for each, run in mine.items() if each.startswith("noise")), None)
        if noisy is None:
            continue
        known = tacit.noise_forecast(asked.runs / f"{noisy.folder.name}.toml").noise_forecast
        assert known is not None
        count, norm = known.parameters, known.noise * sqrt(known.parameters)
        least = least or (count, norm)
        spent = [run.client_seconds / (len(run.measures) * GOAL) for run in mine.values()]
        row = [f"{size:,}", f"{count:,}", f"{4 * count / 1e6:.1f}", f"{statistics.median(spent):.3f}"]
        row += [f"{known.noise:.4f}", f"{norm:.1f}", f"{sqrt(count / least[0]):.3f}", f"{norm / least[1]:.3f}"]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def report(asked: argparse.Namespace, runs: Mapping[str, Played]) -> None:
    for each, run in runs.items():
        found, facts = of(run.folder), {"validation_top1": round(run.last("validation_top1_accuracy"), 5)}
        if found is not None:
            facts |= {title: round(measure(found), 4) for title, measure in MEASURES.items()}
        network = load_model(run.folder).network
        seconds = round(run.client_seconds / (len(run.measures) * GOAL), 4)
        figure(each, parameters=parameter_count(network), seconds_a_client=seconds, **facts)
    for size in asked.sizes:
        if found := of(public(asked, size)):
            figure(public(asked, size).name, **{title: round(each(found), 4) for title, each in MEASURES.items()})


def draw(asked: argparse.Namespace, runs: Mapping[str, Played]) -> None:
    """Left: top-1 of all words by the vocabulary. Right: what the vocabulary costs, times the smallest's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(10.4, 4.2), layout="constrained")
    says = {STARTS: "public text alone", "quiet": "rounds without noise", "noise": f"rounds with noise, {LEVEL.says}"}
    for kind, label in says.items():
        found = {size: values(asked, kind, size, MEASURES["top-1 of all words, %"]) for size in asked.sizes}
        found = {size: each for size, each in found.items() if each}
        means = [statistics.mean(each.values()) for each in found.values()]
        (line,) = left.plot([size / 1000 for size in found], means, "o-", markersize=4, label=label)
        if kind != STARTS and all(len(each) > 1 for each in found.values()):
            bands = [spread(list(each.values())) for each in found.values()]
            low, high = [each.low for each in bands], [each.high for each in bands]
            left.fill_between([size / 1000 for size in found], low, high, color=line.get_color(), alpha=0.2, lw=0)
    left.set(xlabel="thousand words", ylabel="top-1, % of all typed words, test", title="accuracy")
    each: dict[str, list[float]] = {"parameters": [], "time of a client": []}
    shown = [size for size in asked.sizes if name("quiet", size, 1) in runs]
    for size in shown:
        mine = [run for title, run in runs.items() if title.split("-")[1] == str(size)]
        each["parameters"].append(parameter_count(load_model(mine[0].folder).network))
        spent = [run.client_seconds / (len(run.measures) * GOAL) for run in mine]
        each["time of a client"].append(statistics.median(spent))
    each["norm of the noise"] = [sqrt(count) for count in each["parameters"]]
    for label, costs in each.items():
        right.plot([size / 1000 for size in shown], [cost / costs[0] for cost in costs], "o-", ms=4, label=label)
    right.set(xlabel="thousand words", ylabel=f"times that of {asked.sizes[0] // 1000} thousand words", title="cost")
    for axes in (left, right):
        axes.set_xticks([size / 1000 for size in asked.sizes])
        axes.grid(color="#eaeef2")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    save(drawing, asked.figure)


if __name__ == "__main__":
    main()
