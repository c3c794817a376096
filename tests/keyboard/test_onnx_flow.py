"""Graphs that run longer than they are: a Loop of 2^62 rounds is found without being loaded, ours pass."""

import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tacit.keyboard.onnx_flow import flow_refused


def a_body(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [1]) for each in ("given", "made")]
    return helper.make_graph([*nodes, helper.make_node("Identity", ["given"], ["made"])], name, values[:1], values[1:])


def looping(name: str = "plain") -> onnx.NodeProto:
    return helper.make_node("Loop", ["rounds", "more", "given"], ["after"], body=a_body(name))


def scanning(*inside: onnx.NodeProto) -> onnx.NodeProto:
    return helper.make_node("Scan", ["given"], ["after"], body=a_body("scan", *inside), num_scan_inputs=1)


def either() -> onnx.NodeProto:
    return helper.make_node("If", ["more"], ["after"], then_branch=a_body("then"), else_branch=a_body("else"))


def written(path: Path, *nodes: onnx.NodeProto, functions: list[onnx.FunctionProto] | None = None) -> Path:
    weight = helper.make_tensor("Loop", TensorProto.FLOAT, [1000], np.zeros(1000, np.float32).tobytes(), raw=True)
    graph = a_body("main", *nodes)
    graph.initializer.append(weight)
    path.write_bytes(helper.make_model(graph, functions=functions or []).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([looping()], "has the operation 'Loop', which runs other graphs as often as numbers in the file say"),
        ([either()], "the operation 'If'"),
        ([scanning(looping())], "the operation 'Loop'"),
        ([scanning(scanning())], "has the operation 'Scan' within another"),
        ([scanning(), scanning(either())], "the operation 'If'"),
        ([helper.make_node("BeamSearch", [], [], domain="com.microsoft", decoder=a_body("d"))], "'BeamSearch'"),
    ],
)
def test_what_may_run_for_ever_is_found(nodes: list[onnx.NodeProto], why: str, tmp_path: Path) -> None:
    found = flow_refused(written(tmp_path / "graph.onnx", *nodes))
    assert found is not None and why in found


def test_a_function_may_hide_one(tmp_path: Path) -> None:
    hidden = helper.make_function("own", "F", ["x"], ["y"], [looping()], [helper.make_opsetid("", 18)])
    assert flow_refused(written(tmp_path / "graph.onnx", functions=[hidden])) == "has functions of its own"


def test_a_graph_that_is_said_twice_is_looked_at_twice(tmp_path: Path) -> None:
    """A protocol buffer is put together of both."""
    one = written(tmp_path / "one", scanning()).read_bytes()
    two = written(tmp_path / "two", looping()).read_bytes()
    (tmp_path / "both").write_bytes(one + two)
    assert "Loop" in (flow_refused(tmp_path / "both") or "")


def test_words_and_scans_pass(tmp_path: Path) -> None:
    """A tensor called Loop is no operation."""
    assert flow_refused(written(tmp_path / "graph.onnx", scanning(), scanning())) is None


def test_other_bytes_are_no_graph_and_nothing_else_is_raised(tmp_path: Path) -> None:
    whole, draw = written(tmp_path / "graph.onnx", scanning(scanning(looping()))).read_bytes(), random.Random(5)
    for _ in range(500):
        changed = bytearray(whole)
        for at in draw.sample(range(len(whole)), 3):
            changed[at] = draw.randrange(256)
        (tmp_path / "graph.onnx").write_bytes(changed[: draw.randrange(1, len(whole) + 1)])
        with suppress(ValueError):
            flow_refused(tmp_path / "graph.onnx")
