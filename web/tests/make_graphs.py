"""`step.onnx` and `train.onnx` of networks with small random numbers, for `graphs.test.ts`: all that a cell can have.

python web/tests/make_graphs.py: rewrites `fixtures/graphs`. `eight_bits.onnx` is one that a page refuses.
"""

import sys
from pathlib import Path

import jax
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.networks.strange import Strange

from tacit.networks.cifg.network import Cifg
from tacit.networks.gru import Gru
from tacit.networks.onnx.quantized import int8
from tacit.networks.onnx.step import step_graph
from tacit.networks.onnx.training import training_graph

FOLDER = Path(__file__).parent / "fixtures" / "graphs"
NETWORKS = {
    "cifg": Cifg(vocabulary=30, embedding=5, units=9),
    "tied": Cifg(vocabulary=30, embedding=5, units=9, tied=True),
    "gru": Gru(vocabulary=30, embedding=5, units=9),
    "strange": Strange(vocabulary=30),
}


def main() -> None:
    """Each network's graph: numbers so large that its gates open and close, so small that it is not chaotic."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed, (name, network) in enumerate(NETWORKS.items()):
        leaves, made = jax.tree.flatten(network.init(jax.random.key(seed)))
        keys = jax.random.split(jax.random.key(seed), len(leaves))
        drawn = [0.5 * jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
        graph = step_graph(network, jax.tree.unflatten(made, drawn))
        onnx.save(graph, FOLDER / f"{name}.onnx")
        onnx.save(training_graph(network), FOLDER / f"{name}.train.onnx")
        if name == "cifg":
            onnx.save(int8(graph), FOLDER / "eight_bits.onnx")


if __name__ == "__main__":
    main()
