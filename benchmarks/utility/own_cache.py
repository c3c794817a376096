r"""What a device's own cache of words and pairs adds to a mixture: held-out clients, each on the end of its own text.

    python benchmarks/utility/own_cache.py --cache caches/chat5k --model runs/mixture --runs runs/own-cache

Of each client's text the first 70% are learnt, the next 10% are the gate's, and the last 20% are predicted. Every way
is counted on the same words as the mixture alone. A gate accepts where more words were right with the cache alone than
without it alone. Differences are means over words, all clients' together; intervals are 95% of a paired bootstrap over
clients. Clients are kept in RUNS, so that a killed benchmark goes on where it was; `--table` prints what is there.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.data.splits import TemporalSplit
from tacit.evaluation.accuracy import first_shuffled
from tacit.evaluation.personalize.fine_tuning import FITTED, FineTuning
from tacit.evaluation.personalize.outcome_rows import outcome_of, row_of
from tacit.evaluation.personalize.outcomes import ClientOutcome, PartComparison, SkippedClient
from tacit.evaluation.personalize.population import personalize_reader
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.metrics import TOP1

WAYS = (
    FITTED,
    *(FineTuning(epochs=0, bigram=weight) for weight in (0.05, 0.1, 0.2)),
    *(FineTuning(epochs=0, unigram=weight) for weight in (0.05, 0.1)),
)
SPLIT = TemporalSplit(rule="time", value=0.8, gate=0.125, undated="order")
MEASURES = (TOP1, "top3_accuracy", "cross_entropy")
DRAWS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="clients' text, by the words of the mixture")
    parser.add_argument("--model", type=Path, required=True, help="what `tacit mix` or `tacit ngram` wrote")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--clients", type=int, default=0, help="in a public random order; 0 is all")
    parser.add_argument("--table", action="store_true", help="print what is there and measure nothing")
    asked = parser.parse_args()
    asked.runs.mkdir(parents=True, exist_ok=True)
    kept = asked.runs / "clients.jsonl"
    if not asked.table:
        measure(asked, kept)
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    print("\n".join(table([outcome_of(row) for row in rows if "skipped" not in row])))


def measure(asked: argparse.Namespace, kept: Path) -> None:
    cache, reader = Cache.open(asked.cache), load_phone_model(asked.model).reader
    there = {json.loads(line)["client"] for line in kept.read_text().splitlines()} if kept.exists() else set()
    wanted = first_shuffled(cache.clients(asked.split), asked.clients)
    left = [int(client) for client in wanted if int(client) not in there]
    with kept.open("a") as file:

        def keep(each: ClientOutcome | SkippedClient) -> None:
            file.write(json.dumps(row_of(each)) + "\n")
            file.flush()
            there.add(each.client)
            print(f"{len(there)} of {len(wanted)} clients", file=sys.stderr, flush=True)

        if left:
            personalize_reader(reader, cache, left, WAYS, SPLIT, cores=Cores(Hardware(workers=1)), progress=keep)


def table(outcomes: list[ClientOutcome]) -> list[str]:
    """Markdown: the mixture alone, and what each way changes, with and without its gate."""
    words = np.array([each.test.baseline.predicted for each in outcomes], np.float64)
    before = np.array([[each.test.baseline.sums[name] for name in MEASURES] for each in outcomes], np.float64)
    alone = before.sum(axis=0) / words.sum()
    lines = [
        f"{len(outcomes)} clients, {int(words.sum()):,} words; the mixture alone: top-1 {100 * alone[0]:.2f}%, top-3 "
        f"{100 * alone[1]:.2f}%, {alone[2]:.3f} nats",
        "",
        "| way | gate | used by | top-1, points | top-3, points | nats | worse in top-1 |",
        "|---|---|---|---|---|---|---|",
    ]
    draws = np.random.default_rng(0).integers(len(outcomes), size=(DRAWS, len(outcomes)))
    for at, way in enumerate(WAYS):
        changes = np.array([_change(each.test, at) for each in outcomes], np.float64)
        accepts = np.array([_accepts(each.gate, at) for each in outcomes])
        for gate, used in (("none", np.ones(len(outcomes), bool)), ("more right", accepts)):
            gained = changes * used[:, None]
            share = gained.sum(axis=0) / words.sum()
            means = gained[draws].sum(axis=1) / words[draws].sum(axis=1)[:, None]
            low, high = np.quantile(means, [0.025, 0.975], axis=0)
            cells = [
                f"{scale * share[n]:+.{digits}f} ({scale * low[n]:+.{digits}f} to {scale * high[n]:+.{digits}f})"
                for n, (scale, digits) in enumerate(((100, 2), (100, 2), (1, 3)))
            ]
            worse = float((gained[:, 0] < 0).mean())
            lines.append(f"| {way} | {gate} | {used.mean():.0%} | {' | '.join(cells)} | {worse:.0%} |")
    return lines


def _change(part: PartComparison, at: int) -> NDArray[np.float64]:
    own: dict[str, Any] = dict(part.personalised[at].sums)
    return np.array([own[name] - part.baseline.sums[name] for name in MEASURES], np.float64)


def _accepts(gate: PartComparison | None, at: int) -> bool:
    assert gate is not None  # SPLIT has one
    return gate.paired[at].only_personalised > gate.paired[at].only_baseline


if __name__ == "__main__":
    main()
