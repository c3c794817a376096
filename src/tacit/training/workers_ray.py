"""Shards of a cohort trained on the machines of a Ray cluster.

Every core (or accelerator) of the cluster runs one process that reads the clients' text from the cache on its own
machine and trains one shard after another, as a core of a single machine would. What crosses the wire in a round is the
model, once a machine; the clients' numbers and the seed of their randomness; and back one sum a shard. The noise key
and the noise stay with the process that started training.

A shard's sum does not depend on who computes it, and `train_cohort` adds the sums in the order of the shards. So a
round has the same bits on any number of workers, and a worker that is lost costs the time of its shards alone.
"""

import heapq
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.errors import InputError, TrainingError
from tacit.extras import of_extra
from tacit.progress import Progress, Warned, silent
from tacit.training.client import ClientWork
from tacit.training.ray_worker import NodeInfo, RayWorker, job_of, versions
from tacit.training.secure_updates import RoundEncoding
from tacit.training.shards import ShardSum

ANSWERS_WITHIN = 30.0  # seconds for a cluster to answer; Ray by itself tries for minutes
STARTS_WITHIN = 120.0  # seconds for the first worker to start
LOSSES = 3  # a shard whose worker was lost more often has a fault of its own
AHEAD = 2  # shards at a worker: one in hand, one so that it need not wait for the wire


@contextmanager
def open_cluster(
    address: str, *, progress: Progress = silent, hardware: Hardware | None = None
) -> Iterator["RayWorkers"]:
    """The workers of a running Ray cluster, of which this machine is a node.

    address: "auto" for the cluster that runs here, or "host:port" of its head. progress: is warned when a worker is
    lost, and when the processors differ. hardware: how an accelerator is used, where the cluster has any. Raises:
    InputError when Ray is not installed, or nothing answers within ANSWERS_WITHIN seconds.
    """
    ray = _ray()
    check_cluster(address)
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    try:
        yield RayWorkers(progress, hardware or Hardware())
    finally:
        ray.shutdown()


@dataclass(kw_only=True, eq=False)
class _Member:
    """A worker that was asked for."""

    actor: Any
    starts: Any  # the reply to `start`
    node: NodeInfo | None = None  # known when it has started
    shards: dict[Any, int] = field(default_factory=dict)  # by the reply that will bring their sums

    @property
    def awaited(self) -> list[Any]:
        """The replies that it owes."""
        return list(self.shards) if self.node else [self.starts]


