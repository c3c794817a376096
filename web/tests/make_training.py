"""A tiny exported model of made-up text, and what Python trains of it, for `training.test.ts`.

python web/tests/make_training.py: rewrites `fixtures/training`, which holds the export and `expected.json`.
"""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

import tacit
from tacit.data import TextsOf, VocabularyChoice
from tacit.device.train_onnx import ByOnnx
from tacit.keyboard.exported import load_exported
from tacit.keyboard.onnx_reader import OnnxReader
from tacit.keyboard.onnx_trainer import OnnxTrainer
from tacit.networks.cifg.network import Cifg
from tacit.protocol.train import Training
from tacit.text.tokens import Tokenizer
from tacit.training.pretrain import Pretraining

FOLDER = Path(__file__).parent / "fixtures" / "training"
KEPT = ("manifest.json", "step.onnx", "train.onnx", "vocabulary.json")
COUNTING = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
CLIENTS = (
    Training(epochs=1, batch_size=4, learning_rate=0.5, sentences=8, words=6, proximal=0.0, precision="float32"),
    Training(epochs=3, batch_size=3, learning_rate=0.2, sentences=5, words=3, proximal=0.3, precision="float32"),
)


class Chosen:
    """The text of a device in a given order: what `ByOnnx` asks for, without its drawing."""

    client = 0

    def __init__(self, ids: list[list[int]]) -> None:
        self._ids = ids

    def sentence_count(self, client: int) -> int:
        """How many there are."""
        return len(self._ids)

    def padded(self, client: int, chosen: np.ndarray, length: int) -> np.ndarray:
        """In the order of the text, whatever was drawn: the browser draws by other means."""
        rows = np.zeros((len(chosen), length), np.int32)
        for row, ids in enumerate(self._ids[: len(chosen)]):
            rows[row, : len(ids[:length])] = ids[:length]
        return rows


def main() -> None:
    """Make the export, and train on two texts as `tacit device --onnx` does."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "counting.txt").write_text("\n".join(COUNTING))
        typed = {f"{c}": [" ".join(COUNTING[(c + line) % 6 :][:4]) for line in range(8)] for c in range(60)}
        words = VocabularyChoice(word_list=str(folder / "counting.txt"))
        cache = tacit.import_data(TextsOf(typed), folder / "cache", vocabulary=words)
        network = Cifg(vocabulary=cache.manifest.vocabulary.size, embedding=8, units=16)
        settings = Pretraining(sentences=256, every=128)
        tacit.pretrain(cache, folder / "start", model=network, settings=settings, declared_public=True)
        tacit.export(folder / "start", folder / "phone")
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            shutil.copyfile(folder / "phone" / name, FOLDER / name)
        (FOLDER / "expected.json").write_text(json.dumps(expected(folder / "phone")) + "\n", encoding="utf-8")


def expected(phone: Path) -> dict[str, object]:
    """Texts, what training on them moves, and what comes next after a text."""
    exported = load_exported(phone)
    trainer = OnnxTrainer.from_export(exported)
    model = np.concatenate([part.ravel() for part in trainer.begin(exported).values()])
    texts = [" ".join(COUNTING[at % 7 :][: 2 + at % 5]) + (" hundred" if at % 3 else "") for at in range(8)]
    encoded = Tokenizer(exported.vocabulary()).encode(texts)
    ids = [each.tolist() for each in np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])]
    part = ByOnnx.__new__(ByOnnx)
    part._text = Chosen(ids)  # type: ignore[assignment]
    updates = [part._update(trainer, model, client, bytes(32)) for client in CLIENTS]
    reader = OnnxReader.from_export(exported)
    state = reader.begin()
    for token in ids[0][:-1]:
        state, scores = reader.step(state, token)
    return {
        "model": [float(each) for each in model],
        "texts": texts,
        "ids": ids,
        "clients": [client.model_dump() for client in CLIENTS],
        "updates": [[float(each) for each in update] for update, _ in updates],
        "losses": [loss for _, loss in updates],
        "logs": [float(each) for each in scores],
    }


if __name__ == "__main__":
    main()
