"""A worker of a cluster: what it is sent, what it says of itself, and how it trains a shard."""

import os
import pickle
import platform
import socket
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.compute.precision import Precision
from tacit.data import Cache
from tacit.errors import CacheError, InputError
from tacit.process_limits import one_thread
from tacit.training.client import ClientWork, precision_of
from tacit.training.cohort import Workers
from tacit.training.secure_updates import RoundEncoding
from tacit.training.shards import ShardSum
from tacit.training.workers_accelerator import Accelerator
from tacit.training.workers_cores import CoreWorkers
from tacit.version import __version__


class NodeInfo(NamedTuple):
    """Where a worker runs."""

    name: str
    process: int
    versions: Mapping[str, str]  # of what may change a result
    processor: str


class RayWorker:
    """A process of the cluster: one device, and the cache that it opened itself."""

    def __init__(self, kind: str, hardware: Hardware, xla_flags: str) -> None:
        """kind: "GPU" or "CPU". xla_flags: of the process that started training, so that both compile alike."""
        one_thread()
        os.environ["XLA_FLAGS"] = xla_flags
        if kind == "CPU":
            Hardware(workers=1).apply(processor_only=True)
        self._kind, self._hardware, self._job = kind, hardware, b""

    def start(self, job: bytes) -> NodeInfo:
        """Where this is. What is wrong here shows now: CacheError, InputError."""
        self._open(job)
        return NodeInfo(node_name(), os.getpid(), versions(), _processor())

    def train(
        self,
        job: bytes,
        model: NDArray[np.float32],
        clients: NDArray[np.int64],
        seed: bytes,
        clip_norm: float,
        secure: RoundEncoding | None,
    ) -> ShardSum:
        """The sum over one shard, computed as on a single machine."""
        self._open(job)
        (total,) = self._device.shard_sums(
            self._work, jnp.asarray(model), [clients], seed=seed, clip_norm=clip_norm, secure=secure
        )
        return total

    def _open(self, job: bytes) -> None:
        if job == self._job:
            return
        if self._kind == "GPU" and jax.default_backend() == "cpu":
            raise InputError(
                f"the node {node_name()} offers a GPU that JAX does not find; install JAX for it there, or start Ray "
                "there with --num-gpus 0."
            )
        self._work = _work_of(job)
        here: Workers = Accelerator(self._hardware) if self._kind == "GPU" else CoreWorkers(Cores(self._hardware))
        self._device = here
        self._job = job


def job_of(work: ClientWork, length: int) -> bytes:
    """All that a worker must know besides the model, the clients and the seed of a round.

    length: of the flat model. Loss and client algorithm go by their names, the model's structure as shapes, the cache
    as its path and digest: neither code nor text crosses the wire. With it goes the precision of this process, which is
    the run's.
    InputError when the loss or the client algorithm has no name that others can import.
    """
    parts = {field.name: getattr(work, field.name) for field in fields(work)}
    flat = jax.ShapeDtypeStruct((length,), np.float32)  # type: ignore[no-untyped-call]
    parts["unravel"] = jax.eval_shape(work.unravel, flat)
    parts["cache"] = (str(work.cache.path.resolve()), work.cache.manifest.digest)
    parts["computes"] = _computes(work)
    try:
        job = pickle.dumps(parts)
        if b"__main__" in job:
            raise pickle.PicklingError("it is defined in the script that was started")
        return job
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        what = "loss" if work.algorithm is None else "loss or the client algorithm"
        raise InputError(
            f"the {what} cannot be named to another process ({error}); define it at the top level of a module that is "
            "installed on every node."
        ) from error


def _work_of(job: bytes) -> ClientWork:
    parts = pickle.loads(job)
    shapes = parts["unravel"]
    _, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))
    path, digest = parts["cache"]
    computes = parts.pop("computes")
    work = ClientWork(**{**parts, "unravel": unravel, "cache": _same_cache(Path(path), digest)})
    _same_precision(work, computes)
    return work


def _computes(work: ClientWork) -> Precision:
    return precision_of(work, jax.local_devices()[0].platform)


def _same_precision(work: ClientWork, computes: Precision) -> None:
    """A sum of updates in two precisions is the result of neither."""
    if (here := _computes(work)) != computes:
        raise InputError(
            f"the node {node_name()} computes this recipe in {here}, and training was started on one that computes it "
            f'in {computes}; use nodes of one kind, or client.precision = "float32", which all compute.'
        )


def _same_cache(path: Path, digest: str) -> Cache:
    """The cache on this node, all of it read and compared with the digest of the run."""
    wayout = "a worker reads the clients' text itself, so every node needs the cache under this path: share or copy it"
    try:
        cache = Cache.open(path)
        cache.verify()
    except CacheError as error:
        raise CacheError(f"on the node {node_name()}: {error} ({wayout})") from error
    if cache.manifest.digest != digest:
        raise CacheError(
            f"on the node {node_name()}: {path} is not the cache of this run, its digest differs; {wayout}."
        )
    return cache


def versions() -> dict[str, str]:
    """What must be equal everywhere for equal results."""
    return {"tacit": __version__} | {name: version(name) for name in ("jax", "jaxlib", "numpy")}


def node_name() -> str:
    """This machine, as its owner calls it."""
    return socket.gethostname()


def _processor() -> str:
    """Name of the accelerator, or of the CPU with a digest of its features, which compilers look at."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        return str(device.device_kind)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    features = said.get("flags", said.get("Features", ""))  # x86 and ARM say it in different words
    return f"{said.get('model name', platform.machine())} ({sha256(features.encode()).hexdigest()[:8]})"
