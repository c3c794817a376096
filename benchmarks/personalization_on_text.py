"""A model of one's own helps most users, harms some, and a gate keeps most of the gain and little of the harm.

Federated Personalization Evaluation (paper 5, arXiv:1910.10252) on caches of real text: its grid of 9 strategies on
test clients, its findings with 95% intervals beside its own numbers, and what gates and strategies by tokens do to
users that did not design them. One JSON line per figure; resumable: the same command goes on where it was killed.

    python benchmarks/personalization_on_text.py --model runs/long/model --cache caches/blogs-en --clients 200 \
        --runs runs --workers 1

Every client is cut in time: 70% to fine-tune on, 10% for the gate, 20% to test on (the paper: 80% and 20%).
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from slopes import slope_of

import tacit
from tacit.compute import Hardware
from tacit.evaluation.deltas import Deltas, summarise
from tacit.evaluation.gate import LEVELS, difference, judged, policy_change
from tacit.evaluation.histograms import Buckets
from tacit.evaluation.intervals import Estimate, mean_of
from tacit.evaluation.personalization import TemporalSplit
from tacit.evaluation.settings import GRID, PersonalizationSettings, ReleasePrice
from tacit.jobs.personalization_record import Found, FoundExactly
from tacit.keyboard.metrics import TOP1
from tacit.progress import Advanced, Event
from tacit.records import json_ready

BATCHES = (5, 10, 20)
# Paper 5, Table 1: mean change of accuracy (its accuracy counts all tokens, ours in-vocabulary words).
PAPER = {
    "B=5, L=0.01": 0.012,
    "B=5, L=0.1": 0.024,
    "B=5, L=1": -0.019,
    "B=10, L=0.01": 0.008,
    "B=10, L=0.1": 0.022,
    "B=10, L=1": 0.002,
    "B=20, L=0.01": 0.005,
    "B=20, L=0.1": 0.018,
    "B=20, L=1": 0.015,
}
BEST = "B=5, L=0.1"  # the paper's
HIGH = "B=5, L=1"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, required=True)
    options.add_argument("--cache", type=Path, nargs="+", required=True)
    options.add_argument("--clients", type=int, nargs="+", default=[0], help="of each cache; 0: all")
    options.add_argument("--tokens", default="500,1000,2000,4000", help="cuts between buckets of train tokens")
    options.add_argument("--runs", type=Path, required=True, help="where the run folders go")
    options.add_argument("--epsilon", type=float, default=8.0, help="of the release, at delta 1e-6")
    options.add_argument(
        "--seed", type=int, default=1, help="of the release's noise; the clients are the public order's"
    )
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = options.parse_args()
    hardware = Hardware(workers=asked.workers)
    numbers = asked.clients * len(asked.cache) if len(asked.clients) == 1 else asked.clients
    for seed, (cache, clients) in enumerate(zip(asked.cache, numbers, strict=True), start=asked.seed):
        for figure in one_cache(asked, cache, clients, seed, hardware):
            line = json.dumps(json_ready({"cache": cache.name, **figure}))
            print(line, flush=True)
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(line + "\n")


def said(event: Event) -> None:
    if isinstance(event, Advanced):
        print(f"# {event.done} clients", flush=True)


def one_cache(asked: argparse.Namespace, cache: Path, clients: int, seed: int, hardware: Hardware) -> list[dict]:
    names = tuple(map(str, GRID))
    tokens = Buckets(tuple(float(cut) for cut in asked.tokens.split(",")))
    began, processor = time.perf_counter(), time.process_time()
    found = tacit.personalize(
        asked.model,
        cache,
        asked.runs / f"personalize-{cache.name}",
        settings=PersonalizationSettings(
            clients=clients, strategies=GRID, split=TemporalSplit(gate=0.125), levels=LEVELS, tokens=tokens
        ),
        release=ReleasePrice(epsilon=asked.epsilon),
        seed=seed,
        hardware=hardware,
        progress=said,
    ).found
    exact = found.exact
    assert exact is not None  # of simulated clients it is known
    spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - processor}
    return [
        {"figure": "clients", "asked": len(exact.asked), "evaluated": len(exact.deltas), **exact.skipped, **spent},
        *table_1(exact.deltas, names),
        *against_the_best(exact.deltas, names),
        *who_gains(exact.deltas, names),
        *by_few_tokens(exact.deltas, names, tokens),
        *policies(found, exact),
    ]


def table_1(deltas: Deltas, names: Sequence[str]) -> list[dict]:
    """Table 1, and the shares of Figure 2."""
    baseline = deltas.baseline[TOP1]
    rows: list[dict] = [{"figure": "baseline", "mean": mean_of(baseline), "paper": 0.166}]
    for column, name in enumerate(names):
        found = summarise(deltas.change[TOP1][:, column], baseline)
        rows.append({"figure": f"change, {name}", "paper": PAPER[name], **found.as_row()})
    return rows


def against_the_best(deltas: Deltas, names: Sequence[str]) -> list[dict]:
    """Each strategy's mean change less that of the paper's best, by the same clients."""
    change = deltas.change[TOP1]
    best = change[:, names.index(BEST)]
    return [
        {"figure": f"{name} less {BEST}", "mean": mean_of(change[:, column] - best), "paper": PAPER[name] - PAPER[BEST]}
        for column, name in enumerate(names)
        if name != BEST
    ]


def who_gains(deltas: Deltas, names: Sequence[str]) -> list[dict]:
    """Slopes of the change under the paper's best strategy: with the tokens, and with the accuracy before.

    The accuracy before is measured twice. On the test part, as in the paper: then a client whose baseline had bad luck
    there has a change that looks good by the same luck. And on the gate's part, which shares no word with the change.
    """
    change = deltas.change[TOP1][:, names.index(BEST)]
    assert deltas.gate_baseline is not None
    known = ~np.isnan(deltas.gate_baseline)
    return [
        {
            "figure": "change per doubling of train tokens",
            "slope": slope_of(np.log2(np.maximum(deltas.tokens, 1)), change),
        },
        {"figure": "change per unit of accuracy before, test part", "slope": slope_of(deltas.baseline[TOP1], change)},
        {
            "figure": "change per unit of accuracy before, gate's part",
            "slope": slope_of(deltas.gate_baseline[known], change[known]),
        },
    ]


def by_few_tokens(deltas: Deltas, names: Sequence[str], tokens: Buckets) -> list[dict]:
    """Is a high rate best for users with few tokens: L=1 less L=0.1 at each batch size, bucket by bucket."""
    bucket, rows = tokens.of(deltas.tokens), []
    for number, label in enumerate(tokens.labels()):
        mine = bucket == number
        if mine.sum() < 2:
            continue
        for batch in BATCHES:
            high, low = (names.index(f"B={batch}, L={rate:g}") for rate in (1.0, 0.1))
            change = deltas.change[TOP1][mine]
            figure = f"B={batch}: L=1 less L=0.1, {label} tokens"
            rows.append({"figure": figure, "users": int(mine.sum()), "mean": mean_of(change[:, high] - change[:, low])})
    return rows


def policies(found: Found, exact: FoundExactly) -> list[dict]:
    """On the half of the clients that no policy was chosen on."""
    rows = []
    for where, chosen in (("exact", exact.answers.policies), ("released", found.released and found.released.policies)):
        for policy in chosen or ():
            outcome = judged(policy, exact.fresh)
            first = (chosen or (policy,))[0]
            fell, fell_before = (policy_change(each, exact.fresh) < 0 for each in (policy, first))
            rows.append(
                {
                    "figure": f"policy '{policy.name}' chosen from {where} histograms",
                    "rules": policy.as_row()["rules"],
                    **{name: value for name, value in vars(outcome).items() if isinstance(value, Estimate)},
                    "users": outcome.users,
                    "gain_less_no_gate": difference(policy, first, exact.fresh),
                    "harmed_less_no_gate": mean_of(fell.astype(float) - fell_before),
                }
            )
    return rows


if __name__ == "__main__":
    main()
