"""An exported model suggests what the model does: over 10,000 contexts the same first word, ties apart, as JAX.

Contexts are the beginnings of sentences that clients of a cache typed, each read word by word by ONNX Runtime, and at
once by JAX. Two words whose log-probabilities differ by less than TIE in JAX are tied. One JSON line each: of the words
that follow (`step.onnx`), and of the counts and the loss of the same sentences (`score.onnx`).

    python benchmarks/keyboard/exported_parity.py RUN CACHE                  a run, a pre-training or a model folder
    python benchmarks/keyboard/exported_parity.py RUN CACHE --quantize int8
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tacit
from tacit.data import Cache
from tacit.evaluation.held_out import HeldOut
from tacit.keyboard.model_folder import TrainedModel
from tacit.keyboard.onnx_reader import OnnxReader, OnnxScorer
from tacit.networks.language_model import count, next_word_loss
from tacit.text.vocabulary import BOS, PAD, SPECIALS

TIE = 1e-5  # nats
TOGETHER = 32  # sentences


def words_that_follow(model: TrainedModel, reader: OnnxReader, sentences: np.ndarray, contexts: int) -> dict[str, Any]:
    """What differs between the reader and JAX, over so many contexts."""
    logs = jax.jit(lambda tokens: jax.nn.log_softmax(model.network.logits(model.parameters, tokens)))
    seen = same = tied = 0
    apart = 0.0  # of the probabilities of all words
    for first in range(0, len(sentences) - TOGETHER, TOGETHER):
        batch = sentences[first : first + TOGETHER]
        for sentence, rows in zip(batch, np.asarray(logs(batch[:, :-1])), strict=True):
            state = reader.begin()
            for token, row, target in zip(sentence[:-1], rows, sentence[1:], strict=True):
                if target == PAD or seen == contexts:
                    break
                state, found = reader.step(state, int(token))
                ours, theirs = int(found[SPECIALS:].argmax()), int(row[SPECIALS:].argmax())
                words = row[SPECIALS:]
                seen, same = seen + 1, same + (ours == theirs)
                tied += ours != theirs and float(words[theirs] - words[ours]) < TIE
                apart = max(apart, float(np.abs(np.exp(found) - np.exp(row)).max()))
        if seen == contexts:
            break
    return {
        "contexts": seen,
        "same_first_word": same,
        "tied": tied,
        "other_first_word": seen - same - tied,
        "largest_difference_of_a_probability": apart,
    }


def sums_of_sentences(model: TrainedModel, scorer: OnnxScorer, sentences: np.ndarray) -> dict[str, Any]:
    """The counts and the loss of the sentences, by the graph and by JAX."""
    loss = next_word_loss(model.network)
    found = scorer(sentences)
    counts = jax.jit(lambda batch: count(model.network, model.parameters, batch))(jnp.asarray(sentences)).host()
    wanted = {"words": counts.words, "ends": counts.ends, "predicted": counts.predicted, **counts.sums}
    jax_loss = float(loss(model.parameters, jnp.asarray(sentences)))
    return {
        "sentences": len(sentences),
        "loss": {"onnx": found["loss"], "jax": jax_loss},
        "counts": {name: {"onnx": found[name], "jax": value} for name, value in wanted.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--contexts", type=int, default=10_000)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--quantize", default=None)
    asked = parser.parse_args()
    model, cache = tacit.load_model(asked.model), Cache.open(asked.cache)
    held = HeldOut.read(cache, cache.clients(asked.split), sentences=200, words=20)
    sentences = held.sentences.reshape(-1, held.sentences.shape[2])
    sentences = sentences[sentences[:, 0] == BOS]
    with tempfile.TemporaryDirectory() as folder:
        exported = tacit.export(asked.model, Path(folder) / "phone", quantize=asked.quantize).exported
        about = {"vocabulary": model.vocabulary.size, "quantization": asked.quantize}
        follow = words_that_follow(model, OnnxReader.from_export(exported), sentences, asked.contexts)
        print(json.dumps({"what": "step.onnx beside JAX", **about, **follow}))
        sums = sums_of_sentences(model, OnnxScorer.from_export(exported), sentences[: 4 * TOGETHER])
        print(json.dumps({"what": "score.onnx beside JAX", **about, **sums}))


if __name__ == "__main__":
    main()
