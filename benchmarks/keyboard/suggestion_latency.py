"""The three likeliest next words in half a millisecond of one core, of 10,000 words; of 30,000 in 1.2.

The paper's network, exported, by ONNX Runtime; beside it the same word by NumPy (what a run folder is read by) and by a
compiled step of JAX; what a session answers after a word (a phrase, candidates); and a word of the trigram. Then what a
fresh process costs until its first suggestion, beside one that does the same by JAX. One JSON line each, medians of CPU
milliseconds over WORDS words; the parameters are random, which costs the same as trained ones.

    OMP_NUM_THREADS=1 python benchmarks/keyboard/suggestion_latency.py [--pytorch]
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np

import tacit
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.evaluation.trigram_reader import TrigramReader
from tacit.keyboard.exported import STEP, load_exported
from tacit.keyboard.model_folder import TrainedModel, load_model, write_model
from tacit.keyboard.onnx_reader import OnnxReader
from tacit.keyboard.suggest import TypingSession
from tacit.networks.cifg.network import Cifg
from tacit.networks.models import WEIGHTS
from tacit.text.vocabulary import BOS, EOS, SPECIALS, Provenance, Vocabulary

WORDS = 2_000
GOALS = {10_000: 0.5, 30_000: 1.2}  # CPU milliseconds a word, by ONNX Runtime
TRIGRAM_GOAL = 0.3  # CPU milliseconds a word, of 10,000
Next = Callable[[Any, int], tuple[Any, Any]]  # (state, word) -> the state after it, and the likeliest words


def by_onnx(model: TrainedModel, exported: Path) -> tuple[Any, Next]:
    """The graph chooses the words itself."""
    reader = OnnxReader.from_export(load_exported(exported))
    return reader.begin(), lambda state, word: reader.likeliest(state, word, 3)


def by_numpy(model: TrainedModel, exported: Path) -> tuple[Any, Next]:
    """As `tacit suggest RUN` does, a committed word at a time."""
    session: TypingSession = model.typing()

    def following(_: Any, word: int) -> tuple[Any, Any]:
        session.commit(model.vocabulary.word_of(word))
        return None, session.next_words(3)

    return None, following


def by_jax(model: TrainedModel, exported: Path) -> tuple[Any, Next]:
    """The lines of `recurrent.reader`, compiled."""
    p = model.parameters

    @jax.jit
    def following(state: tuple[jax.Array, jax.Array], word: jax.Array) -> tuple[Any, Any]:
        cell, output = state
        update, candidate, emit = jnp.split(jnp.concatenate([p.embedding[word], output]) @ p.kernel + p.bias, 3)
        cell = cell + jax.nn.sigmoid(update) * (jnp.tanh(candidate) - cell)
        output = (jax.nn.sigmoid(emit) * jnp.tanh(cell)) @ p.projection
        logs = jax.nn.log_softmax(output @ p.output + p.output_bias)
        return (cell, output), jax.lax.top_k(logs[SPECIALS:], 3)

    units, width = p.projection.shape
    begin = jnp.zeros(units), jnp.zeros(width)
    return begin, lambda state, word: jax.block_until_ready(following(state, np.int32(word)))


def by_pytorch(model: TrainedModel, exported: Path) -> tuple[Any, Next]:
    """The same lines, operation by operation; the weights are those of the export."""
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    p = load_file(exported / WEIGHTS)

    @torch.inference_mode()
    def following(state: Any, word: int) -> tuple[Any, Any]:
        cell, output = state
        update, candidate, emit = (torch.cat([p["embedding"][word], output]) @ p["kernel"] + p["bias"]).chunk(3)
        cell = torch.lerp(cell, torch.tanh(candidate), torch.sigmoid(update))
        output = (torch.sigmoid(emit) * torch.tanh(cell)) @ p["projection"]
        logs = torch.log_softmax(output @ p["output"] + p["output_bias"], 0)
        return (cell, output), logs[SPECIALS:].topk(3)

    units, width = p["projection"].shape
    return (torch.zeros(units), torch.zeros(width)), following


BY = {"ONNX Runtime": by_onnx, "NumPy": by_numpy, "JAX": by_jax}


def a_word(model: TrainedModel, exported: Path, begin: Any, following: Next) -> dict[str, float]:
    """Medians of CPU and wall milliseconds."""
    words = np.random.default_rng(0).integers(SPECIALS, model.vocabulary.size, WORDS + 50).tolist()
    state, _ = following(begin, BOS if begin is not None else SPECIALS)
    cpu, wall = [], []
    for word in words:
        before, clock = time.process_time(), time.perf_counter()
        state, _ = following(state, word)
        cpu.append(time.process_time() - before)
        wall.append(time.perf_counter() - clock)
    return {"cpu_ms": round(1e3 * median(cpu[50:]), 4), "wall_ms": round(1e3 * median(wall[50:]), 4)}


def by_trigram(ids: int) -> tuple[Any, Next]:
    """Of 2 million words drawn by Zipf's law, in sentences of 12."""
    draw, shares = np.random.default_rng(0), 1 / np.arange(1, ids - SPECIALS + 1)
    text = np.full((166_000, 14), EOS)
    text[:, 0] = BOS
    text[:, 1:13] = SPECIALS + draw.choice(ids - SPECIALS, (len(text), 12), p=shares / shares.sum())
    cache: Any = SimpleNamespace(sentences=lambda client: (text.reshape(-1), np.full(len(text), 14)))
    reader = TrigramReader(BackedOffTrigram.train(cache, np.zeros(1, np.int64), vocabulary=ids))
    return reader.begin(), reader.step


