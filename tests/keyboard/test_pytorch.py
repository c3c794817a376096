"""`examples/load_in_pytorch.py` gives JAX's scores.

PyTorch brings gigabytes, so no lock has it: skipped where it is not installed (`pip install torch`).
"""

import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.support.keyboard.tabled import words_of

from tacit.keyboard.model_folder import write_model
from tacit.networks.cifg.network import Cifg

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
EXAMPLE = REPOSITORY / "examples" / "load_in_pytorch.py"


@pytest.mark.parametrize("tied", [False, True])
def test_the_scores_are_those_of_jax(tied: bool, tmp_path: Path) -> None:
    vocabulary = words_of(*(f"w{chr(97 + number)}" for number in range(20)))
    network = Cifg(vocabulary=vocabulary.size, embedding=8, units=16, tied=tied)
    parameters = jax.tree.map(lambda leaf: 2.0 * leaf, network.init(jax.random.key(1)))
    write_model(tmp_path, network, parameters, vocabulary.to_json().encode())
    example = runpy.run_path(str(EXAMPLE))
    weights = example["load_file"](tmp_path / "model.safetensors")
    ids = [1, 5, 9, 3, 20, 5, 5]
    ours = np.asarray(network.logits(parameters, jnp.array([ids]))[0])
    np.testing.assert_allclose(example["logits"](weights, ids).tolist(), ours, atol=1e-5)
    done = subprocess.run(
        [sys.executable, EXAMPLE, tmp_path, "wa wb unheard"], capture_output=True, text=True, check=True
    )
    best = np.argsort(-np.asarray(network.logits(parameters, jnp.array([[1, 4, 5, 3]]))[0, -1]))[:5]
    assert done.stdout.strip() == str([vocabulary.word_of(int(id)) for id in best])
