"""Devices are counted over HTTP, sealed, and a model is mixed from what was released: the same as of a simulation, and
its promise is the served run's.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from tests.support.evaluation.typists import typists_and_model
from tests.support.server.phones import Phones
from tests.support.server.sealing import decryptors_in
from tests.support.server.stores import quick_folder
from tests.support.training.tiny import WORDS, tiny_cache

import tacit
from tacit.data import Cache
from tacit.evaluation.accuracy import first_shuffled
from tacit.evaluation.counts.cell_list import CellList
from tacit.evaluation.counts.sums import SimulatedSums
from tacit.keyboard.phone_model import load_phone_model
from tacit.networks.model_files import read_files
from tacit.runs import Run
from tacit.server.jobs import job_of
from tacit.server.log.logged_run import verify_log
from tacit.server.rounds.rounds import ServedRounds
from tacit.text.vocabulary import Provenance

CLIENTS = 6
RELEASE = {"zcdp": 50.0, "delta": 1e-6}
SUMS = [
    {"statistic": "word_counts", "words": 50, "norm": 6.5, "unit": 16},
    {"statistic": "word_pairs", "words": 40, "norm": 4.0, "unit": 16},
]


def of_sums(folder: Path) -> dict[str, Any]:
    """What a file asks: words and pairs of the first words."""
    return {"sums": SUMS}


def of_a_list(folder: Path) -> dict[str, Any]:
    """Chosen words, pairs and n-grams of three, behind one norm."""
    made_public = Provenance(kind="public", description="made up")
    ngrams = (*((word,) for word in WORDS[:40]), *pairwise(WORDS[:31]), WORDS[:3])
    chosen = CellList(norm=100, ngrams=ngrams, units=(16,) * len(ngrams), provenance=made_public)
    chosen.save(folder / "cells.txt")
    return {"cells": str(folder / "cells.txt")}


@pytest.mark.parametrize("asks", [of_sums, of_a_list])
def test_served_counts_are_mixed_and_the_promise_holds(
    asks: Callable[[Path], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, _ = typists_and_model(tmp_path, 2 * CLIENTS)
    public = tiny_cache(tmp_path / "public", {"train": 3, "validation": 2})
    tacit.ngram(public, tmp_path / "pb", declared_public=True)
    vocabulary = Cache.open(cache).vocabulary_path
    assert read_files(tmp_path / "pb").vocabulary.words == tuple(json.loads(vocabulary.read_text())["words"])
    decryptors = decryptors_in(tmp_path, count=4)
    lines = [f"http://127.0.0.1:1 {each.desk.identity} {each.desk.box}" for each in decryptors]
    deployment = {"population": "phones", "devices": 1000, "over_selection": 1.0, "decryptors": lines}
    asked: Any = job_of(
        tomli_w.dumps(
            {
                "kind": "count",
                "name": "typed",
                "clients": CLIENTS,
                "vocabulary": str(vocabulary),
                **asks(tmp_path),
                "release": RELEASE,
                "deployment": {**deployment, "corrupt_decryptors": 1},
            }
        ),
        where="the test",
    ).placed(None)
    summed: list[Any] = []
    for where in (SimulatedSums, ServedRounds):
        collect: Any = where.collect

        def told(self: Any, state: Any, task: Any, collect: Any = collect, **more: Any) -> Any:
            answered, after = collect(self, state, task, **more)
            summed.append(answered.values)
            return answered, after

        monkeypatch.setattr(where, "collect", told)
    with quick_folder() as folder:
        everybody = [int(each) for each in first_shuffled(Cache.open(cache).clients("test"), 0)]
        phones = Phones(folder, cache, everybody, decryptors)
        phones.serve(asked, tmp_path / "served")
        assert [turn.what for turn in phones.turns].count("reported") == CLIENTS
        assert phones.plan is not None and phones.plan.aggregation.kind == "sealed"
        assert all(line.complaint is None for line in verify_log(tmp_path / "served", str(folder / "operator.log")))
    settings = replace(asked.settings, split_name="test")
    tacit.count(cache, tmp_path / "simulated", settings=settings, release=asked.release)
    assert np.array_equal(*summed), "the devices' sum is that of the simulation, to the bit"

    mixed = tacit.mix(tmp_path / "pb", tmp_path / "mixture", counts=tmp_path / "served")
    checked = tacit.verify(tmp_path / "mixture")
    assert checked.holds and "FIXED SEED" not in checked.labels
    account = tacit.account_run(tmp_path / "served").realised
    record = json.loads((tmp_path / "mixture" / "promise.json").read_text())
    assert record["zcdp"] == pytest.approx(RELEASE["zcdp"], rel=1e-12)
    assert mixed.epsilon == pytest.approx(account.epsilon(RELEASE["delta"]), rel=1e-12)  # type: ignore[union-attr]
    assert record["statements"]["counts"] == json.loads((tmp_path / "served/report/statement.json").read_text())
    plain, bent = (load_phone_model(tmp_path / name).reader for name in ("pb", "mixture"))
    (_, before), (_, after) = (each.step(each.begin(), 1) for each in (plain, bent))
    assert np.abs(np.exp(before) - np.exp(after)).max() > 0.001, "what the devices typed has bent it"

    assert _records(tmp_path / "served") == [CLIENTS]
    file = tmp_path / "mixture" / "promise.json"
    facts = record["statements"]["counts"]["facts"]
    facts["releases"][0]["noise_multiplier"] *= 1.01  # a planted fault: less is promised than was released
    file.write_text(json.dumps(record))
    assert not tacit.verify(tmp_path / "mixture").holds


def _records(path: Path) -> list[int]:
    with Run.open(path) as run:
        assert run.finished
        found: list[int] = run.counts().tolist()
        return found
