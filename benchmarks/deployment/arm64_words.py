"""What an exported model computes on the processor that runs this: two are compared by `arm64_device.py`.

    python benchmarks/deployment/arm64_words.py EXPORT SENTENCES.npy OUT.npz

Writes `log_probabilities` (contexts, V), of what follows each word of the sentences, and `update` (d,): how far STEPS
steps of `train.onnx`, of as many sentences each, carry the parameters. Prints the processor. Needs no JAX.
"""

import argparse
import platform
from pathlib import Path

import numpy as np

from tacit.keyboard.exported import Exported, load_exported
from tacit.keyboard.onnx_reader import OnnxReader
from tacit.keyboard.onnx_trainer import OnnxTrainer
from tacit.text.vocabulary import PAD

STEPS, TOGETHER, RATE = 4, 8, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("export", "sentences", "out"):
        parser.add_argument(name, type=Path)
    asked = parser.parse_args()
    exported, sentences = load_exported(asked.export), np.load(asked.sentences)
    np.savez(asked.out, log_probabilities=words_that_follow(exported, sentences), update=update(exported, sentences))
    print(platform.machine())


def words_that_follow(exported: Exported, sentences: np.ndarray) -> np.ndarray:
    """(contexts, V): one context for each word and each end of these padded sentences."""
    reader, rows = OnnxReader.from_export(exported), []
    for sentence in sentences:
        state = reader.begin()
        for token in sentence[: np.count_nonzero(sentence != PAD) - 1]:
            state, found = reader.step(state, int(token))
            rows.append(found)
    return np.array(rows)


def update(exported: Exported, sentences: np.ndarray) -> np.ndarray:
    """(d,)"""
    trainer = OnnxTrainer.from_export(exported)
    begun = trainer.begin(exported)
    parameters = begun
    for first in range(0, STEPS * TOGETHER, TOGETHER):
        parameters, _ = trainer.descend(parameters, sentences[first : first + TOGETHER], RATE)
    return np.concatenate([(parameters[name] - begun[name]).ravel() for name in begun])


if __name__ == "__main__":
    main()
