"""Who is asked about models: simulated clients of a cache, or real devices without identities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.accuracy import first_asked
from tacit.evaluation.collect import Collector, Counted, HistogramTask
from tacit.evaluation.settings import ReleasePrice
from tacit.files import PathLike
from tacit.jobs.begin import checked_cache
from tacit.progress import Progress
from tacit.records import to_plain
from tacit.runs import Run
from tacit.runs.metadata import AskingMetadata, DeploymentUsed

NOBODY_ANSWERS = 1e-6  # a chance that nobody takes


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Clients of a cache, each as its own device; their exact answers are known."""

    cache: Cache
    split_name: str
    clients: NDArray[np.int64]  # their numbers, in the order of asking
    deployment: ClassVar[None] = None
    asked_by: ClassVar[None] = None
    more: ClassVar[str] = "import more clients"

    @property
    def count(self) -> int:
        """How many are asked."""
        return len(self.clients)

    @property
    def vocabulary(self) -> dict[str, str]:
        """SHA-256 of the words of their text, under its name."""
        return {str(self.cache.path): self.cache.manifest.vocabulary.sha256}

    @property
    def source(self) -> str:
        """Where their text comes from."""
        return self.cache.manifest.source

    def asked(self, split_name: str) -> dict[str, Any]:
        """As the settings of a run name them."""
        path, digest = str(self.cache.path.resolve()), self.cache.manifest.digest
        return {"data": {"path": path, "sha256": digest, "split": split_name}}

    def about(self, split_name: str) -> dict[str, Any]:
        """As a report names them."""
        return {"data": str(self.cache.path), "split_name": split_name}

    def __str__(self) -> str:
        """As an error names them, after their number."""
        return f"clients of the {self.split_name} split"


@dataclass(frozen=True, kw_only=True)
class Devices:
    """Real devices that come when they may; nobody has their answers but they."""

    count: int  # how many are asked
    deployment: DeploymentUsed
    asked_by: str  # the class of the collector
    vocabulary: ClassVar[dict[str, str]] = {}  # each device looks whether it has the words of the model
    more: ClassVar[str] = "ask more (clients)"

    @property
    def source(self) -> str:
        """Where their text comes from."""
        return f"what was typed on devices of the population '{self.deployment.population}'"

    def asked(self, split_name: str) -> dict[str, Any]:
        """As the settings of a run name them."""
        plain = {name: value for name, value in to_plain(self.deployment).items() if value is not None}
        return {"deployment": plain}

    def about(self, split_name: str) -> dict[str, Any]:
        """As a report names them."""
        return {"population": self.deployment.population}

    def __str__(self) -> str:
        """As an error names them, after their number."""
        return "devices"


def asked_whom(
    data: Cache | PathLike | None,
    split_name: str,
    clients: int,
    price: ReleasePrice | None,
    collector: Collector | None,
    progress: Progress,
) -> Simulated | Devices:
    """clients: of the settings: how many are asked at most, or how many devices. Raises: InputError, CacheError."""
    if collector is None:
        if data is None:
            raise InputError("whose text models are asked about is not said; give a cache, or a collector of devices.")
        cache = checked_cache(data, progress=progress)
        numbers = first_asked(cache.clients(split_name), clients)
        return Simulated(cache=cache, split_name=split_name, clients=numbers)
    deployment = getattr(collector, "deployment", None)
    if not isinstance(deployment, DeploymentUsed):
        raise InputError(
            f"the collector {type(collector).__name__} does not say what its devices keep by themselves, so nothing "
            "can be promised to them; give it `deployment`, a tacit.runs.metadata.DeploymentUsed."
        )
    if data is not None:
        raise InputError("devices have their own text; leave the cache out, or the collector.")
    if price is None:
        raise InputError(
            "of devices nothing is known but what is released; give a price (zcdp, epsilon or local_epsilon)."
        )
    if price.secure_sum is not None:
        raise InputError("secure_sum is played by a simulation; of devices the collector sums, so leave it out.")
    if clients < 1:
        raise InputError("how many devices are asked is not said; give clients.")
    cls = type(collector)
    return Devices(count=clients, deployment=deployment, asked_by=f"{cls.__module__}.{cls.__qualname__}")


def check_answered(task: HistogramTask) -> None:
    """Raises: InputError where devices that draw which histogram they answer may leave one without an answer."""
    many = len(task.histograms)
    if task.local_epsilon is None or many * (1 - 1 / many) ** task.devices <= NOBODY_ANSWERS:
        return
    least = int(np.ceil(np.log(NOBODY_ANSWERS / many) / np.log1p(-1 / many)))
    raise InputError(
        f"each of {task.devices:,} devices draws which of {many} histograms it answers, and some histogram might have "
        f"no answer; ask {least:,} devices or more in each step, or for fewer histograms."
    )


class AllReleased:
    """The devices of a run that released all it ever will: they are asked nothing more."""

    def __init__(self, run: Run, deployment: DeploymentUsed) -> None:
        self._run, self.deployment = run, deployment

    def collect(self, task: HistogramTask) -> Counted:
        """Raises: RunError."""
        raise RunError(
            f"step {task.step} of '{self._run.path}' is not released, and its devices are asked by the server; go on "
            "with the `tacit serve` that began it."
        )


def asked_again(run: Run, settings: Mapping[str, Any]) -> tuple[str | None, dict[str, str], Collector | None]:
    """Whom a run asks, by its settings: (the cache, or None; the name of the split where there is one; the collector
    of devices that answered, or None).
    """
    deployment = run.metadata.deployment if isinstance(run.metadata, AskingMetadata) else None
    if deployment is not None:
        return None, {}, AllReleased(run, deployment)
    return settings["data"]["path"], {"split_name": settings["data"]["split"]}, None
