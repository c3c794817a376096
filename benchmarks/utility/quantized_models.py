"""Exports of 8 and 4 bits lose next to no accuracy, and a word costs less: accuracy, size and time as a frontier.

Models (runs, pre-trainings or model folders) are exported in float32, int8 and int4, and each export's `step.onnx`
reads the text of a cache word by word by ONNX Runtime on one core, as a phone does. Accuracy is that of words of the
vocabulary, given what stands before them in their sentence; every export reads the same words, and what quantization
changes is a mean over pairs, with a 95% interval over clients (the delta method's). Size is that of `step.onnx`, all
weights within it. The time of a word is CPU time of the step with its 3 likeliest words, a median, in turns.

    python benchmarks/utility/quantized_models.py MODEL... --cache CACHE
    ... --figure docs/results/quantized      draws the frontier too (.svg, .png)
    ... --words 2000                         a smoke test
    ... --sizes  10,000 and 30,000 words, nothing trained: sizes and times alone

Prints one JSON line per export. Takes about half a minute of CPU time for a model and 60,000 words.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy

import jax  # noqa: E402
import numpy as np  # noqa: E402

import tacit  # noqa: E402
from tacit.data import Cache  # noqa: E402
from tacit.evaluation.intervals import ratio_of_means  # noqa: E402
from tacit.keyboard.exported import STEP, Exported  # noqa: E402
from tacit.keyboard.model_folder import write_model  # noqa: E402
from tacit.keyboard.onnx_reader import OnnxReader  # noqa: E402
from tacit.networks.cifg.network import Cifg  # noqa: E402
from tacit.networks.metrics import SHOWN  # noqa: E402
from tacit.text.vocabulary import PAD, SPECIALS, Provenance, Vocabulary  # noqa: E402

BITS = (None, "int8", "int4")
WORDS, OF_A_CLIENT = 20, 600  # predicted words of a sentence, and about of a client: many clients, none of them heavy
TIMED = 1_000  # words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--cache", type=Path, help="its validation clients' text")
    parser.add_argument("--words", type=int, default=60_000)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--sizes", action="store_true")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in sizes(Path(folder)) if asked.sizes else accuracies(asked, Path(folder)):
            print(json.dumps(row), flush=True)
            rows.append(row)
    if asked.figure:
        draw(rows, asked.figure)


def exports(model: Path, folder: Path) -> Iterator[tuple[str, Exported]]:
    """The model in every kind of numbers."""
    for bits in BITS:
        yield bits or "float32", tacit.export(model, folder / f"{model.name}-{bits}", quantize=bits).exported


# -- accuracy ------------------------------------------------------------------------------------------------------


def accuracies(asked: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    text = list(read(Cache.open(asked.cache), asked.words))
    for model in asked.models:
        made = dict(exports(model, folder))
        readers = {bits: OnnxReader.from_export(exported) for bits, exported in made.items()}
        took, plain = word_ms(readers), None
        for bits, exported in made.items():
            found = np.array([scored(readers[bits], sentences) for sentences in text])  # (clients, 3)
            plain = found if plain is None else plain
            words, right, nats = found.sum(axis=0)
            change = ratio_of_means(100 * (found - plain)[:, 1], found[:, 0])
            yield {
                "model": model.name,
                "parameters": exported.manifest.parameters,
                "numbers": bits,
                "clients": len(found),
                "words": int(words),
                "top1_percent": round(100 * right / words, 3),
                "change_points": [round(each, 3) for each in change],
                "nats": round(nats / words, 4),
                "megabytes": round(exported.manifest.files[STEP].bytes / 1e6, 3),
                "word_ms": took[bits],
            }


def read(cache: Cache, words: int) -> Iterator[Any]:
    """Sentences (S, L+1) of one client after another, until there are so many words of the vocabulary."""
    for client in cache.clients("validation").tolist():
        sentences = cache.padded(client, np.arange(cache.sentence_count(client)), WORDS)
        counted = np.cumsum(np.count_nonzero(sentences[:, 1:] >= SPECIALS, axis=1))
        sentences = sentences[: int(np.searchsorted(counted, OF_A_CLIENT)) + 1]
        yield sentences
        words -= int(np.count_nonzero(sentences[:, 1:] >= SPECIALS))
        if words <= 0:
            return


def scored(reader: OnnxReader, sentences: Any) -> tuple[int, int, float]:
    """Of one client: words of the vocabulary, how many of them were likeliest, and the nats of all."""
    words, right, nats = 0, 0, 0.0
    for sentence in sentences.tolist():
        state = reader.begin()
        for token, target in pairwise(sentence):
            if target == PAD:
                break
            state, logs = reader.step(state, token)
            if target >= SPECIALS:
                words += 1
                right += int(np.argmax(logs[SPECIALS:])) + SPECIALS == target
                nats -= float(logs[target])
    return words, right, nats


# -- size and time -------------------------------------------------------------------------------------------------


def word_ms(readers: Mapping[str, OnnxReader]) -> dict[str, float]:
    """Of a step with its likeliest words, the median; in turns, so that whatever else the machine does meets all."""
    took: dict[str, list[float]] = {bits: [] for bits in readers}
    states = {bits: reader.begin() for bits, reader in readers.items()}
    for at in range(TIMED):
        for bits, reader in readers.items():
            began = time.process_time()
            states[bits], _ = reader.likeliest(states[bits], SPECIALS + at % (reader.vocabulary - SPECIALS), SHOWN)
            took[bits].append(time.process_time() - began)
    return {bits: round(float(np.median(each)) * 1e3, 4) for bits, each in took.items()}


def sizes(folder: Path) -> Iterator[dict[str, Any]]:
    """The papers' network with more words than a model was trained for."""
    for size in (10_000, 30_000):
        network = Cifg(vocabulary=size)
        words = tuple(map("".join, islice(product(ascii_lowercase, repeat=4), size - SPECIALS)))
        vocabulary = Vocabulary(words=words, provenance=Provenance(kind="word list", description="made up"))
        model = folder / f"words-{size}"
        write_model(model, network, network.init(jax.random.key(0)), vocabulary.to_json().encode())
        made = dict(exports(model, folder))
        took = word_ms({bits: OnnxReader.from_export(exported) for bits, exported in made.items()})
        for bits, exported in made.items():
            yield {
                "vocabulary": size,
                "numbers": bits,
                "megabytes": round(exported.manifest.files[STEP].bytes / 1e6, 3),
                "word_ms": took[bits],
            }


