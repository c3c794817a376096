"""Reports as bytes: what a device wrote is read, and nothing that breaks the task is."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save
from tests.support.protocol.updates import ENCODED, an_update, words
from tests.support.server.documents import ASSIGNMENT, PARAMETERS, a_task

from tacit.errors import InputError
from tacit.federation import report_shape as expected
from tacit.protocol.bodies import ReportBody, read_model, report_body
from tacit.protocol.served_bodies import model_body, most_bytes, read_report
from tacit.protocol.train import TrainDocument
from tacit.training.report_encoding import STEPS

PLAIN, ASKED = a_task(), a_task(asked=True)


def test_the_loss_has_the_steps_of_training() -> None:
    assert expected.LOSS_STEPS == STEPS


@given(st.booleans(), st.booleans(), st.floats(-5, 5))
def test_what_a_device_wrote_is_read(usable: bool, short: bool, loss: float) -> None:
    update = an_update() if usable else np.zeros(PARAMETERS, np.float32)
    body = report_body(ReportBody(update, usable, short, loss), ASSIGNMENT)
    found = read_report(body, ASKED.asks.shape(), ASSIGNMENT)
    np.testing.assert_array_equal(found.values, update)
    assert (found.usable, found.short, found.bounded_loss) == (usable, short, loss)
    np.testing.assert_array_equal(load(body)["update"], update)  # a file like any other of its kind
    assert len(body) <= most_bytes(ASKED)
    assert len(body) == len(report_body(ReportBody(update, True, True, 0.0), ASSIGNMENT)), "its length says something"


@given(st.integers(0, 100), st.floats(0, 1.5), st.floats(0, 12))
def test_every_encoded_report_of_a_device_is_taken(seed: int, norm: float, loss: float) -> None:
    given = words(norm, loss, seed)
    body = report_body(ReportBody(given, True, None, None), ASSIGNMENT)
    np.testing.assert_array_equal(read_report(body, ENCODED.asks.shape(), ASSIGNMENT).values, given)


def refused(body: bytes, match: str, expected: expected.ReportShape | None = None) -> None:
    with pytest.raises(InputError, match=match):
        read_report(body, expected or PLAIN.asks.shape(), ASSIGNMENT)


def test_no_update_beyond_its_task_is_taken() -> None:
    refused(report_body(ReportBody(an_update(1.501), True, None, None), ASSIGNMENT), "beyond the clip norm 1.5")
    for value in (np.nan, np.inf, np.float32(3e38)):
        update = an_update()
        update[7] = value
        refused(report_body(ReportBody(update, True, None, None), ASSIGNMENT), "finite|beyond")
    refused(report_body(ReportBody(an_update(), False, None, None), ASSIGNMENT), "not usable, and is not zero")
    refused(report_body(ReportBody(an_update()[:-1], True, None, None), ASSIGNMENT), "is not one tensor")
    refused(report_body(ReportBody(an_update(), True, None, None), "f" * 32), "another assignment")
    refused(report_body(ReportBody(an_update(), True, True, None), ASSIGNMENT), "metadata are")
    refused(report_body(ReportBody(words(), True, None, None), ASSIGNMENT), "is not one tensor")
    beyond = report_body(ReportBody(an_update(), True, True, 5.01), ASSIGNMENT)
    refused(beyond, "beyond half its bound", ASKED.asks.shape())


def test_no_words_beyond_their_task_are_taken() -> None:
    assert ENCODED.question(TrainDocument).encoded is not None
    encoding = ENCODED.question(TrainDocument).encoded.encoding()
    dimension, far = encoding.dimension, np.uint32(2 * encoding.largest)
    cases = [
        (0, far + 1, "beyond"),
        (slice(0, dimension), far, "longer than the clip norm"),
        (dimension, 0, "does not count as one"),
        (dimension, 2, "does not count as one"),
        (dimension + 1, 2, "neither 0 nor 1"),
        (dimension + 2, far + 1, "digit"),
        (slice(dimension + 2, None), far, "loss is beyond"),
    ]
    for place, value, match in cases:
        changed = words()
        changed[place] = value
        refused(report_body(ReportBody(changed, True, None, None), ASSIGNMENT), match, ENCODED.asks.shape())


@given(st.integers(1, 2**31), st.integers(0, 100), st.sampled_from([0.0, 0.5, 1.0]))
def test_squares_of_words_are_added_exactly(shift: int, seed: int, ends: float) -> None:
    """ends: the share of words at their bounds, where a sum that is too narrow would be wrong."""
    draw = np.random.default_rng(seed)
    given = draw.integers(0, 2 * shift, 300, endpoint=True)
    given = np.where(draw.random(300) < ends, 2 * shift * draw.integers(2, size=300), given)
    given = np.minimum(given, 2**32 - 1).astype(np.uint32)
    assert expected.squared_norm(given, shift) == sum((int(word) - shift) ** 2 for word in given)


def test_squares_of_many_words_are_added_exactly() -> None:
    for shift in (370_000, 400_000):  # on either side of what float64 adds exactly
        given = np.full(2 * expected.BLOCK + 1, 2 * shift, np.uint32)
        assert expected.squared_norm(given, shift) == len(given) * shift**2


def header(**changed: object) -> bytes:
    tensor = {"dtype": "F32", "shape": [PARAMETERS], "data_offsets": [0, 4 * PARAMETERS]}
    said = {"assignment": ASSIGNMENT, "usable": "true"}
    return json.dumps({"__metadata__": said, "update": tensor} | changed).encode()


def framed(head: bytes, data: bytes | None = None) -> bytes:
    return len(head).to_bytes(8, "little") + head + (an_update().tobytes() if data is None else data)


def test_a_file_that_is_something_else_is_refused_without_harm() -> None:
    read_report(framed(header()), PLAIN.asks.shape(), ASSIGNMENT)
    refused(b"", "no safetensors")
    refused(b"\xff" * 8, "no safetensors")
    refused((2**63).to_bytes(8, "little") + b"{}", "no safetensors")
    refused(framed(b"[" * 4000), "no JSON")
    refused(framed(b'{"update": 1, "update": 2}'), "twice")
    refused(framed(b"[]"), "not one tensor")
    refused(framed(b"\xff\xff"), "no JSON")
    refused(framed(header(other={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})), "not one tensor")
    refused(framed(header(update={"dtype": "F32", "shape": [PARAMETERS], "data_offsets": [4, 164]})), "not one tensor")
    refused(framed(header(__metadata__=[])), "no table of text")
    refused(framed(header(__metadata__={"usable": True})), "no table of text")
    refused(framed(header(__metadata__={"assignment": ASSIGNMENT, "usable": "yes"})), "neither true nor false")
    refused(framed(header(), bytes(4 * PARAMETERS - 1)), "159 bytes")
    refused(framed(header() + b" " * 5000), "no safetensors")


@given(st.binary(max_size=400))
def test_any_bytes_are_a_report_or_refused(data: bytes) -> None:
    for body in (data, framed(data)):
        with pytest.raises(InputError):
            read_report(body, PLAIN.asks.shape(), ASSIGNMENT)


def test_models_are_read_as_they_were_written() -> None:
    model = an_update()
    body = model_body(model)
    np.testing.assert_array_equal(read_model(body, PARAMETERS), model)
    for wrong in (model_body(model[:-1]), save({"weights": model}), model_body(np.full_like(model, np.nan))):
        with pytest.raises(InputError):
            read_model(wrong, PARAMETERS)