def answers(model: TrainedModel) -> dict[str, float]:
    """Median CPU milliseconds of what a session is asked after a word."""
    session, candidates, found = model.typing(), model.vocabulary.words[:8], {}
    session.commit(candidates[0])
    for name, ask in {
        "a phrase": lambda: session.compose("wor", threshold=0.25),
        "eight candidates": lambda: session.rescore(candidates),
    }.items():
        ask()
        spent = []
        for _ in range(WORDS):
            before = time.process_time()
            ask()
            spent.append(time.process_time() - before)
        found[name] = round(1e3 * median(spent), 4)
    return found


class Start(NamedTuple):
    """Of a fresh process, from its start to its first words."""

    cpu_seconds: float
    seconds: float
    peak_mib: float


FIRST = """
import re, sys, time
{first}
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(time.process_time(), int(peak[1]) / 1024)
"""
PHONE = """
from tacit.keyboard.phone_model import load_phone_model
load_phone_model(sys.argv[1]).next_words("")
"""
TRAINED = """
from tacit.keyboard.model_folder import load_model
from tacit.keyboard.suggest import Rereader, TypingSession
model = load_model(sys.argv[1])
TypingSession(Rereader(model.network, model.parameters), model.vocabulary).next_words()
"""


def first_suggestion(folder: Path, code: str) -> Start:
    """What it costs to load a model and suggest once."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", FIRST.replace("{first}", code), folder], capture_output=True, text=True, check=True
    )
    cpu_seconds, peak = map(float, done.stdout.split())
    return Start(round(cpu_seconds, 3), round(time.perf_counter() - begin, 3), round(peak, 1))


def made(folder: Path, size: int) -> TrainedModel:
    """A model of so many ids, drawn as training begins."""
    words = tuple(f"word{number}" for number in range(size - SPECIALS))
    vocabulary = Vocabulary(words=words, provenance=Provenance(kind="public", description="made up"))
    network = Cifg(vocabulary=size)
    write_model(folder, network, network.init(jax.random.key(0)), vocabulary.to_json().encode())
    return load_model(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5, help="fresh processes for each median")
    parser.add_argument("--pytorch", action="store_true", help="a word by PyTorch, too, which is installed separately")
    asked = parser.parse_args()
    twins = {**BY, "PyTorch": by_pytorch} if asked.pytorch else BY
    print(json.dumps({"cores": multiprocessing.cpu_count(), "load": os.getloadavg()[0], "jax": jax.__version__}))
    for size, goal in GOALS.items():
        with tempfile.TemporaryDirectory() as at:
            model, exported = made(Path(at, "model"), size), Path(at, "phone")
            tacit.export(model.path, exported)
            megabytes = round((exported / STEP).stat().st_size / 1e6, 2)
            for name, by in twins.items():
                row = {"what": "a word", "by": name, "words": size, **a_word(model, exported, *by(model, exported))}
                print(json.dumps(row | ({"goal_ms": goal, "megabytes": megabytes} if name == "ONNX Runtime" else {})))
            print(json.dumps({"what": "asked of a session", "words": size, "cpu_ms": answers(model)}))
            row = {"what": "a word", "by": "trigram", "words": size, **a_word(model, exported, *by_trigram(size))}
            print(json.dumps(row | {"goal_ms": TRIGRAM_GOAL}))
            for name, folder, code in (
                ("ONNX Runtime", exported, PHONE),
                ("NumPy", model.path, PHONE),
                ("JAX", model.path, TRAINED),
            ):
                starts = [first_suggestion(folder, code) for _ in range(asked.starts)]
                middle = Start(*(median(column) for column in zip(*starts, strict=True)))
                print(json.dumps({"what": "start to first words", "by": name, "words": size, **middle._asdict()}))


if __name__ == "__main__":
    main()
