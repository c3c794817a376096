"""An export in a browser's runtime gives what it gives here: onnxruntime-web, run by Node, as WebAssembly.

int4 gives what products of float32 give: the browser's runtime has no products of 8 bits for `MatMulNBits`, so it does
not round what is multiplied, as `accuracy_level` 4 allows and runtimes of processors do.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from tacit.networks.cifg.network import Cifg
from tacit.networks.onnx.quantized import int4, int8
from tacit.networks.onnx.step import step_graph
from tacit.text.vocabulary import BOS, OOV

VARIABLE = "TACIT_ONNXRUNTIME_WEB"
NETWORK = Cifg(vocabulary=400, embedding=40, units=96)
TEXTS = [[BOS, *np.random.default_rng(at).integers(OOV, 400, 5).tolist()] for at in range(20)]
STATES = {"cell": NETWORK.units, "output": NETWORK.embedding}
SCRIPT = """
import fs from 'fs';
import * as ort from 'onnxruntime-web';
ort.env.wasm.numThreads = 1;
const [file, given] = [process.argv[1], JSON.parse(process.argv[2])];
const graph = new Uint8Array(fs.readFileSync(file));
const session = await ort.InferenceSession.create(graph, {executionProviders: ['wasm']});
const whole = value => new ort.Tensor('int64', BigInt64Array.of(BigInt(value)), [1]);
const rows = [];
for (const text of given.texts) {
  let state = {}, found;
  for (const [name, width] of Object.entries(given.states))
    state[name] = new ort.Tensor('float32', new Float32Array(width), [1, width]);
  for (const word of text) {
    found = await session.run({word: whole(word), k: whole(1), ...state});
    for (const name in given.states) state[name] = found[name + '_after'];
  }
  rows.push(Array.from(found.log_probabilities.data));
}
console.log(JSON.stringify(rows));
"""


@pytest.fixture(scope="module")
def web() -> Path:
    """A folder with node_modules/onnxruntime-web; skipped where there is none."""
    folder = Path(os.environ.get(VARIABLE, ""))
    if VARIABLE not in os.environ or not (folder / "node_modules" / "onnxruntime-web").is_dir():
        pytest.skip(f"{VARIABLE} names no folder in which `npm install onnxruntime-web` was run")
    if shutil.which("node") is None:
        pytest.skip("the program node is not installed")
    return folder


def in_browser(model: ModelProto, web: Path, folder: Path) -> Any:
    """log p of all words after each text, (texts, V)."""
    (folder / "step.onnx").write_bytes(model.SerializeToString())
    given = json.dumps({"texts": TEXTS, "states": STATES})
    command = ["node", "--input-type=module", "-e", SCRIPT, "--", str(folder / "step.onnx"), given]
    done = subprocess.run(command, cwd=web, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout))


def here(model: ModelProto) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = []
    for text in TEXTS:
        state = {name: np.zeros((1, width), np.float32) for name, width in STATES.items()}
        for word in text:
            given = {"word": np.array([word]), "k": np.array([1]), **state}
            found = dict(zip([each.name for each in session.get_outputs()], session.run(None, given), strict=True))
            state = {name: found[f"{name}_after"] for name in STATES}
        rows.append(found["log_probabilities"][0])
    return np.array(rows)


def exact(model: ModelProto) -> ModelProto:
    """The same with products of float32."""
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 0
    return model


def begun() -> ModelProto:
    """Larger than a training begins, so that what comes next depends on what was read."""
    return step_graph(NETWORK, jax.tree.map(lambda leaf: 2 * leaf, NETWORK.init(jax.random.key(7))))


def test_float32(web: Path, tmp_path: Path) -> None:
    np.testing.assert_allclose(in_browser(begun(), web, tmp_path), here(begun()), atol=1e-4)


def test_int8(web: Path, tmp_path: Path) -> None:
    """But for numbers just between two of 8 bits, which the last bit of a sum before them moves."""
    found, wanted, plain = in_browser(int8(begun()), web, tmp_path), here(int8(begun())), here(begun())
    assert np.abs(found - wanted).mean() < 0.15 * np.abs(wanted - plain).mean()


def test_int4_is_that_without_rounding_what_is_multiplied(web: Path, tmp_path: Path) -> None:
    found, rounded, plain = in_browser(int4(begun()), web, tmp_path), here(int4(begun())), here(begun())
    np.testing.assert_allclose(found, here(exact(int4(begun()))), atol=1e-4)
    assert 0 < np.abs(found - rounded).max() < np.abs(found - plain).max()
