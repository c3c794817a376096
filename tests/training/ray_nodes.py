"""A Ray cluster on this machine, held by a process of its own: Ray forks to start nodes, which JAX's threads forbid."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


class Nodes:
    """Nodes of one core each; the first one is there from the start and stays."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self._answer()

    def add(self) -> None:
        self._ask("add")

    def remove(self) -> None:
        """The one that was added last, as if its plug was pulled."""
        self._ask("remove")

    def stop(self) -> None:
        self._process.communicate("stop\n", timeout=600)

    def _ask(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        assert answer, "the cluster could not be started"
        return answer


def answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def serve() -> None:
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray")  # sockets lie in it, whose paths must be short
    os.environ["RAY_TMPDIR"] = folder  # Ray writes an address into its folder `ray` and does not make it
    (Path(folder) / "ray").mkdir()
    head = {**NODE, "include_dashboard": False, "temp_dir": f"{folder}/ray"}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    answer(cluster.address)
    added: list[Any] = []
    for line in sys.stdin:
        if line.strip() == "add":
            added.append(cluster.add_node(**NODE))
            cluster.wait_for_nodes()
        elif line.strip() == "remove":
            cluster.remove_node(added.pop(), allow_graceful=False)
        else:
            break
        answer("done")
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    serve()