# -- the figure ----------------------------------------------------------------------------------------------------


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Accuracy against size and against time, a line for each model and a mark for each kind of numbers."""
    import matplotlib

    matplotlib.use("Agg")
    from cells import save
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    marks = {"float32": "o", "int8": "s", "int4": "^"}
    layout = ConstrainedLayoutEngine(w_pad=0.12)
    drawing, axes = pyplot.subplots(1, 2, figsize=(8.4, 3.6), sharey=True, layout=layout)
    for color, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        of_model = [row for row in rows if row["model"] == model]
        parameters = of_model[0]["parameters"] / 1e6
        for axis, name in zip(axes, ("megabytes", "word_ms"), strict=True):
            places = [row[name] for row in of_model], [row["top1_percent"] for row in of_model]
            axis.plot(*places, color=f"C{color}", linewidth=1, label=f"{parameters:.2g} M parameters")
            for row, x, y in zip(of_model, *places, strict=True):
                axis.plot(x, y, marks[row["numbers"]], color=f"C{color}", markersize=7)
    axes[0].set(xscale="log", xlabel="step.onnx, megabytes", ylabel="top-1 accuracy, %")
    axes[0].set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"], minor=False)
    axes[0].xaxis.set_minor_formatter(lambda value, place: "")
    axes[1].set(xlim=(0, 1.1 * max(row["word_ms"] for row in rows)), xlabel="CPU time of a word, ms")
    for bits, mark in marks.items():
        axes[1].plot([], [], mark, color="0.4", label=bits)
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize="small")
    save(drawing, path)


if __name__ == "__main__":
    main()
