"""What private counts cost: a report counted, encoded and sealed on a device, a round of them simulated, its release.

    python benchmarks/speed/counts.py --data caches/blogs5k --public caches/public5k

The cells are the words, pairs and three words that are most frequent in the public text, `--cells` of them, with the
weights that `tacit plan counts` gives them. Every figure is CPU time of one thread; of the device's rows the median of
`--turns` clients, drawn evenly over the training clients by how much they typed. Prints one JSON line a row.

device      a client's text to a report of all cells, within the norm; and that sealed by one message for so many
            reports as there are clients, four decryptors, one of whom may work with the server. Goal: 0.2 s together
round       a simulated round of all training clients: what each counts, added up. Goal: 10 s for 6,131 clients
release     noise of the operating system in every cell, rounded, as a file. Goal: 0.7 s
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tacit.data import Cache
from tacit.evaluation.counts.cell_list import CellList, CellSum
from tacit.evaluation.counts.device_part import SumsQuestion
from tacit.evaluation.counts.statistics import TypedText
from tacit.evaluation.counts.sums import ClientsSummed, SumQuestion
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Answered
from tacit.mechanisms import add_independent_noise, fresh_key
from tacit.planning.cells import cells_for
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.simulation import OneMessageParties
from tacit.text.vocabulary import Vocabulary

T = TypeVar("T")
PRICE = ReleaseCost(zcdp=2.0, delta=1e-6)  # of the release; what it costs in time does not depend on it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="clients' text, by the words of the public text")
    parser.add_argument("--public", type=Path, required=True)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=9)
    asked = parser.parse_args()
    data, public = Cache.open(asked.data), Cache.open(asked.public)
    clients = data.clients("train")
    planned = cells_for(public, clients=10**6, rho=PRICE.rho).cells  # a population that affords more cells than these
    kept = slice(0, asked.cells)
    listed = CellList(
        norm=planned.norm, ngrams=planned.ngrams[kept], units=planned.units[kept], provenance=planned.provenance
    )
    question = SumsQuestion((CellSum.of(listed),)).counting(listed, Vocabulary.from_json(data.vocabulary_json))
    say(device(question, data, clients, asked.turns))
    known, spent = timed(lambda: summed(question, data, clients))
    say({"row": "round", "clients": len(clients), "cells": question.sums.length, "cpu_s": spent})
    say(release(question, known, len(clients)))


def device(question: SumsQuestion, data: Cache, clients: Any, turns: int) -> dict[str, Any]:
    by_size = clients[np.argsort(data.words_per_client()[clients], kind="stable")]
    chosen = [int(by_size[at]) for at in np.linspace(0, len(by_size) - 1, turns).astype(int)]
    with tempfile.TemporaryDirectory() as folder:
        parties = OneMessageParties.from_settings(
            turns + 1,
            Path(folder),
            dimension=question.sums.length,
            largest=question.sums.largest,
            report_goal=len(clients),
            seed=int.from_bytes(os.urandom(16)),
        )
        counting, sealing, size = [], [], 0
        for at, client in enumerate([chosen[-1], *chosen]):  # the first one compiles
            report, spent = timed(partial(question.report_of, data, client))
            sealed, also = timed(partial(one_message_report, parties.settings, parties.identities[at], report))
            size = len(sealed.to_bytes())
            if at:
                counting.append(spent)
                sealing.append(also)
    both = [sum(each) for each in zip(counting, sealing, strict=True)]
    return {
        "row": "device",
        "cells": question.sums.length,
        "count_cpu_s": statistics.median(counting),
        "seal_cpu_s": statistics.median(sealing),
        "together_cpu_s": statistics.median(both),
        "most_cpu_s": max(both),
        "sealed_bytes": size,
    }


def summed(question: SumsQuestion, data: Cache, clients: Any) -> ClientsSummed:
    known = ClientsSummed(question)
    for client in clients:
        known.add(TypedText.from_cache(data, int(client)))
    return known


def release(question: SumsQuestion, known: ClientsSummed, clients: int) -> dict[str, Any]:
    asked = SumQuestion(devices=clients, computation=question, vocabulary=())
    key = fresh_key()

    def add_noise(values: Any, stddev: float) -> Any:
        return add_independent_noise(values, stddev=stddev, key=key, purpose="evaluation histogram", round=0)

    add_noise(np.zeros(9), 1.0)  # compiles
    answered = Answered(known.sent, clients, np.arange(clients))
    (found, _), spent = timed(lambda: asked.released(answered, PRICE, add_noise=add_noise))
    content, writing = timed(lambda: found.content)
    return {
        "row": "release",
        "cells": question.sums.length,
        "cpu_s": spent,
        "file_cpu_s": writing,
        "bytes": len(content),
    }


def timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    done = work()
    return done, time.process_time() - began


def say(row: dict[str, Any]) -> None:
    print(
        json.dumps({name: round(each, 4) if isinstance(each, float) else each for name, each in row.items()}),
        flush=True,
    )


if __name__ == "__main__":
    main()
