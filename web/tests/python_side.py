"""What tacit in Python makes of a report from TypeScript: a round of one and three of its own, for `python.test.ts`.

`python python_side.py begin FOLDER PARAMETERS` writes what the device is given; `end` opens the sum. Both follow from a
seed, so that the second is in the round of the first. `begin-counts` and `end-counts` are the same of one histogram of
so many cells.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.secure_aggregation.decoding import decode
from tacit.secure_aggregation.encoding import encode
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.simulation import OneMessageParties

REPORTS = 4
SIGNS, ROUNDING = b"\x05" * 32, b"\x06" * 32


def encoding_of(parameters: int) -> Encoding:
    return encoding_within(parameters, clip_norm=1.0, report_goal=REPORTS)


def updates_of(parameters: int) -> np.ndarray:
    """(REPORTS, parameters) float32: one shorter than the clip norm, the others longer."""
    norms = np.array([[0.5], [2.0], [3.0], [10.0]]) / parameters**0.5
    return (np.random.default_rng(parameters).normal(0, 1, (REPORTS, parameters)) * norms).astype(np.float32)


def parties_of(encoding: Encoding, folder: Path) -> OneMessageParties:
    return OneMessageParties.from_settings(
        REPORTS,
        folder,
        dimension=encoding.dimension,
        largest=2 * encoding.largest,
        seed=encoding.parameters,
        report_goal=REPORTS,
    )


def begin(folder: Path, parameters: int) -> None:
    encoding = encoding_of(parameters)
    names = ("parameters", "dimension", "clip_norm", "scale", "report_goal", "sigmas", "margin")
    with tempfile.TemporaryDirectory() as keys:
        settings = parties_of(encoding, Path(keys)).settings
    (folder / "settings.bin").write_bytes(settings.to_bytes())
    updates = updates_of(parameters)
    for index, update in enumerate(updates):
        (folder / f"update-{index}.bin").write_bytes(update.astype("<f4").tobytes())
        words = encode(update, encoding, signs=SIGNS, rounding=ROUNDING)
        (folder / f"words-{index}.bin").write_bytes(words.astype("<u4").tobytes())
    said = {name: getattr(encoding, name) for name in names}
    said |= {"largest": encoding.largest, "longest_squared": str(encoding.longest_squared), "bits": encoding.bits}
    (folder / "encoding.json").write_text(json.dumps(said | {"signs": SIGNS.hex()}), encoding="utf-8")


def end(folder: Path, parameters: int) -> None:
    """The device has written report.bin and sealed.bin, the words in it."""
    encoding, updates = encoding_of(parameters), updates_of(parameters)
    sealed = np.frombuffer((folder / "sealed.bin").read_bytes(), "<u4").astype(np.uint32)
    words = [sealed] + [
        encode(each, encoding, signs=SIGNS, rounding=bytes([index]) * 32) for index, each in enumerate(updates[1:])
    ]
    with tempfile.TemporaryDirectory() as keys:
        total = opened(parties_of(encoding, Path(keys)), (folder / "report.bin").read_bytes(), words)
    exact = np.sum(words, axis=0, dtype=np.uint32)
    norms = np.linalg.norm(updates.astype(np.float64), axis=1, keepdims=True)
    clipped = updates * np.minimum(1.0, encoding.clip_norm / norms)
    error = np.linalg.norm(decode(total, encoding, signs=SIGNS, reports=REPORTS) - clipped.sum(axis=0))
    # A fraction that is uniform is rounded with variance 1/6; of the rotated coordinates the padding is cut off again.
    expected = (REPORTS * encoding.parameters / 6) ** 0.5 / encoding.scale
    shifted = sealed.astype(np.int64) - encoding.largest
    report = {
        "sum_is_exact": bool((total == exact).all()),
        "error_over_expected": float(error / expected),
        "squared_norm_over_longest": float((shifted**2).sum() / encoding.longest_squared),
    }
    (folder / "found.json").write_text(json.dumps(report), encoding="utf-8")


def counting_parties(cells: int, folder: Path) -> OneMessageParties:
    return OneMessageParties.from_settings(REPORTS, folder, dimension=cells, largest=1, seed=cells, report_goal=REPORTS)


def begin_counts(folder: Path, cells: int) -> None:
    with tempfile.TemporaryDirectory() as keys:
        settings = counting_parties(cells, Path(keys)).settings
    (folder / "settings.bin").write_bytes(settings.to_bytes())


def end_counts(folder: Path, cells: int) -> None:
    """The device has written report.bin, of its cell; the others are in the cells 0, 1 and 2."""
    words = [np.zeros(cells, np.uint32), *np.eye(cells, dtype=np.uint32)[: REPORTS - 1]]
    with tempfile.TemporaryDirectory() as keys:
        total = opened(counting_parties(cells, Path(keys)), (folder / "report.bin").read_bytes(), words)
    (folder / "found.json").write_text(json.dumps([int(each) for each in total]), encoding="utf-8")


def opened(parties: OneMessageParties, report: bytes, words: list[np.ndarray]) -> np.ndarray:
    """The sum of that report and of the other parties' own."""
    others = [
        one_message_report(parties.settings, identity, vector).to_bytes()
        for identity, vector in zip(parties.identities[1:], words[1:], strict=True)
    ]
    waiting = [parties.server.receive(each) for each in (report, *others)]
    opening = parties.server.opening().to_bytes()
    for index, decryptor in enumerate(parties.decryptors):
        decryptor.receive(opening)
        for deposits in waiting:  # each finds whether the report fits what is in its box
            finding = decryptor.receive(deposits[index].to_bytes())
            assert finding is not None
            parties.server.answer(finding.to_bytes())
    assert not parties.server.wrong, parties.server.wrong
    proposal = parties.server.propose().to_bytes()
    for decryptor in parties.decryptors:
        vote = decryptor.receive(proposal)
        assert vote is not None
        parties.server.answer(vote.to_bytes())
    agreement = parties.server.agreement().to_bytes()
    for index, decryptor in enumerate(parties.decryptors):
        decryptor.receive(agreement)
        answers = [decryptor.receive(deposits[index].to_bytes()) for deposits in waiting]
        for answer in answers:
            if answer is not None:
                parties.server.answer(answer.to_bytes())
    return parties.server.opened()


if __name__ == "__main__":
    does = {"begin": begin, "end": end, "begin-counts": begin_counts, "end-counts": end_counts}
    does[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
