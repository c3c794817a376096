"""What a server counts, for Prometheus: how many, how long, how much, and nothing about any device.

Workers of one machine share the counts through files in the folder that PROMETHEUS_MULTIPROC_DIR names, so that it does
not matter which of them is asked.
"""

import os
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

SHARED = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def forget_process(pid: int) -> None:
    """What a process that ended held just then, nobody holds any more; what it counted stays counted."""
    if SHARED in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


class Metrics:
    """A worker's."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def count(name: str, said: str, *labels: str) -> Counter:
            return Counter(f"tacit_{name}", said, labels, registry=registry)

        def level(name: str, said: str, *labels: str, of: Literal["mostrecent", "livesum"]) -> Gauge:
            return Gauge(f"tacit_{name}", said, labels, multiprocess_mode=of, registry=registry)

        self.check_ins = count("check_ins", "Devices that checked in, by what they were told", "answer")
        self.reports = count("reports", "Reports that came, by what became of them", "answer")
        self.report_bytes = count("report_bytes", "Bytes of reports, as they came")
        self.model_bytes = count("model_bytes", "Bytes of models, as they went")
        self.problems = count("problems", "Requests that were refused, by type", "type")
        self.rounds = level("round_devices", "Devices of a run's open round, by where", "run", "where", of="mostrecent")
        self.devices = level(
            "devices", "Devices of a population that come, as they are counted", "population", of="mostrecent"
        )
        self.held = level("reports_unwritten", "Reports in memory alone", of="livesum")
        self.seconds = Histogram(
            "tacit_store_seconds",
            "How long the store took, by what it did",
            ["did"],
            buckets=SECONDS,
            registry=registry,
        )

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
