"""The XLA devices of this machine as workers: items go in, results come out in the order of the items."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

import jax

from tacit.compute.hardware import Hardware
from tacit.compute.profile import of_the_phase
from tacit.errors import InputError


class Cores:
    """The workers of this machine: one XLA device each, fed from one queue; a core, or an accelerator if it has any."""

    def __init__(self, hardware: Hardware) -> None:
        devices = jax.local_devices()
        cores_requested = hardware.workers if devices[0].platform == "cpu" else 0  # which says nothing of accelerators
        wanted = cores_requested or len(devices)
        if wanted > len(devices):
            raise InputError(
                f"workers={wanted} is more than the {len(devices)} devices of this process; use at most that."
            )
        self.devices, self._requested = devices[:wanted], cores_requested
        self._free: SimpleQueue[Any] = SimpleQueue()
        for device in self.devices:
            self._free.put(device)
        self._pool = ThreadPoolExecutor(wanted, thread_name_prefix="worker")

    @property
    def idle(self) -> str | None:
        """The advice for a process that computed with JAX before workers were requested, and so has too few."""
        there = os.cpu_count() or 1
        chosen = self._requested or "JAX_NUM_CPU_DEVICES" in os.environ or self.devices[0].platform != "cpu"
        if chosen or len(self.devices) >= there:
            return None
        return (
            f"{len(self.devices)} of {there} cores will train: this process computed with JAX before it was asked for "
            "workers, and keeps the devices that it has; begin with tacit.compute.Hardware().apply(), or train first."
        )

    def map(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> list[Any]:
        """[work(device, item) ...] in the order of the items, each on whichever worker is free."""
        return list(self.stream(work, items))

    def stream(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """The results of `map` one by one; at most two a worker are computed ahead of what was taken.

        Where a profile counts, an item counts for the phase in which it was given to the workers.
        """

        def run(item: Any) -> Any:
            device = self._free.get()
            try:
                with of_the_phase():
                    return jax.block_until_ready(work(device, item))  # type: ignore[no-untyped-call]
            finally:
                self._free.put(device)

        ahead: deque[Future[Any]] = deque()
        for item in items:
            ahead.append(self._pool.submit(copy_context().run, run, item))
            if len(ahead) > 2 * len(self.devices):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
