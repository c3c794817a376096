"""What Python counts of a made-up text, kind by kind of question, for `answers.test.ts`.

python web/tests/make_answers.py: rewrites `fixtures/answers.json`, of the words and the network in `fixtures/training`.
"""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from safetensors.numpy import save

from tacit.data.splits import TemporalSplit, Unsplit
from tacit.evaluation.counts.cell_list import CellList, CellSum
from tacit.evaluation.counts.device_part import SumsQuestion, question_in
from tacit.evaluation.in_plan import QuestionOfPlan
from tacit.text.tokens import Tokenizer
from tacit.text.vocabulary import Provenance, Vocabulary

FOLDER = Path(__file__).parent / "fixtures"
VOCABULARY = (FOLDER / "training" / "vocabulary.json").read_text(encoding="utf-8")
TEXTS = (
    (100, "one two three four. Two three xylophone!"),
    (300, "five six seven eight nine ten"),
    (200, "one two one two one two one two one two"),
    (400, "hundred thousand one. two. three four"),
    (400, "six seven eight"),
    (500, "one two three four five six seven eight nine ten one two three"),
)
SPLITS = ("time:0.5", "time:0.9", "count:3", "last:2", "date:1970-01-02", "count:100", "last:100")
NETWORK = {"kind": "cifg", "embedding": 8, "units": 16, "tied": False}
STATISTICS = [
    {"statistic": "words", "cuts": [10.0, 30.0, 100.0]},
    {"statistic": "sentences", "cuts": [1.0, 9.0]},
    {"statistic": "sentence_words", "cuts": [4.5, 5.0], "by": "different_words", "slices": [3.0, 10.0]},
    {"statistic": "unknown_share", "cuts": [0.0, 0.05, 0.1], "by": "words", "slices": [20.0]},
]
SUMS = [
    {"statistic": "word_counts", "words": 7, "norm": 9.5, "unit": 16},
    {"statistic": "word_pairs", "words": 10, "norm": 1e3},
]


class Typed:
    """The sentences of one device, as `evaluation` asks a cache for them."""

    def __init__(self, sentences: list[list[int]]) -> None:
        self._sentences = sentences

    def sentences(self, client: int) -> tuple[np.ndarray, np.ndarray]:
        """All ids, and how many each sentence has."""
        flat = [each for sentence in self._sentences for each in sentence]
        return np.array(flat, np.int64), np.array(list(map(len, self._sentences)), np.int64)

    def sentence_count(self, client: int) -> int:
        """How many there are."""
        return len(self._sentences)

    def padded(self, client: int, chosen: np.ndarray, length: int) -> np.ndarray:
        """These sentences, cut and filled up with zeros."""
        rows = np.zeros((len(chosen), length), np.int32)
        for row, place in enumerate(chosen):
            cut = self._sentences[int(place)][:length]
            rows[row, : len(cut)] = cut
        return rows


def typed(texts: tuple[tuple[int, str], ...]) -> tuple[list[list[int]], list[int]]:
    """(the ids of each sentence, its time)."""
    tokenizer, ids, times = Tokenizer(Vocabulary.from_json(VOCABULARY)), [], []
    for time, text in texts:
        encoded = tokenizer.encode([text])
        found = [each.tolist() for each in np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])]
        ids += found
        times += [time] * len(found)
    return ids, times


def histograms(sizes: list[int], chosen: Any) -> list[int]:
    """The report of a device in these cells."""
    report = np.zeros(sum(sizes), int)
    report[np.cumsum([0, *sizes[:-1]]) + np.asarray(chosen)] = 1
    return [int(each) for each in report]


def counting(name: str, text: Typed, settings: dict[str, Any], content: bytes = b"") -> dict[str, Any]:
    """A case of a question of kind count."""
    recipe = tomli_w.dumps({"settings": settings})
    question = question_in(recipe)
    if isinstance(question, SumsQuestion):
        asks = {"cells": list(question.sums.sizes), "local_epsilon": None, "norms": list(question.sums.norms)}
        if question.cells is not None:
            question = question.counting_from(content, VOCABULARY)
        words = [int(each) for each in question.report_of(text, 0)]
    else:
        sizes = [each.size for each in question.histograms.values()]
        asks = {"cells": sizes, "local_epsilon": None, "norms": None}
        words = histograms(sizes, question.cells_of(text, 0))
    return _case(name, recipe, {"kind": "count", **asks}, content, words)


def evaluating(name: str, text: Typed, models: list[np.ndarray], settings: dict[str, Any]) -> dict[str, Any]:
    """A case of a question of kind evaluate."""
    recipe = tomli_w.dumps({"models": [{"name": "m", "network": NETWORK}] * len(models), "settings": settings})
    words = Vocabulary.from_json(VOCABULARY).size
    question = QuestionOfPlan(kind="evaluate", recipe=recipe, words=words).computation(models)
    sizes = [each.size for each in question.histograms.values()]
    asks = {"kind": "evaluate", "cells": sizes, "local_epsilon": None, "parameters": [len(each) for each in models]}
    content = save({"model": np.concatenate(models)})
    return _case(name, recipe, asks, content, histograms(sizes, question.cells_of(text, 0)))


def _case(name: str, recipe: str, asks: dict[str, Any], content: bytes, words: list[int]) -> dict[str, Any]:
    return {
        "name": name,
        "recipe": recipe,
        "asks": asks,
        "content": base64.b64encode(content).decode(),
        "words": words,
    }


def main() -> None:
    """Write the file."""
    ids, times = typed(TEXTS)
    whole = Typed(ids)
    parts = {split: TemporalSplit.parse(split).parts(np.array(times)) for split in SPLITS}
    tests = {split: None if isinstance(each, Unsplit) else np.sort(each.test).tolist() for split, each in parts.items()}
    listed = CellList(
        norm=20,
        ngrams=(("one",), ("one", "two"), ("three", "four"), ("one", "two", "three"), ("ten", "nine")),
        units=(1, 3, 5, 7, 2),
        provenance=Provenance(kind="public", description="made up"),
    )
    once = CellList(**{**vars_of(listed), "norm": 4096, "once": True})
    start = np.array(json.loads((FOLDER / "training" / "expected.json").read_text())["model"], np.float32)
    moved = start + np.random.default_rng(3).normal(0, 0.5, start.size).astype(np.float32)
    judged = Typed([ids[row] for row in tests["time:0.5"] or []])
    models = [start, moved, np.zeros_like(start)]
    cases = [
        counting("histograms", whole, {"statistics": STATISTICS}),
        counting("histograms of no text", Typed([]), {"statistics": STATISTICS}),
        counting("sums, one beyond its norm", whole, {"sums": SUMS}),
        counting("sums and a list", whole, {"sums": [SUMS[0], CellSum.of(listed).to_plain()]}, listed.text.encode()),
        counting("a list, each once", whole, {"sums": [CellSum.of(once).to_plain()]}, once.text.encode()),
        evaluating("one model", judged, models[:1], {}),
        evaluating("three models, few and short sentences", judged, models, {"sentences": 3, "words": 5}),
    ]
    said = {
        "texts": [{"at": at, "text": text} for at, text in TEXTS],
        "times": times,
        "splits": tests,
        "cases": cases,
    }
    (FOLDER / "answers.json").write_text(json.dumps(said) + "\n", encoding="utf-8")


def vars_of(listed: CellList) -> dict[str, Any]:
    """Its fields."""
    return {name: getattr(listed, name) for name in ("norm", "ngrams", "units", "provenance", "once")}


if __name__ == "__main__":
    main()
