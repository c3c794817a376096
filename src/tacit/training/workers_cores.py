"""Shards of a cohort trained on the cores of this machine, one client after another on each."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.compute.profile import READING, TRAINING, beside
from tacit.training.client import NOBODY, ClientWork, gather
from tacit.training.secure_updates import RoundEncoding
from tacit.training.shards import ShardSum, encoded_shard_sum, shard_sum


class CoreWorkers:
    """The cores of this machine as the `Workers` of a cohort."""

    def __init__(self, cores: Cores) -> None:
        self.cores = cores

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
        """See Workers."""
        everybody = np.concatenate(shards)
        work.cache.read_ahead(everybody[everybody != NOBODY])
        broadcast = {device: jax.device_put(model, device) for device in self.cores.devices}

        def one_shard(device: Any, clients: NDArray[np.int64]) -> ShardSum:
            with beside(READING, out_of=TRAINING):  # a worker reads its clients inside its shard
                data = gather(work.cache, clients, work.settings, seed)
            if secure is None:
                return shard_sum(work, broadcast[device], data, clip_norm=clip_norm, device=device)
            return encoded_shard_sum(
                work, broadcast[device], data, clients, seed=seed, clip_norm=clip_norm, secure=secure, device=device
            )

        return self.cores.stream(one_shard, shards)
