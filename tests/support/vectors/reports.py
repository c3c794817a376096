"""Vectors of reports in the clear: bodies byte by byte, and bodies that a server refuses."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.support.server.documents import ASSIGNMENT, a_task
from tests.support.vectors.case import Case, case, file_of
from tests.support.vectors.documents import QUESTIONS

from tacit.errors import InputError
from tacit.protocol.bodies import ReportBody, read_matrix, read_model, report_body, sha256
from tacit.protocol.messages import RoundTask
from tacit.protocol.served_bodies import matrix_body, model_body, read_report

RULE = "#a-report"
UPDATE = [0.25, -0.5, 0.0, 1e-7]
SECRET = "78" * 32


def _task(asks: Mapping[str, Any]) -> RoundTask:
    return RoundTask.from_json(json.dumps({**json.loads(a_task().to_json()), "asks": asks}))


def _train(**changed: Any) -> dict[str, Any]:
    asks: dict[str, Any] = json.loads(a_task().to_json())["asks"]
    return {**asks, "parameters": len(UPDATE), **changed}


WORDS = QUESTIONS["discover words"]
LOCAL = {"kind": "count", "cells": [3, 4], "local_epsilon": 2.0, "norms": None}
REPORTS: Mapping[str, tuple[dict[str, Any], ReportBody]] = {
    "an update": (_train(), ReportBody(np.array(UPDATE, np.float32), True, None, None)),
    "an update, asked about both": (
        _train(clip_estimate=1.0, loss_bound=10.0),
        ReportBody(np.array(UPDATE, np.float32), True, True, -1.25),
    ),
    "an update, longer than the estimate": (
        _train(clip_estimate=0.5, clip_norm=0.6),
        ReportBody(np.array(UPDATE, np.float32), True, False, None),
    ),
    "an update, a loss in other digits": (
        _train(loss_bound=10.0),
        ReportBody(np.array(UPDATE, np.float32), True, None, 0.1 + 0.2),
    ),
    "nothing to say": (
        _train(clip_estimate=1.0, loss_bound=10.0),
        ReportBody(np.zeros(4, np.float32), True, True, 0.0),
    ),
    "not usable": (_train(), ReportBody(np.zeros(4, np.float32), False, None, None)),
    "votes for words": (WORDS, ReportBody(np.array([0, 1, 0, 0], np.uint32), True, None, None)),
    "histograms": (
        QUESTIONS["count"],
        ReportBody(np.array([0, 1, 0, 0, 0, 0, 1], np.uint32), True, None, None),
    ),
    "a randomised histogram": (LOCAL, ReportBody(np.array([0, 1, 0, 0, 0, 0, 0, 1, 0], np.uint32), True, None, None)),
    "sums": (
        {**QUESTIONS["count sums"], "norms": [1.5, 20.0]},
        ReportBody(np.array([0, 1, 0, 3, 0, 17, 2], np.uint32), True, None, None),
    ),
}


def _said(report: ReportBody) -> dict[str, Any]:
    return {
        "values": report.values.tolist(),
        "usable": report.usable,
        "short": report.short,
        "bounded_loss": report.bounded_loss,
    }


def _written() -> list[Case]:
    found = []
    for name, (asks, report) in REPORTS.items():
        body = report_body(report, ASSIGNMENT)
        digest = sha256(body)
        headers = {
            "Authorization": f"Bearer {SECRET}",
            "Content-Type": "application/octet-stream",
            "Content-Length": str(len(body)),
            "X-Content-SHA256": digest,
        }
        said = {"asks": asks, "report": _said(report), "body": body.hex(), "sha256": digest, "headers": headers}
        found.append(case(name, RULE, **said))
    return found


def _file(header: Any, data: bytes, *, pad: int = 512) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text = text.ljust(pad)
    return struct.pack("<Q", len(text)) + text + data


def _bodies() -> dict[str, tuple[dict[str, Any], bytes]]:
    """(what is asked, the body), good and bad."""
    update = np.array(UPDATE, "<f4").tobytes()
    tensor = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    meta = {"assignment": ASSIGNMENT, "usable": "true"}
    good = {"__metadata__": meta, "update": tensor}
    train, both = _train(), _train(clip_estimate=1.0, loss_bound=10.0)

    def with_meta(**changed: Any) -> bytes:
        return _file({**good, "__metadata__": {**meta, **changed}}, update)

    def floats(*numbers: float) -> bytes:
        return _file(good, np.array(numbers, "<f4").tobytes())

    words = {"dtype": "U32", "shape": [4], "data_offsets": [0, 16]}
    cells = {"dtype": "U32", "shape": [7], "data_offsets": [0, 28]}

    def counts(name: Mapping[str, Any], *numbers: int) -> bytes:
        return _file({"__metadata__": meta, "words": name}, np.array(numbers, "<u4").tobytes())

    found = {
        "keys in another order": (train, _file({"update": tensor, "__metadata__": meta}, update)),
        "a header that is not filled up": (train, _file(good, update, pad=0)),
        "a header of 4,096 bytes": (train, _file(good, update, pad=4096)),
        "a header of 4,097 bytes": (train, _file(good, update, pad=4097)),
        "no bytes": (train, b""),
        "a length beyond the body": (train, struct.pack("<Q", 4000) + b"{}"),
        "a header that is no JSON": (train, _file(b"{", update)),
        "a header with a key twice": (train, _file(json.dumps(good).encode()[:-1] + b', "update": 1}', update)),
        "another tensor beside it": (train, _file({**good, "more": tensor}, update)),
        "another name": (train, _file({"__metadata__": meta, "words": tensor}, update)),
        "another type": (train, _file({**good, "update": {**tensor, "dtype": "F64"}}, update)),
        "another shape": (train, _file({**good, "update": {**tensor, "shape": [2, 2]}}, update)),
        "a number less": (train, _file({**good, "update": {**tensor, "shape": [3]}}, update[:12])),
        "a byte less": (train, _file(good, update[:-1])),
        "a byte more": (train, _file(good, update + b"\0")),
        "no metadata": (train, _file({"update": tensor}, update)),
        "metadata that are no text": (train, with_meta(usable=True)),
        "another assignment": (train, with_meta(assignment="ab" * 16)),
        "metadata that nobody asked for": (train, with_meta(short="true")),
        "usable in capitals": (train, with_meta(usable="True")),
        "not usable, and not zero": (train, with_meta(usable="false")),
        "the bit and the loss left out": (both, _file(good, update)),
        "a loss at half the bound": (both, with_meta(short="true", bounded_loss="-5.0")),
        "a loss beyond half the bound": (both, with_meta(short="true", bounded_loss="5.1")),
        "a loss without a point": (both, with_meta(short="true", bounded_loss="5")),
        "a loss with an exponent": (both, with_meta(short="true", bounded_loss="1e-7")),
        "a loss that is NaN": (both, with_meta(short="true", bounded_loss="nan")),
        "a loss with a plus": (both, with_meta(short="true", bounded_loss="+1.0")),
        "a bit that is a number": (both, with_meta(short="1", bounded_loss="1.0")),
        "NaN": (train, floats(float("nan"), 0, 0, 0)),
        "an infinity": (train, floats(float("inf"), 0, 0, 0)),
        "as long as it may be": (train, floats(1.5, 0, 0, 0)),
        "longer by a rounding": (train, floats(1.50001, 0, 0, 0)),
        "longer by more": (train, floats(1.5001, 0, 0, 0)),
        "votes above K": (WORDS, counts(words, 0, 2, 0, 0)),
        "more votes together than K reports have": (WORDS, counts(words, 1, 1, 0, 0)),
        "a device in two cells": (QUESTIONS["count"], counts(cells, 1, 1, 0, 0, 0, 0, 1)),
        "a device in no cell": (QUESTIONS["count"], counts(cells, 1, 0, 0, 0, 0, 0, 0)),
        "a two in a cell": (QUESTIONS["count"], counts(cells, 2, 0, 0, 0, 0, 0, 1)),
        "sums at their norms": (QUESTIONS["count sums"], counts(cells, 0, 1, 0, 20, 0, 0, 0)),
        "sums beyond a norm": (QUESTIONS["count sums"], counts(cells, 1, 1, 1, 20, 0, 0, 0)),
    }
    return {name: (dict(asks), body) for name, (asks, body) in found.items()}


def _read(asks: Mapping[str, Any], body: bytes) -> ReportBody | None:
    """The report of a body, as a server takes it; None where it refuses it."""
    try:
        return read_report(body, _task(asks).asks.shape(), ASSIGNMENT)
    except InputError:
        return None


def _received() -> list[Case]:
    return [
        case(name, RULE, asks=asks, body=body.hex(), accepted=_read(asks, body) is not None)
        for name, (asks, body) in _bodies().items()
    ]


def _files() -> list[Case]:
    """Models and matrices, as a device reads them."""
    numbers = [0.5, -1.5, 3.25]
    model, matrix = model_body(np.array(numbers, np.float32)), matrix_body(np.array([[1.0, 0.5], [2.0, 0.0]]))
    not_finite = model_body(np.array([1.0, np.nan, 1.0], np.float32))
    found = {
        "a model": (model, "model", numbers),
        "a model of another length": (model_body(np.array(numbers[:2], np.float32)), "model", None),
        "a model that is not finite": (not_finite, "model", None),
        "a model that is cut off": (model[:-1], "model", None),
        "a matrix of two rounds and two bands, read as a model": (matrix, "model", None),
        "a matrix": (matrix, "matrix", [1.0, 0.5, 2.0, 0.0]),
    }
    return [
        case(name, RULE, body=body.hex(), sha256=sha256(body), tensor=tensor, values=values)
        for name, (body, tensor, values) in found.items()
    ]


def file() -> dict[str, Any]:
    """The content of `reports.json`."""
    return file_of(
        "`cases`: the `body` that this program writes of a `report` for the question `asks`, with the request's "
        "`headers` for the assignment and the secret below. Another order of keys in a header is as good, and so are "
        "other digits of one loss. `received`: whether a server takes a body. `files`: a file of a device's, with "
        "the tensor that it looks for (three numbers of a model, two rows of two of a matrix) and its `values`, null "
        "where it refuses the file. Bytes are in hexadecimal digits.",
        _written(),
        assignment=ASSIGNMENT,
        secret=SECRET,
        received=_received(),
        files=_files(),
    )


def check(each: Case) -> None:
    """That this program decides a case of the file as it says."""
    body = bytes.fromhex(each["body"])
    found = _read(each["asks"], body)
    assert found is not None and _said(found) == each["report"], each["name"]
    assert sha256(body) == each["sha256"] == each["headers"]["X-Content-SHA256"], each["name"]


def check_received(each: Case) -> None:
    """The same."""
    assert (_read(each["asks"], bytes.fromhex(each["body"])) is not None) is each["accepted"], each["name"]


def check_file(each: Case) -> None:
    """The same."""
    body, values = bytes.fromhex(each["body"]), each["values"]
    try:
        found = read_model(body, 3) if each["tensor"] == "model" else read_matrix(body, 2, 2).ravel()
    except InputError:
        assert values is None, each["name"]
        return
    assert found.tolist() == values and sha256(body) == each["sha256"], each["name"]