class RayWorkers:
    """The workers of the cluster that this process is connected to; see `Workers`.

    One per accelerator where the cluster has any, else one per core; those of nodes that join later come with the next
    round. On cores, sums have the bits of `Cores` where all processors are of one kind: the compiler chooses
    instructions, and with them the order of additions, by the processor. On accelerators they agree within rounding.
    """

    def __init__(self, progress: Progress, hardware: Hardware) -> None:
        self._ray = _ray()
        self._progress = progress
        self._hardware = replace(hardware, workers=1)  # a worker has one device
        self._crew: list[_Member] = []
        self._kinds: set[str] = set()

    @property
    def nodes(self) -> list[NodeInfo]:
        """Where the workers that have started run."""
        return [member.node for member in self._crew if member.node]

    def shard_sums(
        self,
        work: ClientWork,
        model: Array,
        shards: Sequence[NDArray[np.int64]],
        *,
        seed: bytes,
        clip_norm: float,
        secure: RoundEncoding | None = None,
    ) -> Iterator[ShardSum]:
        """See Workers. At most AHEAD shards a worker are computed ahead of what was taken.

        Raises: CacheError when a node lacks the cache; InputError when it has other versions; TrainingError when no
        worker starts, or when a shard's workers are lost again and again.
        """
        job = job_of(work, len(model))
        broadcast = self._ray.put(np.asarray(model))
        due = list(range(len(shards)))  # a heap: what was lost goes first
        done: dict[int, ShardSum] = {}
        losses: Counter[int] = Counter()
        for member in self._crew:
            member.shards.clear()  # of a round that was given up
        self._recruit(job)
        for wanted in range(len(shards)):
            while wanted not in done:
                while due and due[0] < wanted + AHEAD * len(self.nodes) and (idle := self._idlest()):
                    number = heapq.heappop(due)
                    reply = idle.actor.train.remote(job, broadcast, shards[number], seed, clip_norm, secure)
                    idle.shards[reply] = number
                member, reply = self._next()
                try:
                    answer = self._ray.get(reply)
                except self._ray.exceptions.RayTaskError as error:
                    raise (error.cause or error) from None  # a refusal of the worker's, which names its node
                except self._ray.exceptions.RayError as error:  # its process, its node or its answer is gone
                    lost = list(member.shards.values())
                    losses.update(lost)
                    self._dismiss(member, error, hopeless=max(losses.values(), default=0) > LOSSES)
                    if lost:
                        self._recruit(job)
                    for number in lost:
                        heapq.heappush(due, number)
                    continue
                if member.node is None:
                    self._welcome(member, answer)
                else:  # copied, so that the cluster's memory is free again
                    done[member.shards.pop(reply)] = ShardSum(*(np.array(part) for part in answer))
            yield done.pop(wanted)

    def _recruit(self, job: bytes) -> None:
        """Ask for as many workers as the cluster has places."""
        has = self._ray.cluster_resources()
        kind = "GPU" if has.get("GPU") else "CPU"
        one = self._ray.remote(num_cpus=1, num_gpus=int(kind == "GPU"), max_restarts=0)(RayWorker)
        for _ in range(int(has.get(kind, 0)) - len(self._crew)):
            actor = one.remote(kind, self._hardware, os.environ.get("XLA_FLAGS", ""))
            self._crew.append(_Member(actor=actor, starts=actor.start.remote(job)))

    def _idlest(self) -> _Member | None:
        """Who should have the next shard, if anybody."""
        free = [member for member in self._crew if member.node and len(member.shards) < AHEAD]
        return min(free, key=lambda member: len(member.shards), default=None)

    def _next(self) -> tuple[_Member, Any]:
        """A reply that has come, be it an error, and whose it is."""
        owed = {reply: member for member in self._crew for reply in member.awaited}
        patience = None if self.nodes else STARTS_WITHIN
        come = self._ray.wait(list(owed), timeout=patience)[0] if owed else []
        if not come:
            raise TrainingError(
                f"no worker started within {STARTS_WITHIN:.0f} s on a cluster with {self._ray.cluster_resources()}; "
                "`ray status` says who holds its cores."
            )
        return owed[come[0]], come[0]

    def _welcome(self, member: _Member, node: NodeInfo) -> None:
        for name, version in versions().items():
            if node.versions[name] != version:
                raise InputError(
                    f"the node {node.name} has {name} {node.versions[name]}, and training was started with "
                    f"{version}; install the same version on every node."
                )
        member.node = node
        if self._kinds and node.processor not in self._kinds:
            self._progress(
                Warned(
                    "processors differ",
                    f"the processors differ ({node.processor} on {node.name}, {', '.join(self._kinds)} elsewhere): "
                    "the last bits of a model depend on which of them trained which shard.",
                )
            )
        self._kinds.add(node.processor)

    def _dismiss(self, member: _Member, error: Exception, *, hopeless: bool) -> None:
        """Part with a worker that was lost; give up when that is hopeless or nobody is left."""
        self._crew.remove(member)
        self._ray.kill(member.actor)  # it may be only out of reach, and would keep the place of another
        where = member.node
        who = "a worker that had not started" if where is None else f"the worker {where.process} on {where.name}"
        line = f"{who} was lost ({_reason(error)})"
        if hopeless:
            raise TrainingError(
                f"{line}, after {LOSSES} others with the same clients; if memory ran out, give Ray fewer CPUs there."
            )
        if where is None and not self._crew:
            raise TrainingError(f"no worker can start: {line}; is tacit[cluster] installed on every node?")
        message = f"{line}; its clients are trained again elsewhere." if where else f"{line}."
        self._progress(Warned("worker lost", message))


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before the import; nothing is told to its makers
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # nor printed into our output; warnings say what matters
    return of_extra("cluster")


def check_cluster(address: str) -> None:
    """Refuse an address that cannot be joined; see `open_cluster`.

    Another process asks, because Ray waits for minutes where nobody answers and may end the process that asked.
    """
    wayout = (
        "start one with `ray start --head`, let this machine join it with `ray start --address HOST:PORT`, "
        "and see docs/cluster.md"
    )
    if address != "auto":
        if not (parts := re.fullmatch(r"(?!ray://)(.+):(\d{1,5})", address)):
            raise InputError(f"--cluster '{address}' must be auto or HOST:PORT of the cluster's head; {wayout}.")
        try:
            socket.create_connection((parts[1], int(parts[2])), timeout=ANSWERS_WITHIN).close()
        except (OSError, OverflowError) as error:
            raise InputError(f"no cluster answers at '{address}' ({error}); {wayout}.") from error
    _ray()  # or its absence would be that process's, in other words
    join = "import ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')"
    try:
        subprocess.run(
            [sys.executable, "-c", join, address],
            check=True,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWERS_WITHIN,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"no cluster answers at '{address}' within {ANSWERS_WITHIN:.0f} s; {wayout}.") from error
    except subprocess.CalledProcessError as error:
        raise InputError(f"the cluster '{address}' cannot be joined ({_last_line(error.stderr)}); {wayout}.") from error


def _reason(error: Exception) -> str:
    """Ray's messages are pages; what happened stands in their first line, what failed at a start in their last."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason was given"
